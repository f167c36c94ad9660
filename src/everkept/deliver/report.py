"""What a person should know of a wiki, kept in its repository so that every process can tell it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

_NAME = "everkept-report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiReport:
    """Of one project's wiki."""

    project: str
    folder: str
    attention: str | None = None
    """Why it waits for a person; None while it follows."""
    conflicts: dict[str, str] = field(default_factory=dict)
    """{file: why this edit was not taken in}, for as long as the file is there."""
    out_of_reach: list[str] = field(default_factory=list)
    """Remotes that were there when something was erased: what was pushed to them is not erased by us."""


def read_report(folder: Path) -> WikiReport | None:
    try:
        said = json.loads((folder / ".git" / _NAME).read_text("utf-8"))
        return WikiReport(**said)
    except (OSError, ValueError, TypeError):
        return None


def write_report(report: WikiReport) -> None:
    """Conflicts whose files are gone are settled, and left out."""
    folder = Path(report.folder)
    there = {path: why for path, why in report.conflicts.items() if (folder / path).exists()}
    report = replace(report, conflicts=there)
    if report == read_report(folder):
        return
    half = folder / ".git" / f"{_NAME}.half"
    half.write_text(json.dumps(asdict(report), ensure_ascii=False, indent=1), "utf-8")
    half.replace(folder / ".git" / _NAME)
