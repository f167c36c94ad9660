"""Sessions of coding agents, what happened in a project, and whose memory a folder is."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from starlette.requests import Request

from everkept.api import views as v
from everkept.capture.identity import Checkout, normalise_remote
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import CallerOf, InProject, Queried, application_of, no_query
from everkept.doors.http.words import Asked, Erased, Limit, Listed, Moment, Sequence63, Words

router = APIRouter(tags=["agents"], responses=RESPONSES)
Place = Annotated[str | None, Field(min_length=1, max_length=4096)]


class SessionsAsked(Listed):
    agent: str | None = Field(default=None, description="Only those of this agent.", examples=["claude-code"])


class EventsAsked(Asked):
    after_seq: Sequence63 = Field(default=0, description="Only events after this place in the session.")
    limit: Limit = 100


class TimelineAsked(Listed):
    kinds: list[Literal["session", "page", "handoff", "episode", "fact", "proposal"]] | None = Field(
        default=None, description="Only these kinds; repeat the parameter for several."
    )
    since: Moment = Field(default=None, description="Not earlier than this (RFC 3339 with a zone).")
    until: Moment = Field(default=None, description="Earlier than this (RFC 3339 with a zone).")


class ScopeBody(Words):
    """What is known of a folder, as the machine that has it reads it off git's files."""

    cwd: str = Field(min_length=1, max_length=4096, description="The folder, absolute.", examples=["/home/ana/app/src"])
    top: Place = Field(default=None, description="The top folder of its worktree.")
    common_dir: Place = Field(default=None, description="Git's folder, which all worktrees of a clone share.")
    remote: Place = Field(default=None, examples=["git@github.com:acme/app.git"])
    root: Place = Field(default=None, description="The first commit's hash, where the clone is not shallow.")
    branch: Place = None
    marker: Place = Field(default=None, description="The project that `.everkept.toml` names.")


class ScopeAsked(ScopeBody):
    create: bool = Field(
        default=False, description="Make the project where nobody knows the folder: for who is about to write."
    )


@router.post("/v1/scope", operation_id="resolve_scope", dependencies=[Depends(no_query)])
async def resolve_scope(body: ScopeAsked, request: Request, caller: CallerOf) -> v.Scope:
    """Which project the memory of a folder is, and how that was found; 404 where nobody knows the folder yet.

    With a project's key it is that project: what its holder tells goes there, wherever it happens.
    """
    if caller.project is not None:
        return v.Scope(project=caller.project, found_by="named", value=caller.project)
    return await application_of(request).resolve_scope(checkout_from(body), create=body.create)


@router.post("/v1/scope/trust", operation_id="trust_marker", dependencies=[Depends(no_query)])
async def trust_marker(body: ScopeBody, request: Request, caller: CallerOf) -> v.Scope:
    """From now on the project that a checkout's `.everkept.toml` names is its project.

    Until then the file counts for nothing: a repository that was cloned could name any project.
    """
    caller.require_operator("say which project a folder is")
    return await application_of(request).trust_marker(checkout_from(body))


def checkout_from(body: ScopeBody) -> Checkout:
    return Checkout(**body.model_dump(exclude={"create"}) | {"remote": _normalised(body.remote)})


def _normalised(remote: str | None) -> str | None:
    """A remote as git knows it, or already in our form."""
    written = remote is not None and ("://" in remote or "@" in remote)
    return normalise_remote(remote) if written and remote is not None else remote


@router.get("/v1/sessions", operation_id="list_sessions")
async def list_sessions(service: Queried, query: Annotated[SessionsAsked, Query()]) -> v.Page[v.Session]:
    return await service.list_sessions(agent=query.agent, limit=query.limit, cursor=query.cursor)


@router.get("/v1/sessions/{session:id}", operation_id="get_session")
async def get_session(session: str, service: InProject) -> v.Session:
    return await service.get_session(session)


@router.get("/v1/sessions/{session:id}/events", operation_id="list_session_events")
async def list_session_events(
    session: str, service: Queried, query: Annotated[EventsAsked, Query()]
) -> v.Page[v.Message]:
    """Oldest first; `metadata` has the kind of each, and what came of a call."""
    return await service.session_events(session, after_seq=query.after_seq, limit=query.limit)


@router.post("/v1/sessions/{session:id}/end", operation_id="end_session")
async def end_session(session: str, service: InProject) -> v.EndResult:
    """Digest it now. It may go on afterwards; ending twice gives one digest."""
    return await service.end_session(session)


@router.delete("/v1/sessions/{session:id}", operation_id="erase_session")
async def erase_session(session: str, service: Queried, query: Annotated[Erased, Query()]) -> v.ErasePlan:
    """Destroy the session, its page, its handoff and everything else that rests on it. Cannot be undone."""
    return await service.erase(session=session, dry_run=query.dry_run)


@router.get("/v1/timeline", operation_id="timeline")
async def timeline(service: Queried, query: Annotated[TimelineAsked, Query()]) -> v.Page[v.TimelineItem]:
    """Sessions, versions of pages, handoffs, episodes and facts, newest first."""
    return await service.timeline(
        kinds=query.kinds, since=query.since, until=query.until, limit=query.limit, cursor=query.cursor
    )
