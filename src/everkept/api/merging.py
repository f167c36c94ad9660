"""Merging one project into another, and moving one to another workspace."""

from __future__ import annotations

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import moment, project_view, when
from everkept.capture.messages import check_name
from everkept.store.connection import Connection
from everkept.store.merge import MergePlan, begin_merge, plan_merge
from everkept.store.merging import Merge, last_merge
from everkept.store.projects import get_project, move_to_workspace, project_counts


class MergingProjects(Cases):
    async def merge_project(self, source: str, into: str, *, dry_run: bool = False) -> v.ProjectMerge:
        check_name(source, "source")
        check_name(into, "into")
        if dry_run:
            return _plan_view(await self._whole.read(plan_merge, source, into))
        return merge_view(await self._whole.write(begin_merge, source, into))

    async def move_project(self, name: str, *, workspace: str) -> v.Project:
        check_name(workspace, "workspace")
        row = await self._whole.write(move_to_workspace, name, workspace)
        return project_view(row, *await self._whole.read(project_counts, row.id))

    async def find_merge(self, project: str) -> v.ProjectMerge | None:
        def read(conn: Connection) -> Merge | None:
            return last_merge(conn, get_project(conn, project).id)

        found = await self._whole.read(read)
        return None if found is None else merge_view(found)


def merge_view(merge: Merge) -> v.ProjectMerge:
    return v.ProjectMerge(
        source=merge.source_name, into=merge.target_name, state="running" if merge.done_at is None else "done",
        rows=merge.moved, alike={}, asked_at=moment(merge.asked_at), done_at=when(merge.done_at),
        renamed=[v.Renamed(kind=kind, name=name, now=now) for kind, name, now in merge.renamed],
    )  # fmt: skip


def _plan_view(plan: MergePlan) -> v.ProjectMerge:
    alike = {
        "threads": plan.same_threads, "sessions": plan.same_sessions, "subjects": plan.same_subjects,
        "pages": plan.same_pages,
    }  # fmt: skip
    return v.ProjectMerge(
        source=plan.source, into=plan.target, state="planned", rows=plan.rows, renamed=[], asked_at=None, done_at=None,
        alike={name: n for name, n in alike.items() if n},
    )  # fmt: skip
