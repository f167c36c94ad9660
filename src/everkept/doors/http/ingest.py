"""What hooks, launches and other senders tell of coding agents at work. Nothing that they name is looked at here."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal, Self

from fastapi import APIRouter, Query
from pydantic import Field, field_validator, model_validator
from starlette.requests import Request

from everkept.api import views as v
from everkept.api.pacing import WAIT_MIN_S
from everkept.api.service import Ingest
from everkept.capture.agents.hook_payload import session_of
from everkept.capture.identity import Checkout
from everkept.domain.session import FIELD_CHARS_MAX, AgentEvent, Family, Kind, Outcome, Source, ToolCall
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import PROJECT_HEADER, CallerOf, application_of, project_of
from everkept.doors.http.sessions import ScopeBody, checkout_from
from everkept.doors.http.words import Asked, Words
from everkept.errors import InvalidInput, NotFound, RateLimited

router = APIRouter(tags=["agents"], responses=RESPONSES)

RECORDS_MAX = 100
EVENTS_MAX = 1_000
EXTRA_CHARS_MAX = 131_072
TIME_US_MAX = 253_402_300_799_000_000
"""The last second of the year 9999."""
_PLAIN = r"^[^\x00-\x1f\x7f]*$"
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=_PLAIN)]
Line = Annotated[str, Field(max_length=FIELD_CHARS_MAX + 256)]


class ToolIn(Words):
    """One call of a tool, and what came of it."""

    name: Name
    family: Family = "other"
    command: str | None = Field(default=None, description="Of a shell: the command line, whole.")
    paths: list[Line] = Field(default=[], max_length=10_000, description="Files that it names.")
    changes: list[tuple[Line, str]] = Field(
        default=[], max_length=10_000, description="[path, created | edited | deleted | moved to NEW]"
    )
    input: str = ""
    output: str = ""
    ended: bool = Field(default=True, description="False: it was announced, and nothing is known of its outcome.")
    outcome: Outcome = "unknown"
    decided_by: Line = Field(default="", description="What told the outcome.")
    exit_code: int | None = Field(default=None, ge=-(2**31), le=2**32)


class EventIn(Words):
    """One thing that happened in a session."""

    THREAD_FIELD: ClassVar[str] = "session"

    kind: Kind
    agent: Name = Field(examples=["claude-code"])
    session: Name = Field(description="The agent's own id of the session.")
    key: Annotated[str, Field(min_length=1, max_length=2_048)] = Field(
        description="What this event is called where it happened: the same whenever it is sent, and no other's in the"
        " project. The same key again is the same event.",
        examples=["claude-code:msg_0123"],
    )
    source: Source = "launch"
    text: str = ""
    detail: Line = ""
    occurred_at_us: int | None = Field(default=None, ge=0, le=TIME_US_MAX, description="Microseconds since 1970, UTC.")
    tool: ToolIn | None = None
    items: list[tuple[str, Line]] = Field(default=[], max_length=10_000, description="Of a plan: [text, state]")
    evidence: bool = Field(default=True, description="False for summaries, recalled context and our own words.")
    genuine: bool = Field(default=True, description="Of a prompt: a person typed it.")
    parent: Name | None = Field(default=None, description="Session that started this one as its sub-agent.")
    cwd: Line | None = None
    branch: Line | None = None
    model: Line | None = None
    launch: Name | None = Field(
        default=None, description="`EVERKEPT_LAUNCH` of the agent's environment: links the session to its workstream."
    )
    extra: dict[str, Any] = Field(default={}, description=f"At most {EXTRA_CHARS_MAX:,} characters of JSON.")

    @field_validator("extra")
    @classmethod
    def _is_small(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if len(json.dumps(extra)) > EXTRA_CHARS_MAX:
            raise ValueError(f"it has more than {EXTRA_CHARS_MAX} characters of JSON")
        return extra

    @model_validator(mode="after")
    def _has_its_call(self) -> Self:
        if (self.kind == "tool") != (self.tool is not None):
            raise ValueError("an event of kind 'tool' has a field 'tool', and no other has one")
        return self

    def event(self) -> AgentEvent:
        fields = self.model_dump(exclude={"tool", "items"})
        items = tuple((text, state) for text, state in self.items)
        return AgentEvent(**fields, items=items, tool=None if self.tool is None else _call(self.tool))


def _call(tool: ToolIn) -> ToolCall:
    fields = tool.model_dump(exclude={"paths", "changes"})
    return ToolCall(**fields, paths=tuple(tool.paths), changes=tuple((path, change) for path, change in tool.changes))


class RecordIn(Words):
    """What a hook wrote into its spool, as it stands there; or the events that its machine made of it."""

    name: Name = Field(description="Its delivery key: the file's name in the spool.")
    record: dict[str, Any] | None = None
    events: list[EventIn] | None = Field(default=None, max_length=EVENTS_MAX)
    checkout: ScopeBody | None = Field(default=None, description="Where the events happened.")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.record is None) == (self.events is None):
            raise ValueError("send either 'record' or 'events'")
        return self


class EventsBody(Words):
    """Either `records`, or `events` of sessions with where they happened."""

    records: list[RecordIn] | None = Field(default=None, min_length=1, max_length=RECORDS_MAX)
    events: list[EventIn] | None = Field(default=None, min_length=1, max_length=EVENTS_MAX)
    checkout: ScopeBody | None = Field(default=None, description="Where the events happened.")
    origin: Literal["hook", "import"] = Field(
        default="hook", description="`import`: they happened before anybody listened."
    )
    ended: bool = Field(default=False, description="Nothing more will come of these sessions.")
    titles: dict[Name, Annotated[str, Field(max_length=500)]] = Field(default={}, description="{session: its title}")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.records is None) == (self.events is None):
            raise ValueError("send either 'records' or 'events'")
        return self


@router.post("/v1/events", operation_id="take_events")
async def take_events(
    body: EventsBody, request: Request, caller: CallerOf, query: Annotated[Asked, Query()]  # noqa: ARG001
) -> v.Ingested:  # fmt: skip
    """Take in what coding agents did. Sending again changes nothing: each event is known by its key.

    Each session goes into the project that it is in already, else that of its folder, else `default`; with a project's
    key, into that project only. Records are answered one by one: a refused one does not keep the others out, and one
    whose project sends too fast is postponed, with those of its session behind it. Events that come too fast are
    answered 429 with Retry-After: send all of them again.
    """
    ingest = application_of(request).ingest(
        project=await named_project(request, caller.project), confined=caller.project is not None
    )
    return await take_body(ingest, body)


async def take_body(ingest: Ingest, body: EventsBody) -> v.Ingested:
    """What becomes of a body, whichever way it came."""
    if body.records is not None:
        return v.Ingested(records=await _records(ingest, body.records), taken=None)
    assert body.events is not None
    taken = await ingest.events(
        [e.event() for e in body.events], checkout=_checkout(body.checkout), origin=body.origin, ended=body.ended,
        titles=body.titles,
    )  # fmt: skip
    return v.Ingested(records=None, taken=taken)


async def named_project(request: Request, of_key: str | None) -> str | None:
    """The project that the caller names or is confined to. Raises NotFound where there is none of that name."""
    named = PROJECT_HEADER in request.headers or "project" in request.query_params
    project = project_of(request) if named else of_key
    if project is not None:
        await application_of(request).service(project)
    return project


async def _records(ingest: Ingest, given: list[RecordIn]) -> list[v.RecordTaken]:
    """One after another; what comes behind a postponed one of its session is postponed with it."""
    answers: list[v.RecordTaken] = []
    behind: dict[tuple[str, str], v.Postponement] = {}
    for record in given:
        sessions = _sessions(record)
        waits = next((behind[session] for session in sessions if session in behind), None)
        answer = (
            await _record(ingest, record) if waits is None
            else v.RecordTaken(name=record.name, taken=None, refused=None, postponed=waits)
        )  # fmt: skip
        if answer.postponed is not None:
            behind |= dict.fromkeys(sessions, answer.postponed)
        answers.append(answer)
    return answers


def _sessions(record: RecordIn) -> set[tuple[str, str]]:
    if record.record is not None:
        return {session_of(record.record)}
    return {(event.agent, event.session) for event in record.events or ()}


async def _record(ingest: Ingest, given: RecordIn) -> v.RecordTaken:
    refused, postponed, taken = None, None, None
    try:
        if given.record is not None:
            taken = await ingest.record(given.name, given.record)
        else:
            taken = await ingest.events([e.event() for e in given.events or ()], checkout=_checkout(given.checkout))
    except (InvalidInput, NotFound) as error:
        refused = v.Refusal(code=error.code, message=error.message)
    except RateLimited as error:
        postponed = v.Postponement(
            code=error.code, message=error.message, retry_after_s=error.retry_after_s or WAIT_MIN_S
        )  # fmt: skip
    return v.RecordTaken(name=given.name, taken=taken, refused=refused, postponed=postponed)


def _checkout(body: ScopeBody | None) -> Checkout | None:
    return None if body is None else checkout_from(body)
