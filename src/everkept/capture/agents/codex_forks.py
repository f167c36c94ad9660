"""Which lines of a Codex rollout repeat the history of another session: a fork begins with a copy of its parent's."""

from __future__ import annotations

from typing import Final

from everkept.capture.agents.records import Record, text_in, time_us

COPIED: Final = "history of the session it was forked from"
_COPY_US: Final = 2_000_000
"""The copy is written in one go when the fork begins: a later line is the fork's own."""
_SLACK_US: Final = 1_000_000
"""Starts of turns are told in whole seconds."""


class CopiedHistory:
    """Follows the heads (`session_meta`) and lines of one rollout, in their order."""

    def __init__(self) -> None:
        self._own = ""
        self._is_fork = False
        self._started_us: int | None = None
        self._until_us: int | None = None
        """While lines are copies: when the copy was surely written."""

    def begin(self, session: str, *, started_us: int | None, is_fork: bool) -> None:
        """The first head says whose file this is."""
        if not self._own:
            self._own, self._started_us, self._is_fork = session, started_us, is_fork

    def opens_with(self, session: str, at_us: int | None) -> bool:
        """Whether a head belongs to the copy: another session's, in the file of a fork."""
        if not self._is_fork or at_us is None or session in ("", self._own):
            return False
        self._until_us = max(at_us, self._started_us or 0) + _COPY_US
        return True

    def covers(self, payload: Record, at_us: int | None) -> bool:
        """Whether a line is a copy; the first turn that started after the fork ends it, or the first later line."""
        if self._until_us is None:
            return False
        started_us = time_us(payload.get("started_at")) if text_in(payload, "type").endswith("_started") else None
        own_turn = (
            None not in (started_us, self._started_us) and (started_us or 0) >= (self._started_us or 0) - _SLACK_US
        )
        if own_turn or (at_us is not None and at_us > self._until_us):
            self._until_us = None
        return self._until_us is not None
