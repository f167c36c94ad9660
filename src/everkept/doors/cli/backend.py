"""Finding the memory: `EVERKEPT_URL`, else the server that runs here on the same home, else the store itself.

The only module of the CLI that touches bootstrap and the remote service; both are imported when they are needed.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

from everkept import config
from everkept.api.pacing import PATIENCE_S
from everkept.domain.scope import sign_in_words
from everkept.doors.cli.options import DEFAULT_PROJECT
from everkept.doors.cli.screen import say
from everkept.doors.cli.waiting import records_waiting, take_in, tell_what_waits
from everkept.errors import EverkeptError, ExtraMissing, InvalidInput, NotFound

if TYPE_CHECKING:
    from everkept.api import views as v
    from everkept.api.remote_desk import RemoteDesk
    from everkept.api.secrets import SecretScan
    from everkept.api.service import Service
    from everkept.bootstrap import Application as OpenedApplication
    from everkept.capture.identity import Checkout

PROBE_S = 1.0
"""How long a server on this machine may take to be connected to before it counts as not running."""
ANSWER_S = 10.0
"""How long it may then take to say that it is alive, and again which store it serves: it may be busy."""
BODY_MAX_BYTES = 4096


class Opener(Protocol):
    """Opens the memory of a project. `worker`: where the store is opened here, due work is worked meanwhile."""

    def __call__(self, project: str, *, worker: bool) -> AbstractAsyncContextManager[Service]: ...


_opener: ContextVar[Opener | None] = ContextVar("opener", default=None)


@contextmanager
def opened_by(opener: Opener | None) -> Iterator[None]:
    """Within, commands use this opener instead of looking for the memory."""
    token = _opener.set(opener)
    try:
        yield
    finally:
        _opener.reset(token)


@asynccontextmanager
async def memory(project: str, *, worker: bool = False) -> AsyncIterator[Service]:
    """The use cases in `project`, wherever the memory is found. Raises NotFound, Unavailable, ConfigInvalid."""
    async with _reach(project, worker=worker) as reached:
        yield await reached.service(project)


class Here(NamedTuple):
    """The memory that answers, whose it is and how that was found, and the folder that was looked at."""

    memory: Service
    scope: v.Scope
    checkout: Checkout


@asynccontextmanager
async def memory_here(project: str | None, *, worker: bool = False, create: bool = False) -> AsyncIterator[Here]:
    """The memory of the named project, else of the one that the current folder belongs to; says which, and why.

    `create` makes that of a folder which nobody knows yet, for who is about to work there. Raises NotFound where there
    is no such project, or nobody knows the folder; Unavailable, ConfigInvalid.
    """
    from everkept.api.views import Scope

    checkout = await checkout_here()
    async with _reach(project or DEFAULT_PROJECT, worker=worker) as reached:
        if project is None:
            scope = await reached.resolve_scope(checkout, create=True) if create else await _scope_of(reached, checkout)
        else:
            scope = Scope(project=project, found_by="named", value=project)
        service = await reached.service(scope.project)
        say(scope_line(scope) if project is None else f"project {project}, as you named it")
        if project is None and checkout.marker is not None and scope.found_by not in ("marker", "named"):
            say(f"note: .everkept.toml names the project {checkout.marker}, and counts once you trust it: "
                "everkept projects trust")  # fmt: skip
        yield Here(service, scope, checkout)


async def _scope_of(reached: Reached, checkout: Checkout) -> v.Scope:
    """Raises NotFound, which does not say that there is no memory of the folder while records wait that may be."""
    try:
        return await reached.resolve_scope(checkout)
    except NotFound as error:
        if not (waiting := await records_waiting(config.load().home)):
            raise
        raise NotFound(
            f"{error.message}; but {waiting:,} records of hooks still wait to be taken in, and may be of this folder: "
            "`everkept worker --until-idle` takes them in",
            **error.details,
        ) from error


async def trust_marker_here() -> v.Scope:
    """The project that this folder's marker file names is its project from now on. Raises InvalidInput, NotFound."""
    checkout = await checkout_here()
    async with _reach(DEFAULT_PROJECT, worker=False) as reached:
        return await reached.trust_marker(checkout)


async def scope_here(memory: Service) -> v.Scope | None:
    """Whose memory the current folder is; None where nobody knows it."""
    try:
        return await memory.resolve_scope(await checkout_here())
    except NotFound:
        return None


async def tell_of_folder(memory: Service, project: str) -> None:
    """Say so where the current folder has a project of its own and another one answers."""
    here = await scope_here(memory)
    if here is not None and here.project != project:
        say(f"this is the memory of project {project}; this folder's has --project {here.project}")


async def checkout_here() -> Checkout:
    from everkept.capture.identity import look_at, with_root

    return await asyncio.to_thread(lambda: with_root(look_at(Path.cwd())))


def scope_line(scope: v.Scope) -> str:
    if scope.found_by == "named":
        return f"project {scope.project}, that of your key"
    value = "" if scope.value == scope.project else f" {scope.value}"
    return f"project {scope.project}, found by the {sign_in_words(scope.found_by)}{value}"


class Reached(Protocol):
    """A store, or a server of one."""

    async def service(self, project: str) -> Service: ...
    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope: ...
    async def trust_marker(self, checkout: Checkout) -> v.Scope: ...


class _Opened:
    """Services that something opens one by one; all of them are closed together."""

    def __init__(self, open_: Callable[[str], AbstractAsyncContextManager[Service]], closing: AsyncExitStack) -> None:
        self._open = open_
        self._closing = closing

    async def service(self, project: str) -> Service:
        return await self._closing.enter_async_context(self._open(project))

    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        return await (await self.service(DEFAULT_PROJECT)).resolve_scope(checkout, create=create)

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        return await (await self.service(DEFAULT_PROJECT)).trust_marker(checkout)


@asynccontextmanager
async def _reach(project: str, *, worker: bool) -> AsyncIterator[Reached]:
    """Where the memory is: what the opener gives, else EVERKEPT_URL, else the server of this home, else its store."""
    opener = _opener.get()
    async with AsyncExitStack() as closing:
        if opener is not None:
            yield _Opened(lambda name: opener(name, worker=worker), closing)
            return
        settings = config.load()
        url = settings.url or await find_server_here(settings, project)
        if url:
            say(f"using the server at {url}")
            await tell_what_waits(settings.home)
            yield _Opened(lambda name: remote_service(url, settings, name), closing)
            return
        say(f"using the store in {settings.home} (no server of it at {settings.server.bind})")
        opened = await closing.enter_async_context(application(settings, worker=worker))
        await take_in(opened, settings.home)
        yield opened


async def find_server_here(settings: config.Settings, project: str) -> str | None:
    """The server that runs on this machine on the same home, if there is one."""
    url = local_url(*settings.server.address)
    return url if is_alive(url) and await _serves_this_home(url, settings, project) else None


@asynccontextmanager
async def store_here(*, worker: bool) -> AsyncIterator[OpenedApplication]:
    """The store of this home itself, beside its server where one runs; that one's worker then does the work.

    Raises InvalidInput where EVERKEPT_URL names a server of another store.
    """
    settings = config.load()
    url = settings.url or await find_server_here(settings, DEFAULT_PROJECT)
    if settings.url and not await _serves_this_home(settings.url, settings, DEFAULT_PROJECT):
        raise InvalidInput(
            f"files of this machine are read into a store of this machine, and EVERKEPT_URL names the server at {url};"
            " unset it, or run this where that server is"
        )
    beside = f"beside the server at {url}" if url else f"no server of it at {settings.server.bind}"
    say(f"using the store in {settings.home} ({beside})")
    async with application(settings, worker=worker and not url) as opened:
        yield opened


async def diagnosis(project: str, *, subject: str | None, full: bool) -> v.Diagnosis:
    """What the server of this home says of its store, else what can be read off the file; nothing is made or upgraded.

    With what lies around the store on this machine, where it is the store of this machine. Raises Unavailable where
    only a server could tell, and it does not answer; ConfigInvalid.
    """
    settings = config.load()
    if _opener.get() or settings.url:
        async with memory(project) as service:
            return await service.diagnose(subject=subject, full=full)
    from everkept.bootstrap import diagnosis_with_agents
    from everkept.doors.cli.agents_here import agents_here

    found = await _diagnosis_here(settings, project, subject=subject, full=full)
    return diagnosis_with_agents(found, settings, agents_here(settings.home))


def secrets() -> SecretScan:
    """Where the store of this machine holds secrets. Raises InvalidInput where EVERKEPT_URL names another's store."""
    settings = config.load()
    if settings.url:
        raise InvalidInput(
            f"a scan reads the store's file, and EVERKEPT_URL names the server at {settings.url}; unset it"
        )
    say(f"reading every text of the store in {settings.home}")
    from everkept.bootstrap import scan_store_for_secrets

    return scan_store_for_secrets(settings)


async def _diagnosis_here(settings: config.Settings, project: str, *, subject: str | None, full: bool) -> v.Diagnosis:
    url = await find_server_here(settings, project)
    if url:
        say(f"using the server at {url}")
        try:
            async with remote_service(url, settings, project) as service:
                return await service.diagnose(subject=subject, full=full)
        except EverkeptError as error:
            say(f"the server at {url} cannot tell: {error.message}")
    say(f"reading the store in {settings.home}")
    from everkept.bootstrap import diagnose_unopened_store

    return await diagnose_unopened_store(settings, project=project, subject=subject, full=full)


@asynccontextmanager
async def application(
    settings: config.Settings, *, worker: bool, log_least: str = "error"
) -> AsyncIterator[OpenedApplication]:
    """The store of these settings, opened in this process and closed at the end.

    A command shows its own result, so that of the log only errors are worth a line; a process that stays shows all.
    """
    from everkept.bootstrap import open_application
    from everkept.doors.cli.logs import write_logs

    write_logs(settings, least=log_least)
    opened = await open_application(settings, worker=worker, patience_s=PATIENCE_S)
    try:
        yield opened
    finally:
        await opened.close(drain_s=settings.work.drain_s)


async def serve_http(settings: config.Settings, *, worker: bool) -> None:
    """Open the store and serve it until a signal ends it; the server closes it.

    Raises ExtraMissing where the extra `server` is not installed.
    """
    try:
        from everkept.doors.http import server
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"serving needs {error.name}, which is not installed: pip install 'everkept[server]'", module=error.name
        ) from error
    from everkept.bootstrap import open_application
    from everkept.doors.cli.checkouts import attend
    from everkept.doors.cli.logs import write_logs

    write_logs(settings)
    opened = await open_application(settings, worker=worker)
    await server.run(settings, opened, partial(attend, opened) if worker else None)


@asynccontextmanager
async def remote_service(url: str, settings: config.Settings, project: str) -> AsyncIterator[Service]:
    from everkept.doors.python.remote import RemoteService

    service = RemoteService(url, api_key=settings.secrets.api_key, project=project)
    try:
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def remote_desk(url: str, settings: config.Settings) -> AsyncIterator[RemoteDesk]:
    """Awake for the hooks of this machine, whose memory is on the server at `url`. Raises InvalidInput."""
    from everkept.api.nats_sending import NatsSending
    from everkept.api.remote_desk import RemoteDesk
    from everkept.doors.cli.logs import write_logs
    from everkept.doors.python.sending import HooksServer

    write_logs(settings, least="warning")
    server = HooksServer(url, settings.secrets.api_key)
    try:
        yield RemoteDesk(settings.home, NatsSending(settings.nats, server) if settings.nats.drain else server)
    finally:
        await server.close()


def local_url(host: str, port: int) -> str:
    """Where a server that listens on this address is reached from this machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def is_alive(url: str) -> bool:
    """Whether an Everkept answers there. Nothing listening is the usual case, and costs nothing."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    try:
        with socket.create_connection((place.hostname, place.port), timeout=PROBE_S):
            pass
        return _answers_alive(place.hostname, place.port)
    except TimeoutError:
        say(f"what listens at {url} does not answer; it is not used")
        return False
    except (OSError, ValueError):
        return False


def _answers_alive(host: str, port: int) -> bool:
    """Raises OSError or ValueError where something else answers, or nothing does."""
    from http.client import HTTPConnection, HTTPException  # loaded only where somebody listens

    connection = HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        connection.request("GET", "/healthz")
        answer = json.loads(connection.getresponse().read(BODY_MAX_BYTES))
        return isinstance(answer, dict) and answer.get("alive") is True
    except HTTPException as error:
        raise ValueError("not HTTP") from error
    finally:
        connection.close()


async def _serves_this_home(url: str, settings: config.Settings, project: str) -> bool:
    """Whether the server there has the store that these settings mean; where it has not, says so."""
    try:
        async with asyncio.timeout(ANSWER_S):
            theirs = await _store_of(url, settings, project)
    except TimeoutError:
        say(f"the server at {url} does not answer; it is not used")
        return False
    except EverkeptError as error:
        say(f"the server at {url} is not used: {error.message}")
        return False
    if theirs is not None and same_place(str(theirs), store_path(settings)):
        return True
    if theirs is None:
        say(f"the server at {url} tells a project's key nothing of its store; it is not used")
    else:
        say(f"the server at {url} serves another store ({theirs}); it is not used")
    return False


async def _store_of(url: str, settings: config.Settings, project: str) -> object:
    """Where the store of the server there is; None where it does not tell. Whether it has the project is not asked."""
    async with remote_service(url, settings, project) as service:
        try:
            return (await service.status()).store.get("path")
        except NotFound as error:
            known = error.details.get("known") or []
    if not known or project in known:
        return None
    return await _store_of(url, settings, str(known[0]))


def store_path(settings: config.Settings) -> str:
    """Where the store of these settings is: a file's path, or the URL of a database without its password."""
    url = settings.database_url
    if not url.startswith("sqlite"):
        return next(str(row.value) for row in settings.explain() if row.key == "database_url")
    return url.partition(":///")[2].partition("?")[0]


def same_place(one: str, other: str) -> bool:
    if "://" in one or "://" in other:
        return one == other
    return Path(one).resolve() == Path(other).resolve()
