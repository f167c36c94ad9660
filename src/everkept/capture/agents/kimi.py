"""Kimi: `~/.kimi-code/sessions/<folder>/<session>/agents/<agent>/wire.jsonl`, a log of what went over the wire.

The older Kimi CLI has it as `~/.kimi/sessions/<folder>/<session>/wire.jsonl`, with each line's news below `message`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from everkept.capture.agents import calling
from everkept.capture.agents.building import ReadingBuilder, Verdict
from everkept.capture.agents.reading import Format, Reading, as_text
from everkept.capture.agents.records import (
    Record,
    first_records,
    flag_in,
    lines_in,
    oldest_first,
    record_in,
    record_of_file,
    text_in,
    time_us,
)

AGENT: Final = "kimi"
INJECTED: Final = ("<system-reminder>", "<system>")
"""How texts begin that stand as a user's and that nobody typed."""
_MAIN: Final = "main"
_PREFIXES: Final = ("context.", "turn.", "config.", "llm.", "tools.")


def find(home: Path) -> Iterator[Path]:
    roots = [Path(os.environ.get("KIMI_CODE_HOME") or home / ".kimi-code"), home / ".kimi"]
    yield from oldest_first(path for root in roots for path in (root / "sessions").rglob("wire.jsonl"))


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    records = first_records(path)
    return any("protocol_version" in record and record.get("type") == "metadata" for record in records) or any(
        text_in(record, "type").startswith(_PREFIXES) and "time" in record for record in records
    )


def read(path: Path) -> Reading:
    reader = _Wire(path)
    return reader.builder.read(lines_in(path), reader.take)


class _Wire:
    def __init__(self, path: Path) -> None:
        agents = path.parent.parent
        in_place = agents.name == "agents"
        session = agents.parent.name if in_place else path.stem
        if path.name == "wire.jsonl" and not in_place:
            session = path.parent.name
        sub_agent = path.parent.name if in_place and path.parent.name != _MAIN else ""
        self.builder = ReadingBuilder(AGENT, path, f"{session}/{sub_agent}" if sub_agent else session)
        self.builder.parent = session if sub_agent else None
        state = record_of_file(agents.parent / "state.json") if in_place else {}
        self.builder.cwd = text_in(state, "workDir") or None
        self.builder.name_session("" if sub_agent else text_in(state, "title"))

    def take(self, record: Record) -> Verdict:
        builder, kind = self.builder, text_in(record, "type")
        match kind:
            case "metadata":
                builder.at_us = time_us(record.get("created_at"))
                version = text_in(record, "app_version", "protocol_version")
                return builder.add("session_start", sign="", detail="startup", extra={"version": version})
            case "profile.bind" | "config.update":
                self._bind(record)
                return kind
            case "turn.prompt" | "turn.steer":
                return self._prompt(record, as_text(record.get("input")), "turn")
            case "context.append_message":
                return self._message(record_in(record, "message"))
            case "context.append_loop_event":
                return self._step(record_in(record, "event"))
            case "turn.cancel":
                builder.interrupt("turn cancelled")
                return builder.add("turn_end", sign="cancelled", detail="interrupted")
            case "turn.ended":
                reason = text_in(record, "reason") or "ended"
                return builder.add("turn_end", sign=reason, detail=reason)
            case "context.apply_compaction":
                summary = text_in(record, "summary") or as_text(record.get("message") or record.get("content"))
                return builder.add("compaction", summary, sign="", evidence=False)
            case "context.clear":
                return builder.add("clear", sign="")
        told = record_in(record, "message")
        return self._older(text_in(told, "type"), record_in(told, "payload")) if told else kind or "no type"

    def _older(self, kind: str, payload: Record) -> Verdict:
        """A line of Kimi CLI."""
        match kind:
            case "TurnBegin" | "SteerInput":
                return self._prompt(payload, as_text(payload.get("user_input")), "turn")
            case "ContentPart" if text := text_in(payload, "text"):
                return self.builder.add("said", text, channel="step")
            case "ToolCall" if native := text_in(payload, "id"):
                asked = record_in(payload, "function")
                draft, taken = self.builder.call(native)
                calling.ask(draft, text_in(asked, "name"), asked.get("arguments"))
                return taken
            case "ToolResult" if native := text_in(payload, "tool_call_id"):
                told = record_in(payload, "return_value", "result")
                return self._result(native, {**told, "isError": told.get("is_error")})
            case "StepInterrupted":
                self.builder.interrupt("step interrupted")
                return self.builder.add("turn_end", sign="interrupted", detail="interrupted")
            case "TurnEnd":
                return self.builder.add("turn_end", sign="completed", detail="completed")
            case "CompactionEnd":
                return self.builder.add("compaction", sign="", evidence=False)
        return f"message: {kind or 'no type'}"

    def _bind(self, record: Record) -> None:
        self.builder.model = text_in(record, "modelAlias") or self.builder.model
        self.builder.cwd = text_in(record_in(record, "environmentDisclosure"), "cwd") or self.builder.cwd

    def _prompt(self, told: Record, text: str, channel: str) -> Verdict:
        """`told` says where it comes from; the turn and the context tell of the same prompt."""
        if not text.strip():
            return "message without text"
        origin = text_in(record_in(told, "origin"), "kind") or "user"
        typed = origin == "user" and not text.lstrip().startswith(INJECTED)
        genuine = typed and self.builder.parent is None
        return self.builder.add("prompt", text, channel=channel, genuine=genuine, evidence=typed)

    def _message(self, message: Record) -> Verdict:
        role, text = text_in(message, "role"), as_text(message.get("content"))
        if role == "user":
            return self._prompt(message, text, "context")
        if role == "tool" and (native := text_in(message, "toolCallId")):
            return self._result(native, {"output": text})
        if role == "assistant" and text.strip():
            return self.builder.add("said", text, channel="context")
        return f"message of the {role or 'unknown'}"

    def _step(self, event: Record) -> Verdict:
        kind = text_in(event, "type")
        part = record_in(event, "part")
        native = text_in(event, "toolCallId")
        if kind == "content.part" and text_in(part, "type") == "text" and (text := text_in(part, "text")):
            return self.builder.add("said", text, channel="step")
        if kind == "tool.call":
            draft, taken = self.builder.call(native or text_in(event, "uuid"), sign=repr(event.get("args")))
            calling.ask(draft, text_in(event, "name"), event.get("args"))
            return taken
        if kind == "tool.result" and native:
            return self._result(native, event.get("result"))
        return f"loop event: {kind or 'no type'}"

    def _result(self, native: str, result: object) -> Verdict:
        draft, taken = self.builder.call(native)
        told = result if isinstance(result, dict) else {}
        output = as_text(told.get("output") or told.get("content") or told.get("message")) or as_text(result)
        draft.answer(output)
        calling.decide_by_words(draft, output)
        failed = flag_in(told, "isError")
        if failed is not None:
            denied = failed and "rejected by the user" in output
            draft.decide(6 if denied else 4, "denied" if denied else "failed" if failed else "ok", "isError")
        return taken


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
