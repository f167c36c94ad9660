"""Being awake for the hooks of a machine whose memory is on a server elsewhere: send, and ask for context there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from everkept.api import views as v
from everkept.api.context_ask import ContextAsk, ask_of
from everkept.api.desk import NOTHING, SHARE_OF_BUDGET, Desk, budget_s_of
from everkept.api.draining import Drained
from everkept.api.remote_drain import RemoteDrain, TakesEvents, checkout_body, plain
from everkept.domain.ids import row_id
from everkept.errors import EverkeptError, NotFound, RateLimited, Unavailable

PAUSE_FIRST_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
KEPT_BACK: Final = 0.1
"""Of the time that a hook has, what the answer needs to come back to it."""

_log = structlog.get_logger("everkept.hooks")


class Server(TakesEvents, Protocol):
    """`POST /v1/events` and `POST /v1/context` of a server."""

    async def give_context(self, body: Mapping[str, Any], *, within_s: float) -> v.AgentContext:
        """Asked once. Raises the class of the server's error, and Unavailable where it does not answer in time."""
        ...


class RemoteDesk(Desk):
    """Sends what hooks leave, and answers them with what the server says; while it is away, with nothing, at once.

    No start pack is kept on this machine: what is erased at the server could not be taken out of it (G10).
    """

    def __init__(self, home: Path, server: Server, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(home)
        self._clock = clock
        self._server = server
        self._drain = RemoteDrain(self._spool, server)
        self._draining = asyncio.Lock()
        self._sending = _Pause(clock)
        self._asking = _Pause(clock)
        self.trouble: EverkeptError | None = None
        """Why records wait, if the server could not take them when it was asked last."""
        self.sent = Drained()
        """All that was sent so far."""

    async def drain(self, within_s: float) -> Drained:
        """Send what waits. After a failure the server is left alone for as long as it says, or ever longer."""
        whole = Drained()
        end = self._clock() + within_s
        async with self._draining:
            if self._sending.holds():
                return whole
            try:
                while self._clock() < end and (some := await self._drain.some()).handled:
                    self.sent.add(some)
                    whole.add(some)
            except EverkeptError as error:
                self._give_way(error)
            else:
                self.trouble = None
                self._sending.end()
        return whole

    def _give_way(self, error: EverkeptError) -> None:
        pause_s = self._sending.begin(error)
        if self.trouble is None or self.trouble.message != error.message:
            _log.warning("what hooks left waits for the server", why=error.message, again_in_s=round(pause_s, 1))
        self.trouble = error

    async def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What the server gives this session, after it was sent what came before."""
        budget_s = budget_s_of(question) * (1 - KEPT_BACK)
        end = self._clock() + budget_s
        record = question.get("hook") or {}
        ask = ask_of(record)
        if ask is None or self._asking.holds() or self._sending.holds():
            return NOTHING
        try:
            async with asyncio.timeout(budget_s * SHARE_OF_BUDGET):
                await self.drain(budget_s)
        except TimeoutError:  # much waits, or the server is slow: what was cut off is sent again
            pass
        if self._sending.holds():
            return NOTHING
        return await self._given(ask, end - self._clock())

    async def _given(self, ask: ContextAsk, within_s: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(within_s):
                given = await self._server.give_context(_body(ask), within_s=within_s)
        except NotFound:  # nobody has worked in this folder yet
            return NOTHING
        except (EverkeptError, TimeoutError) as error:
            cause = error if isinstance(error, EverkeptError) else Unavailable("the server did not answer in time")
            pause_s = self._asking.begin(cause)
            _log.warning("a hook got no context", why=cause.message, again_in_s=round(pause_s, 1))
            return NOTHING
        self._asking.end()
        return {"text": given.text, "offer": given.offer, "age_s": 0}


def _body(ask: ContextAsk) -> dict[str, Any]:
    about = {"agent": ask.agent, "session": ask.session, "checkout": checkout_body(ask.checkout)}
    if ask.launch is not None:
        about["launch"] = row_id("lch", ask.launch)
    body: dict[str, Any] = plain({**about, "source": ask.source, "prompt": ask.prompt})
    return body


class _Pause:
    """For how long a server is left alone: as long as it says, or twice as long after each failure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next_s = PAUSE_FIRST_S
        self._until = 0.0

    def holds(self) -> bool:
        return self._clock() < self._until

    def begin(self, error: EverkeptError) -> float:
        """After a failure; how long it lasts."""
        asked_s = error.details.get("retry_after_s")
        pause_s = self._next_s if asked_s is None else float(asked_s)
        self._until = self._clock() + pause_s
        if asked_s is None or not isinstance(error, RateLimited):  # to be postponed is no failure
            self._next_s = min(2 * self._next_s, PAUSE_MAX_S)
        return pause_s

    def end(self) -> None:
        self._next_s = PAUSE_FIRST_S
