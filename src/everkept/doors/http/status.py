"""How it is: status, usage, probes and metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from everkept.api import views as v
from everkept.doors.http.metrics import CONTENT_TYPE, render
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import CallerOf, InProject, Queried, application_of, no_query
from everkept.doors.http.words import Asked, Subject, Words

router = APIRouter(tags=["operate"], responses=RESPONSES)


class UsageAsked(Asked):
    days: int = Field(default=30, ge=1, le=3650)


class DoctorAsked(Asked):
    subject: Subject = None
    full: bool = Field(default=False, description="Read the file from end to end, and its full-text index.")
    rows_only: bool = Field(default=False, description="Leave out whether the file is whole, which reads all of it.")


class SettleBody(Words):
    timeout_s: float = Field(default=20.0, ge=0, le=60, description="Longest wait; ask again for a longer one.")


class Settled(BaseModel):
    settled: bool = Field(description="False where time ran out first.")


class Alive(BaseModel):
    alive: bool = True


class Readiness(BaseModel):
    ready: bool
    reasons: dict[str, str] = Field(description="What keeps this replica from accepting and recalling, by name.")


@router.get("/v1/status", operation_id="get_status")
async def get_status(service: InProject, caller: CallerOf) -> v.Status:
    """Of the whole store for the operator; with a project's key, of that project."""
    return await service.status(project_only=not caller.is_operator)


@router.get("/v1/doctor", operation_id="get_doctor")
async def get_doctor(service: Queried, caller: CallerOf, query: Annotated[DoctorAsked, Query()]) -> v.Diagnosis:
    """Every cause of trouble, with its evidence and what mends it; of the whole store, for the operator."""
    caller.require_operator("diagnose the whole store")
    return await service.diagnose(subject=query.subject, full=query.full, rows_only=query.rows_only)


@router.get("/v1/usage", operation_id="get_usage")
async def get_usage(service: Queried, query: Annotated[UsageAsked, Query()]) -> v.Page[v.UsageRow]:
    """Tokens and money, by day, stage and model."""
    return v.Page(items=await service.usage(days=query.days))


@router.get("/v1/usage/projects", operation_id="get_usage_by_project")
async def get_usage_by_project(
    service: Queried, caller: CallerOf, query: Annotated[UsageAsked, Query()]
) -> v.StoreUsage:
    """Tokens and money of all projects together, and of each: for the operator."""
    caller.require_operator("see what other projects spend")
    return await service.usage_by_project(days=query.days)


@router.post("/v1/settle", operation_id="settle")
async def settle(service: InProject, body: SettleBody | None = None) -> Settled:
    """For scripts and tests: open what is due now, and wait until every receipt is final."""
    return Settled(settled=await service.settle(timeout_s=(body or SettleBody()).timeout_s))


@router.get("/healthz", operation_id="healthz", dependencies=[Depends(no_query)])
async def healthz() -> Alive:
    """The process is alive. No I/O."""
    return Alive()


@router.get(
    "/readyz",
    operation_id="readyz",
    dependencies=[Depends(no_query)],
    responses={503: {"model": Readiness, "description": "Not ready, and why."}},
)
async def readyz(request: Request, response: Response) -> Readiness:
    """Whether this replica can accept and recall. A provider's outage never takes it out."""
    reasons = await application_of(request).ready()
    response.status_code = 503 if reasons else 200
    return Readiness(ready=not reasons, reasons=reasons)


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text."}},
)
async def metrics(service: InProject, caller: CallerOf) -> Response:
    """Of the whole store: for the operator."""
    caller.require_operator("read the metrics of the whole store")
    return Response(render(await service.status()), media_type=CONTENT_TYPE)
