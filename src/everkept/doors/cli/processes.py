"""`serve` and `worker`: the commands that stay."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import backend, failures
from everkept.doors.cli.options import DEFAULT_PROJECT, Json, Switch
from everkept.doors.cli.screen import emit, say, warn
from everkept.doors.cli.wording import count
from everkept.errors import EverkeptError, InvalidInput, StoreUnavailable, Unavailable, exit_code

if TYPE_CHECKING:
    from everkept.api.nats_state import Take
    from everkept.api.service import Service
    from everkept.bootstrap import Application

SWITCH_S = 0.001
"""How long a busy thread keeps the others waiting. An answer goes through some ten threads, one after the other: with
Python's own 5 ms it stood behind a digest or an embedding for longer than an agent waits."""
IDLE_LOOK_S = 0.25
QUIET_S = 2.0


async def serve(
    *,
    bind: Annotated[str | None, Parameter(help="Address and port, instead of the setting server.bind.")] = None,
    workers: Annotated[
        int | None,
        Parameter(help="Jobs that are worked at once inside, instead of the setting work.slots; 0: HTTP alone."),
    ] = None,
) -> None:
    """Serve HTTP, with a worker inside; SIGTERM drains and ends it."""
    sys.setswitchinterval(SWITCH_S)
    settings = config.load(_environment(bind, workers))
    await backend.serve_http(settings, worker=workers != 0)


def _environment(bind: str | None, workers: int | None) -> dict[str, str]:
    environment = dict(os.environ)
    if bind is not None:
        environment.pop("EVERKEPT_BIND", None)
        environment["EVERKEPT_SERVER__BIND"] = bind
    if workers:
        environment["EVERKEPT_WORK__SLOTS"] = str(workers)
    return environment


async def worker(
    *,
    until_idle: Annotated[bool, Switch, Parameter(help="End once nothing is due.")] = False,
    json: Json = False,
) -> int:
    """Work jobs until stopped, or until idle; SIGTERM gives back what is not done.

    With EVERKEPT_URL, jobs are that server's; what hooks left on this machine is sent to it.
    """
    sys.setswitchinterval(SWITCH_S)
    settings = config.load()
    if settings.url:
        return await _send_until_idle(settings, settings.url, until_idle=until_idle, as_json=json)
    say(f"working the store in {settings.home}; " + ("ends when nothing is due" if until_idle else "Ctrl-C ends it"))
    async with backend.application(settings, worker=True, log_least="debug") as application:
        memory = await application.service(DEFAULT_PROJECT)
        trouble = None
        with _stopping() as stop:
            if until_idle:
                trouble = await _until_idle(application, memory, stop)
            else:
                await _forever(application, stop)
        after = await memory.status()
    if json:
        emit(after)
    elif until_idle:
        dead = f", {count(len(after.given_up), 'job')} given up" if after.given_up else ""
        print(f"idle: {after.backlog_due:,} due, {after.backlog_armed:,} armed for later{dead}")
    if trouble is not None:
        warn(f"what waits in NATS and for NATS stays there: {trouble.message}")
        return exit_code(trouble.code)
    return 0


async def _send_until_idle(settings: config.Settings, url: str, *, until_idle: bool, as_json: bool) -> int:
    """Send what hooks left to the server. One that a hook started stays for the next hook."""
    if not until_idle:
        raise InvalidInput(
            f"EVERKEPT_URL names the server at {url}, which works its jobs; `everkept worker --until-idle` sends it"
            " what hooks left on this machine"
        )
    say(f"sending what hooks left in {settings.home} to {url}")
    async with backend.remote_desk(url, settings) as desk:
        with _stopping() as stop:
            awake = await desk.stay(_awake_s(), busy=_never_busy, stopped=stop.is_set)
        sent, waiting, trouble = desk.sent, desk.waiting(), desk.trouble
    if as_json:
        emit({
            "sent": sent.records, "transcripts": sent.transcripts, "new": sent.taken.stored, "known": sent.taken.known,
            "revised": sent.taken.revised, "set_aside": sent.refused, "waiting": waiting,
            "trouble": None if trouble is None else {"code": trouble.code, "message": trouble.message},
        })  # fmt: skip
    elif not awake:
        print("another process is awake for the hooks of this machine")
    else:
        aside = f", {count(len(sent.refused), 'record')} set aside" if sent.refused else ""
        print(f"{count(sent.records, 'record')} sent{aside}, {waiting:,} waiting")
    if trouble is not None:
        warn(f"{count(waiting, 'record')} wait for the server: {trouble.message}")
        return exit_code(trouble.code)
    return failures.NEEDS_ATTENTION if sent.refused else 0


def _awake_s() -> float:
    from everkept.api.hookdesk import AWAKE_S
    from everkept.hook.hook_script import LOCK_FD

    return AWAKE_S if LOCK_FD in os.environ else 0.0


async def _never_busy() -> bool:
    return False


async def _forever(application: Application, stop: asyncio.Event) -> None:
    from everkept.doors.cli.checkouts import attend
    from everkept.doors.cli.rule_files import keep_up

    following = asyncio.create_task(keep_up(application, application.settings.home, stop))
    try:
        await attend(application, stop)
    finally:
        following.cancel()
        await asyncio.wait([following])


async def _until_idle(application: Application, memory: Service, stop: asyncio.Event) -> EverkeptError | None:
    """Take in what hooks and NATS left, work what is due, and send what comes of it; why NATS could not be attended to.

    One that a hook started stays for the next hook.
    """
    from everkept.doors.cli.checkouts import look_at_checkouts, taker_of
    from everkept.doors.cli.rule_files import follow

    async def busy() -> bool:
        now = await memory.status()
        return bool(now.backlog_due or any(worker.running for worker in now.workers))

    await application.hooks().stay(_awake_s(), busy=busy, stopped=stop.is_set)
    trouble = await _idle_with_nats(application, memory, stop, taker_of(application))
    await application.send_waiting_webhooks()
    await follow(application, application.settings.home)
    await look_at_checkouts(application, application.settings.home)
    return trouble


async def _idle_with_nats(
    application: Application, memory: Service, stop: asyncio.Event, take: Take | None
) -> EverkeptError | None:
    """Until nothing is due, of which nothing waits for a NATS that cannot be reached."""
    try:
        async with application.nats_for_a_while(take) as nats:
            if nats is not None:
                await nats.take_events(stop)
            await _idle(memory, stop)
            if nats is not None:
                await nats.publish(stop)
    except StoreUnavailable:
        raise
    except Unavailable as error:
        await _idle(memory, stop)
        return error
    return None


async def _idle(memory: Service, stop: asyncio.Event) -> None:
    """Until nothing was due and nothing ran for a while: a job that has ended may have set another a second ahead."""
    quiet = 0
    while quiet * IDLE_LOOK_S < QUIET_S and not stop.is_set():
        now = await memory.status()
        busy = now.backlog_due or any(worker.running for worker in now.workers)
        quiet = 0 if busy else quiet + 1
        await asyncio.sleep(IDLE_LOOK_S)


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """An event that SIGTERM sets; where the system has no such handlers, the default ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGTERM, stop.set)
    except NotImplementedError:
        yield stop
        return
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
