"""Which records of the spool wait, so that those of one session go in their order and hold up no other session."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from everkept.capture.agents.hook_payload import session_of
from everkept.capture.spool import HookRecord

Session = tuple[str, str]


@dataclass(slots=True)
class _Hold:
    until_s: float
    why: str
    names: set[str] = field(default_factory=set)


class SessionOrder:
    """Of one reader of the spool. `clock` counts seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._holds: dict[Session, _Hold] = {}

    @property
    def waiting(self) -> Mapping[str, str]:
        """{record that waits: why}; these need not be read."""
        return {name: hold.why for hold in self._holds.values() for name in hold.names}

    def release(self) -> None:
        """Let go of the sessions whose time is over: all of their records are due again, in their order."""
        now = self._clock()
        self._holds = {session: hold for session, hold in self._holds.items() if hold.until_s > now}

    def is_behind(self, record: HookRecord) -> bool:
        """Whether an earlier record of its session waits; then it waits, too."""
        hold = self._holds.get(session_of(record.fields))
        if hold is not None:
            hold.names.add(record.name)
        return hold is not None

    def hold(self, record: HookRecord, why: str, for_s: float) -> bool:
        """The record could not go now: it and those of its session wait `for_s` seconds; whether that is news.

        One that does not tell its session is all alone.
        """
        agent, session = session_of(record.fields)
        key = (agent, session or f"record {record.name}")
        news = key not in self._holds
        hold = self._holds.setdefault(key, _Hold(0.0, why))
        hold.until_s, hold.why = self._clock() + for_s, why
        hold.names.add(record.name)
        return news
