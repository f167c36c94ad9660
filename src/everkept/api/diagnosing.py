"""`doctor`: what is wrong, why, and what mends it; over the open store, or over a file that nobody here has open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import everkept
from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import moment, when
from everkept.config import Settings
from everkept.domain.jobs import Uses
from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.diagnosis.causes import CAUSES, Finding
from everkept.store.diagnosis.diagnose import Diagnosis, diagnose, diagnose_file
from everkept.store.diagnosis.look import Look, look_around
from everkept.store.projects import shown_name

SYNC = ("off", "normal", "full", "extra")


class Diagnosing(Cases):
    async def diagnose(self, *, subject: str | None = None, full: bool = False) -> v.Diagnosis:
        """Every cause of trouble in the whole store. `subject`: also why each of its facts is held back from recall.

        `full` reads the file from end to end, which takes seconds for each gigabyte.
        """
        tools = self._parts.tools
        look = Look(
            settings=self._settings, around=look_around(self._store.path), failing=self._store.writer.failing,
            sync=None if self._store.writer.failing else await self._store.write(_sync),
            pools={
                "model": None if tools.model is None else tools.model.model.pool,
                "embedder": None if tools.embedder is None else tools.embedder.pool,
            },
            project=self._project.name, subject=subject, full=full,
        )  # fmt: skip
        return diagnosis_view(await self._store.read(diagnose, look))


def _sync(conn: Connection) -> str:
    return SYNC[conn.raw.execute("pragma synchronous").fetchone()[0]]


def diagnose_unopened(
    path: Path, settings: Settings, clock: Clock, pools: Mapping[Uses, str | None], *, project: str,
    subject: str | None, full: bool,
) -> v.Diagnosis:  # fmt: skip
    """Of a store that no process here serves: it may be missing, newer, damaged or locked, and is only read."""
    look = Look(settings=settings, around=look_around(path), pools=pools, project=project, subject=subject, full=full)
    return diagnosis_view(diagnose_file(look, clock))


def diagnosis_view(found: Diagnosis) -> v.Diagnosis:
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
    )


def _finding(finding: Finding) -> v.Finding:
    cause = CAUSES[finding.cause]
    return v.Finding(
        cause=cause.id, title=cause.title, what=finding.what, since=when(finding.since),
        evidence=dict(finding.evidence), means=cause.means, mend=finding.mend, chosen=finding.chosen,
    )  # fmt: skip
