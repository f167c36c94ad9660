"""Codex: rollouts in JSONL, `$CODEX_HOME/sessions/**/rollout-*.jsonl`.

A rollout tells most things twice, for its model (`response_item`) and for its screen (`event_msg`), and newer ones a
third time (`item_completed`); each is one event here. Calls have ids, messages are told apart by their words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from everkept.capture.agents import codex_calls
from everkept.capture.agents.building import ReadingBuilder, Taken, Verdict, strongest
from everkept.capture.agents.codex_forks import COPIED, CopiedHistory
from everkept.capture.agents.drafts import CallDraft, plan_items
from everkept.capture.agents.markers import heard
from everkept.capture.agents.reading import Format, Reading, as_text
from everkept.capture.agents.records import (
    Record,
    first_records,
    lines_in,
    record_in,
    records_in,
    text_in,
    time_us,
)

AGENT: Final = "codex"
INJECTED: Final = (
    "<user_action>",
    "<hook_prompt",
    "<recommended_plugins>",
    "<task-notification>",
    "Warning: The maximum number of unified exec processes",
)
"""How blocks begin that stand among a user's words and that nobody typed, beside those of `markers`."""
_IMAGE_TAG = re.compile(r"\s*</?image\b[^>]*>\s*")
_REQUEST_MARK: Final = "## My request for Codex:"
"""Editors put what is open in front of it."""
_NATIVE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LINE_TYPES: Final = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_BARE_ITEMS: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"}
)


def find(home: Path) -> Iterator[Path]:
    """Every rollout, oldest first by the time in its name."""
    root = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    found = [path for folder in ("archived_sessions", "sessions") for path in (root / folder).rglob("*.jsonl")]
    yield from sorted(found, key=lambda path: path.name)


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    return any(
        (text_in(record, "type") in _LINE_TYPES and isinstance(record.get("payload"), dict)) or _is_bare_meta(record)
        for record in first_records(path)
    )


def _is_bare_meta(record: Record) -> bool:
    """The first line of rollouts before 2025-09: the head of the session without a type."""
    return {"id", "timestamp", "instructions"} <= record.keys() and "type" not in record


def read(path: Path) -> Reading:
    reader = _Rollout(path)
    return reader.builder.read(lines_in(path), reader.take)


class _Rollout:
    def __init__(self, path: Path) -> None:
        named = _NATIVE_ID.findall(path.stem)
        self.builder = ReadingBuilder(AGENT, path, named[-1] if named else path.stem)
        self._copy = CopiedHistory()
        self._by_an_agent = False
        """The session is a sub-agent's."""
        self._running: dict[str, CallDraft] = {}
        """{id of a process: the call that began it}"""
        self._lines: dict[str, Callable[[Record], Verdict]] = {
            "session_meta": self._session_meta,
            "turn_context": self._turn_context,
            "response_item": self._item,
            "event_msg": self._message,
            "compacted": self._compacted,
        }
        self._items: dict[str, Callable[[Record], Verdict]] = {
            "message": self._said_item,
            "agent_message": self._agent_to_agent,
        }
        self._messages: dict[str, Callable[[Record], Verdict]] = {
            "user_message": self._user_message,
            "agent_message": lambda payload: self._said(text_in(payload, "message"), "event"),
            "item_completed": lambda payload: self._turn_item(record_in(payload, "item")),
            "context_compacted": lambda _payload: self._compaction("", "event"),
            "turn_aborted": self._turn_aborted,
            "task_complete": self._turn_complete,
            "turn_complete": self._turn_complete,
            "plan_update": self._plan_update,
            "thread_goal_updated": self._goal,
            "thread_name_updated": self._named,
            "thread_settings_applied": self._settings,
            "error": self._notice,
            "warning": self._notice,
            "stream_error": self._notice,
            "entered_review_mode": self._review,
            "exited_review_mode": self._review,
            "sub_agent_activity": self._sub_agent,
            "shutdown_complete": lambda _payload: self.builder.add("session_end", detail="shutdown"),
        }
        self._turn_items: dict[str, Callable[[Record], Verdict]] = {
            "UserMessage": lambda item: self._prompt(_texts(item.get("content")), "turn item"),
            "AgentMessage": lambda item: self._said("".join(_texts(item.get("content"))), "turn item"),
            "Plan": self._plan_text,
            "ContextCompaction": lambda _item: self._compaction("", "turn item"),
            "SubAgentActivity": self._sub_agent,
        }

    def take(self, record: Record) -> Verdict:
        kind, payload = text_in(record, "type"), record_in(record, "payload")
        if "payload" not in record:
            if _is_bare_meta(record):
                kind, payload = "session_meta", record
            elif kind in _BARE_ITEMS:
                kind, payload = "response_item", record
        if kind != "session_meta" and self._copy.covers(payload, self.builder.at_us):
            return COPIED
        handler = self._lines.get(kind)
        return handler(payload) if handler is not None else kind or "no type"

    # The session and its turns.

    def _session_meta(self, payload: Record) -> Verdict:
        session = text_in(payload, "id", "session_id", "thread_id")
        if self._copy.opens_with(session, self.builder.at_us):
            return COPIED
        source = record_in(payload, "source")
        spawn = record_in(record_in(source, "subagent"), "thread_spawn")
        self._by_an_agent = "subagent" in source or text_in(payload, "thread_source") == "subagent"
        git = record_in(payload, "git")
        forked_from = text_in(payload, "forked_from_id")
        builder = self.builder
        builder.enter(session)
        parent = text_in(payload, "parent_thread_id") or text_in(spawn, "parent_thread_id")
        builder.parent = parent or (forked_from if self._by_an_agent else "") or None
        builder.cwd = text_in(payload, "cwd") or builder.cwd
        builder.branch = text_in(git, "branch") or builder.branch
        is_fork = bool(forked_from or builder.parent)
        self._copy.begin(builder.session, started_us=time_us(payload.get("timestamp")), is_fork=is_fork)
        named = {
            "version": text_in(payload, "cli_version"),
            "originator": text_in(payload, "originator"),
            "commit": text_in(git, "commit_hash"),
            "forked_from": forked_from,
            "nickname": text_in(payload, "agent_nickname", "agent_role"),
        }
        return builder.add(
            "session_start",
            native=f"{builder.session}:start",
            detail="startup",
            extra={name: value for name, value in named.items() if value},
        )

    def _turn_context(self, payload: Record) -> Verdict:
        self.builder.cwd = text_in(payload, "cwd") or self.builder.cwd
        self.builder.model = text_in(payload, "model") or self.builder.model
        return "turn_context"

    def _settings(self, payload: Record) -> Verdict:
        self._turn_context(record_in(payload, "thread_settings"))
        return "event_msg/thread_settings_applied"

    def _turn_complete(self, payload: Record) -> Verdict:
        error = text_in(record_in(payload, "error"), "message")
        return self._turn_end(payload, "error" if error else "completed", error)

    def _turn_aborted(self, payload: Record) -> Verdict:
        self.builder.interrupt("turn aborted")
        return self._turn_end(payload, text_in(payload, "reason") or "interrupted", "")

    def _turn_end(self, payload: Record, reason: str, text: str) -> Verdict:
        turn = text_in(payload, "turn_id")
        # One turn may be aborted and completed in the same file: two events.
        native = f"{turn}:{reason}" if turn else ""
        return self.builder.add("turn_end", text, native=native, sign=reason, detail=reason)

    def _named(self, payload: Record) -> Verdict:
        self.builder.name_session(text_in(payload, "thread_name"))
        return "event_msg/thread_name_updated"

    # Words.

    def _said_item(self, payload: Record) -> Verdict:
        role = text_in(payload, "role")
        texts = _texts(payload.get("content"))
        if role == "user":
            return self._prompt(texts, "item")
        return self._said("".join(texts), "item") if role == "assistant" else f"message of the {role or 'unknown'}"

    def _user_message(self, payload: Record) -> Verdict:
        return self._prompt(_texts(payload.get("message")), "event")

    def _prompt(self, texts: list[str], channel: str) -> Verdict:
        told = [heard(AGENT, text) for text in texts]
        typed = [one.text for one in told if not one.reason and not one.text.lstrip().startswith(INJECTED)]
        whole = "".join(typed or texts)
        if not whole.strip():
            return "message without text"
        reason = "" if typed else next((one.reason for one in told if one.reason), "context")
        if typed and (self._by_an_agent or self.builder.parent is not None):
            reason = "task of a sub-agent"
        return self.builder.add(
            "prompt",
            whole.rpartition(_REQUEST_MARK)[2].strip(),
            sign=whole,
            channel=channel,
            genuine=not reason,
            evidence=bool(typed) or any(one.evidence for one in told if one.reason),
            extra={"not_typed": reason} if reason else {},
        )

    def _said(self, text: str, channel: str) -> Verdict:
        return (
            self.builder.add("said", text, role="assistant", channel=channel)
            if text.strip()
            else "message without text"
        )

    def _agent_to_agent(self, payload: Record) -> Verdict:
        text = as_text(payload.get("content"))
        if not text.strip():
            return "message without text"
        between = {"author": text_in(payload, "author"), "recipient": text_in(payload, "recipient")}
        return self.builder.add(
            "other", text, native=text_in(payload, "id"), role="agent_message", detail="agent_message", extra=between
        )

    def _notice(self, payload: Record) -> Verdict:
        kind = text_in(payload, "type")
        return self.builder.add("notification", text_in(payload, "message"), role=kind, detail=kind)

    def _review(self, payload: Record) -> Verdict:
        kind = text_in(payload, "type")
        result = record_in(payload, "review_output")
        findings = [
            f"- {text_in(finding, 'title')}: {text_in(finding, 'body')}" for finding in records_in(result, "findings")
        ]
        text = "\n".join([text_in(result, "overall_explanation") or text_in(payload, "user_facing_hint"), *findings])
        return self.builder.add("other", text.strip(), role=kind, detail=kind)

    def _compacted(self, payload: Record) -> Verdict:
        history = records_in(payload, "replacement_history")
        kept = [text for message in history if (text := as_text(message.get("content")))]
        return self._compaction(text_in(payload, "message") or "".join(kept[-1:]), "line")

    def _compaction(self, summary: str, channel: str) -> Verdict:
        return self.builder.add("compaction", summary, sign="", channel=channel, evidence=False)

    # Plans and sub-agents.

    def _plan_update(self, payload: Record) -> Verdict:
        items = plan_items(payload.get("plan"))
        return self.builder.add("plan", text_in(payload, "explanation"), sign=repr(items), items=items)

    def _plan_text(self, item: Record) -> Verdict:
        return self.builder.add("plan", text_in(item, "text"), native=text_in(item, "id"))

    def _goal(self, payload: Record) -> Verdict:
        items = plan_items([{"title": text_in(goal, "objective"), "status": text_in(goal, "status")}
                            for goal in (record_in(payload, "goal"),)])  # fmt: skip
        return self.builder.add("plan", role="goal", sign=repr(items), detail="goal", items=items)

    def _sub_agent(self, payload: Record) -> Verdict:
        thread = text_in(payload, "agent_thread_id", "new_thread_id")
        kind = text_in(payload, "kind")
        if not thread or kind not in ("started", "interrupted", "completed", "closed"):
            return "sub-agent activity"
        return self._sub_agent_event(thread, "start" if kind == "started" else "end", kind)

    def _sub_agent_event(self, thread: str, edge: str, reason: str, text: str = "") -> Verdict:
        return self.builder.add(
            "subagent_start" if edge == "start" else "subagent_end",
            text,
            native=f"{thread}:{edge}",
            detail=reason,
            extra={"subagent": thread},
        )

    # Calls of tools.

    def _item(self, payload: Record) -> Verdict:
        kind = text_in(payload, "type")
        handler = self._items.get(kind)
        return handler(payload) if handler else self._call(kind, payload, f"response_item/{kind or 'no type'}")

    def _message(self, payload: Record) -> Verdict:
        kind = text_in(payload, "type")
        handler = self._messages.get(kind)
        if handler is not None:
            return handler(payload)
        taken = self._call(kind, payload, f"event_msg/{kind or 'no type'}")
        if kind == "collab_agent_spawn_end" and (thread := text_in(payload, "new_thread_id")):
            asked = text_in(payload, "prompt")
            return strongest(taken, self._sub_agent_event(thread, "start", "started", asked))
        if kind == "collab_close_end" and (thread := text_in(payload, "receiver_thread_id")):
            return strongest(taken, self._sub_agent_event(thread, "end", "closed"))
        return taken

    def _turn_item(self, item: Record) -> Verdict:
        kind = text_in(item, "type")
        handler = self._turn_items.get(kind)
        return handler(item) if handler else self._call(kind, item, f"item_completed/{kind or 'no type'}")

    def _call(self, kind: str, payload: Record, reason: str) -> Verdict:
        """The line's part of a call, if its type is one of those that tell of calls."""
        tell = codex_calls.PARTS.get(kind)
        if tell is None:
            return reason
        native = codex_calls.id_of(payload)
        if not native:
            return self._call_without_id(kind, payload, tell)
        if kind == "guardian_assessment" and text_in(payload, "status") != "denied":
            return reason
        draft, taken = self.builder.call(native)
        tell(draft, payload)
        self._follow(draft)
        return taken

    def _follow(self, draft: CallDraft) -> None:
        """A command that went on in the background ends with the later call that sees its end."""
        process = draft.extra.get("process")
        if process is None:
            return
        first = self._running.setdefault(process, draft)
        if first is not draft and draft.exit_code is not None:
            first.decide_by_code(draft.exit_code)
            first.ended = True
            del self._running[process]

    def _call_without_id(self, kind: str, payload: Record, tell: codex_calls.Tell) -> Verdict:
        name = codex_calls.name_of(payload)
        if kind in codex_calls.RESULTS and (known := self.builder.last_open(name)) is not None:
            tell(known, payload)
            return Taken.MERGED
        draft, taken = self.builder.call("", sign=f"{name} {payload.get('arguments')!r}")
        tell(draft, payload)
        return taken


def _texts(content: object) -> list[str]:
    """The texts of a message's blocks, without the tags that stand around its images."""
    blocks = content if isinstance(content, list) else [content]
    return [text for block in blocks if (text := as_text(block)) and not _IMAGE_TAG.fullmatch(text)]


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
