"""What an agent wrote into its transcripts since it was launched, as numbered events of the launch.

Hooks tell most of it sooner; natural keys make the two one. Where hooks have linked sessions to the launch these are
read, else those at work in the launch's folder.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from everkept.api.service import Service
from everkept.api.transcripts import read_allowed
from everkept.capture.agents.formats import FORMATS
from everkept.capture.identity import Checkout, look_at
from everkept.domain.session import UNNAMED, AgentEvent, is_unique_by_itself, kept, own_name

EVENTS_MAX: Final = 1_000
"""In one batch."""
SESSIONS_PAGE: Final = 1_000
SLACK_US: Final = 2_000_000
"""So much earlier than the launch an event may be dated by an agent's own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Tail:
    """Of one launch; each `send` takes up what is new since the one before."""

    launch: str
    agent: str
    checkout: Checkout
    since_us: int
    home: Path
    """Everkept's, which knows while which sessions were off."""
    session: str | None = None
    """The session that told last, by the agent's own name."""
    cursor: str | None = None
    """How far its transcript was read."""
    _seen: dict[Path, _Seen] = field(default_factory=dict)
    _sent: dict[str, int] = field(default_factory=dict)
    """{key: what the event was like}."""

    async def send(self, memory: Service) -> int:
        """Send what is new; how many events. Raises what the memory raises: they are sent again the next time."""
        format_ = FORMATS.get(self.agent)
        if format_ is None:
            return 0
        grown = await asyncio.to_thread(self._grown)
        if not grown:
            return 0
        launch = await memory.get_launch(self.launch)
        linked = await _linked_sessions(memory, launch.workstream_id, self.launch)
        count, number = 0, launch.acknowledged + 1
        for path, seen in grown:
            events = await asyncio.to_thread(self._new_in, path, linked)
            while events:
                piece, events = events[:EVENTS_MAX], events[EVENTS_MAX:]
                taken = await memory.launch_events(self.launch, piece, first=number)
                number = taken.acknowledged + 1
                count += len(piece)
                self._sent |= {event.key: hash(kept(event)) for event in piece}
                self.session = piece[-1].session
                self.cursor = json.dumps({"path": str(path), "bytes": seen.size})
            self._seen[path] = seen
        return count

    def _grown(self) -> list[tuple[Path, _Seen]]:
        """The agent's transcripts that changed since the launch, and since they were read last."""
        found = []
        for path in FORMATS[self.agent].find(Path.home()):
            try:
                told = path.stat()
            except OSError:  # it was there a moment ago
                continue
            seen = _Seen(size=told.st_size, mtime_ns=told.st_mtime_ns)
            if told.st_mtime_ns // 1_000 >= self.since_us - SLACK_US and self._seen.get(path) != seen:
                found.append((path, seen))
        return found

    def _new_in(self, path: Path, linked: frozenset[str]) -> list[AgentEvent]:
        try:
            reading, _ = read_allowed(FORMATS[self.agent], path, None, home=self.home)
        except OSError:  # it is read the next time
            return []
        mine = reading.events
        if linked:
            mine = [e for e in mine if own_name(e.session or UNNAMED) in linked]
        if not (linked and all(is_unique_by_itself(e.session) for e in mine)) and not self._is_here(reading.events):
            return []  # a name that is not unique is another session's in another folder
        return [e for e in mine if self._is_since(e) and self._sent.get(e.key) != hash(kept(e))]

    def _is_since(self, event: AgentEvent) -> bool:
        return event.occurred_at_us is None or event.occurred_at_us >= self.since_us - SLACK_US

    def _is_here(self, events: Sequence[AgentEvent]) -> bool:
        """Whether the session works in the launch's worktree."""
        cwd = next((e.cwd for e in events if e.cwd), None)
        return cwd is not None and look_at(Path(cwd)).place == self.checkout.place


async def _linked_sessions(memory: Service, workstream: str, launch: str) -> frozenset[str]:
    """By their agents' own names."""
    names: set[str] = set()
    cursor: str | None = None
    while True:
        page = await memory.list_linked_sessions(workstream, launch=launch, limit=SESSIONS_PAGE, cursor=cursor)
        names |= {one.native_id for one in page.items}
        cursor = page.next_cursor
        if cursor is None:
            return frozenset(names)
