"""Publishing the changes of one project, in order: the cursor moves once the server has said that it stored them.

A change keeps its id, so that within the stream's window of duplicates it is stored once however often it is published;
whoever reads the stream tells later replays apart by it. Each change names the one that must stand before it in the
stream: a publisher that was frozen and comes back late is refused by the server, as it is by the store.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from everkept.deliver.nats_link import ANSWER_S, NatsLink, our_errors
from everkept.deliver.webhooks import body_of
from everkept.domain.changes import NATS_CONSUMER, change_id
from everkept.domain.nats_subjects import subject_of
from everkept.errors import Conflict, LeaseLost, StoreUnavailable
from everkept.ports.clock import Clock
from everkept.store.connection import Row
from everkept.store.consumers import hold_consumer
from everkept.store.relays import BATCH, Waiting, next_changes, settle_relay, take_relay
from everkept.store.store import Store

LEASE_S: Final = 30.0
MESSAGE_ID: Final = "Nats-Msg-Id"
AFTER: Final = "Nats-Expected-Last-Subject-Sequence"
SEQ: Final = "Everkept-Seq"
WRONG_LAST: Final = (10071, 10164)
"""The server's codes for "another message stands there"."""
LOOKS_MAX: Final = 3


@dataclass(slots=True, kw_only=True)
class _Turn:
    """One project's turn."""

    project: Waiting
    subject: str
    fence: int
    trusted_until_s: float
    """On this process's clock, from before the lease was asked for."""
    last: int | None = None
    """Where the last message of the subject stands in the stream; None: the server has to be asked."""
    stored: int | None = None
    """The last change that the server has acknowledged in this turn."""


class ChangePublisher:
    """Over one connection; not for two tasks at once."""

    def __init__(self, store: Store, link: NatsLink, clock: Clock, *, owner: str) -> None:
        self._store = store
        self._link = link
        self._clock = clock
        self._owner = owner

    async def work(self, project: Waiting) -> bool:
        """Publish what waits, at most `BATCH` changes; whether there may be more.

        Raises CursorExpired where some of it is no longer kept, and Unavailable; what the server had acknowledged
        before that counts. That another process holds the project, or it was merged, is no failure.
        """
        with contextlib.suppress(LeaseLost, Conflict):
            turn = await self._take(project)
            if turn is None:
                return False
            try:
                changes = await self._store.reaching(project.id).read(next_changes, project.id, NATS_CONSUMER)
                for change in changes:
                    await self._publish(turn, change)
            finally:
                await self._settle(turn)
            return len(changes) == BATCH
        return False

    async def _take(self, project: Waiting) -> _Turn | None:
        asked_s = self._clock.monotonic_s()
        fence = await self._store.reaching(project.id).write(
            take_relay, project.id, NATS_CONSUMER, self._owner, LEASE_S
        )
        if fence is None:
            return None
        subject = subject_of(self._link.settings.prefix, project.name, "changes")
        return _Turn(project=project, subject=subject, fence=fence, trusted_until_s=asked_s + LEASE_S)

    async def _settle(self, turn: _Turn) -> None:
        """Where the store cannot be written, the same changes are published again once the lease has run out."""
        with contextlib.suppress(StoreUnavailable, LeaseLost):
            await self._store.reaching(turn.project.id).write(
                settle_relay, turn.project.id, NATS_CONSUMER, self._owner, turn.fence, turn.stored
            )

    async def _publish(self, turn: _Turn, change: Row) -> None:
        """Raises LeaseLost, Unavailable."""
        for _ in range(LOOKS_MAX):
            await self._keep(turn)
            if turn.last is None:
                turn.last = await self._last(turn.subject)
            at = await self._try(turn, change, turn.last)
            if at is not None:
                turn.last, turn.stored = max(turn.last, at), int(change[0])
                return
            await self._renew(turn)  # somebody else has published here: perhaps whoever holds the project now
            turn.last = None
        raise LeaseLost("somebody else publishes the changes of this project", project=turn.project.name)

    async def _try(self, turn: _Turn, change: Row, last: int) -> int | None:
        """Where the change stands in the stream now; None where another message came before it."""
        from nats.js.errors import APIError

        headers = {MESSAGE_ID: change_id(change[7]), AFTER: str(last), SEQ: str(change[0])}
        body, stream = body_of(change, turn.project.name), self._link.settings.changes_stream
        with our_errors(self._link.settings):
            try:
                stored = await self._link.stream.publish(
                    turn.subject, body, timeout=ANSWER_S, stream=stream, headers=headers
                )
            except APIError as error:
                if error.err_code in WRONG_LAST:
                    return None
                raise
        return stored.seq

    async def _last(self, subject: str) -> int:
        from nats.js.errors import NotFoundError

        with our_errors(self._link.settings):
            try:
                found = await self._link.stream.get_last_msg(self._link.settings.changes_stream, subject)
            except NotFoundError:
                return 0
        return int(found.seq or 0)

    async def _keep(self, turn: _Turn) -> None:
        """The lease outlasts the next try. Raises LeaseLost."""
        if turn.trusted_until_s - self._clock.monotonic_s() < 2 * ANSWER_S:
            await self._renew(turn)

    async def _renew(self, turn: _Turn) -> None:
        asked_s = self._clock.monotonic_s()
        await self._store.reaching(turn.project.id).write(
            hold_consumer, turn.project.id, NATS_CONSUMER, self._owner, LEASE_S, turn.fence
        )
        turn.trusted_until_s = asked_s + LEASE_S
