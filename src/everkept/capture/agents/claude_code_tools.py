"""Calls of Claude Code's tools: what they were asked, and what came of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from everkept.capture.agents.claude_code_lines import between
from everkept.capture.agents.drafts import CallDraft, family_of, paths_in, plan_items
from everkept.capture.agents.reading import as_text
from everkept.capture.agents.records import Record, records_in, text_in, texts_in
from everkept.domain.session import Family, Outcome
from everkept.domain.shell import Change, changes_of

INTERRUPTED: Final = "[Request interrupted by user"
"""How a user's line, or a result, begins that stands for the user's pressing of Esc."""

_DENIALS: Final = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "The user has declined this action",
    "The agent proposed a plan that was rejected by the user",
    "Permission for this tool use was denied",
    "Permission for this action was de",  # denied, declined
    "Permission to use ",  # … has been denied
    "This action was blocked by",
    "Claude requested permissions to ",  # …, but you haven't granted it yet
)
_DENIED: Final = "User rejected tool use"
"""A line's `toolUseResult` where the user refused."""
_NOT_COMPLETED: Final = (INTERRUPTED, "[Tool call did not complete")
_USER_SAID: Final = "user said:\n"
_NOTE_BEHIND: Final = "\n\nNote: The user's next message may contain a correction"
_EXIT_CODE: Final = "Exit code "
_BACKGROUND: Final = ("Command running in background with ID", "Async agent launched")
_NOTICES: Final[dict[str, Outcome]] = {
    "completed": "ok",
    "failed": "failed",
    "error": "failed",
    "killed": "interrupted",
    "stopped": "interrupted",
}
"""{status of a background task, as its notice says: outcome}"""
_NOTICE_CODE = re.compile(r"exit code ([0-9]{1,10})\b")
_REMINDER: Final = ("<system-reminder>", "</system-reminder>")
_FAMILIES: Final[dict[str, Family]] = {
    "LS": "search",
    "NotebookRead": "read",
    "EnterPlanMode": "plan",
    "TaskCreate": "plan",
    "TaskUpdate": "plan",
    "TaskList": "plan",
    "TaskGet": "plan",
}
_SAID_ELSEWHERE: Final = frozenset(
    "command description timeout run_in_background dangerouslyDisableSandbox file_path notebook_path todos plan".split()
)
"""Arguments that are kept in fields of their own, or say nothing later."""


def ask(draft: CallDraft, name: str, arguments: Record) -> None:
    """Fills in what a `tool_use` block asks for."""
    family = _FAMILIES.get(name) or family_of(name)
    draft.ask(
        name,
        family=family,
        command=text_in(arguments, "command") or None,
        paths=paths_in(arguments),
        changes=tuple(_asked_changes(name.lower(), family, arguments)),
        given=_given(name, family, arguments),
    )
    if name == "TodoWrite" and isinstance(arguments.get("todos"), list):
        draft.items = plan_items(arguments["todos"])


def answer(draft: CallDraft, block: Record, *, told: Any = None, denial: str = "") -> None:
    """Fills in what a `tool_result` block says. `told` is the line's `toolUseResult`, `denial` its `toolDenialKind`."""
    output = without_reminders(as_text(block.get("content")))
    result = told if isinstance(told, dict) else {}
    draft.answer(output or "\n".join(filter(None, (text_in(result, "stdout"), text_in(result, "stderr")))))
    is_error = block.get("is_error") is True
    refused = told == _DENIED or (is_error and output.startswith(_DENIALS))
    _decide(draft, output, is_error=is_error, refused=refused, result=result, denial=denial)
    path = text_in(result, "filePath")
    if path and result.get("type") in ("create", "update"):
        draft.changed(((path, "created" if result["type"] == "create" else "edited"),))
    if agent_id := text_in(result, "agentId"):
        draft.extra["subagent"] = child_session(agent_id)


def end_by_notice(draft: CallDraft, notice: str) -> None:
    """Fills in what the notice of a background task says of its call, which had ended with the start of the task."""
    status, summary = between(notice, "status"), between(notice, "summary")
    code = _NOTICE_CODE.search(summary)
    if status in _NOTICES:
        draft.decide(4, _NOTICES[status], f"notice says {status}", int(code[1]) if code else None)
    if result := between(notice, "result"):
        draft.output = result


def child_session(agent_id: str) -> str:
    """The session of a sub-agent, as its own file is called."""
    return f"agent-{agent_id}"


def words_of_denial(draft: CallDraft) -> str:
    """What the user said when refusing the call, if anything."""
    if draft.outcome != "denied":
        return ""
    return draft.output.partition(_USER_SAID)[2].partition(_NOTE_BEHIND)[0].strip()


def without_reminders(output: str) -> str:
    """The output without the reminders to the model that stand behind it."""
    opening, closing = _REMINDER
    while (stripped := output.rstrip()).endswith(closing) and (begin := stripped.rfind(opening)) >= 0:
        output = stripped[:begin].rstrip()
    return output


def _decide(draft: CallDraft, output: str, *, is_error: bool, refused: bool, result: Record, denial: str) -> None:
    """The outcome and the rule that told it. Success has no sign of its own: it is what is no error."""
    if denial in ("interrupted", "cancelled"):
        draft.decide(5, "interrupted", f"toolDenialKind {denial}")
    elif denial:
        draft.decide(5, "denied", f"toolDenialKind {denial[:40]}")
    elif refused:
        draft.decide(5, "denied", "the result is a refusal")
    elif output.startswith(_NOT_COMPLETED) or result.get("interrupted") is True:
        draft.decide(5, "interrupted", "the result is an interruption")
    elif is_error and (code := _exit_code(output)) is not None:
        draft.decide(5, "failed", f"first line says {_EXIT_CODE}{code}", code)
    elif is_error:
        draft.decide(4, "failed", "is_error")
    elif output.startswith(_BACKGROUND) or text_in(result, "backgroundTaskId") or result.get("isAsync") is True:
        draft.decide(3, "unknown", "runs in the background")
    else:
        draft.decide(4, "ok", "no is_error")


def _exit_code(output: str) -> int | None:
    """Of a first line `Exit code 2`."""
    first = output[:40].removeprefix("Error: ").partition("\n")[0]
    digits = first.removeprefix(_EXIT_CODE).strip()
    return int(digits) if first.startswith(_EXIT_CODE) and digits.isascii() and digits.isdigit() else None


def _asked_changes(tool: str, family: Family, arguments: Record) -> Iterator[Change]:
    if family == "shell":
        yield from changes_of(text_in(arguments, "command"))
    elif path := text_in(arguments, "file_path", "notebook_path"):
        if tool == "write" or (tool == "edit" and arguments.get("old_string") == ""):
            yield path, "created"
        elif family == "edit":
            yield path, "edited"


def _given(name: str, family: Family, arguments: Record) -> Any:
    """What a call was asked beside command and paths: as text where it reads as one, else as JSON."""
    if family == "shell":
        return text_in(arguments, "description")
    if family == "task":
        head = ": ".join(filter(None, (text_in(arguments, "subagent_type"), text_in(arguments, "description"))))
        return "\n".join(filter(None, (head, text_in(arguments, "prompt"))))
    if family == "question":
        return "\n".join(map(_question, records_in(arguments, "questions"))) or arguments
    if name == "ExitPlanMode":
        return text_in(arguments, "plan")
    if name == "Write":
        return text_in(arguments, "content")
    return {key: value for key, value in arguments.items() if key not in _SAID_ELSEWHERE}


def _question(asked: Record) -> str:
    """A question with what could be chosen: `Which database? [SQLite | PostgreSQL]`."""
    options = [text_in(option, "label") for option in records_in(asked, "options")] or texts_in(asked, "options")
    choices = " | ".join(filter(None, options))
    return f"{text_in(asked, 'question')} [{choices}]" if choices else text_in(asked, "question")
