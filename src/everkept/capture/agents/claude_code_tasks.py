"""Claude Code's task list, which is told one change at a time (TaskCreate, TaskUpdate)."""

from __future__ import annotations

import re
from typing import Any, Final

from everkept.capture.agents.drafts import plan_items
from everkept.capture.agents.records import Record, record_in, text_in

Items = tuple[tuple[str, str], ...]
"""((text, state), …) of a plan."""
_CREATED = re.compile(r"#(\w+)[^:\n]*:?[ \t]*([^\n]*)")
_SUBJECTS: Final = ("subject", "content", "description", "activeForm")


def listed(rows: Any) -> Items:
    """The items of a whole list: to-dos or tasks."""
    return plan_items([_as_step(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else None)


class TaskList:
    """The list as it stands after the changes told so far."""

    def __init__(self) -> None:
        self._tasks: dict[str, Record] = {}
        self._restored: Items = ()

    def items(self) -> Items:
        return listed(list(self._tasks.values()))

    def created(self, output: str, result: Record) -> None:
        """What a TaskCreate brought: `Task #1 created successfully: Fix the hook`."""
        task = record_in(result, "task")
        told = _CREATED.search(output[:500])
        number = text_in(task, "id") or (told[1] if told else "")
        subject = text_in(task, *_SUBJECTS) or (told[2] if told else "")
        if number and subject:
            self._tasks.setdefault(number, {"subject": subject, "status": "pending"})

    def updated(self, change: Record) -> None:
        """The arguments of a TaskUpdate; a task made before this file began is known by its number only."""
        number = text_in(change, "taskId", "id")
        if not number:
            return
        told = {name: change[name] for name in ("subject", "status") if text_in(change, name)}
        task = {"subject": f"task {number}", "status": "pending", **self._tasks.get(number, {}), **told}
        if task["status"] == "deleted":
            task["status"] = "cancelled"
        self._tasks[number] = task

    def restored(self, items: Items) -> bool:
        """Whether a list that a reminder shows is news."""
        news = items not in (self._restored, self.items())
        self._restored = items
        return news


def _as_step(row: Record) -> Record:
    return {"step": text_in(row, *_SUBJECTS), "status": text_in(row, "status")}
