"""What a coding agent did: one event of a session, whatever the way it came in (hook, transcript, launch).

Readers of transcripts and of hook payloads make these; the store keeps them as events of a session's stream; the digest
reads them back. The agent's name is an open word, and a kind that nobody knows is `other`, kept with its native name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Kind = Literal[
    "session_start",  # detail: startup, resume, clear, compact
    "prompt",  # words that a person typed
    "said",  # words of the agent
    "tool",  # one call, with what came of it
    "plan",  # a todo list or a plan as it stood: the open ends
    "compaction",  # the context was summarised; text: the summary, where there is one
    "clear",
    "notification",
    "turn_end",
    "subagent_start",
    "subagent_end",
    "session_end",  # detail: the reason
    "other",  # detail: its native name
]
Family = Literal["shell", "edit", "read", "search", "web", "task", "plan", "question", "mcp", "other"]
Outcome = Literal["ok", "failed", "denied", "interrupted", "unknown"]
Source = Literal["hook", "transcript", "launch"]

FIELD_CHARS_MAX: Final = 32_768
"""A longer text keeps its head and its tail of half of this each, with a line between that says what was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool. `ended` False: it was announced, and nothing is known yet of what came of it."""

    name: str
    """As the agent calls it: Bash, exec_command, run_shell_command, mcp__github__search, …"""
    family: Family
    command: str | None = None
    """Of a shell: the command line, whole."""
    paths: tuple[str, ...] = ()
    """Files that it names, as given; what was done to each is in `changes`."""
    changes: tuple[tuple[str, str], ...] = ()
    """(path, "created" | "edited" | "deleted" | "moved to NEW"), of edits and patches that the call asked for."""
    input: str = ""
    """What it was asked beside command and paths, as text or JSON."""
    output: str = ""
    ended: bool = True
    outcome: Outcome = "unknown"
    decided_by: str = ""
    """The rule that decided the outcome: "exit code", "is_error", "first line says Exit code 1", …"""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One thing that happened in a session."""

    kind: Kind
    agent: str
    """claude-code, codex, cursor, gemini, opencode, or any other word."""
    session: str
    """The agent's own id of the session; kept as its `session_identity`."""
    key: str
    """Its natural key (`natural_key`): the same event has the same, whatever the way in."""
    source: Source
    text: str = ""
    """What was said, or the summary, message or reason; empty for a tool call."""
    detail: str = ""
    occurred_at_us: int | None = None
    """Microseconds since 1970 (UTC); None where the file has no time."""
    tool: ToolCall | None = None
    items: tuple[tuple[str, str], ...] = ()
    """Of a plan: (text, "pending" | "in_progress" | "completed" | "cancelled")."""
    evidence: bool = True
    """False for what nobody said here: compaction summaries, recalled context, our own words come back."""
    genuine: bool = True
    """Of a prompt: a person typed it. False for stop-hook feedback, command echoes, environment blocks, …"""
    parent: str | None = None
    """Native id of the session that started this one as its sub-agent."""
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    launch: str | None = None
    """Id of the launch that its agent was started by (`EVERKEPT_LAUNCH`)."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else may matter later, small and JSON: title, permission mode, version, native type."""


UNNAMED: Final = "unnamed"
"""The session of an agent that names none: one for each place."""
_SPACE = re.compile(r"\s+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F-]{12,}")
_LONG = re.compile(r"[0-9A-Za-z]{20,}")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[a-zA-Z]")
_BOUND = re.compile(r"@[0-9a-f]{16}$")


def is_unique_by_itself(native_id: str) -> bool:
    """Whether nobody else in the world has it: `019ae2f0-6b1d-7c…` or `toolu_01ApZ…`; not `main`, `m1` or a date."""
    if _UUID.search(native_id):
        return True
    if any(_DIGIT.search(run) and _LETTER.search(run) for run in _HEX.findall(native_id)):
        return True
    return any(_DIGIT.search(run) or run not in (run.lower(), run.upper()) for run in _LONG.findall(native_id))


def session_identity(native: str, *, within: str) -> str:
    """What tells a session of an agent from all others of that agent.

    An id that is unique by itself does so wherever the session goes. Any other means a session only `within` the place
    that it was told from (the top folder, or the session that started it), and is bound to that.
    """
    name = native or UNNAMED
    if not within or is_unique_by_itself(name) or _BOUND.search(name):
        return name
    return f"{name}@{hashlib.blake2b(within.encode(errors='replace'), digest_size=8).hexdigest()}"


def own_name(identity: str) -> str:
    """A session's id as its agent calls it."""
    return _BOUND.sub("", identity)


def natural_key(
    agent: str, native_id: str | None, *, session: str = "", role: str = "", text: str = "", nth: int = 0
) -> str:
    """The identity of an event: the agent's family with the native id of the message, call or part.

    Without a native id: its session, its role, its text (spaces do not count) and how many times that occurred before.
    """
    if native_id:
        return f"{agent}:{native_id}"
    digest = hashlib.blake2b(_SPACE.sub(" ", text).strip().encode(errors="replace"), digest_size=12).hexdigest()
    return f"{agent}:{session}:{role}:{digest}:{nth}"


def shortened(text: str, limit: int = FIELD_CHARS_MAX) -> str:
    """The text, or its head and tail with a line between that counts what was cut."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters cut …]\n{text[-half:]}"


_GAP = re.compile(r"\[redacted:[a-z0-9-]{1,60}\]|\[… [\d,]+ characters cut …\]")


def differ_by_cuts(one: str, other: str) -> bool:
    """Whether two texts are one, but for what was redacted or cut in either. Spaces do not count."""
    return _fits(one, other) or _fits(other, one)


def _fits(cut: str, whole: str) -> bool:
    """Whether the pieces that are left of `cut` stand in `whole` in their order, the outer ones at its ends."""
    first, *rest = [_SPACE.sub(" ", piece).strip() for piece in _GAP.split(cut)]
    text = _SPACE.sub(" ", whole).strip()
    if not rest:
        return first == text
    if not any((first, *rest)) or not text.startswith(first) or not text.endswith(rest[-1]):
        return False
    at = len(first)
    for piece in rest:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


_KEPT_ELSEWHERE: Final = ("text", "key", "agent", "session", "tool", "launch")
_FIELDS: Final = tuple(f.name for f in dataclasses.fields(AgentEvent) if f.name not in _KEPT_ELSEWHERE)
_TOOL_FIELDS: Final = tuple(f.name for f in dataclasses.fields(ToolCall) if f.name != "output")


def kept(event: AgentEvent) -> tuple[str, str]:
    """(content, metadata as JSON): how the store keeps an event. Its text and output stand in the content alone."""
    content = content_of(event)
    fields = {k: v for k in _FIELDS if (v := getattr(event, k))}
    fields |= {"evidence": event.evidence, "genuine": event.genuine, "text_chars": len(event.text)}
    if event.tool is not None:
        tool = {k: v for k in _TOOL_FIELDS if (v := getattr(event.tool, k)) not in ("", (), None)}
        fields |= {"tool": tool, "output_chars": len(event.tool.output)}
    return content, json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def read_back(content: str, metadata: str, *, agent: str, session: str) -> AgentEvent:
    """An event as it was kept; its key is not kept in words."""
    fields = json.loads(metadata)
    fields.pop("revises", None)
    text = content[: fields.pop("text_chars")]
    output_chars = fields.pop("output_chars", 0)
    tool = fields.pop("tool", None)
    if tool is not None:
        tool["paths"] = tuple(tool.get("paths", ()))
        tool["changes"] = tuple((path, change) for path, change in tool.get("changes", ()))
        tool["output"] = content[len(content) - output_chars :]
    fields["items"] = tuple((item, state) for item, state in fields.get("items", ()))
    call = None if tool is None else ToolCall(**tool)
    return AgentEvent(agent=agent, session=session, key="", text=text, tool=call, **fields)


def content_of(event: AgentEvent) -> str:
    """The event in words: what is kept as its content, shown and searched."""
    if event.tool is None:
        lines = [event.text, *(f"[{_BOX.get(state, ' ')}] {item}" for item, state in event.items)]
        return "\n".join(line for line in lines if line) or event.detail or event.kind
    call = event.tool
    head = f"$ {call.command}" if call.command else " ".join([call.name, *call.paths])
    code = "" if call.exit_code is None else f" (exit code {call.exit_code})"
    came = [] if not call.ended else [f"→ {call.outcome}{code}"]
    return "\n".join(part for part in (head, call.input, *came, call.output) if part)


_BOX: Final = {"completed": "x", "in_progress": "~", "cancelled": "-"}
