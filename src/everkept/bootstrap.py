"""Putting the parts together: the only place that picks implementations."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import os
import secrets
import socket
import sys
from collections.abc import Collection, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import structlog

from everkept.api import views as v
from everkept.api.base import Parts
from everkept.api.contexts import Contexts
from everkept.api.diagnosing import DiagnosisHere, diagnose_unopened, with_agents
from everkept.api.hookdesk import HookDesk, stay_awake
from everkept.api.ingesting import Ingest
from everkept.api.local import LocalService
from everkept.api.nats import NatsForAWhile, attend_nats, nats_for_a_while
from everkept.api.nats_intake import TAKE_MESSAGE
from everkept.api.nats_messages import take_message
from everkept.api.nats_state import Take
from everkept.api.operating import token_hash
from everkept.api.page_files import PagesReport, import_pages_of
from everkept.api.pricing import unpriced
from everkept.api.scoping import resolve_scope, trust_marker
from everkept.api.secrets import SecretScan, scan_secrets
from everkept.api.service import KeyHolder
from everkept.api.start_packs import leave_packs
from everkept.api.transcripts import TranscriptImport
from everkept.api.webhook_sending import send_waiting_webhooks, send_webhooks
from everkept.capture.identity import Checkout
from everkept.config import Settings, make_home
from everkept.deliver.nats_look import look_at_nats
from everkept.derive.tools import Tools
from everkept.domain.jobs import Uses
from everkept.errors import ConfigInvalid, EverkeptError, NotFound
from everkept.models.embedders import from_setting as embedder_from_setting
from everkept.models.journaled import JournaledModel
from everkept.models.language import from_env
from everkept.models.word_vectors import WordllamaVectors
from everkept.otel import send_traced, trace_as_told
from everkept.ports.clock import Clock, SystemClock
from everkept.ports.embedder import Embedder
from everkept.ports.faults import Faults, NoFaults
from everkept.ports.models import LanguageModel
from everkept.recall.rank import Weights
from everkept.recall.search import Searcher
from everkept.store.connection import Connection
from everkept.store.copy import our_errors
from everkept.store.counters import count
from everkept.store.database import Database
from everkept.store.diagnosis.look import AgentsAround
from everkept.store.journal import StoreJournal
from everkept.store.projects import (
    DEFAULT_PROJECT,
    ensure_project,
    find_key,
    find_project,
    list_projects,
    names_of,
)
from everkept.store.sqlite_database import SqliteDatabase
from everkept.store.stale_pages import recent_worktrees
from everkept.store.store import Store
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner
from everkept.work.worker import Worker

NO_MODEL = "none (deterministic extraction)"


class Application:
    """The parts of one process; `api.service.Application`."""

    def __init__(self, parts: Parts, worker: Worker | None) -> None:
        self.parts = parts
        self.worker = worker
        self._closed = False

    @property
    def settings(self) -> Settings:
        return self.parts.settings

    async def service(self, project: str = DEFAULT_PROJECT) -> LocalService:
        row = await self.parts.store.look_up(find_project, project)
        if row is None:
            known = [p.name for p in await self.parts.store.read(list_projects)]
            raise NotFound(
                f"there is no project {project!r}; there are: {', '.join(known)}", project=project, known=known
            )
        return LocalService(self.parts, row)

    async def authenticate(self, token: str) -> KeyHolder | None:
        return await self.parts.store.look_up(_holder, token_hash(token))

    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        return await resolve_scope(self.parts.store, checkout, create=create)

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        return await trust_marker(self.parts.store, checkout)

    def ingest(self, *, project: str | None, confined: bool) -> Ingest:
        return Ingest(self.parts, project=project, confined=confined)

    def contexts(self, *, project: str | None, confined: bool) -> Contexts:
        return Contexts(self.parts, project=project, confined=confined)

    def hooks(self) -> HookDesk:
        """What a process that is awake for the hooks of this home does."""
        return HookDesk(self.parts, self.parts.settings.home)

    async def attend(self, stop: asyncio.Event, take: Take | None = None) -> None:
        """What a server or a worker does beside its jobs: be awake for hooks, send webhooks, attend to NATS.

        `take`: what takes in the messages of NATS; None: none are taken.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(stay_awake(self.hooks(), stop))
            group.create_task(send_webhooks(self.parts, stop))
            group.create_task(attend_nats(self.parts, stop, take))

    def nats_for_a_while(self, take: Take | None) -> AbstractAsyncContextManager[NatsForAWhile | None]:
        """For a process that ends when nothing is due. Raises Unavailable where NATS is set and does not answer."""
        return nats_for_a_while(self.parts, take)

    async def send_waiting_webhooks(self) -> None:
        """What can be sent now, by a process that ends when nothing is due."""
        await send_waiting_webhooks(self.parts)

    async def recent_worktrees(self, *, days: int, limit: int) -> list[tuple[str, str]]:
        """(project, folder) in which agents were at work lately, the last ones first."""
        since_us = self.parts.clock.now_us() - days * 24 * 3_600 * 1_000_000
        return await self.parts.store.read(recent_worktrees, since_us, limit)

    def importer(self) -> TranscriptImport:
        """Takes in the transcripts of coding agents, into whatever projects they belong."""
        return TranscriptImport(self.parts, patience_s=math.inf)

    async def leave_start_packs(self, checkouts: Iterable[Checkout]) -> None:
        """For hooks in these folders that come while nobody is awake."""
        await leave_packs(Contexts(self.parts), self.parts.settings.home, checkouts)

    async def import_pages_of(self, sessions: Collection[tuple[str, int]], home: Path) -> PagesReport:
        """Instruction and memory files of the checkouts in which these sessions worked, as pages."""
        return await import_pages_of(self.parts, sessions, home)

    async def ready(self) -> dict[str, str]:
        faults: dict[str, str] = {}
        if self._closed:
            faults["draining"] = "this process is shutting down"
            return faults
        try:
            await self.parts.store.write(_probe)
        except EverkeptError as error:
            faults["store"] = str(error)
        else:  # a row fits where a message may not
            if failing := self.parts.store.failing():
                faults["store"] = failing
        if self.worker is not None and not self.worker.alive:
            faults["worker"] = "the worker of this process has ended; start the process again"
        return faults

    async def close(self, *, drain_s: float = 5.0) -> None:
        if self._closed:
            return
        self._closed = True
        if self.worker is not None:
            await asyncio.to_thread(self.worker.stop, drain_s)
        await asyncio.to_thread(self.parts.store.close)
        await asyncio.to_thread(send_traced)


def _holder(conn: Connection, hashed: bytes) -> KeyHolder | None:
    project = find_key(conn, hashed)
    return None if project is None else KeyHolder(project=project, names=names_of(conn, project))


def _probe(conn: Connection) -> None:
    """A row that is really written: the writer, its lock and the disk answer."""
    count(conn, "probes")


async def open_application(
    settings: Settings,
    *,
    worker: bool = True,
    clock: Clock | None = None,
    faults: Faults | None = None,
    model: LanguageModel | None = None,
    patience_s: float = 0.0,
) -> Application:
    """Open the store (made or upgraded as needed) and start a worker. `patience_s` as in `Parts`.

    Raises StoreNotSupported, StoreFull, ConfigInvalid. `model` takes the place of the one that the settings name.
    """
    with our_errors(settings.home):
        make_home(settings)
    if not structlog.is_configured():  # a library's log belongs on stderr: stdout is the caller's
        level = logging.getLevelNamesMapping()[settings.log.level.upper()]
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(level),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # whichever it is then: hosts replace it
        )
    trace_as_told(os.environ)
    clock = clock or SystemClock()
    faults = faults or NoFaults()
    store = Store(database_of(settings), clock=clock, faults=faults)
    language = model or from_env(settings.model, os.environ)
    if language is not None:
        settings = dataclasses.replace(settings, model=language.name)  # also where a key alone chose it
    tools = Tools(
        model=None
        if language is None
        else JournaledModel(language, StoreJournal(store, settings), faults, asks_max=settings.models.asks_max),
        words=WordllamaVectors(),
        embedder=embedder_from_setting(settings.embedder, os.environ),
    )
    await asyncio.to_thread(store.open)
    if await store.read(find_project, DEFAULT_PROJECT) is None:  # a full disk must not keep anybody from reading
        await store.write(ensure_project, DEFAULT_PROJECT, secrets.token_bytes(32))
    weights = Weights(**{f.name: getattr(settings.recall, f"weight_{f.name}") for f in dataclasses.fields(Weights)})
    searcher = Searcher(
        tools.words, weights, lexical=settings.recall.candidates_lexical, dense=settings.recall.candidates_dense
    )
    parts = Parts(
        store=store,
        settings=settings,
        clock=clock,
        tools=tools,
        searcher=lambda: searcher,
        model_name=NO_MODEL if language is None else language.name,
        patience_s=patience_s,
    )
    runner = make_runner(parts, faults) if worker else None
    application = Application(
        parts,
        None if runner is None else Worker(runner, settings, embedder_label=tools.embedder_label),
    )
    if application.worker is not None:
        application.worker.start()
    return application


def pools_of(language: LanguageModel | None, embedder: Embedder | None) -> dict[Uses, str | None]:
    """Whose permits and circuit each use needs; None where no provider is asked."""
    return {
        "local": None,
        "model": None if language is None else language.pool,
        "embedder": None if embedder is None or embedder.pool == "local" else embedder.pool,
    }


def make_runner(parts: Parts, faults: Faults) -> Runner:
    """A runner over the parts; its threads are made by `Worker`, simulations step it themselves."""
    from everkept.derive.kinds import job_kinds, periodic_tasks  # all work there is: not for a process that only reads

    pools = pools_of(None if parts.tools.model is None else parts.tools.model.model, parts.tools.embedder)
    owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    maintenance = Maintenance(parts.store, periodic_tasks(parts.settings), parts.clock)
    return Runner(
        parts.store,
        job_kinds(parts.settings) | {TAKE_MESSAGE: take_message(parts.nats, parts.clock)},
        parts.settings,
        parts.tools,
        owner=owner,
        clock=parts.clock,
        faults=faults,
        pools=pools,
        maintenance=maintenance,
    )


async def diagnose_unopened_store(settings: Settings, *, project: str, subject: str | None, full: bool) -> v.Diagnosis:
    """`doctor` over the file, without opening a store: whatever is wrong with it, it is only read."""
    try:
        language = from_env(settings.model, os.environ)
        embedder = embedder_from_setting(settings.embedder, os.environ)
        pools, no_price = pools_of(language, embedder), await unpriced(language)
    except EverkeptError:  # this shell lacks a key or a package that the worker may have
        pools, no_price = {}, None
    return diagnose_unopened(
        database_of(settings), settings, SystemClock(), pools, project=project, subject=subject, full=full,
        nats=await look_at_nats(settings.nats), unpriced=no_price,
    )  # fmt: skip


def diagnosis_with_agents(found: v.Diagnosis, settings: Settings, around: AgentsAround) -> DiagnosisHere:
    """What was found in this store, and what lies around it on this machine."""
    return with_agents(found, database_of(settings), settings, SystemClock(), around)


def scan_store_for_secrets(settings: Settings) -> SecretScan:
    """`doctor --secrets` over the file, which is only read."""
    return scan_secrets(database_of(settings), SystemClock())


def database_of(settings: Settings) -> Database:
    """What `database_url` names. Raises ConfigInvalid for another database than SQLite and PostgreSQL."""
    url = settings.database_url
    if url.startswith("sqlite:///"):
        return SqliteDatabase(Path(url.removeprefix("sqlite:///")))
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigInvalid("database_url must start with sqlite:/// or postgresql://", field="database_url")
    try:
        from everkept.store.postgres import WRITE_MIN_S, WRITE_S, PostgresDatabase
    except ImportError as error:
        raise ConfigInvalid(
            "a postgresql:// database_url needs the extra `postgres`: pip install 'everkept[postgres]'",
            field="database_url",
        ) from error
    # A writer that stands still holds its project up for no longer than until a heartbeat is missed.
    return PostgresDatabase(
        url, settings.database_direct_url, write_s=max(WRITE_MIN_S, min(WRITE_S, settings.work.heartbeat_s))
    )
