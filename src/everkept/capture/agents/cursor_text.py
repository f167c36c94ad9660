"""Cursor's older transcripts, plain text: `user:` and `assistant:`, and in the latter `[Thinking]`, `[Tool call] NAME`
with indented arguments, and `[Tool result] NAME`. Each line of the file counts, the first of a section for its event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from everkept.capture.agents.building import ReadingBuilder, Taken, Verdict
from everkept.capture.agents.cursor_tools import AGENT, Calls, account, place_of, project_folder, take_prompt
from everkept.capture.agents.reading import Line, Reading
from everkept.capture.agents.records import Record, lines_in

_MARK = re.compile(r"(user|assistant):[ \t]*$|\[(Thinking|Tool call|Tool result)\][ \t]?(.*)$")
_ARGUMENT = re.compile(r"[ \t]+(\w+): ?(.*)$")
_SIGNS: Final = ("<user_query>", "[Tool call]", "[Thinking]")
_LINES_LOOKED_AT: Final = 200


@dataclass(slots=True, kw_only=True)
class _Section:
    kind: str
    """user, assistant, Thinking, Tool call, Tool result; empty for what stands before the first mark."""
    name: str
    """What stands behind the mark: the tool."""
    lines: list[Line] = field(default_factory=list)
    """With that of the mark itself."""

    @property
    def text(self) -> str:
        """Without the mark."""
        return "\n".join(line.raw for line in self.lines[1:]).strip()


def is_text_transcript(path: Path) -> bool:
    """By its first lines: a role first, and a mark of this format soon."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = [file.readline(4096).rstrip() for _ in range(_LINES_LOOKED_AT)]
    except OSError:
        return False
    first = next((line for line in head if line), "")
    return first in ("user:", "assistant:") and any(line.startswith(_SIGNS) for line in head)


def read_text_transcript(path: Path) -> Reading:
    session, parent = place_of(path)
    built = ReadingBuilder(AGENT, path, session)
    built.parent = parent
    built.cwd = project_folder(path)
    calls = Calls(built)
    for section in _sections(path):
        first, rest = _taken(section, built, calls)
        for nth, line in enumerate(section.lines):
            blank = not line.raw.strip()
            account(built.reading, line, first if nth == 0 else "blank line" if blank else rest)
    return built.finish()


def _sections(path: Path) -> list[_Section]:
    found = [_Section(kind="", name="")]
    for line in lines_in(path):
        mark = _MARK.match(line.raw)
        if mark is not None:
            found.append(_Section(kind=mark[1] or mark[2], name=(mark[3] or "").strip()))
        elif found[-1].kind == "Thinking" and not line.raw.strip():  # a thought ends with its paragraph
            found.append(_Section(kind="assistant", name=""))
        found[-1].lines.append(line)
    return found


def _taken(section: _Section, built: ReadingBuilder, calls: Calls) -> tuple[Verdict, Verdict]:
    """What the first line of a section was good for, and what the others were."""
    match section.kind:
        case "":
            return Taken.UNREADABLE, Taken.UNREADABLE
        case "Thinking":
            return "thinking", "thinking"
        case "Tool call":
            return calls.asked(section.name, _arguments(section)), Taken.MERGED
        case "Tool result":
            return calls.answered(section.text, {}), Taken.MERGED
        case _ if not section.text:
            return "empty message", "empty message"
        case "user":
            return take_prompt(built, section.text), Taken.MERGED
        case _:
            return built.add("said", section.text), Taken.MERGED


def _arguments(section: _Section) -> Record:
    """`  name: value`, a line each; other lines go on with the value before."""
    found: dict[str, str] = {}
    name = ""
    for line in section.lines[1:]:
        if (argument := _ARGUMENT.match(line.raw)) is not None:
            name, found[argument[1]] = argument[1], argument[2]
        elif name:
            found[name] += f"\n{line.raw}"
    return {name: value.strip() for name, value in found.items()}
