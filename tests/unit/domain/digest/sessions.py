"""Sessions told in short, for the tests of the digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everkept.domain.digest import SessionEvent
from everkept.domain.session import AgentEvent, Family, Kind, Outcome, ToolCall

HOME = "/repo"
START_US = 1_768_976_378_000_000


def event(kind: Kind, text: str = "", **fields: Any) -> AgentEvent:
    values: dict[str, Any] = {
        "agent": "claude-code", "session": "ses-1", "key": "", "source": "transcript", "cwd": HOME, **fields,
    }  # fmt: skip
    return AgentEvent(kind=kind, text=text, **values)


def prompt(text: str, **fields: Any) -> AgentEvent:
    return event("prompt", text, **fields)


def said(text: str, **fields: Any) -> AgentEvent:
    return event("said", text, **fields)


def shell(
    command: str, output: str = "", outcome: Outcome = "ok", code: int | None = None, **fields: Any
) -> AgentEvent:
    call = ToolCall(
        name="Bash", family="shell", command=command, output=output, outcome=outcome, exit_code=code,
        decided_by="exit code" if code is not None else "is_error",
    )  # fmt: skip
    return event("tool", tool=call, **fields)


def failing(command: str, output: str, code: int | None = 1) -> AgentEvent:
    return shell(command, output, "failed", code)


def tool(name: str, family: Family = "other", outcome: Outcome = "ok", **fields: Any) -> AgentEvent:
    return event("tool", tool=ToolCall(name=name, family=family, outcome=outcome, **fields))


def edit(path: str, change: str = "edited", outcome: Outcome = "ok") -> AgentEvent:
    return tool("Edit", "edit", outcome, paths=(path,), changes=((path, change),))


def plan(*items: tuple[str, str], **fields: Any) -> AgentEvent:
    return event("plan", items=items, **fields)


def stream(events: Sequence[AgentEvent]) -> list[SessionEvent]:
    return [SessionEvent(seq, entry) for seq, entry in enumerate(events, 1)]
