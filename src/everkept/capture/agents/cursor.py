"""Cursor's sessions: `~/.cursor/projects/<folder>/agent-transcripts/<session>/<session>.jsonl` (or `.txt`), and the
database of its editor, `…/Cursor/User/globalStorage/state.vscdb`.

The JSONL has a role and the blocks of a message a line, no ids and no times but `<timestamp>` blocks, often no results;
in place of reasoning stands `[REDACTED]`. A session is called by its file. What only the editor keeps is read from its
database, in `cursor_editor.py`; older versions wrote plain text, read in `cursor_text.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Final

from everkept.capture.agents.building import ReadingBuilder, Verdict, strongest
from everkept.capture.agents.cursor_editor import is_editor_store, read_editor_store
from everkept.capture.agents.cursor_text import is_text_transcript, read_text_transcript
from everkept.capture.agents.cursor_tools import AGENT, Calls, place_of, project_folder, take_prompt
from everkept.capture.agents.reading import Format, Reading, as_text
from everkept.capture.agents.records import Record, first_records, lines_in, oldest_first, record_in, text_in

_EDITOR_FOLDERS: Final = ("Library/Application Support/Cursor", ".config/Cursor", "AppData/Roaming/Cursor")
_DETAILS: Final = {"user": "", "assistant": "", "system": "system message", "tool": "tool message"}
_ROLES: Final = frozenset(_DETAILS)
_REDACTED: Final = "[REDACTED]"
_TIMESTAMP: Final = ("<timestamp>", "</timestamp>")
_WRITTEN_TIME = re.compile(
    r"(?:[A-Za-z]+, )?([A-Z][a-z]{2})[a-z]* ([0-9]{1,2}), ([0-9]{4}),? ([0-9]{1,2}):([0-9]{2}) ?([AP]M)"
    r"(?: \((?:UTC|GMT)([+-][0-9]{1,2})?)?"
)
_MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def find(home: Path) -> Iterator[Path]:
    """Every transcript below `~/.cursor`, oldest first, then the editor's databases."""
    projects = home / ".cursor" / "projects"
    transcripts = [*projects.glob("*/agent-transcripts/**/*.jsonl"), *projects.glob("*/agent-transcripts/**/*.txt")]
    yield from oldest_first(transcripts)
    folders = [home / folder for folder in _EDITOR_FOLDERS]
    if roaming := os.environ.get("APPDATA"):
        folders.append(Path(roaming) / "Cursor")
    stores = {folder / "User" / "globalStorage" / "state.vscdb" for folder in folders}
    yield from oldest_first(store for store in stores if store.is_file())


def recognise(path: Path) -> bool:
    return is_editor_store(path) or any(map(_is_ours, first_records(path))) or is_text_transcript(path)


def read(path: Path) -> Reading:
    if is_editor_store(path):
        return read_editor_store(path)
    if is_text_transcript(path):
        return read_text_transcript(path)
    return _Transcript(path).read()


def _is_ours(record: Record) -> bool:
    """A role and the blocks of a message, and nothing that other agents have."""
    role = text_in(record, "role")
    content = record_in(record, "message").get("content")
    return role in _ROLES and isinstance(content, str | list) and not text_in(record, "type", "sessionId")


class _Transcript:
    """One file, line by line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        session, parent = place_of(path)
        self._built = ReadingBuilder(AGENT, path, session)
        self._built.parent = parent
        self._built.cwd = project_folder(path)
        self._calls = Calls(self._built)
        self._turn_at_us: int | None = None
        self._thoughts = 0

    def read(self) -> Reading:
        reading = self._built.read(lines_in(self._path), self._take)
        if self._thoughts:
            reading.notes.append(f"{self._thoughts} blocks of thinking left out")
        return reading

    def _take(self, record: Record) -> Verdict:
        if text_in(record, "type") == "turn_ended":
            return self._turn_ended(record)
        message = record_in(record, "message") or record
        role = text_in(record, "role") or text_in(message, "role")
        if role not in _ROLES:
            return text_in(record, "type") or "no role"
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        text = content if isinstance(content, str) else as_text([b for b in blocks if b.get("type") == "text"])
        self._place(message, text)
        verdicts = self._words(role, text)
        verdicts += [verdict for block in blocks if (verdict := self._block(block)) is not None]
        return strongest(*verdicts) if verdicts else _nothing_in(blocks, text)

    def _place(self, message: Record, text: str) -> None:
        """A line without a time happened in its turn, which may say when it began."""
        self._built.model = text_in(message, "model") or None
        opening, closing = _TIMESTAMP
        if opening in text:
            self._turn_at_us = written_time_us(text.partition(opening)[2].partition(closing)[0])
        if self._built.at_us is None:
            self._built.at_us = self._turn_at_us

    def _words(self, role: str, text: str) -> list[Verdict]:
        if role == "user":
            return [take_prompt(self._built, text)] if text.strip() else []
        text = text.replace(_REDACTED, "").strip()
        return (
            [self._built.add("said" if role == "assistant" else "other", text, detail=_DETAILS[role])] if text else []
        )

    def _block(self, block: Record) -> Verdict | None:
        match block.get("type"):
            case "tool_use":
                return self._calls.asked(text_in(block, "name"), block.get("input"), native=text_in(block, "id"))
            case "tool_result":
                told = {"error": "is_error"} if block.get("is_error") is True else {}
                return self._calls.answered(as_text(block.get("content")), told, native=text_in(block, "tool_use_id"))
            case "thinking" | "redacted_thinking":
                self._thoughts += 1
        return None

    def _turn_ended(self, record: Record) -> Verdict:
        status = text_in(record, "status")
        if interrupted := status in ("aborted", "cancelled"):
            self._built.interrupt(f"turn_ended {status}")
        detail = "interrupted" if interrupted else status
        return self._built.add("turn_end", text_in(record, "error"), sign="", detail=detail)


def written_time_us(text: str) -> int | None:
    """Of `Friday, Jul 31, 2026, 5:10 PM (UTC-5)`, in microseconds since 1970; UTC where no zone is given."""
    found = _WRITTEN_TIME.match(text.strip())
    if found is None or found[1] not in _MONTHS:
        return None
    hour = int(found[4]) % 12 + (12 if found[6] == "PM" else 0)
    try:
        zone = timezone(timedelta(hours=int(found[7] or 0)))
        moment = datetime(int(found[3]), _MONTHS.index(found[1]) + 1, int(found[2]), hour, int(found[5]), tzinfo=zone)
        return int(moment.astimezone(UTC).timestamp()) * 1_000_000
    except (ValueError, OverflowError):  # the 31st of February, a zone of 40 hours, the year 0
        return None


def _nothing_in(blocks: list[Record], text: str) -> str:
    kinds = [text_in(block, "type") for block in blocks]
    if _REDACTED in text or any("thinking" in kind for kind in kinds):
        return "thinking"
    return f"message of {kinds[0]}" if kinds and kinds[0] not in ("", "text") else "empty message"


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
