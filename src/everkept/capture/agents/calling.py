"""What a call asks, for agents whose tools have the usual arguments: a command, a path, a patch or a todo list."""

from __future__ import annotations

import re
from typing import Any, Final

from everkept.capture.agents.drafts import CallDraft, family_of, paths_in, plan_items
from everkept.capture.agents.records import arguments_in, text_in
from everkept.domain.shell import changes_of, changes_of_patch

_ASKED_APART: Final = frozenset({"command", "cmd", "description", "cwd", "workdir", "timeout"})
_PATCH_MARK: Final = "*** Begin Patch"
_CREATING: Final = frozenset({"create", "createfile"})
_DELETING: Final = frozenset({"delete", "deletefile"})
_FAILED_WITH = re.compile(
    r"\A\W{0,3}(?:Error: )?(?:Command )?(?:failed with |exited with )?exit code:? (-?\d{1,10})\b", re.IGNORECASE
)
_LAST_EXIT = re.compile(r"<exited with exit code (-?\d{1,10})>\s*\Z")


def ask(draft: CallDraft, name: str, given: Any) -> None:
    """Tells the draft what was asked; `given` is an object, or one written as a JSON text."""
    arguments = arguments_in(given)
    family = family_of(name)
    if command := text_in(arguments, "command", "cmd"):
        rest = {key: value for key, value in arguments.items() if key not in _ASKED_APART}
        draft.ask(name, family="shell", command=command, changes=changes_of(command), given=rest)
        return
    patch = given if isinstance(given, str) and not arguments else text_in(arguments, "patch", "input", "patchText")
    if family == "plan":
        items = plan_items(arguments.get("todos") or arguments.get("plan") or arguments.get("items"))
        draft.items = items or draft.items
    changes = changes_of_patch(patch) if _PATCH_MARK in patch else _changes(name, paths_in(arguments))
    draft.ask(
        name,
        family=family,
        paths=paths_in(arguments),
        changes=changes if family == "edit" else (),
        given="" if draft.items else arguments or given,
    )


def _changes(name: str, paths: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    bare = "".join(c for c in name.lower() if c.isalnum())
    word = "created" if bare in _CREATING else "deleted" if bare in _DELETING else "edited"
    return tuple((path, word) for path in paths[:1])


def decide_by_words(draft: CallDraft, output: str) -> None:
    """An exit code that the output names in its first or its last line."""
    for rule, found in (
        ("first line tells an exit code", _FAILED_WITH.search(output[:200])),
        ("last line tells an exit code", _LAST_EXIT.search(output[-200:])),
    ):
        if found is not None:
            code = int(found[1])
            draft.decide(5, "ok" if code == 0 else "failed", rule, code)
