"""Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl`, one event a line with its data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from everkept.capture.agents import calling
from everkept.capture.agents.building import ReadingBuilder, Verdict, strongest
from everkept.capture.agents.reading import Format, Reading, as_text
from everkept.capture.agents.records import (
    Record,
    first_records,
    flag_in,
    lines_in,
    oldest_first,
    record_in,
    records_in,
    text_in,
)
from everkept.domain.session import Kind

AGENT: Final = "copilot"
_PREFIXES: Final = ("session.", "user.", "assistant.", "tool.", "hook.", "system.", "subagent.", "abort")
_DENIED: Final = ("denied", "rejected")


def find(home: Path) -> Iterator[Path]:
    root = Path(os.environ.get("COPILOT_HOME") or home / ".copilot") / "session-state"
    yield from oldest_first([*root.glob("*/events.jsonl"), *root.glob("*.jsonl")])


def recognise(path: Path) -> bool:
    return path.is_file() and any(
        isinstance(record.get("data"), dict) and text_in(record, "type").startswith(_PREFIXES)
        for record in first_records(path)
    )


def read(path: Path) -> Reading:
    reader = _Session(path)
    return reader.builder.read(lines_in(path), reader.take)


class _Session:
    def __init__(self, path: Path) -> None:
        self.builder = ReadingBuilder(AGENT, path, path.parent.name if path.stem == "events" else path.stem)

    def take(self, record: Record) -> Verdict:
        """What a sub-agent does stands among its parent's lines and names the call that started it."""
        builder, started_by = self.builder, text_in(record_in(record, "data"), "parentToolCallId")
        if not started_by:
            return self._told(record)
        session = builder.session
        builder.session, builder.parent = f"{session}/{started_by}", session
        verdict = self._told(record)
        builder.session, builder.parent = session, None
        return verdict

    def _told(self, record: Record) -> Verdict:
        kind, data, native = text_in(record, "type"), record_in(record, "data"), text_in(record, "id")
        builder = self.builder
        match kind:
            case "session.start" | "session.resume":
                return self._start(kind, data, native)
            case "session.model_change":
                builder.model = text_in(data, "newModel") or builder.model
                return kind
            case "user.message":
                return self._prompt(data, native)
            case "assistant.message":
                return self._message(data, native)
            case "tool.execution_start" | "tool.execution_complete":
                return self._tool(kind, data)
            case "assistant.turn_end":
                return builder.add("turn_end", native=native, detail="completed")
            case "abort":
                builder.interrupt("turn aborted")
                return builder.add("turn_end", native=native, detail=text_in(data, "reason") or "interrupted")
            case "subagent.started" | "subagent.completed" | "subagent.failed":
                agent = text_in(data, "agentName")
                edge: Kind = "subagent_start" if kind == "subagent.started" else "subagent_end"
                return builder.add(edge, text_in(data, "agentDescription"), native=native, detail=agent)
            case "session.error" | "session.warning" | "system.notification":
                text = text_in(data, "message") or as_text(data.get("content"))
                return builder.add("notification", text, native=native, detail=kind)
            case "session.compaction_complete":
                return builder.add("compaction", text_in(data, "summaryContent"), native=native, evidence=False)
            case "session.title_changed":
                builder.name_session(text_in(data, "title"))
                return kind
            case "session.shutdown":
                return builder.add("session_end", native=native, detail=text_in(data, "shutdownType") or "shutdown")
        return kind or "no type"

    def _start(self, kind: str, data: Record, native: str) -> Verdict:
        builder, context = self.builder, record_in(data, "context")
        builder.enter(text_in(data, "sessionId"))
        builder.cwd = text_in(context, "cwd") or builder.cwd
        builder.branch = text_in(context, "branch") or builder.branch
        builder.model = text_in(data, "selectedModel") or builder.model
        version = text_in(data, "copilotVersion")
        detail = "startup" if kind == "session.start" else "resume"
        return builder.add("session_start", native=native, detail=detail, extra={"version": version} if version else {})

    def _prompt(self, data: Record, native: str) -> Verdict:
        text = text_in(data, "content")
        genuine = not text_in(data, "parentAgentTaskId")
        return self.builder.add("prompt", text, native=native, genuine=genuine) if text else "message without text"

    def _message(self, data: Record, native: str) -> Verdict:
        self.builder.model = text_in(data, "model") or self.builder.model
        taken: list[Verdict] = []
        if text := text_in(data, "content"):
            taken.append(self.builder.add("said", text, native=native))
        for request in records_in(data, "toolRequests"):
            draft, verdict = self.builder.call(text_in(request, "toolCallId"), sign=repr(request.get("arguments")))
            calling.ask(draft, text_in(request, "name"), request.get("arguments"))
            taken.append(verdict)
        return strongest(*taken) if taken else "message without text"

    def _tool(self, kind: str, data: Record) -> Verdict:
        native = text_in(data, "toolCallId")
        if not native:
            return f"{kind} without an id"
        draft, taken = self.builder.call(native)
        if kind == "tool.execution_start":
            calling.ask(draft, text_in(data, "toolName"), data.get("arguments"))
            return taken
        success, error = flag_in(data, "success"), record_in(data, "error")
        output = text_in(record_in(data, "result"), "content", "detailedContent") or text_in(error, "message")
        draft.answer(output)
        calling.decide_by_words(draft, output)
        if any(word in text_in(error, "code") + text_in(error, "message") for word in _DENIED):
            draft.decide(6, "denied", "error says it was denied")
        elif success is not None:
            draft.decide(4, "ok" if success else "failed", "success flag")
        return taken


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
