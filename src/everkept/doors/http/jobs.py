"""Background work: what waits, runs or died, and the hand on it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import CallerOf, InProject, Queried
from everkept.doors.http.words import Listed, Subject, Words

router = APIRouter(tags=["operate"], responses=RESPONSES)


class JobsAsked(Listed):
    state: v.JobState | None = None
    kind: str | None = Field(default=None, examples=["extract_facts"])
    subject: Subject = None


class RetryAllBody(Words):
    kind: str | None = Field(default=None, description="Only dead jobs of this kind.")
    cause: str | None = Field(
        default=None, description="Only dead jobs with this class of error.", examples=["provider_down"]
    )


class DiscardBody(Words):
    reason: str = Field(default="by hand", max_length=1000)


class PauseJobsBody(Words):
    kind: str | None = Field(default=None, description="A kind of job; or name a provider.", examples=["extract_facts"])
    provider: str | None = Field(default=None, description="A vendor, or one of its pools.", examples=["anthropic"])
    why: str = Field(default="by hand", max_length=1000)
    by: str = Field(default="hand", max_length=200, description="Who decided it.")


class ResumeBody(Words):
    kind: str | None = None
    provider: str | None = None


class Retried(BaseModel):
    retried: int


@router.get("/v1/jobs", operation_id="list_jobs")
async def list_jobs(service: Queried, query: Annotated[JobsAsked, Query()]) -> v.Page[v.Job]:
    """Newest first; of a subject, those in its lane."""
    return await service.list_jobs(
        state=query.state, kind=query.kind, subject=query.subject, limit=query.limit, cursor=query.cursor
    )


@router.get("/v1/jobs/causes", operation_id="dead_causes")
async def dead_causes(service: InProject) -> v.Page[v.DeadCause]:
    """What dead jobs died of, by kind and class of error, the most first."""
    return v.Page(items=await service.dead_causes())


@router.post("/v1/jobs/retry-all", operation_id="retry_jobs")
async def retry_jobs(service: InProject, body: RetryAllBody | None = None) -> Retried:
    """Give every dead job of a kind or cause a new budget."""
    asked = body or RetryAllBody()
    return Retried(retried=await service.retry_jobs(kind=asked.kind, cause=asked.cause))


@router.get("/v1/jobs/pauses", operation_id="list_pauses")
async def list_pauses(service: InProject) -> v.Page[v.Pause]:
    """Kinds of work and providers that are stopped, for the whole store."""
    return v.Page(items=await service.list_pauses())


@router.post("/v1/jobs/pause", operation_id="pause_jobs")
async def pause_jobs(body: PauseJobsBody, service: InProject, caller: CallerOf) -> v.Pause:
    """Begin no job of a kind, or none that asks a provider, until it is resumed. What runs ends; nothing is lost."""
    caller.require_operator("pause the work of the whole store")
    return await service.pause_jobs(kind=body.kind, provider=body.provider, why=body.why, by=body.by)


@router.post("/v1/jobs/resume", operation_id="resume_jobs", status_code=204)
async def resume_jobs(body: ResumeBody, service: InProject, caller: CallerOf) -> None:
    """Go on with a kind or a provider that was paused."""
    caller.require_operator("resume the work of the whole store")
    await service.resume_jobs(kind=body.kind, provider=body.provider)


@router.get("/v1/jobs/{job:id}", operation_id="get_job")
async def get_job(job: str, service: InProject) -> v.Job:
    return await service.get_job(job)


@router.post("/v1/jobs/{job:id}/retry", operation_id="retry_job")
async def retry_job(job: str, service: InProject) -> v.Job:
    return await service.retry_job(job)


@router.post("/v1/jobs/{job:id}/discard", operation_id="discard_job")
async def discard_job(job: str, service: InProject, body: DiscardBody | None = None) -> v.Job:
    return await service.discard_job(job, reason=(body or DiscardBody()).reason)


@router.post("/v1/jobs/{job:id}/release", operation_id="release_job")
async def release_job(job: str, service: InProject) -> v.Job:
    """End its lease now: the old holder can write nothing any more."""
    return await service.release_job(job)
