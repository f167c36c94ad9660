"""What a prompt has said already, so that one sentence does not come as a turn, a fact and a summary (F04). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SENTENCE = re.compile(r"[^.!?。！？।؟\n]+")
_SPEAKER = re.compile(r"[^:\n]{1,60}: ")
BYTES_MIN: Final = 12
"""A shorter saying ("Yes.") means something only where it stands, and is never taken for a repetition."""


class Said:
    """The sentences of what was shown, compared without case, spaces and end marks."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._sentences: set[str] = set()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        for line in text.splitlines():
            self._sentences.update(*_readings(line))

    def holds(self, text: str) -> bool:
        """Whether every line of it was said, with the name of a speaker before it or without."""
        if len(text.strip().encode()) < BYTES_MIN:
            return False
        return all(self._holds_line(line) for line in text.splitlines() if line.strip())

    def _holds_line(self, line: str) -> bool:
        return any(found and found <= self._sentences for found in _readings(line))


def _readings(line: str) -> list[set[str]]:
    """Its sentences as they stand and, where the line may begin with the name of a speaker, without that."""
    name = _SPEAKER.match(line)
    return [_sentences(line)] if name is None else [_sentences(line), _sentences(line[name.end() :])]


def _sentences(line: str) -> set[str]:
    found = (" ".join(part.split()).casefold().strip("\"'“”‘’ ") for part in _SENTENCE.findall(line))
    return {sentence for sentence in found if sentence}
