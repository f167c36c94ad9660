"""What a hook's record says in events: tolerant of every field, for Claude Code, Codex, Cursor, Gemini CLI, OpenCode
and agents that nobody knows. An event of unknown name is kept as `other`, with its payload.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from everkept.capture.agents import claude_code_tools, codex_calls, cursor_tools, gemini_calls, opencode_calls
from everkept.capture.agents.building import ReadingBuilder
from everkept.capture.agents.drafts import CallDraft
from everkept.capture.agents.markers import heard, is_our_tool, is_ours
from everkept.capture.agents.reading import as_text
from everkept.capture.agents.records import (
    Record,
    arguments_in,
    as_json,
    bounded,
    exit_code_in,
    record_in,
    text_in,
    time_us,
)
from everkept.capture.redaction import cleaned
from everkept.domain.session import AgentEvent, Kind, natural_key
from everkept.hook.hook_script import SESSION_NAMES, find_text, kind_of

FUTURE_US_MAX: Final = 300 * 1_000_000
"""A time that an agent tells may be this far ahead of the hook's own clock, and no more."""
_PROMPTS: Final = ("prompt", "user_prompt", "message", "text", "parts", "output")
_TURNS: Final = ("turn_id", "generation_id", "prompt_id")
_CALL_IDS: Final = ("tool_use_id", "callID", "call_id", "toolCallId", "toolCall.id")
_TOOL_NAMES: Final = ("tool_name", "tool", "name", "toolCall.name")
_INPUTS: Final = ("tool_input", "args", "toolInput", "input", "arguments")
_RESPONSES: Final = ("tool_response", "tool_output", "output", "result", "result_json", "error", "error_message")
_CODES: Final = ("exit_code", "exitCode", "exitCodeV2")
_TIMES: Final = ("occurred_at", "timestamp")
_KEPT: Final = (
    "transcript_path", "agent_transcript_path", "permission_mode", "turn_id", "generation_id", "agent_type",
    "cursor_version", "custom_instructions", "notification_type", "title", "stop_hook_active", "status",
)  # fmt: skip
"""Fields that may matter later."""
_ENDS: Final = {"interrupt": "interrupted", "stopfailure": "failed"}
_SESSION_IN_RAW = re.compile(r'"(?:session_id|sessionId|sessionID|conversation_id)"\s*:\s*"([^"\\]{1,200})"')
_LEFT_OUT: Final = frozenset({"originalFile", "oldString", "newString", "content", "structuredPatch"})
"""Of what an edit answers: the file, which its input tells already."""


def events_of(record: Mapping[str, Any]) -> list[AgentEvent]:
    """The events that a hook's record tells, in order: mostly one. None for `shown`, which belongs to its offer.

    Prompts have the key of their text at its first occurrence; a caller that knows the session's prompts counts on.
    """
    if "offer" in record:
        return []
    told = _Told(record)
    match kind_of(told.native):
        case "prompt":
            return [told.prompt()]
        case "tool_announced" | "tool" | "tool_failed" as kind:
            return [told.call(kind)]
        case "compaction" | "compacted" as kind:
            return [told.compaction(ended=kind == "compacted")]
        case "session_start":
            return [told.event("session_start", detail=find_text(told.payload, ("source", "trigger")))]
        case "session_end":
            return [told.event("session_end", detail=find_text(told.payload, ("reason",)))]
        case "turn_end":
            return [told.turn_end()]
        case "said":
            return [told.event("said", find_text(told.payload, ("text", "message")))]
        case "notification":
            text = find_text(told.payload, ("message", "text", "title"))
            return [told.event("notification", text, detail=find_text(told.payload, ("notification_type",)))]
        case "subagent_start":
            return [told.subagent("subagent_start")]
        case "subagent_end":
            return [told.subagent("subagent_end")]
        case _:
            return [told.other()]


def session_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """(agent, native id) of the session that a record is of; an empty id where it does not say."""
    told = _Told(record)
    return told.agent, told.session


class _Told:
    """One record, and what is in each event of it."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        payload = record.get("payload")
        self.payload: Record = payload if isinstance(payload, dict) else {}
        self._inner: Record = record_in(self.payload, "payload", "properties")
        self.agent = cleaned(text_in(dict(record), "agent")).strip() or "unknown"
        self.native = text_in(dict(record), "event")
        self._at_ns = record["at_ns"] if isinstance(record.get("at_ns"), int) else 0
        self._raw = text_in(dict(record), "raw")
        self.session = self._session()
        self._child = find_text(self.payload, ("agent_id", "subagent_id"))
        self._place = record_in(dict(record), "place")

    def _session(self) -> str:
        found = find_text(self.payload, SESSION_NAMES)
        if not found and (match := _SESSION_IN_RAW.search(self._raw)):
            found = match[1]
        launch = text_in(dict(self._record), "launch")
        return found or (f"launch-{launch}" if launch else "")

    # -- one event each

    def prompt(self) -> AgentEvent:
        """What was typed. Where the folder's policy kept it out, that there was something."""
        said = next((text for name in _PROMPTS if (text := as_text(self._field(name)).strip())), "")
        typed = heard(self.agent, said)
        if not said:
            return self.event("prompt", detail="not kept", extra={"withheld": True})
        sub_agent = bool(find_text(self.payload, ("subagentType", "subagent_type")) or self._child)
        reason = typed.reason or ("task of a sub-agent" if sub_agent else "")
        key = natural_key(self.agent, None, session=self._own_session(), role="prompt", text=typed.text)
        return self.event(
            "prompt", typed.text, key=key, genuine=not reason, evidence=typed.evidence and not is_ours(said),
            inside=True, extra={"not_typed": reason} if reason else {},
        )  # fmt: skip

    def compaction(self, *, ended: bool) -> AgentEvent:
        """Before (with the reason) or after it (with the summary, which is no evidence)."""
        summary = find_text(self.payload, ("summary", "compact_summary")) if ended else ""
        return self.event(
            "compaction", summary, detail=find_text(self.payload, ("trigger",)), evidence=False,
            extra={"stage": "after" if ended else "before"},
        )  # fmt: skip

    def turn_end(self) -> AgentEvent:
        """With the last words of the agent, where it hands them over."""
        detail = _ENDS.get(self.native.lower()) or find_text(self.payload, ("status", "reason"))
        said = find_text(self.payload, ("last_assistant_message", "prompt_response"))
        return self.event("turn_end", said, detail=detail, evidence=not is_ours(said))

    def subagent(self, kind: Kind) -> AgentEvent:
        """In the session that started it; its own session is in `extra`."""
        own = {"subagent": claude_code_tools.child_session(self._child)} if self._child else {}
        said = find_text(self.payload, ("last_assistant_message", "summary", "task"))
        detail = find_text(self.payload, ("agent_type", "subagent_type", "subagentType"))
        return self.event(kind, said, detail=detail, extra=own)

    def other(self) -> AgentEvent:
        """All that it says, as JSON, or as it came where that was no JSON."""
        said = self._raw or json.dumps(self._record.get("payload"), ensure_ascii=False)
        return self.event("other", said, detail=self.native or "no name")

    def call(self, kind: str) -> AgentEvent:
        """A call that was announced, has ended, or has failed. A list that it sets is a plan."""
        name, arguments = self._asked()
        native = find_text(self.payload, _CALL_IDS)
        builder = ReadingBuilder(self.agent, Path(), self._own_session())
        # A call without an id is told apart by its time: the same command may run twice.
        own = builder.native(native) if native else f"{self._own_session()}:{name}:{self._at_ns}"
        draft = CallDraft(event=self.event("tool", key=natural_key(self.agent, own), inside=True))
        TELLERS.get(self.agent, _tell_any)(draft, name, arguments, _Answer(self.payload, kind))
        if is_our_tool(name):
            draft.extra["ours"] = True
        if kind == "tool_announced" and draft.items is not None:
            draft.items = None  # a plan stands when its call has ended
        return draft.finished()

    # -- what they have in common

    def event(
        self, kind: Kind, text: str = "", *, key: str = "", inside: bool = False, extra: Record | None = None,
        **fields: Any,
    ) -> AgentEvent:  # fmt: skip
        """`inside`: done by the sub-agent that the record names, if any."""
        turn = find_text(self.payload, _TURNS) or str(self._at_ns)
        mark = ":".join((self.session, *filter(None, (kind, self.native, self._child, turn))))
        kept = {name: self.payload[name] for name in _KEPT if self.payload.get(name) not in (None, "", False)}
        is_child = inside and bool(self._child)
        return AgentEvent(
            kind=kind,
            agent=self.agent,
            session=self._own_session() if inside else self.session,
            key=key or natural_key(self.agent, mark),
            source="hook",
            text=bounded(text),
            occurred_at_us=self._time_us(),
            parent=self.session if is_child else None,
            cwd=text_in(dict(self._record), "cwd") or None,
            branch=text_in(self._place, "branch") or None,
            model=find_text(self.payload, ("model", "model.id", "model.display_name")) or None,
            launch=text_in(dict(self._record), "launch") or None,
            extra={"native": self.native, **kept, **(extra or {})},
            **fields,
        )

    def _own_session(self) -> str:
        return claude_code_tools.child_session(self._child) if self._child else self.session

    def _time_us(self) -> int:
        at_us = int(self._at_ns) // 1_000
        told = next((us for name in _TIMES if (us := time_us(self._field(name))) is not None), None)
        return at_us if told is None or told > at_us + FUTURE_US_MAX else told

    def _field(self, name: str) -> Any:
        value = self.payload.get(name)
        return self._inner.get(name) if value in (None, "", [], {}) else value

    def _asked(self) -> tuple[str, Any]:
        """(tool, its input): an object, or a text that is no JSON."""
        name = find_text({**self._inner, **self.payload}, _TOOL_NAMES)
        given = next((value for field in _INPUTS if (value := self._field(field)) not in (None, "")), None)
        given = record_in(self.payload, "toolCall").get("args") if given is None else given
        match self.native.lower():
            case "aftershellexecution" | "beforeshellexecution":
                return name or "Shell", {"command": text_in(self.payload, "command")}
            case "afterfileedit":
                return name or "edit_file", {"file_path": text_in(self.payload, "file_path")}
        return name or "unknown", arguments_in(given) or (given if isinstance(given, str) else {})


class _Answer:
    """What a payload says of a call's end."""

    def __init__(self, payload: Record, kind: str) -> None:
        self.ended = kind != "tool_announced"
        self.failed = kind == "tool_failed"
        self.interrupted = payload.get("is_interrupt") is True
        self.denied = text_in(payload, "failure_type") == "permission_denied"
        self.metadata = record_in(payload, "metadata")
        names = ("error", "error_message", *_RESPONSES) if self.failed else _RESPONSES
        self.value = next((payload[name] for name in names if payload.get(name) not in (None, "")), "")
        self.fields = arguments_in(self.value)

    @property
    def text(self) -> str:
        """In words: what was printed, the content of blocks, or all of it as JSON."""
        if not self.fields:
            return as_text(self.value) or ("" if isinstance(self.value, str) else as_json(self.value))
        printed = [self.fields[name] for name in ("stdout", "stderr", "output") if text_in(self.fields, name)]
        if printed:
            return "\n".join(printed)
        found = as_text(self.fields.get("content")) or text_in(record_in(self.fields, "file"), "content")
        rest = {name: value for name, value in self.fields.items() if name not in _LEFT_OUT}
        return found if found and "filePath" not in self.fields else as_json(rest)


Teller = Callable[[CallDraft, str, Any, _Answer], None]


def _tell_claude_code(draft: CallDraft, name: str, arguments: Any, answer: _Answer) -> None:
    claude_code_tools.ask(draft, name, arguments_in(arguments))
    if answer.ended:
        _decide_by_event(draft, answer)
        block = {"content": answer.text, "is_error": answer.failed}
        claude_code_tools.answer(draft, block, told=answer.fields)


def _tell_codex(draft: CallDraft, name: str, arguments: Any, answer: _Answer) -> None:
    patch = text_in(arguments, "command") if name == "apply_patch" and isinstance(arguments, dict) else ""
    codex_calls.PARTS["function_call"](draft, {"name": name, "arguments": {"input": patch} if patch else arguments})
    if answer.ended:
        _decide_by_event(draft, answer)
        draft.decide_by_code(exit_code_in({**record_in(answer.fields, "metadata"), **answer.fields}, *_CODES))
        codex_calls.PARTS["function_call_output"](draft, {"output": answer.text})


def _tell_gemini(draft: CallDraft, name: str, arguments: Any, answer: _Answer) -> None:
    error = as_text(answer.fields.get("error")) or as_json(answer.fields.get("error"))
    shown = as_text(answer.fields.get("llmContent")) or as_text(answer.fields.get("returnDisplay"))
    status = "error" if error or answer.failed else "success"
    call: Record = {"name": name, "args": arguments_in(arguments), "result": shown or error or answer.text}
    gemini_calls.tell(draft, {**call, "status": status} if answer.ended else call)


def _tell_opencode(draft: CallDraft, name: str, arguments: Any, answer: _Answer) -> None:
    state: Record = {
        "input": arguments_in(arguments),
        "metadata": answer.metadata or record_in(answer.fields, "metadata"),
    }
    if answer.ended:
        state |= {"status": "error" if answer.failed else "completed", "output": answer.text}
        state |= {"error": answer.text} if answer.failed else {}
    opencode_calls.tell(draft, {"tool": name, "state": state})


def _tell_any(draft: CallDraft, name: str, arguments: Any, answer: _Answer) -> None:
    """Cursor, and agents that nobody knows: of a command only an exit code says how it ended."""
    cursor_tools.ask(draft, name, arguments)
    if answer.ended:
        _decide_by_event(draft, answer)
        draft.decide_by_code(exit_code_in(answer.fields, *_CODES))
        done = "" if draft.family == "shell" or answer.failed else "the hook says it ended"
        cursor_tools.answer(draft, answer.text, {"done": done})


def _decide_by_event(draft: CallDraft, answer: _Answer) -> None:
    if answer.denied:
        draft.decide(6, "denied", "failure_type permission_denied")
    elif answer.interrupted:
        draft.decide(6, "interrupted", "is_interrupt")
    elif answer.failed:
        draft.decide(4, "failed", "PostToolUseFailure")


TELLERS: Final[Mapping[str, Teller]] = {
    "claude-code": _tell_claude_code,
    "codex": _tell_codex,
    "gemini": _tell_gemini,
    "opencode": _tell_opencode,
    "cursor": _tell_any,
}
