"""Workspaces and the projects in them, as whoever sets up tenants asks for them: as often as they like."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import CallerOf, InProject
from everkept.doors.http.words import Words

router = APIRouter(tags=["operate"], responses=RESPONSES)


class ProjectWanted(Words):
    settings: dict[str, Any] | None = Field(
        default=None, description="Its own settings from now on; null leaves those it has.",
        examples=[{"window.idle_s": 900}],
    )  # fmt: skip


@router.put("/v1/workspaces/{workspace:id}", operation_id="ensure_workspace")
async def ensure_workspace(workspace: str, service: InProject, caller: CallerOf) -> v.Workspace:
    """Make a workspace if there is none of this name. Asked again, the answer is the same."""
    caller.require_operator("make workspaces")
    return await service.ensure_workspace(workspace)


@router.put("/v1/workspaces/{workspace:id}/projects/{name:id}", operation_id="ensure_project")
async def ensure_project(
    workspace: str, name: str, service: InProject, caller: CallerOf, body: ProjectWanted | None = None
) -> v.Project:
    """Make a project, and its workspace, if there is none of this name. Asked again, the answer is the same."""
    caller.require_operator("make projects or change their settings")
    settings = None if body is None else body.settings
    return await service.ensure_project(name, workspace=workspace, settings=settings)
