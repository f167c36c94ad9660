"""How an import of transcripts is reported: per file and in sum, to people and to programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from everkept.api.page_files import Outcome, PagesReport
from everkept.api.transcripts import TranscriptReport
from everkept.capture.redaction import redact
from everkept.domain.scope import sign_in_words
from everkept.doors.cli.wording import clip, count

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
UNREADABLE_SHOWN = 10
LINE_CHARS = 120
KINDS_SHOWN = 8
UNCHANGED = "unchanged since it was read"


@dataclass(slots=True, kw_only=True)
class Tally:
    """All files together. lines = used + merged + passed by + unreadable."""

    read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """{why a file was not read: files}."""
    lines: int = 0
    used: int = 0
    merged: int = 0
    passed_by: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    new: int = 0
    known: int = 0
    revised: int = 0
    sessions: int = 0
    projects: dict[str, str] = field(default_factory=dict)

    @property
    def faults(self) -> int:
        """What somebody should look at: lines that cannot be read, and files beside those that did not change."""
        return self.unreadable + sum(files for why, files in self.skipped.items() if why != UNCHANGED)


def tally(reports: Sequence[TranscriptReport]) -> Tally:
    total = Tally(sessions=len({session for report in reports for session in report.taken.sessions}))
    for report in reports:
        if report.reading is None:
            total.skipped[report.skipped_because or "not read"] += 1
            continue
        total.read += 1
        total.lines += report.reading.lines
        total.used += report.reading.used
        total.merged += report.reading.merged
        total.passed_by.update(report.reading.passed_by)
        total.unreadable += len(report.reading.unreadable)
        total.new += report.taken.stored
        total.known += report.taken.known
        total.revised += report.taken.revised
        total.projects |= report.taken.projects
    return total


def show_file(report: TranscriptReport) -> None:
    """Two lines a file; one that did not change is only counted."""
    if report.skipped_because == UNCHANGED:
        return
    print(_shown(report.path))
    if report.reading is None:
        print(f"    not read: {report.skipped_because}")
        return
    mine = tally([report])
    where = ", ".join(_project(name, by) for name, by in sorted(mine.projects.items()))
    print(f"    {_lines(mine)}")
    print(f"    {_events(mine)}" + (f" → {where}" if where else ""))
    for number, raw in report.reading.unreadable[:UNREADABLE_SHOWN]:
        print(f"    line {number} cannot be read: {clip(redact(raw).text, LINE_CHARS)}")
    if len(report.reading.unreadable) > UNREADABLE_SHOWN:
        print(f"    and {len(report.reading.unreadable) - UNREADABLE_SHOWN:,} more; --json lists them all")
    for note in report.reading.notes:
        print(f"    {clip(note, 300)}")


def show_sum(reports: Sequence[TranscriptReport]) -> None:
    total = tally(reports)
    parts = [f"{count(total.read, 'file')} read", *(_skipped(*each) for each in total.skipped.items())]
    print(", ".join(parts) + (f"; {count(total.sessions, 'session')}" if total.sessions else ""))
    if not total.read:
        return
    print(f"    {_lines(total)}")
    if total.passed_by:
        print(f"    passed by: {_kinds(total.passed_by)}")
    print(f"    {_events(total)}")
    for name, by in sorted(total.projects.items()):
        print(f"    project {_project(name, by)}")


def show_pages(report: PagesReport) -> None:
    """Instruction and memory files that became pages."""
    told = [f"{report.count(outcome):,} {outcome}" for outcome in OUTCOMES if report.count(outcome)]
    if told:
        print(f"    instruction and memory files as pages: {', '.join(told)}")
    for page in report.pages:
        if page.outcome == "skipped" and page.because:
            print(f"        {page.source}: {page.because}")


def _skipped(why: str, files: int) -> str:
    return f"{files:,} unchanged since" if why == UNCHANGED else f"{files:,} not read: {why}"


def _kinds(passed_by: Counter[str]) -> str:
    shown = [f"{number:,} {clip(why, 60)}" for why, number in passed_by.most_common(KINDS_SHOWN)]
    left = len(passed_by) - len(shown)
    return ", ".join(shown) + (f" and {count(left, 'kind')} more (--json lists them all)" if left > 0 else "")


def _lines(of: Tally) -> str:
    return (
        f"{count(of.lines, 'line')} = {of.used:,} used + {of.merged:,} merged + {of.passed_by.total():,} passed by"
        f" + {of.unreadable:,} unreadable"
    )


def _events(of: Tally) -> str:
    return f"events: {of.new:,} new, {of.known:,} known, {of.revised:,} revised"


def _project(name: str, found_by: str) -> str:
    return clip(name if found_by == "named" else f"{name} (found by the {sign_in_words(found_by)})", 300)


def _shown(path: Path) -> str:
    try:
        return clip(f"~/{path.relative_to(Path.home())}", 300)
    except ValueError:
        return clip(str(path), 300)


def as_dict(reports: Sequence[TranscriptReport], pages: PagesReport) -> dict[str, Any]:
    """`files`, their `sum`, and `pages`; unreadable lines stand in it whole, but for secrets."""
    files = [_file(report) for report in reports]
    return {"files": files, "sum": _numbers(tally(reports)), "pages": [asdict(page) for page in pages.pages]}


def _file(report: TranscriptReport) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": str(report.path), "agent": report.agent, "skipped_because": report.skipped_because,
    }  # fmt: skip
    if report.reading is None:
        return found
    mine = _numbers(tally([report]))
    del mine["files"], mine["skipped"]
    lines = [{"line": number, "text": redact(raw).text} for number, raw in report.reading.unreadable]
    return found | mine | {"unreadable": lines, "notes": report.reading.notes}


def _numbers(of: Tally) -> dict[str, Any]:
    return {
        "files": of.read, "skipped": dict(of.skipped), "lines": of.lines, "used": of.used, "merged": of.merged,
        "passed_by": dict(of.passed_by), "unreadable": of.unreadable, "new": of.new, "known": of.known,
        "revised": of.revised, "sessions": of.sessions, "projects": of.projects,
    }  # fmt: skip
