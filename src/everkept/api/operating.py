"""Status, jobs, projects, keys and usage."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import everkept
from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.deliveries import consumer_view
from everkept.api.merging import merge_view
from everkept.api.present import bounded, job_view, moment, page, project_view, read_cursor, when
from everkept.api.pricing import unpriced
from everkept.api.status import confined, status_view
from everkept.capture.messages import check_name
from everkept.config import validate_overrides
from everkept.domain.ids import parse_row_id, row_id
from everkept.errors import Conflict, InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.consumers import list_consumers
from everkept.store.joblist import JobRow, count_causes, get_job, list_jobs
from everkept.store.jobs_by_hand import discard_by_hand, release_by_hand, retry_by_hand, retry_dead
from everkept.store.journal import usage_by_project, usage_rows
from everkept.store.merging import running_merges
from everkept.store.money_limits import limited_in_money_alone
from everkept.store.pauses import PauseRow, list_pauses
from everkept.store.projects import (
    ProjectRow,
    add_key,
    ensure_project,
    find_project,
    find_subject,
    list_keys,
    list_projects,
    project_counts,
    revoke_key,
    shown_name,
    update_project,
)
from everkept.store.settle import arm_chunk
from everkept.store.status import read_status

STATES = ("waiting", "ready", "leased", "done", "dead", "discarded")
RETRY_CHUNK = 100
CAUSES_MAX = 100
SPENDERS_MAX = 500


class Operating(Cases):
    async def status(self, *, project_only: bool = False) -> v.Status:
        project = self._project_id if project_only else None
        row = await self._whole.read(read_status, project, self._settings)
        consumers = await self._whole.read(list_consumers, project)
        merges = [
            merge_view(merge) for merge in await self._whole.read(running_merges)
            if project in (None, merge.source, merge.target)
        ]  # fmt: skip
        status = status_view(row, self._whole, self._parts, everkept.__version__).model_copy(update={
            "consumers": [consumer_view(consumer) for consumer in consumers], "merges": merges,
            "price_unknown": await self._without_price(),
        })  # fmt: skip
        return confined(status) if project_only else status

    async def _without_price(self) -> str | None:
        model = self._parts.tools.model
        name = await unpriced(None if model is None else model.model)
        if name is None:
            return None
        return (await self._whole.read(limited_in_money_alone, self._settings)).in_words(name)

    # ---- jobs

    async def list_jobs(
        self, *, state: str | None = None, kind: str | None = None, subject: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Job]:  # fmt: skip
        bounded(limit, "limit", 1, 1000)
        if state is not None and state not in STATES:
            raise InvalidInput(
                f"state {state!r} is not one of {', '.join(STATES)}", field="state", allowed=list(STATES)
            )

        def read(conn: Connection) -> tuple[list[JobRow], list[PauseRow]]:
            owner = None if subject is None else find_subject(conn, self._project_id, check_name(subject, "subject"))
            if subject is not None and owner is None:
                return [], []
            before = read_cursor(cursor)
            return list_jobs(conn, self._project_id, state, kind, before, limit + 1, owner), list_pauses(conn)

        rows, pauses = await self._whole.read(read)
        return page([job_view(r, pauses, self._settings) for r in rows], rows, limit)

    async def dead_causes(self) -> list[v.DeadCause]:
        rows = await self._store.read(count_causes, self._project_id, CAUSES_MAX)
        return [v.DeadCause(kind=kind, cause=cause, jobs=jobs) for kind, cause, jobs in rows]

    async def get_job(self, job_id: str) -> v.Job:
        def read(conn: Connection) -> tuple[JobRow, list[PauseRow]]:
            return get_job(conn, self._project_id, parse_row_id("job", job_id)), list_pauses(conn)

        row, pauses = await self._whole.read(read)
        return job_view(row, pauses, self._settings)

    async def retry_job(self, job_id: str) -> v.Job:
        job = parse_row_id("job", job_id)
        await self._require_unmerged()
        before = await self.get_job(job_id)
        if not await self._write(retry_by_hand, self._project_id, job) and before.state == "dead":
            return await self.get_job(job_id)  # another hand was first: one run is started
        if before.state != "dead":
            raise Conflict(
                f"job {job_id} is {before.state}; only a dead job is retried by hand", id=job_id, state=before.state
            )
        return await self.get_job(job_id)

    async def retry_jobs(self, *, kind: str | None = None, cause: str | None = None) -> int:
        total = 0
        after = 0
        while ids := await self._write(retry_dead, self._project_id, kind, cause, after, RETRY_CHUNK):
            total += len(ids)
            after = ids[-1]
        return total

    async def discard_job(self, job_id: str, *, reason: str = "by hand") -> v.Job:
        job = parse_row_id("job", job_id)
        await self._require_unmerged()
        before = await self.get_job(job_id)
        if not await self._write(discard_by_hand, self._project_id, job, reason):
            raise Conflict(f"job {job_id} is {before.state} already", id=job_id, state=before.state)
        return await self.get_job(job_id)

    async def release_job(self, job_id: str) -> v.Job:
        job = parse_row_id("job", job_id)
        await self._require_unmerged()
        before = await self.get_job(job_id)
        if not await self._write(release_by_hand, self._project_id, job):
            raise Conflict(
                f"job {job_id} is {before.state}; only a leased job is released", id=job_id, state=before.state
            )
        return await self.get_job(job_id)

    # ---- projects and keys

    async def list_projects(self) -> list[v.Project]:
        def read(conn: Connection) -> list[v.Project]:
            return [project_view(row, *project_counts(conn, row.id)) for row in list_projects(conn)]

        return await self._whole.read(read)

    async def create_project(self, name: str, settings: dict[str, Any] | None = None) -> v.Project:
        check_name(name, "name")
        checked = None if settings is None else validate_overrides(settings)
        row = await self._whole.write(ensure_project, name, secrets.token_bytes(32), checked)
        return project_view(row, *await self._whole.read(project_counts, row.id))

    async def update_project(
        self, name: str, *, new_name: str | None = None, settings: dict[str, Any] | None = None
    ) -> v.Project:
        if new_name is not None:
            check_name(new_name, "new_name")
        checked = None if settings is None else validate_overrides(settings)
        row, after = await self._whole.write(self._update_and_arm, name, new_name, checked)
        while after:
            after = await self._whole.write(arm_chunk, row.id, self._settings, after)
        return project_view(row, *await self._whole.read(project_counts, row.id))

    def _update_and_arm(
        self, conn: Connection, name: str, new_name: str | None, settings: dict[str, Any] | None
    ) -> tuple[ProjectRow, int]:
        """The settings with the timers that they call for, in one commit; and where to go on, 0 = all are armed."""
        row = update_project(conn, name, new_name, settings)
        return row, 0 if settings is None else arm_chunk(conn, row.id, self._settings, 0)

    async def create_key(self, name: str, *, project: str | None = None) -> v.KeyCreated:
        check_name(name, "name")
        wanted = project or self._project.name
        row = await self._whole.read(find_project, wanted)
        if row is None:
            raise NotFound(f"there is no project {wanted!r}", project=wanted)
        token = f"ek_{secrets.token_urlsafe(32)}"
        key = await self._whole.write(add_key, row.id, name, token_hash(token))
        return v.KeyCreated(id=row_id("key", key), name=name, project=row.name, token=token)

    async def list_keys(self) -> list[dict[str, Any]]:
        rows = await self._whole.read(list_keys)
        return [
            {
                "id": row_id("key", key),
                "name": name,
                "project": project,
                "created_at": moment(made),
                "revoked_at": when(revoked),
            }
            for key, name, project, made, revoked in rows
        ]

    async def revoke_key(self, key_id: str) -> None:
        if not await self._whole.write(revoke_key, parse_row_id("key", key_id)):
            raise NotFound(f"there is no key {key_id} that is not revoked", id=key_id)

    async def usage(self, *, days: int = 30) -> list[v.UsageRow]:
        rows = await self._store.read(usage_rows, self._project_id, self._days_ago(days))
        return [
            v.UsageRow(
                day=_day(day),
                project=project,
                stage=step,
                model=model,
                calls=calls,
                tokens_in=tin or 0,
                tokens_out=tout or 0,
                usd=usd or 0.0,
                unpriced=unpriced,
            )
            for day, project, step, model, calls, tin, tout, usd, unpriced in rows
        ]

    async def usage_by_project(self, *, days: int = 30) -> v.StoreUsage:
        found = await self._whole.read(usage_by_project, self._days_ago(days), SPENDERS_MAX)
        projects = [v.ProjectUsage(project=shown_name(name) or name, **asdict(spent)) for name, spent in found.projects]
        return v.StoreUsage(**asdict(found.total), projects=projects, left_out=found.left_out)

    def _days_ago(self, days: int) -> int:
        bounded(days, "days", 1, 3650)
        return self._parts.clock.now_us() - days * 86_400_000_000

    async def close(self) -> None:
        """The store belongs to the application, which closes it."""


def token_hash(token: str) -> bytes:
    """What is stored of an API key; tokens are 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(token.encode()).digest()


def _day(number: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=int(number))).date().isoformat()
