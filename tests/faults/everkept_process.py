"""Everkept as a process that can be killed: a server that forks one ready-made child for each connection.

`python -m tests.faults.everkept_process` imports everything once and prints its port; every connection gets a child
of its own, which opens the application over the folder that the first line names. So a start costs a fork and the
opening of a store, and `kill -9` is real. It ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import structlog
from sqlalchemy import text

import everkept
from everkept import config
from everkept.bootstrap import Application, open_application
from everkept.doors.python.async_memory import AsyncMemory
from everkept.errors import EverkeptError, Unavailable
from everkept.models import word_vectors
from everkept.models.language import _load
from everkept.ports.clock import SystemClock
from everkept.store import sqlite_database as store_module
from everkept.store.connection import Connection
from everkept.store.wall_clock import SLACK_US
from everkept.work.runner import Runner

POLL_S = 0.01
HELD_S = 30.0
"""How long a thread is held at an armed point, at most."""
SLICE_S = 300.0
"""Time passes in pieces with a heartbeat in each: half of a lease, as for a process that is up."""
SLICE_IDLE_MAX_S = 3600.0
SETTLE_POLLS = 100
"""How long a piece of time waits, at most, for what it made due. Polls, not seconds: a machine that stood still gave
the worker no time either."""
ERASED_S, LOOK_S = 20.0, 20.0
STATES = {"searchable": "waiting", "accepted": "waiting", "embedded": "waiting"}


Dicts: TypeAlias = list[dict[str, Any]]


class MovableClock:
    """The machine's clock, which passes on command and can be set; also where the time would be the server's."""

    def __init__(self) -> None:
        self._machine = SystemClock()
        self.passed_s = 0.0
        self.set_s = 0.0

    def now_us(self) -> int:
        return self._machine.now_us() + int((self.passed_s + self.set_s) * 1e6)

    def monotonic_s(self) -> float:
        return self._machine.monotonic_s() + self.passed_s

    def random(self) -> float:
        return self._machine.random()


class Killer:
    """Ends the process the n-th time that it passes a point (`Faults`), or before the n-th statement of the writer."""

    def __init__(self) -> None:
        self.point = ""
        self.left = 0
        self.how = "die"
        self.let_go = threading.Event()

    def arm(self, point: str, at: int, how: str) -> None:
        self.let_go.clear()
        self.point, self.left, self.how = point, at, how

    def reach(self, point: str) -> None:
        if point != self.point or self.left <= 0:
            return
        self.left -= 1
        if self.left == 0:
            if self.how == "hold":
                self.let_go.wait(HELD_S)
                return
            if self.how == "raise":
                raise Unavailable(f"planted at {point}")
            os.kill(os.getpid(), signal.SIGKILL)


class Rounds:
    """The worker's rounds, between which the time may pass: none of them begins before and ends after."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.between = threading.Lock()
        self.count = 0
        self._empty_since = 0
        """The round after which none has started anything."""
        self._step = runner.step
        runner.step = self._round  # type: ignore[method-assign]

    async def _round(self) -> int:
        self.between.acquire()  # whoever else holds it waits for nothing
        try:
            started = await self._step()
        finally:
            self.count += 1
            self.between.release()
        if started or self.runner.busy:
            self._empty_since = self.count
        return started

    def found_nothing(self, since: int) -> bool:
        """Whether a whole turn of the worker (its sweeps, then a round) began after round `since` and found nothing."""
        return not self.runner.busy and self.count >= max(since, self._empty_since) + 2


class Child:
    """The verbs, over one application."""

    def __init__(self, application: Application, memory: AsyncMemory, clock: MovableClock, killer: Killer) -> None:
        self.application = application
        self.memory = memory
        self.clock = clock
        self.killer = killer
        self.rounds = None if application.worker is None else Rounds(application.worker.runner)
        self.closing = asyncio.Event()

    # ---- the five verbs

    async def add(self, thread: str, messages: list[dict[str, Any]], subject: str, key: str | None) -> dict[str, Any]:
        conversation = await self.memory.thread(thread, subject=subject)
        for message in messages:
            if message["occurred_at"] is not None:
                message["occurred_at"] = datetime.fromisoformat(message["occurred_at"])
        result = await conversation.add_many(messages, key=key)
        return {"ids": [r.event_id for r in result.receipts], "replayed": result.replayed}

    async def wait_idle(self, limit_s: float) -> bool:
        return await _until(self._is_idle, limit_s)

    async def search(self, query: str, subject: str, limit: int, as_of: str | None) -> list[dict[str, Any]]:
        when = None if as_of is None else datetime.fromisoformat(as_of)
        answer = await self.memory.recall(query, subject=subject, limit=limit, as_of=when)
        kinds = {"turn": "message", "fact": "fact", "episode": "episode"}
        return [
            {"id": r.id, "text": r.text, "kind": kinds[r.kind], "when": _text(r.occurred_at)} for r in answer.results
        ]

    async def delete(self, subject: str | None, thread: str | None, id: str | None) -> None:
        if id is not None and id.startswith("fct_"):
            await self.memory.forget(id)
            return
        plan = await self.memory.erase(subject=subject, thread=thread, event=id)
        if plan.residue is None:
            await self.wait_idle(ERASED_S)

    async def list(self, subject: str, kind: str | None) -> Dicts:
        found: Dicts = []
        threads = [t async for t in self.memory.threads(subject=subject)][::-1]
        for thread in threads:
            if kind in (None, "message"):
                found += await self._messages(thread.id)
        if kind in (None, "fact"):
            found += [_fact(f) async for f in self.memory.facts(subject=subject, include_retired=True)][::-1]
        if kind in (None, "episode"):
            found += [await self._episode(e) async for e in self.memory.episodes(subject=subject)][::-1]
        return found

    async def _messages(self, thread: str) -> Dicts:
        conversation = await self.memory.thread(thread)
        found = []
        async for message in conversation.messages():
            if message.content is None:
                continue
            receipt = await conversation.receipt(message.event_id)
            found.append({
                "id": message.event_id, "text": message.content, "kind": "message", "thread": thread,
                "state": STATES.get(receipt.state, receipt.state), "when": message.occurred_at.isoformat(),
                "reason": receipt.reason,
            })  # fmt: skip
        return found

    async def _episode(self, episode: Any) -> dict[str, Any]:
        states = [episode.stages[name].state for name in ("summary", "facts")]
        worst = next((s for s in ("dead", "failed", "processing", "pending") if s in states), states[0])
        why = await self.memory.why(episode.id)
        stages = episode.stages.values()
        return {
            "id": episode.id, "text": episode.summary or "", "kind": "episode", "thread": episode.thread,
            "state": "pending" if worst == "processing" else worst, "when": episode.opened_at.isoformat(),
            "sources": [m.event_id for m in why.events],
            "reason": next((s.error or s.reason for s in stages if s.error or s.reason), None),
        }  # fmt: skip

    # ---- faults

    async def pass_time(self, seconds: float) -> None:
        left, most = seconds, max(SLICE_IDLE_MAX_S, seconds / 24)
        await self._seen()
        await self._settle()  # a job that runs now would see all of the time pass at once
        while left > 0:
            left -= await self._pass(left, most)
            if self.rounds is not None:
                await asyncio.to_thread(self.rounds.runner.heartbeat)
                self.rounds.runner.notify(self.clock.now_us())
                await self._settle()

    async def _pass(self, left: float, most: float) -> float:
        """A piece of the time, at once; a small one where a job runs. How long it was."""
        if self.rounds is None:
            self.clock.passed_s += min(left, most)
            return min(left, most)
        await asyncio.to_thread(self.rounds.between.acquire)
        try:
            piece = min(left, SLICE_S if self.rounds.runner.busy else most)
            self.clock.passed_s += piece
            return piece
        finally:
            self.rounds.between.release()

    async def _settle(self) -> None:
        """Until what is due is worked, or what is left of it cannot begin or does not end."""
        if self.rounds is None:
            return
        since = self.rounds.count
        for _ in range(SETTLE_POLLS):
            if not await self._busy() or self.rounds.found_nothing(since):
                return
            await asyncio.sleep(POLL_S)

    async def set_clock(self, seconds: float) -> None:
        self.clock.set_s += seconds
        await self._seen()

    async def _seen(self) -> None:
        """Until the worker has looked at the clock as it is now: nobody sets it and lets hours pass in one moment."""
        if self.application.worker is None:
            return
        looked = self.application.worker.runner._maintenance

        async def has_seen() -> bool:
            return abs((looked._difference_us or 0) - self._difference_us()) <= SLACK_US

        await _until(has_seen, LOOK_S)

    def _difference_us(self) -> int:
        return self.clock.now_us() - int(self.clock.monotonic_s() * 1e6)

    async def trouble(self) -> Sequence[dict[str, str]]:
        status = await self.memory.status()
        found = [{"what": i.id, "cause": f"{i.stage}: {i.error}"} for i in [*status.given_up, *status.stuck]]
        found += [{"what": p.name, "cause": p.reason or p.circuit} for p in status.providers if p.circuit != "closed"]
        found += [{"what": p.name, "cause": p.last_error} for p in status.periodic if p.last_error]
        listed = {each["what"] for each in found}
        for state in ("waiting", "ready", "leased", "dead"):
            async for job in self.memory.jobs(state=state):
                if job.error and job.id not in listed:
                    found.append({"what": job.id, "cause": f"{job.error_class}: {job.error}"})
        return found

    async def end(self, thread: str) -> None:
        conversation = await self.memory.thread(thread)
        await conversation.end()

    async def switch(self, on: bool, thread: str | None) -> None:
        if thread is None:
            await self.memory.update_project("default", settings={} if on else {"memory.enabled": False})
        else:
            await (await self.memory.thread(thread)).configure({"memory.enabled": on})

    async def retry(self, what: str) -> None:
        await self.memory.retry_job(what)

    # ---- only of this system

    async def arm(self, point: str, at: int, how: str) -> None:
        """Die (or raise) the `at`-th time at a fault point, or before the `at`-th `statement` of the writer."""
        self.killer.arm(point, at, how)

    async def let_go(self) -> None:
        """What was held at an armed point goes on."""
        self.killer.let_go.set()

    async def query(self, sql: str) -> Sequence[Sequence[Any]]:
        """Read what no verb shows, e.g. the journal's bookkeeping."""

        def read(conn: Connection) -> Sequence[Sequence[Any]]:
            return [list(row) for row in conn.raw.execute(sql).fetchall()]

        return await self.application.parts.store.read(read)

    async def execute(self, sql: str) -> int:
        """Change what no verb can, e.g. take away a timer."""

        def write(conn: Connection) -> int:
            return int(conn.raw.execute(sql).rowcount)

        return await self.application.parts.store.write(write)

    async def call(self, method: str, arguments: dict[str, Any]) -> Any:
        """Any other method of `Memory`, for a case of this system alone."""
        answer = await getattr(self.memory, method)(**arguments)
        return answer.model_dump(mode="json") if hasattr(answer, "model_dump") else answer

    async def close(self) -> None:
        await self.memory.close()
        self.closing.set()

    async def _is_idle(self) -> bool:
        return not await self._busy()

    async def _busy(self) -> bool:
        """Whether anything waits or runs that the worker would begin now; it looks at a sweep's time now and then."""

        def read(conn: Connection) -> bool:
            now = {"now": conn.now()}
            return conn.first(_BEGUN, now) is not None or any(
                self._is_looked_for(name) for (name,) in conn.rows(_LOOKED_FOR, now)
            )

        return self.application.worker is not None and await self.application.parts.store.read(read)

    def _is_looked_for(self, task: str) -> bool:
        """That of each tick is always due on a slow machine; what it would find is leased, which counts by itself."""
        assert self.application.worker is not None
        next_s = self.application.worker.runner._maintenance._next_s
        return task != "expire_leases" and self.clock.monotonic_s() >= next_s.get(task, 0.0)


_BEGUN = text("select 1 from jobs where state in ('ready', 'leased') or state = 'waiting' and due_at <= :now")
_LOOKED_FOR = text("select name from periodic where next_due_at <= :now")


def _fact(fact: Any) -> dict[str, Any]:
    return {
        "id": fact.id, "text": fact.text, "kind": "fact", "state": "live" if fact.live else "retired",
        "when": _text(fact.said_at), "sources": list(fact.event_ids), "reason": fact.retired_because,
    }  # fmt: skip


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


async def _until(condition: Callable[[], Awaitable[bool]], limit_s: float) -> bool:
    """Whether it came true in time."""
    until = time.monotonic() + limit_s
    while not await condition():
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(POLL_S)
    return True


# ---- the child's life


async def _live(connection: socket.socket, options: dict[str, Any]) -> None:
    reader, writer = await asyncio.open_connection(sock=connection, limit=1 << 27)
    try:
        child = await _open(options)
    except EverkeptError as error:
        writer.write(json.dumps({"pid": os.getpid(), "error": str(error)}).encode() + b"\n")
        await writer.drain()
        return
    writer.write(json.dumps({"pid": os.getpid(), "version": everkept.__version__}).encode() + b"\n")
    tasks: set[asyncio.Task[None]] = set()
    while not child.closing.is_set():
        line = await reader.readline()
        if not line:
            os._exit(0)  # whoever drove it is gone
        request = json.loads(line)
        task = asyncio.create_task(_answer(child, request, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if request["verb"] == "close":
            await task
    await writer.drain()


async def _open(options: dict[str, Any]) -> Child:
    home = Path(options["home"])
    settings = config.load(dict(os.environ), home)
    clock, killer = MovableClock(), Killer()
    clock.passed_s, clock.set_s = options["passed_s"], options["set_s"]
    _count_statements(killer)
    point, _, at = options["die_at"].partition(":")
    killer.arm(point, int(at or 1), "die")
    application = await open_application(settings, worker=options["worker"], clock=clock, faults=killer)
    service = await application.service(options["project"])

    async def close() -> None:
        await application.close(drain_s=settings.work.drain_s)

    return Child(application, AsyncMemory(service, close), clock, killer)


def _count_statements(killer: Killer) -> None:
    """Each statement of a write connection passes the point `statement`, its triggers' too."""
    plain = vars(store_module)["open_file"]

    def counted(driver: Any, path: Path, *, read_only: bool = False, busy_s: float = 30.0) -> Any:
        raw = plain(driver, path, read_only=read_only, busy_s=busy_s)
        if not read_only:
            raw.set_trace_callback(lambda _sql: killer.reach("statement"))
        return raw

    vars(store_module)["open_file"] = counted


async def _answer(child: Child, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    answer: dict[str, Any] = {"id": request["id"]}
    try:
        verb: Callable[..., Any] = getattr(child, request["verb"])
        answer["answer"] = await verb(**request["args"])
    except Unavailable as error:
        answer |= {"error": "failed", "text": str(error)}
    except EverkeptError as error:
        answer |= {"error": "rejected", "text": f"{error.code}: {error}"}
    except Exception:  # noqa: BLE001  (the test reads what went wrong in this process)
        answer |= {"error": "failed", "text": traceback.format_exc()}
    writer.write(json.dumps(answer).encode() + b"\n")


def _be_child(connection: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    options = json.loads(connection.makefile("rb", buffering=0).readline())
    os.environ.update(options["environment"])
    _limit(options["limits"])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    asyncio.run(_live(connection, options))


def _limit(limits: dict[str, int]) -> None:
    """Resource limits by name, e.g. `RLIMIT_FSIZE`: a file of the process may grow no larger."""
    if sys.platform == "win32":
        return
    import resource

    for name, most in limits.items():
        resource.setrlimit(getattr(resource, name), (most, most))
    if "RLIMIT_FSIZE" in limits:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def serve() -> None:
    """Until standard input ends."""
    _load("openai")
    word_vectors.read_package()
    assert threading.active_count() == 1, "a process with threads is not safe to fork"
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _run_child(connection)
        connection.close()


def _run_child(connection: socket.socket) -> None:
    code = 1
    try:
        _be_child(connection)
        code = 0
    except BaseException:  # noqa: BLE001  (shown, and the process ends: it must not go on as a second server)
        traceback.print_exc()
    finally:
        connection.close()
        os._exit(code)


if __name__ == "__main__":
    serve()
