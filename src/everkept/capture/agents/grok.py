"""Grok CLI: `~/.grok/sessions/<folder>/<session>/chat_history.jsonl`, what its model was shown: no times, few ids."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from everkept.capture.agents import calling
from everkept.capture.agents.building import ReadingBuilder, Verdict, strongest
from everkept.capture.agents.reading import Format, Reading, as_text
from everkept.capture.agents.records import (
    Record,
    first_records,
    lines_in,
    oldest_first,
    record_in,
    record_of_file,
    records_in,
    text_in,
    texts_in,
    time_us,
)

AGENT: Final = "grok"
INJECTED: Final = ("<user_info>", "<system-reminder>", "<environment_context>", "This session is being continued from")
"""How texts begin that stand as a user's and that nobody typed."""
_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_COMPACTION: Final = "compaction_meta"
_OWN_FIELDS: Final = frozenset({"synthetic_reason", "prompt_index", "tool_call_id", "model_id", "model_fingerprint"})


def find(home: Path) -> Iterator[Path]:
    root = Path(os.environ.get("GROK_HOME") or home / ".grok") / "sessions"
    yield from oldest_first(root.glob("*/*/chat_history.jsonl"))


def recognise(path: Path) -> bool:
    """By the fields that only Grok's lines have, or its name with lines of its types."""
    if not path.is_file():
        return False
    records = first_records(path)
    typed = any(record.get("type") in ("user", "assistant", "system") and "content" in record for record in records)
    return typed and (path.name == "chat_history.jsonl" or any(_OWN_FIELDS & record.keys() for record in records))


def read(path: Path) -> Reading:
    reader = _History(path)
    return reader.builder.read(lines_in(path), reader.take)


class _History:
    def __init__(self, path: Path) -> None:
        in_place = path.name == "chat_history.jsonl" and path.parent.name
        self.builder = ReadingBuilder(AGENT, path, path.parent.name if in_place else path.stem)
        folder = unquote(path.parent.parent.name)
        summary = record_of_file(path.parent / "summary.json") if in_place else {}
        info = record_in(summary, "info")
        self.builder.cwd = text_in(info, "cwd") or (folder if in_place and folder.startswith("/") else None)
        self.builder.name_session(text_in(summary, "title", "generated_title"))
        self._started_us = time_us(summary.get("created_at"))

    def take(self, record: Record) -> Verdict:
        # The file has no times; what stands beside it says when the session began.
        self.builder.at_us, self._started_us = self._started_us, None
        kind = text_in(record, "type", "role")
        match kind:
            case "user":
                return self._prompt(record)
            case "assistant":
                return self._said(record)
            case "tool_result" | "tool":
                return self._result(record)
            case "backend_tool_call":
                return self._searched(record_in(record, "kind"))
        return kind or "no type"

    def _prompt(self, record: Record) -> Verdict:
        text = as_text(record.get("content"))
        if not text.strip():
            return "message without text"
        reason = text_in(record, "synthetic_reason")
        if reason == _COMPACTION and not text.startswith("<user_info>"):
            return self.builder.add("compaction", text, evidence=False)
        interrupt = text_in(record, "prior_turn_interrupt")
        taken: list[Verdict] = []
        if interrupt:
            self.builder.interrupt(f"the next prompt says {interrupt}")
            taken.append(self.builder.add("turn_end", sign=interrupt, detail="interrupted"))
        query = _QUERY.search(text)
        typed = not reason and (query is not None or not text.lstrip().startswith(INJECTED))
        taken.append(self.builder.add("prompt", query[1] if query else text, genuine=typed, evidence=typed))
        return strongest(*taken)

    def _said(self, record: Record) -> Verdict:
        self.builder.model = text_in(record, "model_id") or self.builder.model
        text = as_text(record.get("content"))
        taken: list[Verdict] = []
        if text.strip():
            taken.append(self.builder.add("said", text))
        for call in records_in(record, "tool_calls"):
            asked = record_in(call, "function") or call
            draft, verdict = self.builder.call(text_in(call, "id"), sign=repr(asked.get("arguments")))
            calling.ask(draft, text_in(asked, "name"), asked.get("arguments"))
            taken.append(verdict)
        return strongest(*taken) if taken else "message without text"

    def _result(self, record: Record) -> Verdict:
        native = text_in(record, "tool_call_id")
        if not native:
            return "tool_result without an id"
        draft, taken = self.builder.call(native)
        output = as_text(record.get("content"))
        draft.answer(output)
        calling.decide_by_words(draft, output)
        return taken

    def _searched(self, kind: Record) -> Verdict:
        """A call that its server made and that has no result of its own."""
        action = record_in(kind, "action")
        asked = text_in(action, "query", "url") or "\n".join(texts_in(action, "queries"))
        draft, taken = self.builder.call(text_in(kind, "id"), sign=asked)
        draft.ask(text_in(kind, "tool_type") or "backend_tool_call", given=asked)
        draft.answer("\n".join(url for source in records_in(action, "sources") if (url := text_in(source, "url"))))
        if text_in(kind, "status") == "completed":
            draft.decide(2, "ok", "status completed")
        return taken


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
