"""What a tool call of OpenCode was asked, and what came of it."""

from __future__ import annotations

from typing import Final

from everkept.capture.agents.drafts import CallDraft, family_of, paths_in, plan_items
from everkept.capture.agents.records import Record, exit_code_in, record_in, records_in, text_in
from everkept.domain.shell import changes_of, changes_of_patch

_CHANGE_WORDS: Final = {"add": "created", "update": "edited", "delete": "deleted", "move": "edited"}
_EDITORS: Final = frozenset({"edit", "multiedit", "write"})
_ASKED_APART: Final = frozenset({"command", "description", "cwd", "workdir", "timeout"})


def tell(draft: CallDraft, part: Record) -> None:
    """Everything that a tool part says."""
    name, state = text_in(part, "tool"), record_in(part, "state")
    given = record_in(state, "input")
    metadata = record_in(state, "metadata")
    if command := text_in(given, "command"):
        rest = {key: value for key, value in given.items() if key not in _ASKED_APART}
        draft.ask(name, family="shell", command=command, changes=changes_of(command), given=rest)
    elif patch := text_in(given, "patchText"):
        draft.ask(name, family="edit", changes=changes_of_patch(patch), given=patch)
    else:
        draft.ask(name, family=family_of(name), paths=paths_in(given), given=given or text_in(state, "raw"))
    if "todos" in given:
        draft.items = plan_items(given["todos"])
        draft.input = ""
    if folder := text_in(given, "workdir", "cwd"):
        draft.extra.setdefault("workdir", folder)
    if child := text_in(metadata, "sessionId", "sessionID"):
        draft.extra.setdefault("subagent", child)
    draft.changed(_changes(name, given, metadata))
    _decide(draft, state, metadata)


def _decide(draft: CallDraft, state: Record, metadata: Record) -> None:
    """`metadata.exit` decides; a command without one was stopped from outside, which its output says."""
    status, error = text_in(state, "status"), text_in(state, "error")
    output = text_in(state, "output") or text_in(metadata, "output")
    if status not in ("completed", "error"):
        return
    draft.decide_by_code(exit_code_in(metadata, "exit"))
    if status == "error":
        _decide_by_error(draft, error)
    elif "User aborted the command" in output:
        draft.decide(4, "interrupted", "output says the user aborted it")
    elif "terminated command after exceeding timeout" in output:
        draft.decide(4, "failed", "output says it ran out of time")
    elif draft.family != "shell":
        draft.decide(2, "ok", "status completed")
    draft.answer(output or error)


def _decide_by_error(draft: CallDraft, error: str) -> None:
    if (
        "rejected permission" in error
        or "specified a rule which prevents" in error
        or "dismissed this question" in error
    ):
        draft.decide(6, "denied", "error says it was rejected")
    elif "aborted" in error.lower():
        draft.decide(4, "interrupted", "error says it was aborted")
    else:
        draft.decide(4, "failed", "status error")


def _changes(name: str, given: Record, metadata: Record) -> tuple[tuple[str, str], ...]:
    """What edits changed, as their result tells it, else as it follows from what they were asked."""
    files = records_in(metadata, "files")
    if files and name not in ("read", "glob", "grep"):
        told = [(text_in(file, "filePath", "relativePath"), file) for file in files]
        return tuple((path, _change(file)) for path, file in told if path)
    path = text_in(given, "filePath", "file_path")
    if not path or name not in _EDITORS:
        return ()
    created = metadata.get("exists") is False if name == "write" else given.get("oldString") == ""
    return ((path, "created" if created else "edited"),)


def _change(file: Record) -> str:
    moved = text_in(file, "movePath")
    return f"moved to {moved}" if moved else _CHANGE_WORDS.get(text_in(file, "type"), "edited")
