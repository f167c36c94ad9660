"""Taking events from JetStream by the one ingest path: a message is acknowledged once what it tells is committed.

Given again, it changes nothing: its key is known. What cannot be taken in now is asked for again later; what never can
be becomes a job that fails where failed jobs are seen, and can be tried again there: the message stays in its stream.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import structlog
from pydantic_core import from_json

from everkept.api.base import Parts
from everkept.api.nats_state import Letter, Take
from everkept.api.pacing import WAIT_MIN_S
from everkept.deliver.nats_link import NatsLink, our_errors
from everkept.deliver.nats_publisher import MESSAGE_ID
from everkept.deliver.nats_streams import made_at
from everkept.domain.jobs import Backoff, Schedule
from everkept.domain.nats_subjects import project_of
from everkept.errors import InvalidInput, KeyConflict, NotFound, RateLimited, SubjectConflict
from everkept.store.connection import Connection
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.projects import DEFAULT_PROJECT, find_project, get_project
from everkept.work.job import error_text

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

BATCH: Final = 200
WAIT_S: Final = 5.0
"""How long one question for messages stands."""
TAKE_MESSAGE: Final = "take_message"
HOPELESS: Final = (InvalidInput, NotFound, KeyConflict, SubjectConflict)
"""What no later try mends by itself: a hand has to."""
_AGAIN: Final = Backoff(first_s=1.0, max_s=60.0)
_log = structlog.get_logger("everkept.nats")


class EventIntake:
    """Over one connection; any number of processes share the durable consumer."""

    def __init__(self, parts: Parts, link: NatsLink, take: Take) -> None:
        self._parts = parts
        self._link = link
        self._take = take
        self._subscription: JetStreamContext.PullSubscription | None = None
        self._made_at = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop. Raises Unavailable where the connection breaks or the consumer is gone."""
        while not stop.is_set():
            await self.step(WAIT_S)

    async def step(self, wait_s: float) -> int:
        """Take what waits, at most `BATCH` messages; how many there were."""
        messages = await self._fetch(wait_s)
        lanes: dict[tuple[str, str], list[Msg]] = {}
        for message in messages:
            lanes.setdefault((message.subject, lane_of(message.data)), []).append(message)
        ended = await asyncio.gather(*map(self._in_order, lanes.values()), return_exceptions=True)
        for how in ended:
            if how is not None:
                raise how
        return len(messages)

    async def _fetch(self, wait_s: float) -> list[Msg]:
        settings = self._link.settings
        with our_errors(settings):
            if self._subscription is None:
                self._made_at = made_at(await self._link.stream.stream_info(settings.events_stream))
                self._subscription = await self._link.stream.pull_subscribe_bind(
                    consumer=settings.durable, stream=settings.events_stream
                )
            try:
                messages = await self._subscription.fetch(BATCH, timeout=wait_s)
            except TimeoutError:  # the client raises its own, and the plain one
                return []
            if not messages:  # the client says nothing of a consumer that was deleted meanwhile; this does
                await self._subscription.consumer_info()
        return messages

    async def _in_order(self, messages: Sequence[Msg]) -> None:
        """Of one lane: what comes behind one that is postponed waits as long."""
        for place, message in enumerate(messages):
            wait_s = await self._one(message)
            if wait_s is not None:
                for later in messages[place:]:
                    with our_errors(self._link.settings):
                        await later.nak(delay=wait_s)
                return

    async def _one(self, message: Msg) -> float | None:
        """None once it is settled; else in how many seconds it is to be given again."""
        letter = self._letter(message)
        try:
            settled = await self._settle(letter)
        except RateLimited as error:
            return max(error.retry_after_s or 0.0, WAIT_MIN_S)
        except Exception as error:  # noqa: BLE001  (given so often that it becomes a job, where its failures are booked)
            wait_s = _AGAIN.delay_s(letter.delivered - 1, self._parts.clock.random())
            _log.warning("a message is asked for again", seq=letter.seq, in_s=round(wait_s, 1), why=error_text(error))
            return wait_s
        with our_errors(self._link.settings):
            await (message.ack() if settled else message.term())
        return None

    async def _settle(self, letter: Letter) -> bool:
        """True once it is taken in; False once it is a job. Whatever is raised, it is neither yet."""
        if letter.delivered <= self._link.settings.max_deliver:
            try:
                await self._take(letter)
            except HOPELESS as error:
                field = error.details.get("field")
                _log.warning("a message cannot be taken in", seq=letter.seq, code=error.code, field=field)
            else:
                return True
        await self._parts.store.write(set_aside, letter)
        return False

    def _letter(self, message: Msg) -> Letter:
        about = message.metadata
        return make_letter(
            self._link, subject=message.subject, headers=message.headers, data=message.data, made_us=self._made_at,
            seq=about.sequence.stream, delivered=about.num_delivered or 1,
        )  # fmt: skip


def lane_of(data: bytes) -> str:
    """What a message has to stay in order with: its thread or session; those that tell of several share a lane."""
    try:
        given = from_json(data)
    except ValueError:
        return ""
    if not isinstance(given, dict):
        return ""
    events = given.get("events")
    told = [given] if not isinstance(events, list) else [event for event in events if isinstance(event, dict)]
    names = {str(each.get("thread") or each.get("session") or "") for each in told}
    return names.pop() if len(names) == 1 else ""


def make_letter(
    link: NatsLink, *, subject: str, headers: dict[str, str] | None, data: bytes, made_us: int, seq: int,
    delivered: int = 1,
) -> Letter:  # fmt: skip
    """Raises InvalidInput for a subject that is not one of this installation's."""
    stream = link.settings.events_stream
    key = (headers or {}).get(MESSAGE_ID) or f"nats:{stream}:{made_us}:{seq}"
    project = project_of(link.settings.prefix, subject)
    return Letter(
        project=project, key=key, data=data, stream=stream, made_at=made_us, seq=seq, subject=subject,
        delivered=delivered,
    )  # fmt: skip


def set_aside(conn: Connection, letter: Letter) -> None:
    """A job that takes the message in, or fails visibly; the same one however often. It holds no word of the message.

    It is of the project that the message is for; where there is none, of the default one.
    """
    project = find_project(conn, letter.project or DEFAULT_PROJECT) or get_project(conn, DEFAULT_PROJECT)
    args = {"stream": letter.stream, "made_at": letter.made_at, "seq": letter.seq}
    schedule(conn, [Schedule(
        kind=TAKE_MESSAGE, key=f"message {letter.seq} of {letter.stream} @{letter.made_at}", project=project.id,
        lane=ensure_lane(conn, project.id, 0), due_at_us=conn.now(), args=json.dumps(args),
    )])  # fmt: skip
