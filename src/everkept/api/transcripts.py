"""Taking in the transcripts that coding agents keep: found by themselves, read wholly, merged at any time."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from everkept.api.base import Parts
from everkept.api.intake import Intake, Taken
from everkept.capture.agents.formats import FORMATS, recognise
from everkept.capture.agents.off_times import without_off
from everkept.capture.agents.policy import narrowed, policy_at
from everkept.capture.agents.reading import Format, Reading
from everkept.capture.identity import Checkout, look_at, with_root
from everkept.domain.session import AgentEvent
from everkept.errors import InvalidInput
from everkept.store.transcripts import FileState, is_unchanged, note_read

EVENTS_AT_ONCE = 1_000
END_BYTES = 65_536
"""So much of a file's end tells it from another of the same size and time: its last lines, or all of a small one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptReport:
    """What became of one file. lines = used + merged + passed by + unreadable."""

    path: Path
    agent: str | None
    """None: nobody recognised it."""
    reading: Reading | None
    """None where it was not read: unchanged, unknown, or not to be opened."""
    taken: Taken
    skipped_because: str | None = None
    left_out: Counter[str] = field(default_factory=Counter)
    """{what of the folder's `.everkept.toml`: events that lost something or all by it}."""


def find_transcripts(home: Path, agents: Sequence[str] = ()) -> Iterator[tuple[Format, Path]]:
    """Every transcript of these agents (of all) below a home folder, oldest first within an agent."""
    unknown = [a for a in agents if a not in FORMATS]
    if unknown:
        raise InvalidInput(f"there is no agent {unknown[0]!r}; known are: {', '.join(FORMATS)}", field="agent")
    for name in agents or FORMATS:
        for path in FORMATS[name].find(home):
            yield FORMATS[name], path


def formats_of(paths: Iterable[Path], agent: str | None) -> Iterator[tuple[Format | None, Path]]:
    """Files given by hand (of folders, every file in them), each with the format that its content shows."""
    named = None if agent is None else FORMATS[agent]
    for path in paths:
        if path.is_dir() and not _is_one(path, named):
            for inside in sorted(p for p in path.rglob("*") if p.is_file()):
                yield named or recognise(inside), inside
        else:
            yield named or recognise(path), path


def _is_one(folder: Path, named: Format | None) -> bool:
    """Whether the folder as a whole is what some agent keeps, as OpenCode's store."""
    return recognise(folder) is not None if named is None else named.recognise(folder)


class TranscriptImport:
    """Reads files into the store, one after another; each may be taken again at any time."""

    def __init__(self, parts: Parts, *, patience_s: float = 0.0) -> None:
        """`patience_s`: how long it waits while events of a project come too fast, before it raises RateLimited."""
        self._store = parts.store
        self._home = parts.settings.home
        self._intake = Intake(parts, patience_s=patience_s)
        self._checkouts: dict[str, Checkout] = {}
        self.worked_in: dict[str, Checkout] = {}
        """{folder: where it lies} of the sessions that got something."""

    async def take(
        self, format_: Format | None, path: Path, *, project: str | None = None, again: bool = False,
        ended: bool = True, checkout: Checkout | None = None, progress: Callable[[int, int], None] | None = None,
    ) -> TranscriptReport:  # fmt: skip
        """Read one file. `again`: also where it is as it was. `progress`: (events taken, of how many).

        `checkout`: where its session works, if that is known better than by the folder that the file names.
        """
        if format_ is None:
            return TranscriptReport(path=path, agent=None, reading=None, taken=Taken(),
                                    skipped_because="no known agent writes files like this")  # fmt: skip
        try:
            state = await asyncio.to_thread(_state_of, path)
            if not again and await self._store.read(is_unchanged, state):
                return TranscriptReport(path=path, agent=format_.agent, reading=None, taken=Taken(),
                                        skipped_because="unchanged since it was read")  # fmt: skip
            reading, left_out = await asyncio.to_thread(read_allowed, format_, path, checkout, home=self._home)
        except OSError as error:
            return TranscriptReport(path=path, agent=format_.agent, reading=None, taken=Taken(),
                                    skipped_because=f"cannot be read: {error.strerror or error}")  # fmt: skip
        place = checkout or await self._checkout(reading.events)
        taken = await self._take_events(reading, project, place, ended=ended, progress=progress)
        if place is not None and taken.sessions:
            self.worked_in[place.cwd] = place
        if taken.erased:
            reading.notes.append(f"erased: {taken.erased:,} events of before their session was erased stay out")
        await self._store.write(note_read, state, format_.agent)
        return TranscriptReport(path=path, agent=format_.agent, reading=reading, taken=taken, left_out=left_out)

    async def _take_events(
        self, reading: Reading, project: str | None, checkout: Checkout | None, *, ended: bool,
        progress: Callable[[int, int], None] | None,
    ) -> Taken:  # fmt: skip
        whole = Taken()
        total = len(reading.events)
        for at in range(0, total, EVENTS_AT_ONCE):
            some = reading.events[at : at + EVENTS_AT_ONCE]
            taken = await self._intake.take(
                some, checkout=checkout, project=project, origin="import",
                ended=ended and at + EVENTS_AT_ONCE >= total, titles=reading.titles,
            )  # fmt: skip
            whole.add(taken)
            if progress is not None:
                progress(min(at + EVENTS_AT_ONCE, total), total)
        return whole

    async def _checkout(self, events: Sequence[AgentEvent]) -> Checkout | None:
        """Of the folder that the first event names, as it lies here now; a folder that is gone tells its path."""
        cwd = next((e.cwd for e in events if e.cwd), None)
        if cwd is None or not Path(cwd).is_absolute():
            return None
        if cwd not in self._checkouts:
            self._checkouts[cwd] = await asyncio.to_thread(lambda: with_root(look_at(Path(cwd))))
        return self._checkouts[cwd]


def read_allowed(
    format_: Format, path: Path, checkout: Checkout | None = None, *, home: Path
) -> tuple[Reading, Counter[str]]:
    """(what is in the file without what is to be kept out, {by what of the markers of its folders: events}).

    Kept out is what happened while its session was off, as the hooks of this `home` noted, and what the markers say.

    An event that names no folder happened where the one before it did, the first ones in the `checkout`, else where
    the first does that names one. Raises OSError.
    """
    reading = format_.read(path)
    _leave_out_off(reading, home)
    place = next((e.cwd for e in reading.events if e.cwd), None) if checkout is None else checkout.cwd
    placed = []
    for event in reading.events:
        place = event.cwd or place
        placed.append((place, event))
    events: list[AgentEvent] = []
    left_out: Counter[str] = Counter()
    for folder, some in groupby(placed, key=lambda one: one[0]):
        mine = [event for _, event in some]
        if folder is None or not Path(folder).is_absolute():
            events += mine
            continue
        kept, counts = narrowed(mine, policy_at(Path(folder)), os.path.realpath(folder))
        events += kept
        left_out += counts
    reading.events = events
    if left_out:
        reading.titles.clear()  # a title tells of the prompts
        told = ", ".join(f"{count:,} by {what}" for what, count in sorted(left_out.items()))
        reading.notes.append(f"kept out as the folder's .everkept.toml says: {told}")
    return reading, left_out


def _leave_out_off(reading: Reading, home: Path) -> None:
    """Raises OSError."""
    events, touched = without_off(reading.events, home)
    if touched:
        out = len(reading.events) - len(events)
        reading.notes.append(f"kept out, as EVERKEPT_OFF was set: {out:,} events")
        reading.events = events
        for session in touched:  # a title tells of the prompts
            reading.titles.pop(session, None)


def _state_of(path: Path) -> FileState:
    """Raises OSError."""
    found = path.stat()
    return FileState(path=str(path.resolve()), size=found.st_size, mtime_ns=found.st_mtime_ns, inode=found.st_ino,
                     end=_end_of(path, found.st_size) if path.is_file() else b"")  # fmt: skip


def _end_of(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, size - END_BYTES))
        return file.read(END_BYTES)
