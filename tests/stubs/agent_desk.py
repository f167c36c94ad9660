"""A machine of coding agents in one process: the hook's own code writes the records, a runner is stepped by hand."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.factories import settings_of

from everkept.api.local import LocalService
from everkept.api.views import KnowledgePage
from everkept.bootstrap import make_runner, open_application
from everkept.capture.spool import Spool
from everkept.hook.hook_script import append, record_of
from everkept.ports.clock import VirtualClock
from everkept.ports.faults import NoFaults
from everkept.store.aliases import find_by_signs

T = TypeVar("T")
PROMPTS = {"gemini": "BeforeAgent", "cursor": "beforeSubmitPrompt"}


class Desk:
    """One home. Times are of a clock that starts now and moves only when told."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self.home = home
        self.clock = VirtualClock(start_us=time.time_ns() // 1_000)
        self.app = self.run(open_application(settings_of(home, **settings), worker=False, clock=self.clock))
        self.hooks = self.app.hooks()
        self.runner = make_runner(self.app.parts, NoFaults())
        self.spool = Spool(home)
        self._pids = 0

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(doing)

    def close(self) -> None:
        self.run(self.app.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def wake_again(self) -> None:
        """A new process is awake: it has looked at no folder yet."""
        self.hooks = self.app.hooks()

    # ---- what agents do

    def hook(self, agent: str, event: str, cwd: Path, **payload: Any) -> dict[str, Any]:
        """A record in the spool, as the hook script leaves it."""
        self.clock.advance(1)
        data = json.dumps({"hook_event_name": event, "cwd": str(cwd), **payload}).encode()
        record = record_of(data, agent, "")
        assert record is not None
        record["at_ns"] = self.clock.now_us() * 1_000
        record["name"] = append(str(self.home), record, durable=False)
        return record

    def start(self, agent: str, session: str, cwd: Path, source: str = "startup") -> str:
        """A session starts, gets its context, and shows it."""
        return self._asked(self.hook(agent, "SessionStart", cwd, session_id=session, source=source))

    def prompt(self, agent: str, session: str, cwd: Path, text: str, **more: Any) -> str:
        event = PROMPTS.get(agent, "UserPromptSubmit")
        return self._asked(self.hook(agent, event, cwd, session_id=session, prompt=text, **more))

    def _asked(self, record: dict[str, Any]) -> str:
        name = record.pop("name")
        answer = self.run(self.hooks.answer({"hook": record, "name": name, "budget_ms": 10_000}))
        if answer["offer"]:
            kept: dict[str, Any] = {
                name: record[name] for name in ("format", "agent", "cwd", "place") if name in record
            }
            told = {"event": "shown", "at_ns": record["at_ns"] + 1, "offer": answer["offer"]}
            append(
                str(self.home), {**kept, **told, "session": record["payload"]["session_id"]}, durable=False, number=1
            )
        return str(answer["text"])

    def edit(self, agent: str, session: str, cwd: Path, path: str, id_: str = "") -> None:
        self.hook(
            agent, "PostToolUse", cwd, session_id=session, tool_name="Edit", tool_use_id=id_ or f"{session}-{path}",
            tool_input={"file_path": path, "old_string": "1", "new_string": "2"}, tool_response={"filePath": path},
        )  # fmt: skip

    def work(self, agent: str, session: str, cwd: Path, goal: str = "Fix the failing login test") -> None:
        """A session that asked, edited, said how it stands, and ended."""
        self.hook(agent, "SessionStart", cwd, session_id=session, source="startup")
        self.hook(agent, PROMPTS.get(agent, "UserPromptSubmit"), cwd, session_id=session, prompt=goal)
        self.edit(agent, session, cwd, "src/login.py")
        self.hook(agent, "Stop", cwd, session_id=session, last_assistant_message=f"Done so far: {goal}.")
        self.hook(agent, "SessionEnd", cwd, session_id=session, reason="other")
        self.settle()

    # ---- what happens meanwhile

    def settle(self, seconds: float = 5) -> None:
        """The spool is drained, and what is due is done."""
        self.run(self.hooks.drain(60))
        self.clock.advance(seconds)
        self.run(self._work())

    async def _work(self) -> None:
        while await self.runner.step():
            await self.runner.drain_started()

    # ---- what is known

    def service(self, cwd: Path) -> LocalService:
        """Of the project that a folder belongs to."""
        from everkept.capture.identity import look_at, with_root

        found = self.run(self.app.parts.store.read(find_by_signs, with_root(look_at(cwd)).signs()))
        assert found is not None
        return LocalService(self.app.parts, found.project)

    def page(self, cwd: Path, title: str, body: str, kind: str = "note") -> KnowledgePage:
        page = self.run(self.service(cwd).write_page(title, body, kind=kind))
        self.settle()
        return page

    def rows(self, statement: str, **params: Any) -> list[tuple[Any, ...]]:
        from sqlalchemy import text

        return [tuple(row) for row in self.run(self.app.parts.store.read(lambda c: c.rows(text(statement), params)))]

    def project_of(self, session: str) -> str:
        [(name,)] = self.rows("select p.name from sessions s join projects p on p.id = s.project_id where"
                              " s.native_id = :native or s.native_id like :native || '@%'", native=session)  # fmt: skip
        return str(name)


@contextmanager
def a_desk(home: Path, **settings: Any) -> Iterator[Desk]:
    desk = Desk(home, **settings)
    try:
        yield desk
    finally:
        desk.close()


def a_checkout(top: Path, *, remote: str = "https://example.com/acme/app", branch: str = "main") -> Path:
    """A folder that git's files call a checkout; no git is needed."""
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (top / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    return top


def a_worktree(top: Path, of: Path, *, branch: str) -> Path:
    """Another worktree of the checkout `of`."""
    own = of / ".git" / "worktrees" / top.name
    own.mkdir(parents=True)
    (own / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (own / "commondir").write_text("../..\n")
    top.mkdir()
    (top / ".git").write_text(f"gitdir: {own}\n")
    return top
