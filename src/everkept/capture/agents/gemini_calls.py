"""What a tool call of Gemini CLI was asked, and what came of it."""

from __future__ import annotations

import re
from typing import Any, Final

from everkept.capture.agents.drafts import CallDraft, family_of, paths_in, plan_items
from everkept.capture.agents.reading import as_text
from everkept.capture.agents.records import Record, arguments_in, record_in, records_in, text_in
from everkept.domain.shell import changes_of

_EXIT_CODE = re.compile(r"Exit Code: (-?\d{1,10})(?!\d)")
_SIGNAL = re.compile(r"Signal: (?!0\b|\(none\))(\w+)")
_ERROR = re.compile(r"(?:^|\n|\\n)Error: (?!\(none\))")
_TOLD: Final = ("Output:", "Directory:", "Process Group PGID:")
"""Headings of a command's result: with them, no word of a code means that it was 0."""
_DENIED = re.compile(r"did not allow|denied|declined|rejected|blocked by policy", re.IGNORECASE)
_ENDED: Final = ("success", "error", "cancelled")


def tell(draft: CallDraft, call: Record) -> None:
    """Everything that one telling of a call says; a later one completes it."""
    name, arguments = text_in(call, "name"), arguments_in(call.get("args"))
    output = _output(call)
    if command := text_in(arguments, "command"):
        rest = {key: value for key, value in arguments.items() if key not in ("command", "description", "cwd")}
        draft.ask(name, family="shell", command=command, changes=changes_of(command), given=rest)
    else:
        draft.ask(name, family=family_of(name), paths=paths_in(arguments), given=arguments)
    if family_of(name) == "plan":
        draft.items = plan_items(arguments.get("todos"))
        draft.input = ""
    draft.changed(_changes(call, arguments, output))
    status = text_in(call, "status")
    if status in _ENDED:
        draft.answer(_shown(call, output))
        _decide(draft, status, output)


def _decide(draft: CallDraft, status: str, output: str) -> None:
    if status == "cancelled":
        denied = _DENIED.search(output) is not None
        draft.decide(6 if denied else 4, "denied" if denied else "interrupted", "status cancelled")
    elif status == "error":
        draft.decide(4, "failed", "status error")
        draft.exit_code = draft.exit_code if (found := _code(output)) is None else found
    elif draft.family != "shell":
        draft.decide(2, "ok", "status success")
    elif (code := _code(output)) is not None:
        draft.decide(5, "ok" if code == 0 else "failed", "Exit Code in the result", code)
    elif _SIGNAL.search(output):
        draft.decide(4, "failed", "Signal in the result")
    elif _ERROR.search(output):
        draft.decide(3, "failed", "Error in the result")
    elif any(heading in output for heading in _TOLD):
        draft.decide(3, "ok", "the result tells no Exit Code")


def _code(output: str) -> int | None:
    """The last one: what the command printed stands before it."""
    found = _EXIT_CODE.findall(output)
    return int(found[-1]) if found else None


def _output(call: Record) -> str:
    """What the model was given."""
    result = call.get("result")
    if isinstance(result, str):
        return result
    texts = []
    for part in records_in(call, "result") or ([result] if isinstance(result, dict) else []):
        response = record_in(record_in(part, "functionResponse"), "response")
        texts.append(text_in(response, "output", "error") or as_text(response or part))
    return "\n".join(text for text in texts if text)


def _shown(call: Record, output: str) -> str:
    """What the person was shown: of a command what it printed, of an edit its difference."""
    display = call.get("resultDisplay")
    if isinstance(display, str) and (display.strip() or call.get("status") == "success"):
        return display
    return text_in(record_in(call, "resultDisplay"), "fileDiff") or output


def _changes(call: Record, arguments: Record, output: str) -> tuple[tuple[str, str], ...]:
    """What `write_file` and `replace` change: the file is new where its result or its diff says so."""
    name = text_in(call, "name")
    path = next(iter(paths_in(arguments)), "")
    if not path or name not in ("write_file", "replace", "edit"):
        return ()
    display = record_in(call, "resultDisplay")
    created = (
        "created and wrote to new file" in output
        or output.startswith("Created new file")
        or display.get("isNewFile") is True
        or (name != "write_file" and _is_empty_text(arguments.get("old_string")))
    )
    return ((path, "created" if created else "edited"),)


def _is_empty_text(value: Any) -> bool:
    return isinstance(value, str) and not value
