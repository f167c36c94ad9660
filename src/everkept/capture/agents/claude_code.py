"""Claude Code's transcripts: `~/.claude/projects/<folder>/<session>.jsonl`, and `…/subagents/agent-<id>.jsonl`.

One object a line; each block of a message has a line of its own, and a result is a user's line. A file can hold several
sessions (a fork, a resume) and the side-chains of sub-agents; newer versions give each sub-agent a file. Lines that are
no event (snapshots, reminders, progress, modes) are passed by under their native type.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from everkept.capture.agents.building import ReadingBuilder, Verdict, strongest
from everkept.capture.agents.claude_code_lines import (
    THOUGHTS,
    between,
    command_in,
    id_by_line,
    id_of,
    is_claude_code,
    nothing_in,
    typed_in,
    why_not_typed,
)
from everkept.capture.agents.claude_code_tasks import TaskList, listed
from everkept.capture.agents.claude_code_tools import (
    INTERRUPTED,
    answer,
    ask,
    child_session,
    end_by_notice,
    words_of_denial,
)
from everkept.capture.agents.markers import heard, is_our_tool
from everkept.capture.agents.reading import Format, Reading, as_text
from everkept.capture.agents.records import Record, first_records, lines_in, oldest_first, record_in, text_in

AGENT: Final = "claude-code"
_CALLS: Final = frozenset(["tool_use", "server_tool_use", "mcp_tool_use"])
_NOTHING_SAID: Final = frozenset(["", "(no content)", "No response requested."])
_SYNTHETIC: Final = "<synthetic>"
_TITLES: Final = ("summary", "aiTitle", "customTitle")
"""Fields that name a session, the weakest first."""


def find(home: Path) -> Iterator[Path]:
    """Every transcript below `$CLAUDE_CONFIG_DIR`, else `~/.claude`, oldest first."""
    folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    yield from oldest_first((folder / "projects").glob("**/*.jsonl"))


def recognise(path: Path) -> bool:
    return any(map(is_claude_code, first_records(path, 50)))


def read(path: Path) -> Reading:
    return _Transcript(path).read()


class _Transcript:
    """One file, line by line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._built = ReadingBuilder(AGENT, path, path.stem)
        self._parent_file = path.parent.parent.name if path.parent.name == "subagents" else ""
        self._lists: dict[str, TaskList] = {}
        self._session_of: dict[str, str] = {}
        """{uuid of a line: its session}, for summaries that name a session by its last line."""
        self._names: list[tuple[int, str, str]] = []
        """(strength, session or uuid of its last line, title)"""
        self._asked: set[str] = set()
        """Ids of the calls met so far, for notices that come long after."""
        self._waiting: dict[str, list[str]] = {}
        """{session: what was typed while the agent worked, the oldest first}"""
        self._forks: set[str] = set()
        """Sessions that are known to be forks."""
        self._thoughts = 0

    def read(self) -> Reading:
        reading = self._built.read(lines_in(self._path), self._take)
        for _, session, title in sorted(self._names, key=lambda name: name[0]):
            self._built.session = self._session_of.get(session, session)
            if self._built.session in reading.sessions:
                self._built.name_session(title)
        if self._thoughts:
            reading.notes.append(f"{self._thoughts} blocks of thinking left out")
        return reading

    def _take(self, record: Record) -> Verdict:
        native_type = text_in(record, "type")
        take = _TAKERS.get(native_type)
        if take is None:
            return native_type or "no type"
        self._enter(record)
        forked = self._forked(text_in(record_in(record, "forkedFrom"), "sessionId"))
        return strongest(*forked, take(self, record))

    def _enter(self, record: Record) -> None:
        """The session, folder, branch and model that the line belongs to."""
        built = self._built
        session, parent = self._session(record)
        if session:
            built.enter(session)
            built.parent = parent or None
        built.cwd = text_in(record, "cwd") or built.cwd
        built.branch = text_in(record, "gitBranch") or built.branch
        model = text_in(record_in(record, "message"), "model")
        built.model = None if model == _SYNTHETIC else model or None
        if uuid := text_in(record, "uuid"):
            self._session_of[uuid] = built.session

    def _session(self, record: Record) -> tuple[str, str]:
        """(session, its parent). A sub-agent is a session of its own; side-chains without an id share one."""
        session = text_in(record, "sessionId", "session_id")
        agent_id = text_in(record, "agentId")
        if agent_id and record.get("isSidechain") is not False:
            child = child_session(agent_id)
            return child, session if session not in ("", child) else self._parent_file
        if record.get("isSidechain") is True and session:
            return f"{session}:side-chain", session
        return session, ""

    def _forked(self, other: str) -> list[Verdict]:
        """A fork begins with copies of another session's lines. They have the keys of what they copy."""
        session = self._built.session
        if not other or session in self._forks:
            return []
        self._forks.add(session)
        start = self._built.add(
            "session_start", native=f"{session}:forked", detail="fork", extra={"forked_from": other}
        )
        return [start]

    # -- messages

    def _user(self, record: Record) -> Verdict:
        content = record_in(record, "message").get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        results = [self._result(block, record) for block in blocks if block.get("type") == "tool_result"]
        text = content if isinstance(content, str) else typed_in(blocks)
        if text.strip():
            return strongest(*results, self._told(record, text, beside_result=bool(results)))
        return strongest(*results) if results else "empty message"

    def _told(self, record: Record, text: str, *, channel: str = "", beside_result: bool = False) -> Verdict:
        """A text in the user's role, whoever it is from.

        `channel`: a place that tells prompts without an id, which another place of the file tells too.
        """
        built, native = self._built, "" if channel else id_of(record)
        if text.startswith(INTERRUPTED):
            built.interrupt("interrupted by the user")
            return built.add("turn_end", text, native=native, detail="interrupted")
        told = heard(AGENT, text)
        reason, evidence = told.reason, told.evidence
        if record.get("isCompactSummary") is True or reason == "summary":
            return self._compaction(text_in(record, "parentUuid") or native, told.text)
        if reason == "notice of a task":
            self._notice(text)
        if not reason:
            reason, evidence = ("beside a result", True) if beside_result else why_not_typed(record)
        if reason == "command echo" and "<command-name>/clear<" in text:
            return built.add("clear", "/clear", native=native)
        extra = {
            "not_typed": reason,
            "command": command_in(text) if reason == "command echo" else "",
            "permission_mode": text_in(record, "permissionMode"),
            "version": text_in(record, "version"),
        }
        return built.add(
            "prompt",
            told.text,
            native=native,
            channel=channel,
            genuine=not reason,
            evidence=evidence,
            extra={name: value for name, value in extra.items() if value},
        )

    def _notice(self, text: str) -> None:
        """A background task came to its end: that is what came of the call that started it."""
        native = between(text, "tool-use-id")
        if native in self._asked:
            draft, _ = self._built.call(native)
            end_by_notice(draft, text)

    def _compaction(self, boundary: str, text: str = "", **fields: Any) -> Verdict:
        """The boundary and the summary that follows it are one event."""
        return self._built.add(
            "compaction", text, native=f"{boundary}:compaction" if boundary else "", evidence=False, **fields
        )

    def _assistant(self, record: Record) -> Verdict:
        message = record_in(record, "message")
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        self._thoughts += sum(text_in(block, "type") in THOUGHTS for block in blocks)
        text = content if isinstance(content, str) else as_text([b for b in blocks if b.get("type") == "text"])
        verdicts = [self._said(record, text)] if text.strip() not in _NOTHING_SAID else []
        calls = [block for block in blocks if text_in(block, "type") in _CALLS]
        verdicts += [self._call(block, record, nth) for nth, block in enumerate(calls)]
        verdicts += [self._result(block, record) for block in blocks if text_in(block, "type").endswith("_tool_result")]
        return strongest(*verdicts) if verdicts else nothing_in(blocks)

    def _said(self, record: Record, text: str) -> Verdict:
        """Words of the agent; of Claude Code itself (an API error, a limit) where no model said them."""
        synthetic = record_in(record, "message").get("model") == _SYNTHETIC or record.get("isApiErrorMessage") is True
        return self._built.add("notification" if synthetic else "said", text, native=id_of(record))

    # -- tools

    def _call(self, block: Record, record: Record, nth: int) -> Verdict:
        name, arguments = text_in(block, "name") or "unknown", record_in(block, "input")
        native = text_in(block, "id") or id_by_line(text_in(record, "uuid"), nth)
        self._asked.add(native)
        draft, verdict = self._built.call(native, sign=f"{name} {arguments}" if not native else "")
        ask(draft, name, arguments)
        if is_our_tool(name):
            draft.extra["ours"] = True
        if name == "ExitPlanMode" and (plan := text_in(arguments, "plan")):
            self._built.add("plan", plan, native=f"{native}:plan" if native else "")
        if name == "TaskUpdate" and native:
            self._list().updated(arguments)
            self._list_as_it_stands(native)
        return verdict

    def _result(self, block: Record, record: Record) -> Verdict:
        line = text_in(record, "sourceToolAssistantUUID", "parentUuid", "uuid")
        native = text_in(block, "tool_use_id") or id_by_line(line)
        draft, verdict = self._built.call(native, sign=as_text(block.get("content")) if not native else "")
        told = record.get("toolUseResult")
        answer(draft, block, told=told, denial=text_in(record, "toolDenialKind"))
        result = told if isinstance(told, dict) else {}
        if draft.name == "ExitPlanMode" and native and (plan := text_in(result, "plan") or draft.input):
            approval = {"ok": "approved", "denied": "rejected"}.get(draft.outcome, "")
            self._built.add("plan", plan, native=f"{native}:plan", detail=approval)
        if draft.name == "TaskCreate" and native:
            self._list().created(draft.output, result)
            self._list_as_it_stands(native)
        if words := words_of_denial(draft):
            return strongest(verdict, self._built.add("prompt", words, native=f"{native}:said" if native else ""))
        return verdict

    def _list(self) -> TaskList:
        return self._lists.setdefault(self._built.session, TaskList())

    def _list_as_it_stands(self, native: str) -> None:
        if items := self._list().items():
            self._built.add("plan", native=f"{native}:plan", items=items)

    # -- all else

    def _system(self, record: Record) -> Verdict:
        native, subtype = id_of(record), text_in(record, "subtype")
        match subtype:
            case "compact_boundary":
                about = record_in(record, "compactMetadata")
                return self._compaction(native, detail=text_in(about, "trigger") or text_in(record, "trigger"))
            case "turn_duration":
                return self._built.add("turn_end", native=native)
            case "session_start":
                return self._built.add("session_start", native=native, detail=text_in(record, "source"))
            case _:
                return f"system {subtype}".strip()

    def _attachment(self, record: Record) -> Verdict:
        attached = record_in(record, "attachment")
        kind = text_in(attached, "type")
        if kind == "queued_command":  # typed while the agent was at work
            prompt = attached.get("prompt")
            text = as_text(prompt) or ("[image]" if prompt else "")
            if text:
                return self._told({**record, **attached}, text, channel="attachment")
        if kind in ("task_reminder", "todo_reminder"):
            items = listed(attached.get("content"))
            if items and self._list().restored(items):
                return self._built.add("plan", native=text_in(record, "uuid"), items=items)
        return f"attachment {kind}".strip()

    def _progress(self, record: Record) -> Verdict:
        return f"progress {text_in(record_in(record, 'data'), 'type')}".strip()

    def _queue(self, record: Record) -> Verdict:
        """What is typed while the agent works waits; taken out of the queue in mid-turn, it has no line of its own."""
        operation, content = text_in(record, "operation"), as_text(record.get("content"))
        waiting = self._waiting.setdefault(self._built.session, [])
        match operation:
            case "enqueue":
                waiting.append(content)
            case "popAll":
                waiting.clear()
            case "dequeue" | "remove" if waiting:
                content = content or waiting[0]
                del waiting[0]
        if operation == "remove" and content.strip() and not content.startswith("/"):
            return self._told(record, content, channel="queue")
        return f"queue-operation {operation}".strip()

    def _pull_request(self, record: Record) -> Verdict:
        url = text_in(record, "prUrl")
        return self._built.add("other", url, native=f"pull request {url}", detail="pr-link") if url else "pr-link"

    def _title(self, record: Record) -> Verdict:
        whose = text_in(record, "leafUuid") if record["type"] == "summary" else self._built.session
        for strength, name in enumerate(_TITLES):
            if title := text_in(record, name):
                self._names.append((strength, whose, title))
        return str(record["type"])


_TAKERS: Final[dict[str, Callable[[_Transcript, Record], Verdict]]] = {
    "user": _Transcript._user,
    "assistant": _Transcript._assistant,
    "system": _Transcript._system,
    "attachment": _Transcript._attachment,
    "progress": _Transcript._progress,
    "queue-operation": _Transcript._queue,
    "pr-link": _Transcript._pull_request,
    "summary": _Transcript._title,
    "ai-title": _Transcript._title,
    "custom-title": _Transcript._title,
}


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
