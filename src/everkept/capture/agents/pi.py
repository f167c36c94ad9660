"""Pi: `~/.pi/agent/sessions/<folder>/<time>_<session>.jsonl`, a tree of entries written down in their order."""

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
    exit_code_in,
    first_records,
    flag_in,
    lines_in,
    oldest_first,
    record_in,
    records_in,
    text_in,
    time_us,
)
from everkept.domain.shell import changes_of

AGENT: Final = "pi"


def find(home: Path) -> Iterator[Path]:
    root = Path(os.environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent") / "sessions"
    yield from oldest_first(root.rglob("*.jsonl"))


def recognise(path: Path) -> bool:
    return path.is_file() and any(
        record.get("type") == "session" and "id" in record and ("cwd" in record or "version" in record)
        for record in first_records(path)
    )


def read(path: Path) -> Reading:
    reader = _Session(path)
    return reader.builder.read(lines_in(path), reader.take)


class _Session:
    def __init__(self, path: Path) -> None:
        self.builder = ReadingBuilder(AGENT, path, path.stem.rpartition("_")[2])

    def take(self, record: Record) -> Verdict:
        kind, native, builder = text_in(record, "type"), text_in(record, "id"), self.builder
        match kind:
            case "session":
                builder.enter(native)
                builder.cwd = text_in(record, "cwd") or builder.cwd
                from_file = text_in(record, "parentSession")
                extra = {"forked_from": from_file} if from_file else {}
                return builder.add("session_start", native=f"{builder.session}:start", detail="startup", extra=extra)
            case "model_change":
                builder.model = text_in(record, "modelId") or builder.model
                return kind
            case "session_info":
                builder.name_session(text_in(record, "name"))
                return kind
            case "compaction" | "branch_summary":
                return builder.add("compaction", text_in(record, "summary"), native=native, detail=kind, evidence=False)
            case "custom_message":
                text, detail = as_text(record.get("content")), text_in(record, "customType")
                return builder.add("other", text, native=native, detail=detail or kind, evidence=False)
            case "message":
                return self._message(record_in(record, "message"), native)
        return kind or "no type"

    def _message(self, message: Record, native: str) -> Verdict:
        builder, role = self.builder, text_in(message, "role")
        at_us = time_us(message.get("timestamp"))
        builder.at_us = builder.at_us if at_us is None else at_us
        text = as_text(message.get("content"))
        if role == "user":
            return builder.add("prompt", text, native=native) if text.strip() else "message without text"
        if role == "assistant":
            return self._said(message, native)
        if role == "toolResult" and (call := text_in(message, "toolCallId")):
            return self._result(call, message, text)
        if role == "bashExecution":
            return self._own_command(message, native)
        return f"message of the {role or 'unknown'}"

    def _said(self, message: Record, native: str) -> Verdict:
        builder = self.builder
        builder.model = text_in(message, "model") or builder.model
        content = message.get("content")
        blocks = records_in(message, "content")
        text = content if isinstance(content, str) else as_text([b for b in blocks if text_in(b, "type") == "text"])
        taken: list[Verdict] = []
        if text.strip():
            taken.append(builder.add("said", text, native=native))
        for block in blocks:
            if text_in(block, "type") == "toolCall":
                draft, verdict = builder.call(text_in(block, "id"), sign=repr(block.get("arguments")))
                calling.ask(draft, text_in(block, "name"), block.get("arguments"))
                taken.append(verdict)
        reason = text_in(message, "stopReason")
        if reason in ("aborted", "error"):
            if reason == "aborted":
                builder.interrupt("message aborted")
            detail = "interrupted" if reason == "aborted" else reason
            end = native and f"{native}:end"
            taken.append(builder.add("turn_end", text_in(message, "errorMessage"), native=end, detail=detail))
        return strongest(*taken) if taken else "message without text"

    def _result(self, call: str, message: Record, text: str) -> Verdict:
        draft, taken = self.builder.call(call)
        draft.name = draft.name or text_in(message, "toolName")
        draft.answer(text)
        failed = flag_in(message, "isError")
        if failed is not None:
            draft.decide(4, "failed" if failed else "ok", "isError")
        return taken

    def _own_command(self, message: Record, native: str) -> Verdict:
        """A command that the person ran in the agent."""
        draft, taken = self.builder.call(native, sign=text_in(message, "command"))
        command = text_in(message, "command")
        draft.ask("bash", family="shell", command=command, changes=changes_of(command))
        draft.extra["by"] = "user"
        draft.answer(text_in(message, "output"))
        if message.get("cancelled") is True:
            draft.decide(6, "interrupted", "cancelled")
        draft.decide_by_code(exit_code_in(message, "exitCode"))
        return taken


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
