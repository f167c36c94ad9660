"""Projects and API keys: the operator's. The holder of a project's key sees that project only, and may erase it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.requests import Request

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import CallerOf, InProject, Queried, project_of
from everkept.doors.http.words import Erased, Words

router = APIRouter(tags=["operate"], responses=RESPONSES)


class ProjectBody(Words):
    name: str = Field(min_length=1, examples=["support-bot"])
    settings: dict[str, Any] | None = None


class ProjectChange(Words):
    name: str | None = Field(default=None, min_length=1, description="The new name.")
    settings: dict[str, Any] | None = Field(default=None, examples=[{"window.idle_s": 900}])


class MergeProjectBody(Words):
    into: str = Field(min_length=1, description="The project that it becomes part of.", examples=["support-bot"])
    dry_run: bool = Field(default=False, description="Only say what would move.")


class MoveBody(Words):
    workspace: str = Field(min_length=1, description="Made if there is none.", examples=["research"])


class KeyBody(Words):
    name: str = Field(min_length=1, max_length=200, description="What the key is for.", examples=["laptop"])
    project: str | None = Field(default=None, description="Default: the project of the request.")


class KeyShown(BaseModel):
    """A key without its token."""

    model_config = {"extra": "allow"}

    id: str
    name: str


async def _project(request: Request) -> str:
    return project_of(request)


ProjectOf = Annotated[str, Depends(_project)]


@router.get("/v1/projects", operation_id="list_projects")
async def list_projects(service: InProject, caller: CallerOf) -> v.Page[v.Project]:
    found = await service.list_projects()
    return v.Page(items=[each for each in found if caller.may_touch(each.name)])


@router.post("/v1/projects", operation_id="create_project", status_code=201)
async def create_project(body: ProjectBody, service: InProject, caller: CallerOf) -> v.Project:
    caller.require_operator("create projects")
    return await service.create_project(body.name, body.settings)


@router.patch("/v1/projects/{name:id}", operation_id="update_project")
async def update_project(name: str, body: ProjectChange, service: InProject, caller: CallerOf) -> v.Project:
    """Rename a project, or replace its settings, among which its budget is: for the operator."""
    caller.require_operator("rename projects or change their settings, which hold the budget")
    return await service.update_project(name, new_name=body.name, settings=body.settings)


@router.post("/v1/projects/{name:id}/merge", operation_id="merge_project", status_code=202)
async def merge_project(name: str, body: MergeProjectBody, service: InProject, caller: CallerOf) -> v.ProjectMerge:
    """Bring all that a project has into another one. Its name and keys mean the other one at once; cannot be undone."""
    caller.require_operator("merge projects")
    return await service.merge_project(name, body.into, dry_run=body.dry_run)


@router.post("/v1/projects/{name:id}/move", operation_id="move_project")
async def move_project(name: str, body: MoveBody, service: InProject, caller: CallerOf) -> v.Project:
    """Take a project to another workspace. It is then called `workspace/project`; its keys go on."""
    caller.require_operator("move projects")
    return await service.move_project(name, workspace=body.workspace)


@router.get("/v1/projects/{name:id}/merge", operation_id="find_merge")
async def find_merge(name: str, service: InProject, caller: CallerOf) -> v.ProjectMerge | None:
    """The newest merge that the project had a part in: how far it is, and what it had to call otherwise."""
    caller.confine(name)
    return await service.find_merge(name)


@router.delete("/v1/projects/{name:id}", operation_id="erase_project")
async def erase_project(
    name: str, service: Queried, caller: CallerOf, query: Annotated[Erased, Query()]
) -> v.ErasePlan:
    """Destroy a project with everything in it. Cannot be undone."""
    caller.confine(name)
    return await service.erase(project=name, dry_run=query.dry_run)


@router.get("/v1/keys", operation_id="list_keys")
async def list_keys(service: InProject, caller: CallerOf) -> v.Page[KeyShown]:
    caller.require_operator("list keys")
    return v.Page(items=[KeyShown(**key) for key in await service.list_keys()])


@router.post("/v1/keys", operation_id="create_key", status_code=201)
async def create_key(body: KeyBody, service: InProject, caller: CallerOf, project: ProjectOf) -> v.KeyCreated:
    """Make a key. Its token is shown this once."""
    caller.require_operator("make keys")
    return await service.create_key(body.name, project=body.project or project)


@router.delete("/v1/keys/{key:id}", operation_id="revoke_key", status_code=204)
async def revoke_key(key: str, service: InProject, caller: CallerOf) -> None:
    caller.require_operator("revoke keys")
    await service.revoke_key(key)
