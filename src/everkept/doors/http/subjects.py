"""A subject as a whole: take it out, derive it again, destroy it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Erased, Listed, Moment, Subject, ThreadWord, Words

router = APIRouter(tags=["memory"], responses=RESPONSES)


class ReprocessSubject(Words):
    thread: ThreadWord = None
    since: Moment = None
    until: Moment = None
    fresh: bool = Field(default=False, description="Ask the model again, which is paid for; see `dry_run`.")
    include_skipped: bool = Field(default=False, description="Also what was said while memory was off.")
    dry_run: bool = Field(default=False, description="Only say what would be done, and what it would cost.")


class ReprocessBody(ReprocessSubject):
    subject: Subject = None


@router.get("/v1/subjects", operation_id="list_subjects")
async def list_subjects(service: Queried, query: Annotated[Listed, Query()]) -> v.Page[v.Subject]:
    """Whose memory there is, the newest first."""
    return await service.list_subjects(limit=query.limit, cursor=query.cursor)


@router.get("/v1/subjects/{subject:id}/export", operation_id="export_subject")
async def export_subject(subject: str, service: InProject) -> dict[str, Any]:
    """All that is kept about a subject: threads with messages, episodes, facts."""
    return await service.export(subject)


@router.post("/v1/subjects/{subject:id}/reprocess", operation_id="reprocess_subject")
async def reprocess_subject(subject: str, service: InProject, body: ReprocessSubject | None = None) -> v.ReprocessPlan:
    """Derive again from events and journaled replies."""
    return await service.reprocess(subject=subject, **(body or ReprocessSubject()).model_dump())


@router.post("/v1/reprocess", operation_id="reprocess")
async def reprocess(service: InProject, body: ReprocessBody | None = None) -> v.ReprocessPlan:
    """Derive again a whole project, or one subject or thread of it."""
    return await service.reprocess(**(body or ReprocessBody()).model_dump())


@router.delete("/v1/subjects/{subject:id}", operation_id="erase_subject")
async def erase_subject(subject: str, service: Queried, query: Annotated[Erased, Query()]) -> v.ErasePlan:
    """Destroy everything about a subject. Cannot be undone."""
    return await service.erase(subject=subject, dry_run=query.dry_run)
