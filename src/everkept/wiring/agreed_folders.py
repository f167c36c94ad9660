"""Checkouts on this machine whose rule files follow by themselves, because somebody here asked for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from everkept.wiring import files

FILE: Final = "rule_files.json"


def agreed_folders(home: Path) -> dict[Path, str]:
    """{top folder of a checkout: its project}. Empty where nothing was agreed, or the file cannot be read."""
    content = files.read_bytes(home / FILE)
    try:
        found = {} if content is None else json.loads(content)
    except ValueError:
        return {}
    return {Path(root): str(project) for root, project in found.items()} if isinstance(found, dict) else {}


def agree(home: Path, root: Path, project: str | None) -> None:
    """From now on its files follow; `None`: no more."""
    kept = {str(path): name for path, name in agreed_folders(home).items() if path != root}
    if project is not None:
        kept[str(root)] = project
    files.replace(home / FILE, (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode() if kept else None)
