"""The whole look: every check over one snapshot, and the file around it where no store is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import text

from everkept.errors import EverkeptError
from everkept.ports.clock import Clock
from everkept.store.aliases import find_by_signs
from everkept.store.connection import Connection
from everkept.store.copy import opened
from everkept.store.database import Database, reading
from everkept.store.described import described
from everkept.store.diagnosis import (
    agents,
    deliveries,
    moves,
    nats,
    place,
    recallable,
    schema,
    server,
    timers,
    weather,
    work,
)
from everkept.store.diagnosis.causes import Finding, without_symptoms
from everkept.store.diagnosis.look import AgentsAround, Look
from everkept.store.dialect import sqlite_dialect
from everkept.store.status import LaneRow, WorkerRow, read_lanes, read_workers

CHECKS: tuple[Callable[[Connection, Look], list[Finding]], ...] = (
    schema.newer_schema, place.clock_moved, place.several_machines, place.copies_kept, moves.move_out,
    work.no_worker, work.paused, work.leases_of_dead_workers, work.worker_too_old, work.sweeps_failing,
    work.backlog_growing, work.given_up, work.no_vectors, work.conflicts_unjudged, work.erases,
    deliveries.webhooks, deliveries.consumers_left_behind, nats.streams, nats.changes_missing,
    weather.circuits, weather.slow, weather.budgets, weather.limits_without_price,
    timers.nothing_scheduled,
    agents.around_the_store,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found, and the figures beside it. Times in microseconds since 1970."""

    at: int
    looked: bool
    """False where the store itself could not be looked at."""
    findings: list[Finding]
    store: dict[str, Any]
    lanes: list[LaneRow] = field(default_factory=list)
    workers: list[WorkerRow] = field(default_factory=list)
    expired_leases: int = 0
    refused_finishes: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    """By class of error."""
    erases_unfinished: int = 0
    held_back: dict[str, int] = field(default_factory=dict)
    """Facts that recall holds back, by reason; most of them are no fault."""


_EXPIRED = text("select count(*) from jobs where state = 'leased' and lease_until <= :now")
_REFUSED = text("select value from counters where name = 'refused_finishes'")
_DEAD = text("select coalesce(error_class, 'internal'), count(*) from jobs where state = 'dead' group by 1 order by 1")
_ERASES = text("select count(*) from erasures where done_at is null")


def diagnose(conn: Connection, look: Look) -> Diagnosis:
    """Over an open store of this program's schema."""
    before, whole = _of_the_database(conn, look)
    if any(finding.cause == "store_corrupt" for finding in whole):
        return _unread(conn.now(), look, [*before, *whole])
    found = [finding for check in CHECKS for finding in check(conn, look)]
    unseen, held_back = recallable.not_recallable(conn, look)
    now = conn.now()
    return Diagnosis(
        at=now, looked=True, findings=without_symptoms([*before, *whole, *found, *unseen]),
        store=store_facts(look, described(conn)), lanes=read_lanes(conn, None),
        workers=read_workers(conn, look.settings), expired_leases=conn.scalar(_EXPIRED, {"now": now}),
        refused_finishes=int(conn.scalar(_REFUSED) or 0), dead_letters=dict(conn.rows(_DEAD)),
        erases_unfinished=conn.scalar(_ERASES), held_back=held_back,
    )  # fmt: skip


def _of_the_database(conn: Connection, look: Look) -> tuple[list[Finding], list[Finding]]:
    """What was found around it, and whether it is whole."""
    if look.around is None:
        return server.around(conn, look), []
    return place.around_the_file(look.around, look.failing), [] if look.rows_only else place.contents(conn.raw, look)


def _unread(at: int, look: Look, findings: list[Finding]) -> Diagnosis:
    """What is said where no row could be read."""
    found = without_symptoms(findings)
    looked = not any(finding.blind for finding in found)
    return Diagnosis(at=at, looked=looked, findings=found, store=store_facts(look, {}))


def diagnose_file(look: Look, clock: Clock) -> Diagnosis:
    """Over a file that this process has not opened; it is neither made, nor upgraded, nor changed."""
    assert look.around is not None
    path = look.around.path
    before = place.around_the_file(look.around, look.failing)
    if not path.is_file():
        return _unread(clock.now_us(), look, [place.missing(path)])
    try:
        with opened(path, busy_s=place.BUSY_S) as raw:
            raw.execute("begin")
            unread = place.schema_of(raw, path)
            if unread is not None:
                return _unread(clock.now_us(), look, [*before, unread])
            found = diagnose(Connection(raw, sqlite_dialect(), clock), look)
    except EverkeptError as error:
        return _unread(clock.now_us(), look, [*before, place.unreadable(path, error)])
    if any(finding.cause == "store_corrupt" for finding in found.findings):
        return found
    unwritable = place.writable(path)
    return found if unwritable is None else replace(found, findings=without_symptoms([*found.findings, unwritable]))


def diagnose_database(look: Look, clock: Clock, database: Database) -> Diagnosis:
    """Over a server, of which nothing is changed."""
    try:
        with reading(database, clock) as conn:
            return diagnose(conn, look)
    except EverkeptError as error:
        return _unread(clock.now_us(), look, [server.unreachable(database.name, error)])


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsDiagnosis:
    """What was found between coding agents and the store, and the figures beside it."""

    findings: list[Finding]
    heard: dict[str, int] = field(default_factory=dict)
    """{agent: when its hooks were heard last}"""
    project: str | None = None
    """Whose memory the folder is; None where nobody knows it."""
    found_by: str | None = None


def diagnose_agents(look: Look, around: AgentsAround, clock: Clock, database: Database) -> AgentsDiagnosis:
    """Only that, over a store which may be missing or unreadable, and which somebody else may serve."""
    beside = AgentsDiagnosis(findings=without_symptoms(agents.beside_the_store(look, clock.now_us())))
    try:
        if look.around is None:
            with reading(database, clock) as conn:
                return _agents(conn, look, around)
        path = look.around.path
        if not path.is_file():
            return beside
        with opened(path, busy_s=place.BUSY_S) as raw:
            raw.execute("begin")
            if place.schema_of(raw, path) is not None:
                return beside
            return _agents(Connection(raw, sqlite_dialect(), clock), look, around)
    except EverkeptError:  # what keeps the store from being read is a finding of the whole look
        return beside


def _agents(conn: Connection, look: Look, around: AgentsAround) -> AgentsDiagnosis:
    found = find_by_signs(conn, around.signs)
    project, found_by = (None, None) if found is None else (found.project.name, found.found_by)
    return AgentsDiagnosis(
        findings=without_symptoms(agents.around_the_store(conn, look)), heard=agents.heard_agents(conn),
        project=project, found_by=found_by,
    )  # fmt: skip


def store_facts(look: Look, said: Mapping[str, Any]) -> dict[str, Any]:
    """`said`: `described`, empty where the store could not be read."""
    around = look.around
    facts = {
        "path": look.name, "library": said.get("library"), "degraded": said.get("degraded"),
        "journal_mode": said.get("journal_mode"), "sync": look.sync, "size_bytes": said.get("size_bytes"),
        "failing": look.failing,
    }  # fmt: skip
    if around is None:
        return facts
    return {
        **facts, "library": around.library, "degraded": around.degraded, "size_bytes": around.size_bytes,
        "wal_bytes": around.wal_bytes, "free_bytes": around.free_bytes,
        "mode": None if around.mode is None else f"{around.mode:o}",
    }  # fmt: skip
