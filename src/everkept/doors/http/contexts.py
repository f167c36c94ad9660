"""Context for a coding agent, wherever it works: what its own machine's hooks would be told."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from fastapi import APIRouter, Query
from pydantic import Field, model_validator
from starlette.requests import Request

from everkept.api import views as v
from everkept.api.context_ask import ContextAsk
from everkept.domain.launch import launch_number
from everkept.doors.http.ingest import Name, named_project
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import CallerOf, application_of
from everkept.doors.http.sessions import ScopeBody, checkout_from
from everkept.doors.http.words import Asked, Words
from everkept.errors import NotFound
from everkept.hook.hook_script import cap, shaped

router = APIRouter(tags=["agents"], responses=RESPONSES)
PROMPT_CHARS_MAX = 1_000_000


class ContextBody(Words):
    """Who asks: a session that starts, or one with its next prompt."""

    THREAD_FIELD: ClassVar[str] = "session"

    agent: Name = Field(examples=["claude-code"])
    session: Name = Field(description="The agent's own id of the session. Also accepted: `thread_id`, `run_id`.")
    checkout: ScopeBody = Field(description="Where it works.")
    source: Name = Field(default="startup", description="Of a start: startup, resume, clear or compact.")
    prompt: str | None = Field(
        default=None, max_length=PROMPT_CHARS_MAX, description="What was typed. Left out: the context of a start."
    )
    launch: Name | None = Field(
        default=None, description="`EVERKEPT_LAUNCH` of the agent's environment.", examples=["lch_4"]
    )
    shape: Literal["plain", "agent"] = Field(
        default="plain", description="`agent`: the text as this agent's hook prints it; needs `event`."
    )
    event: Name | None = Field(default=None, description="The hook's own name.", examples=["SessionStart"])

    @model_validator(mode="after")
    def _has_an_event_to_shape_for(self) -> Self:
        if self.shape == "agent" and self.event is None:
            raise ValueError("shape 'agent' needs 'event', the name of the hook that prints it")
        return self


@router.post("/v1/context", operation_id="give_context")
async def give_context(
    body: ContextBody, request: Request, caller: CallerOf, query: Annotated[Asked, Query()]  # noqa: ARG001
) -> v.AgentContext:  # fmt: skip
    """What a coding agent is given at its start or with a prompt; 404 where nobody knows the folder yet.

    The project is the one that the session is in already, else that of its folder; with a project's key, that one.
    Nothing is used up. Once the agent has printed it, send `POST /v1/events` a record with the `offer`, so that the
    session is not shown the same again: `{"format": 1, "event": "shown", "agent", "session", "cwd", "offer"}`.
    """
    contexts = application_of(request).contexts(
        project=await named_project(request, caller.project), confined=caller.project is not None
    )
    ask = ContextAsk(
        agent=body.agent, session=body.session, checkout=checkout_from(body.checkout), source=body.source,
        prompt=body.prompt, launch=launch_number(body.launch),
    )  # fmt: skip
    given = await contexts.give(ask)
    if given.scope is None:
        raise NotFound(f"there is no memory of {ask.checkout.place} yet", looked_for=dict(ask.checkout.signs()))
    if body.shape == "plain" or not given.text:
        return given
    assert body.event is not None
    return given.model_copy(update={"text": shaped(body.agent, body.event, cap(given.text))})
