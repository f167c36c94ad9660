"""`doctor`: what is wrong, why, and what mends it; over the open store, or over a file that nobody here has open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import everkept
from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import moment, when
from everkept.api.pricing import unpriced
from everkept.api.status import nats_view
from everkept.capture.agents.formats import FORMATS
from everkept.capture.identity import look_at, with_root
from everkept.capture.redaction import unusable_rules
from everkept.capture.redaction.vendored import rules_without_pattern
from everkept.capture.spool import Spool
from everkept.config import Settings
from everkept.deliver.nats_look import look_at_nats
from everkept.domain.jobs import Uses
from everkept.domain.nats_seen import NatsSeen
from everkept.errors import InvalidInput
from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.database import Database
from everkept.store.diagnosis.causes import CAUSES, Finding
from everkept.store.diagnosis.diagnose import (
    Diagnosis,
    diagnose,
    diagnose_agents,
    diagnose_database,
    diagnose_file,
)
from everkept.store.diagnosis.look import AgentsAround, Look, Surroundings, WiredAgent, look_around
from everkept.store.projects import shown_name

SYNC = ("off", "normal", "full", "extra")


class Diagnosing(Cases):
    async def diagnose(self, *, subject: str | None = None, full: bool = False, rows_only: bool = False) -> v.Diagnosis:
        """Every cause of trouble in the whole store. `subject`: also why each of its facts is held back from recall.

        `full` reads the file from end to end, which takes seconds for each gigabyte; `rows_only` reads no more of it
        than the rows that tell of trouble.
        """
        if full and rows_only:
            raise InvalidInput("full and rows_only exclude each other", field="rows_only")
        tools = self._parts.tools
        look = Look(
            settings=self._settings, name=self._whole.database.name, around=_around(self._whole.database),
            failing=self._whole.writer.failing,
            sync=None if self._whole.writer.failing else await self._whole.write(_sync),
            pools={
                "model": None if tools.model is None else tools.model.model.pool,
                "embedder": None if tools.embedder is None else tools.embedder.pool,
            },
            unpriced=await unpriced(None if tools.model is None else tools.model.model),
            project=self._project.name, subject=subject, full=full, rows_only=rows_only,
            nats=await look_at_nats(self._settings.nats),
        )  # fmt: skip
        return diagnosis_view(await self._whole.read(diagnose, look), look.nats)


def _around(database: Database) -> Surroundings | None:
    return None if database.path is None else look_around(database.path)


def _sync(conn: Connection) -> str:
    if conn.dialect.name == "sqlite":
        return SYNC[conn.raw.execute("pragma synchronous").fetchone()[0]]
    return str(conn.raw.execute("select current_setting('synchronous_commit')").fetchone()[0])


def diagnose_unopened(
    database: Database, settings: Settings, clock: Clock, pools: Mapping[Uses, str | None], *, project: str,
    subject: str | None, full: bool, nats: NatsSeen | None, unpriced: str | None,
) -> v.Diagnosis:  # fmt: skip
    """Of a store that no process here serves: it may be missing, newer, damaged or locked, and is only read."""
    look = Look(
        settings=settings, name=database.name, around=_around(database), pools=pools, project=project, subject=subject,
        full=full, nats=nats, unpriced=unpriced,
    )  # fmt: skip
    found = diagnose_database(look, clock, database) if look.around is None else diagnose_file(look, clock)
    return diagnosis_view(found, nats)


def agents_around(home: Path, folder: Path, wired: Sequence[WiredAgent], user: Path) -> AgentsAround:
    """What lies around the store for coding agents. `wired`: as their files tell, `user` whose transcripts to look for.

    Raises OSError where the spool cannot be read.
    """
    spool, heard = Spool(home).state(), Spool(home).heard()
    checkout = with_root(look_at(folder))
    without_pattern = set(rules_without_pattern())
    return AgentsAround(
        wired=tuple(replace(agent, used_at=_used_at(agent.name, user)) for agent in wired),
        waiting=spool.waiting, oldest_at=spool.oldest_at_us, heard=heard, aside=spool.aside,
        unusable=tuple(rule.rule for rule in unusable_rules() if rule.rule not in without_pattern),
        place=checkout.place, signs=tuple(checkout.signs()),
    )  # fmt: skip


def _used_at(agent: str, user: Path) -> int | None:
    """When the agent's newest transcript was written; None where there is none."""
    times = [path.stat().st_mtime_ns // 1_000 for path in FORMATS[agent].find(user) if path.is_file()]
    return max(times, default=None)


class DiagnosisHere(v.Diagnosis):
    """What `doctor` found, with what lies around the store on the machine and in the folder where it was asked."""

    agents: list[dict[str, Any]]
    """Those that are wired: agent, last_heard_at, last_used_at."""
    spool: dict[str, Any]
    """waiting, oldest_at, aside."""
    folder: dict[str, Any]
    """place, project, found_by; without a project where nobody knows the folder."""


def with_agents(
    found: v.Diagnosis, database: Database, settings: Settings, clock: Clock, around: AgentsAround
) -> DiagnosisHere:
    """`found` by a server, or off the file, which does not see what lies around it."""
    look = Look(
        settings=settings, name=database.name, around=_around(database),
        agents=around,
    )  # fmt: skip
    here = diagnose_agents(look, around, clock, database)
    findings = [*found.findings, *map(_finding, here.findings)]
    seen = [
        {"agent": agent.name, "last_heard_at": when(_last_heard(agent.name, here.heard, around.heard)),
         "last_used_at": when(agent.used_at)}
        for agent in around.wired
    ]  # fmt: skip
    return DiagnosisHere(**{
        **dict(found), "findings": findings, "ok": all(finding.chosen for finding in findings), "agents": seen,
        "spool": {"waiting": around.waiting, "oldest_at": when(around.oldest_at), "aside": around.aside},
        "folder": {"place": around.place, "project": here.project, "found_by": here.found_by},
    })  # fmt: skip


def _last_heard(agent: str, *heard: Mapping[str, int]) -> int | None:
    """In the store or in what still waits to be taken into it; None for never."""
    return max((each[agent] for each in heard if agent in each), default=None)


def diagnosis_view(found: Diagnosis, nats: NatsSeen | None = None) -> v.Diagnosis:
    return v.Diagnosis(
        ok=all(finding.chosen for finding in found.findings),
        looked=found.looked,
        at=moment(found.at),
        version=everkept.__version__,
        store=found.store,
        findings=[_finding(finding) for finding in found.findings],
        lanes=[
            {**asdict(lane), "project": shown_name(lane.project), "subject": shown_name(lane.subject)}
            for lane in found.lanes
        ],
        workers=[v.Worker(**{**asdict(w), "last_seen_at": moment(w.last_seen_at)}) for w in found.workers],
        expired_leases=found.expired_leases,
        refused_finishes=found.refused_finishes,
        dead_letters=found.dead_letters,
        erases_unfinished=found.erases_unfinished,
        held_back=found.held_back,
        nats=nats_view(nats),
    )


def _finding(finding: Finding) -> v.Finding:
    cause = CAUSES[finding.cause]
    return v.Finding(
        cause=cause.id, title=cause.title, what=finding.what, since=when(finding.since),
        evidence=dict(finding.evidence), means=cause.means, mend=finding.mend, chosen=finding.chosen,
    )  # fmt: skip
