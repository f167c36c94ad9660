"""Scenarios of merges: a project with something of every kind becomes part of another one that has the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from everkept.capture.agents.keeping import prepare, session_mark
from everkept.domain.erase import ProjectTarget, StreamTarget
from everkept.domain.pages import PageText
from everkept.prove.scenario import Scenario
from everkept.prove.scenarios_agents import AGENT, call, do, edit, prompt
from everkept.prove.scenarios_reviews import BY_MODEL
from everkept.prove.stage import Stage
from everkept.store.erase import erase
from everkept.store.merge import begin_merge
from everkept.store.pages import NewPage, write_page
from everkept.store.projects import add_key, ensure_project, get_project
from everkept.store.session_keys import NewSessionEvent
from everkept.store.sessions import SessionBatch, SessionHeader, append_session, end_session, find_native_session
from everkept.store.webhooks import NewWebhook, add_webhook
from everkept.store.workstreams import ensure_workstream, select_workstream

OLD: Final = "old"
NEW: Final = "new"
_SECRETS: Final = {OLD: bytes(range(32, 64)), NEW: bytes(range(64, 96))}
_BOTH: Final = (OLD, NEW)


def _session(s: Stage, project: str, session: str, goal: str) -> None:
    """A command failed, and another did what it was for; then it ends."""
    events = (
        prompt(session, goal, f"{session}-p"),
        call(session, f"{session}-a", "npm test", outcome="failed", exit_code=1, output="Error: use pnpm, not npm"),
        call(session, f"{session}-b", "pnpm test", outcome="ok", exit_code=0, output="12 passed"),
        edit(session, f"{session}-e", f"src/{session}.py"),
    )
    row = s.read(get_project, project)
    ready: tuple[NewSessionEvent, ...] = prepare(events, secret=row.secret, now_us=s.clock.now_us())
    batch = SessionBatch(
        project=row.id, base=s.settings, events=ready, mark=session_mark(AGENT, session, row.secret),
        header=SessionHeader(agent=AGENT, native=session, origin="hook", worktree="/code/app", branch="main"),
    )  # fmt: skip
    s.write(append_session, batch)
    found = s.read(find_native_session, row.id, session)
    assert found is not None
    s.write(end_session, found)
    s.drain()


def _page(s: Stage, project: str, slug: str, body: str, kind: str = "note", **more: Any) -> None:
    text = PageText(title=slug.title(), body=body)
    number = s.project_id(project)
    s.write(write_page, NewPage(project=number, kind=kind, slug=slug, text=text, author="hand", **more))


def _of_every_kind(s: Stage) -> None:
    """Both projects have the same names for other things; the source has been reviewed once, and has work to do."""
    for project in _BOTH:
        s.write(ensure_project, project, _SECRETS[project])
        s.add("chat", f"I live in {project}", "I have a boat", key=f"{project}-chat", project=project)
        s.end("chat", project=project)
        s.remember(f"Ana's office is in {project}", predicate="office", thing=project, project=project)
        s.remember(f"Ana owns {project}", project=project)
        _page(s, project, "setup", f"How {project} is set up")
        _page(s, project, "same", "Word for word")
        _page(s, project, "focus", f"The {project} harbour", kind="slot")
        _page(s, project, "rules", "From one file", source="CLAUDE.md")
        _session(s, project, "one", "Run the tests and mend the login")
        _session(s, project, f"of-{project}", "And now the docs")
        number = s.project_id(project)
        s.write(add_webhook, number, NewWebhook(name="crm", url="https://crm.example", secret="s" * 32))
        line = s.write(ensure_workstream, number, "login")
        s.write(select_workstream, number, line.id, "/code/app")
        s.clock.advance(60)
    s.write(add_key, s.project_id(OLD), "laptop", b"hash")
    s.drain(idle_s=600)
    for n in range(3):
        s.add("late", f"Not yet in any window {n}", key=f"late-{n}", project=OLD)
    s.add("only-old", "The lighthouse is red", subject="ben", key="only", project=OLD)


def _merge(s: Stage) -> None:
    sql = "select count(*) from projects where merged_into is not null"
    do(s, "merge", lambda: s.write(begin_merge, OLD, NEW), sql=sql, after=1)
    s.drain(idle_s=60)


def _merged(s: Stage) -> None:
    _of_every_kind(s)
    s.write(begin_merge, OLD, NEW)
    s.drain(idle_s=60)


def _erase_target(s: Stage) -> None:
    """A session goes, which the merge had to call otherwise. Whoever then erases the target erases the source too."""
    number = s.project_id(NEW)
    renamed = "select id from streams where kind = 'session' and name like '%~old'"
    sql = "select count(*) from erasures where kind = 'stream'"
    session = StreamTarget(stream=int(s.value(renamed)))
    do(s, "erase", lambda: s.write(erase, number, session), sql=sql, after=1)
    s.drain()

    def of_both(project: str, work: Callable[[], Any]) -> Any:
        return s.asking(
            "erase", work, lambda found: {"erasure": found.id}, project=project, kind="project", name=None, seq=None
        )

    of_both(OLD, lambda: of_both(NEW, lambda: s.write(erase, number, ProjectTarget())))
    s.drain()


MERGE_SCENARIOS: Final = (
    Scenario(name="project-merged", prepare=_of_every_kind, act=_merge, cast=BY_MODEL),
    Scenario(name="erase-merged-project", prepare=_merged, act=_erase_target, cast=BY_MODEL),
)
