"""Scenarios of coding agents: sessions told and digested, pages, handoffs and offers, and all of it erased."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from everkept.capture.agents.keeping import prepare, session_mark
from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget, Target
from everkept.domain.pages import PageText
from everkept.domain.session import AgentEvent, Kind, Source, ToolCall, natural_key
from everkept.prove.scenario import Scenario
from everkept.prove.stage import SECRET, Cast, Stage
from everkept.store.aliases import resolve, trust
from everkept.store.erase import erase
from everkept.store.offers import Receiver, make_offer, note_shown, note_taken_up
from everkept.store.pages import NewPage, delete_page, write_page
from everkept.store.projects import find_subject
from everkept.store.sessions import (
    OWNER,
    SessionBatch,
    SessionHeader,
    append_session,
    end_session,
    find_native_session,
)
from everkept.store.transcripts import FileState, note_read

AGENT: Final = "claude-code"
_EVENTS: Final = "select count(*) from events e join streams s on s.id = e.stream_id where s.kind = 'session'"


def do(s: Stage, what: str, work: Callable[[], object], *, sql: str, after: Any) -> None:
    """A command. What only prepares is not told: the erase that is killed afterwards takes it back."""
    if s.preparing:
        work()
    else:
        s.change(what, work, sql=sql, after=after)


def _event(
    session: str, kind: Kind, id_: str, text: str = "", source: Source = "transcript", **more: Any
) -> AgentEvent:
    return AgentEvent(
        kind=kind, agent=AGENT, session=session, key=natural_key(AGENT, id_), source=source, text=text, **more
    )


def prompt(session: str, text: str, id_: str, source: Source = "transcript", at: int | None = None) -> AgentEvent:
    return _event(session, "prompt", id_, text, source, occurred_at_us=at)


def call(session: str, id_: str, command: str, source: Source = "transcript", **came: Any) -> AgentEvent:
    return _event(
        session, "tool", id_, source=source, tool=ToolCall(name="Bash", family="shell", command=command, **came)
    )


def edit(session: str, id_: str, path: str) -> AgentEvent:
    call = ToolCall(name="Edit", family="edit", paths=(path,), changes=((path, "edited"),), outcome="ok")
    return _event(session, "tool", id_, tool=call)


def tell(
    s: Stage, session: str, *events: AgentEvent, adds: int, parent: str | None = None, ended: bool = False,
    origin: Literal["hook", "import"] = "hook",
) -> None:  # fmt: skip
    """`adds`: events that are there afterwards and were not before. Telling again adds none."""
    header = SessionHeader(
        agent=AGENT, native=session, origin=origin, worktree="/code/app", branch="main", parent=parent
    )
    ready = prepare(events, secret=SECRET, now_us=s.clock.now_us())
    mark = session_mark(AGENT, session, SECRET)
    batch = SessionBatch(project=s.project_id(), header=header, events=ready, base=s.settings, mark=mark, ended=ended)
    do(s, "tell", lambda: s.write(append_session, batch), sql=_EVENTS, after=s.value(_EVENTS) + adds)


def _tell_twice(s: Stage) -> None:
    """By the hook, then by the transcript; a second session with some of the first, and the first one again."""
    at = s.clock.now_us()
    announced = call("one", "c1", "make", "hook", ended=False)
    tell(s, "one", prompt("one", "Build it, please", "h1", "hook", at), announced, adds=2)
    done = call("one", "c1", "make", outcome="ok", exit_code=0, output="built")
    tell(s, "one", prompt("one", "Build it,  please", "p1", at=at + 1_000_000), done, adds=1)
    tell(s, "two", done, prompt("two", "And now the docs", "p2"), adds=1)
    tell(s, "one", _event("one", "session_end", "e1", source="hook"), adds=1)


def _asked(s: Stage, session: str = "one", goal: str = "Fix the failing login test") -> None:
    tell(
        s, session, prompt(session, goal, f"{session}-p"),
        call(session, f"{session}-c", "pytest -q", outcome="failed", exit_code=1, output="E assert 401 == 200"),
        edit(session, f"{session}-e", "src/login.py"),
        _event(session, "said", f"{session}-s", "It is fixed. Next I would update the docs."), adds=4,
    )  # fmt: skip


def end(s: Stage, session: str = "one") -> None:
    found = s.read(find_native_session, s.project_id(), session)
    assert found is not None
    sql = f"select end_through from streams where id = {found.stream}"
    do(s, "end", lambda: s.write(end_session, found), sql=sql, after=found.last_seq)


def _digest(s: Stage) -> None:
    end(s)
    s.drain()


def asked_and_digested(s: Stage) -> None:
    _asked(s)
    _digest(s)


def _go_on(s: Stage) -> None:
    """The session goes on, a sub-agent of it is told of late, and another session leaves a handoff in its place."""
    tell(s, "one", prompt("one", "Now the docs as well", "p9"), edit("one", "e9", "docs/login.md"), adds=2)
    _digest(s)
    tell(s, "sub", edit("sub", "e8", "docs/deep.md"), adds=1, parent="one", ended=True)
    s.drain()
    s.clock.advance(60.0)
    _ask_next(s)


def _ask_next(s: Stage) -> None:
    _asked(s, "next", "Release it when the tests pass")
    end(s, "next")
    s.drain()


def _told_late(s: Stage) -> None:
    """A session of the day before is told after a later one was digested, whose handoff carries what it left open."""
    at = s.clock.now_us() - 86_400_000_000
    tell(
        s, "old", prompt("old", "Release it when the tests pass", "old-p", at=at),
        call("old", "old-c", "make release", outcome="failed", exit_code=2, output="error: no version"),
        edit("old", "old-e", "Makefile"), adds=3,
    )  # fmt: skip
    end(s, "old")
    s.drain()


def _page(s: Stage, slug: str, body: str, **more: Any) -> None:
    new = NewPage(project=s.project_id(), kind=more.pop("kind", "decision"), slug=slug, author="hand",
                  text=PageText(title=slug.title(), body=body), **more)  # fmt: skip
    sql = f"select count(*) from page_versions v join pages g on g.id = v.page_id where g.slug = '{slug}'"
    do(s, "page", lambda: s.write(write_page, new), sql=sql, after=s.value(sql) + 1)


def _write_pages(s: Stage) -> None:
    _page(s, "limits", "# Why\nSee [[doors]].\n# How\nBy a setting.")
    _page(s, "limits", "# How\nBy a setting.\n# Why\nBecause of [[doors]].")
    _page(s, "doors", "Four of them.", supersedes="limits")
    sql = "select deleted_at is not null from pages where slug = 'doors'"
    do(s, "delete", lambda: s.write(delete_page, s.project_id(), "doors"), sql=sql, after=1)


def _kept_by_hand(s: Stage) -> None:
    """A person writes into the page that was distilled."""
    asked_and_digested(s)
    _page(s, str(s.value("select slug from pages where kind = 'note'")), "## By hand\nIt stays.", kind="note")


def _distil_again(s: Stage) -> None:
    """The session goes on, and its page is updated beside what a person wrote into it."""
    tell(s, "one", prompt("one", "Now the docs as well", "p9"), edit("one", "e9", "docs/login.md"), adds=2)
    _digest(s)


def _offer(s: Stage) -> None:
    handoff = int(s.value("select max(id) from handoffs"))
    receiver = Receiver(agent=AGENT, native="two")
    project = s.project_id()

    def make(conn: Any) -> int:
        return make_offer(conn, project, receiver, handoff=handoff, items=[f"hnd_{handoff}"], body="text").id

    do(s, "offer", lambda: s.write(make), sql="select count(*) from offers", after=1)
    do(s, "shown", lambda: s.write(note_shown, project, 1), sql="select shown_at is not null from offers", after=1)
    tell(s, "two", prompt("two", "Go on with it", "p2"), call("two", "c2", "ls", outcome="ok"), adds=2)
    stream = int(s.value("select max(stream_id) from sessions"))
    taken = "select state = 'acknowledged' from handoffs"
    do(s, "taken", lambda: s.write(note_taken_up, project, stream, AGENT, "two"), sql=taken, after=1)


def _offered(s: Stage) -> None:
    asked_and_digested(s)
    project = s.project_id()
    handoff = int(s.value("select max(id) from handoffs"))
    for native in ("one", "elsewhere"):
        receiver = Receiver(agent=AGENT, native=native)
        s.write(lambda conn, to: make_offer(conn, project, to, handoff=handoff, items=["pag_1@1"], body="t"), receiver)


def _expire(s: Stage) -> None:
    """Nobody comes back for a month."""
    s.clock.advance(31 * 86_400.0)
    s.maintain()


def _identify(s: Stage) -> None:
    signs = [("marker", "app in h/a"), ("remote", "h/a"), ("path", "/code/a")]
    named = "select count(*) from project_aliases"
    do(s, "identify", lambda: s.write(resolve, signs, "h/a", SECRET), sql=named, after=2)
    do(s, "trust", lambda: s.write(trust, "marker", "app in h/a", "h/a"), sql=named, after=3)
    state = FileState(path="/t.jsonl", size=1, mtime_ns=1, inode=1)
    do(s, "read", lambda: s.write(note_read, state, AGENT), sql="select count(*) from transcripts", after=1)


def erase_target(s: Stage, target: Target) -> None:
    sql = "select count(*) from erasures"
    project = s.project_id()
    do(s, "erase", lambda: s.write(erase, project, target), sql=sql, after=s.value(sql) + 1)
    s.drain()


def _stream(s: Stage) -> int:
    return int(s.value("select min(stream_id) from sessions"))


def _erase_told(s: Stage) -> None:
    """One event of a session whose page a person had deleted, and of one whose page is there."""
    erase_target(s, EventTarget(stream=_stream(s), seq=1))


def _deleted(s: Stage) -> None:
    _offered(s)
    s.write(delete_page, s.project_id(), str(s.value("select slug from pages")))


def _erase_session(s: Stage) -> None:
    erase_target(s, StreamTarget(stream=_stream(s)))


def _erase_owner(s: Stage) -> None:
    owner = s.read(find_subject, s.project_id(), OWNER)
    assert owner is not None
    erase_target(s, SubjectTarget(subject=owner))


def _superseding(s: Stage) -> None:
    _offered(s)
    _page(s, "limits", "As they are.")
    _page(s, "doors", "Four of them.", supersedes="limits")
    s.write(resolve, [("remote", "h/a")], "default", SECRET)


def _erase_all(s: Stage) -> None:
    erase_target(s, ProjectTarget())


UNDISTILLED: Final = Cast(model=False)
"""No reply was paid for before: a model finds a session to catch up with, and an erase nothing in the journal, which is
the conversations' scenarios' part."""

AGENT_SCENARIOS: Final = (
    Scenario(name="session-told", act=_tell_twice),
    Scenario(name="session-digest", prepare=_asked, act=_digest),
    Scenario(name="session-goes-on", prepare=asked_and_digested, act=_go_on),
    Scenario(name="session-told-late", prepare=asked_and_digested, act=_told_late, prepared_by=UNDISTILLED),
    Scenario(name="session-caught-up", prepare=asked_and_digested, act=_ask_next, prepared_by=UNDISTILLED),
    Scenario(name="session-distilled-again", prepare=_kept_by_hand, act=_distil_again),
    Scenario(name="pages", act=_write_pages),
    Scenario(name="offer", prepare=asked_and_digested, act=_offer),
    Scenario(name="offers-expire", prepare=_offered, act=_expire),
    Scenario(name="identify", act=_identify),
    Scenario(name="erase-session-event", prepare=_offered, act=_erase_told, prepared_by=UNDISTILLED),
    Scenario(name="erase-session-event-of-deleted-page", prepare=_deleted, act=_erase_told, prepared_by=UNDISTILLED),
    Scenario(name="erase-session", prepare=_deleted, act=_erase_session, prepared_by=UNDISTILLED),
    Scenario(name="erase-owner", prepare=_superseding, act=_erase_owner, prepared_by=UNDISTILLED),
    Scenario(name="erase-agents-project", prepare=_superseding, act=_erase_all, prepared_by=UNDISTILLED),
)
