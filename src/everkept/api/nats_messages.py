"""The job of a message that could not be taken in at once: it reads the message again from its stream.

Safe to repeat: the message's key is known once it was taken in. What is hopeless is given up at the first try, and
waits for a hand among the failed jobs; once its cause is mended, `everkept jobs retry` takes it in.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from everkept.api.nats_intake import HOPELESS, TAKE_MESSAGE, make_letter
from everkept.api.nats_state import Counter, Letter, NatsState
from everkept.deliver.nats_link import NatsLink, our_errors
from everkept.deliver.nats_streams import made_at
from everkept.domain.jobs import Done, GiveUp, JobPolicy, Outcome, Snooze
from everkept.errors import NotFound
from everkept.ports.clock import Clock
from everkept.work.job import Finished, JobContext, JobKind

ELSEWHERE_US: Final = 30_000_000
"""In how long it is looked whether this process has a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeMessage:
    stream: str
    made_at: int
    seq: int


def take_message(state: NatsState, clock: Clock) -> JobKind[TakeMessage]:
    """The kind, for a process that may attend to NATS."""

    async def run(args: TakeMessage, _ctx: JobContext) -> Outcome | Finished:
        counter = state.counter
        if counter is None:
            return Snooze(clock.now_us() + ELSEWHERE_US, "this worker has no connection to NATS")
        taken = asyncio.run_coroutine_threadsafe(_take(counter, args), counter.loop)
        try:
            await asyncio.wrap_future(taken)
        except HOPELESS as error:
            return GiveUp(error.code, error.message)
        return Done()

    return JobKind(
        name=TAKE_MESSAGE, policy=JobPolicy(attempts_max=5, timeout_s=60), read_args=lambda a: TakeMessage(**a), run=run
    )


async def _take(counter: Counter, args: TakeMessage) -> None:
    await counter.take(await _read(counter.link, args))


async def _read(link: NatsLink, args: TakeMessage) -> Letter:
    """Raises NotFound where the stream has it no more, Unavailable, and as `make_letter`."""
    from nats.js.errors import NotFoundError

    with our_errors(link.settings):
        try:
            if made_at(await link.stream.stream_info(args.stream)) != args.made_at:
                raise NotFound(f"the stream {args.stream} was made again since; the message went with the one before")
            found = await link.stream.get_msg(args.stream, args.seq)
        except NotFoundError as error:
            raise NotFound(f"message {args.seq} is not in the stream {args.stream} any more") from error
    return make_letter(
        link, subject=found.subject or "", headers=found.headers, data=found.data or b"", made_us=args.made_at,
        seq=args.seq,
    )  # fmt: skip
