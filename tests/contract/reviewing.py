"""Sessions that are told, digested and reviewed: the world of the tests of reviews."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from tests.contract.test_sessions import call, edit, prompt, said
from tests.factories import US, World, open_store

from everkept.capture.agents.keeping import prepare, session_mark
from everkept.domain.session import AgentEvent, Source
from everkept.models.fakes import Script
from everkept.ports.clock import VirtualClock
from everkept.store.sessions import SessionBatch, SessionHeader, append_session, end_session, find_native_session

INTERVAL_S = 300.0
AGE_S = 60.0
RULES = {
    "review__scheduler__interval_seconds": INTERVAL_S, "review__scheduler__age_min_s": AGE_S,
    "review__scheduler__duration_min_s": 0,
}  # fmt: skip


class Reviewing(World):
    """Coding agents at work in one project, and the scheduler of its reviews."""

    def __init__(self, folder: Path, *, script: Script | None = None, **overrides: Any) -> None:
        clock = VirtualClock()
        store = open_store(folder / "everkept.db", clock)
        super().__init__(store, folder / "home", clock, script=script, **{**RULES, **overrides})
        self.told_of = 0

    def shut(self) -> None:
        self.close()
        self.store.close()

    def tell(
        self, session: str, *events: AgentEvent, ended: bool = True, origin: Literal["hook", "import"] = "hook",
        parent: str | None = None,
    ) -> int:  # fmt: skip
        """Its stream."""
        header = SessionHeader(
            agent="claude-code", native=session, origin=origin, worktree=f"/code/{session}", branch="main",
            parent=parent,
        )  # fmt: skip
        secret = self.project.secret
        batch = SessionBatch(
            project=self.project.id, header=header, base=self.settings, ended=ended,
            events=prepare(events, secret=secret, now_us=self.clock.now_us()),
            mark=session_mark("claude-code", session, secret),
        )  # fmt: skip
        self.write(append_session, batch)
        return self.stream_of(session)

    def work_on(self, session: str, goal: str = "Run the tests and mend the login", **kw: Any) -> int:
        """A stretch of a session in which a command failed, and another did what it was for; its stream."""
        self.told_of += 1
        n = self.told_of
        source: Source = "transcript" if kw.get("origin") == "import" else "hook"
        failed = call(
            session, f"{n}-1", "npm test", source=source, outcome="failed", exit_code=1,
            output="Error: this workspace is run with pnpm, and not with npm",
        )  # fmt: skip
        passed = call(session, f"{n}-2", "pnpm test", source=source, outcome="ok", exit_code=0, output="12 passed")
        return self.tell(
            session, prompt(session, goal, id_=f"{n}-p", source=source), failed, passed,
            edit(session, f"{n}-3", f"src/login{n}.py"), said(session, f"Done {n}."), **kw,
        )  # fmt: skip

    def digested(self, session: str, **kw: Any) -> int:
        """A stretch, and its digest, without any time going by; its stream."""
        stream = self.work_on(session, **kw)
        self.run_until_idle()
        return stream

    def live(self, seconds: float, *, every: float = 30.0, maintain: bool = True) -> int:
        """In coarser steps than elsewhere: nothing of a review is due within less."""
        return super().live(seconds, every=every, maintain=maintain)

    def stream_of(self, session: str) -> int:
        found = self.read(find_native_session, self.project.id, session)
        assert found is not None
        return found.stream

    def end_now(self, session: str) -> None:
        found = self.read(find_native_session, self.project.id, session)
        assert found is not None
        self.write(end_session, found)

    def states(self, kind: str | None = None) -> Any:
        """Of the generations, by number."""
        return dict(self.rows("select seq, state from generations")) if kind is None else super().states(kind)

    def watermark(self) -> int:
        return int(self.value("select watermark from review_states where project_id = ?", self.project.id))

    def reviews(self) -> int:
        return int(self.value("select count(*) from reviews where completed_at is not null"))

    def scheduler_in_s(self) -> float:
        """When it looks next, from now."""
        row = self.job(str(self.project.id), "schedule_reviews")
        assert row["state"] in ("waiting", "ready"), row["state"]
        return float(row["due_at"])

    def moved_us(self, seconds: float) -> int:
        return self.clock.now_us() + int(seconds * US)
