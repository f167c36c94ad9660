"""The bundled conversation that `everkept demo` and the tests play: invented people, eight weeks, sixteen sittings.

`conversation.jsonl` has the shape that the JSONL importer reads; `questions.json` holds recalls worth showing.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import as_file, files
from pathlib import Path

SUBJECT = "marta"
"""Whose memory the conversation is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoQuestion:
    text: str
    as_of: datetime | None
    """Aware; the moment in the past that the question is asked about."""
    evidence: tuple[int, ...]
    """Lines of the conversation, from 1, that answer it (`ParsedMessage.line`)."""
    why: str
    """What the recall shows."""


def conversation() -> AbstractContextManager[Path]:
    """The conversation as a file on disk, for as long as the context is open (it may come out of a zip)."""
    return as_file(files(__name__) / "conversation.jsonl")


def questions() -> list[DemoQuestion]:
    """The recalls to show, in the order of showing."""
    raw = json.loads((files(__name__) / "questions.json").read_text(encoding="utf-8"))
    return [
        DemoQuestion(
            text=item["text"],
            as_of=datetime.fromisoformat(item["as_of"]) if item["as_of"] else None,
            evidence=tuple(item["evidence"]),
            why=item["why"],
        )
        for item in raw
    ]
