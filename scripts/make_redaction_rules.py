"""Write the vendored redaction rules from a release's `config/gitleaks.toml` (MIT, see the licence beside the rules).

    python scripts/make_redaction_rules.py path/to/gitleaks.toml 8.30.1

Kept: what looks at text (pattern, group, entropy, keywords, allowlists). Left out: descriptions, conditions on paths,
and sample keys that an allowlist spells out, because hosting sites take them for live ones.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src/everkept/capture/redaction/gitleaks.json"
SPELLED_OUT = "gcp-api-key"
"""The rule whose allowlist holds whole sample keys."""


def convert(source: bytes, version: str) -> dict[str, Any]:
    """The rules as the engine reads them."""
    config = tomllib.loads(source.decode())
    return {
        "source": f"gitleaks {version}, config/gitleaks.toml",
        "sha256": hashlib.sha256(source).hexdigest(),
        "allowed": [_allowlist(config["allowlist"])],
        "rules": [_rule(rule) for rule in config["rules"]],
    }


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    allowed = [] if rule["id"] == SPELLED_OUT else [_allowlist(a) for a in rule.get("allowlists", []) if _sees_text(a)]
    return {
        "id": rule["id"],
        "regex": rule.get("regex", ""),
        "group": rule.get("secretGroup", 0),
        "entropy": rule.get("entropy", 0),
        "keywords": [word.lower() for word in rule.get("keywords", [])],
        "allowed": allowed,
    }


def _sees_text(allowlist: dict[str, Any]) -> bool:
    """One that wants a path, too, can never hold for a text without one."""
    wants_path = allowlist.get("condition") == "AND" and "paths" in allowlist
    return not wants_path and bool(allowlist.get("regexes") or allowlist.get("stopwords"))


def _allowlist(allowlist: dict[str, Any]) -> dict[str, Any]:
    return {
        "target": allowlist.get("regexTarget", "secret"),
        "regexes": allowlist.get("regexes", []),
        "stopwords": [word.lower() for word in allowlist.get("stopwords", [])],
    }


def main() -> None:
    source, version = sys.argv[1:]
    rules = convert(Path(source).read_bytes(), version)
    TARGET.write_text(json.dumps(rules, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
