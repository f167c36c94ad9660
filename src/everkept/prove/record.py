"""What clients asked and what they were told, kept outside the system under test: the oracle for "nothing lost" (G1).

A file of JSON lines. A client writes what it asks before it asks, and the answer before it goes on, each with one
`O_APPEND` write, so that any number of processes may share a file and a kill leaves whole lines. An asking without an
answer may have happened or not; an answer binds.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

VERBS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        # messages: [{"key": text or null, "content": text, "name": text or null, where one was given}, …];
        # told: seqs, the place of each in its thread
        "append": frozenset({"project", "thread", "subject", "messages"}),
        "create": frozenset({"project", "thread", "subject"}),
        "end": frozenset({"project", "thread"}),
        # told: fact, its number
        "remember": frozenset({"project", "subject", "text", "key"}),
        # fact: its number; text: what it states; undo: brought back
        "forget": frozenset({"project", "fact", "text", "undo"}),
        # kind: event, thread, subject or project; name: of the thread or subject, null for a project; seq: of an event
        "erase": frozenset({"project", "kind", "name", "seq"}),
        # told: cursor, where the consumer stands now
        "ack": frozenset({"project", "consumer", "upto"}),
        "rename": frozenset({"project", "new"}),
        # a paid question to a model; told: reply, its text
        "question": frozenset({"step"}),
        # any other command: a query of one value, what it gives before the command and after it
        "change": frozenset({"what", "sql", "before", "after"}),
        # asks for work to be done again, on purpose
        "reprocess": frozenset({"project"}),
    }
)
"""What is asked, with its fields. Projects, threads, subjects and consumers are named as clients name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One asking and what came of it. Lines are places in the record, which order what one client did."""

    id: str
    verb: str
    what: Mapping[str, Any]
    line: int
    told: Mapping[str, Any] | None = None
    """The answer; None where none came."""
    told_line: int | None = None
    refused: str | None = None
    """The error's code where it was refused, and so did not happen."""


@dataclass(frozen=True, slots=True)
class History:
    """A record, read."""

    asked: Sequence[Asked] = field(default_factory=list)

    def of(self, *verbs: str) -> list[Asked]:
        """Those that may have happened, in the order of asking."""
        return [a for a in self.asked if a.verb in verbs and a.refused is None]


class Record:
    """A record that is being written. Every line is written whole and at once; nothing is buffered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def close(self) -> None:
        os.close(self._file)

    def asked(self, verb: str, **what: Any) -> str:
        """Write down what is about to be asked; its id. Raises ValueError for fields that are not the verb's."""
        if VERBS.get(verb) != what.keys():
            raise ValueError(f"{verb} has the fields {sorted(VERBS.get(verb, ()))}, not {sorted(what)}")
        ask = secrets.token_hex(8)
        self._write({"asked": ask, "verb": verb, "what": what})
        return ask

    def told(self, ask: str, **answer: Any) -> None:
        """Write down the answer: from here on it binds."""
        self._write({"told": ask, "answer": answer})

    def refused(self, ask: str, code: str) -> None:
        """Write down that it was refused with this error: it must not have happened."""
        self._write({"refused": ask, "code": code})

    def read(self) -> History:
        return read_record(self.path)

    def _write(self, entry: Mapping[str, Any]) -> None:
        line = (json.dumps(entry) + "\n").encode()
        written = os.write(self._file, line)
        assert written == len(line), "the record's own disk is full"


def read_record(path: Path) -> History:
    """The askings of a record with their answers. A last line without its end is left out."""
    found: dict[str, Asked] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1]):
        entry = json.loads(line)
        if "asked" in entry:
            found[entry["asked"]] = Asked(id=entry["asked"], verb=entry["verb"], what=entry["what"], line=number)
            continue
        before = found[entry.get("told") or entry["refused"]]
        found[before.id] = Asked(
            id=before.id, verb=before.verb, what=before.what, line=before.line, told=entry.get("answer"),
            told_line=number, refused=entry.get("code"),
        )  # fmt: skip
    return History(list(found.values()))
