"""Sessions of coding agents: kept once whatever the way in, digested when a stretch ends, erased with all that rests on
them (G2, G5, G10, G11; D07, E03, H03, H06)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.contract.test_erase import SECRET, SETTINGS, World, lease_of

from everkept.capture.agents.keeping import prepare, session_mark
from everkept.derive.digest_session import make_digest
from everkept.domain.erase import EventTarget, StreamTarget, SubjectTarget
from everkept.domain.pages import PageText
from everkept.domain.session import AgentEvent, Source, ToolCall, natural_key
from everkept.errors import Conflict, SubjectMoved
from everkept.store.aliases import resolve
from everkept.store.digests import digest_input, events_of_session, write_digest
from everkept.store.handoffs import acknowledge_handoff, choose_handoff, list_handoffs
from everkept.store.offers import Receiver, current_epoch, make_offer, note_shown, note_taken_up, offers_to
from everkept.store.pages import NewPage, delete_page, find_page, get_page, list_pages, page_history, write_page
from everkept.store.sessions import (
    SessionAppended,
    SessionBatch,
    SessionHeader,
    append_session,
    end_session,
    find_native_session,
    list_sessions,
    undigested_sessions,
)


class Agents(World):
    """The world of erasing, with coding agents at work in it."""

    def told(
        self, session: str, *events: AgentEvent, worktree: str | None = "/code/app", branch: str | None = "main",
        ended: bool = False, parent: str | None = None, agent: str = "claude-code",
    ) -> SessionAppended:  # fmt: skip
        header = SessionHeader(
            agent=agent, native=session, origin="hook", worktree=worktree, branch=branch, parent=parent
        )
        ready = prepare(events, secret=SECRET, now_us=self.clock.now_us())
        mark = session_mark(agent, session, SECRET)
        batch = SessionBatch(project=self.project, header=header, events=ready, base=SETTINGS, mark=mark, ended=ended)
        return self.store.write_now(append_session, batch)

    def work(self, session: str, goal: str = "Fix the failing login test", **kw: Any) -> SessionAppended:
        """A session that asked, failed, edited and came out well."""
        return self.told(
            session,
            prompt(session, goal),
            call(session, f"{session}-1", "pytest -q", outcome="failed", exit_code=1, output="E   assert 401 == 200"),
            edit(session, f"{session}-2", "src/login.py"),
            call(session, f"{session}-3", "pytest -q", outcome="ok", exit_code=0, output="12 passed"),
            said(session, "The login test passes now. Next I would update the docs."),
            ended=True, **kw,
        )  # fmt: skip

    def session(self, native: str) -> Any:
        found = self.store.read_now(find_native_session, self.project, native)
        assert found is not None
        return found

    def pages(self) -> list[str]:
        return [p.slug for p in self.store.read_now(list_pages, self.project)]

    def handoffs(self, state: str | None = None) -> list[Any]:
        return self.store.read_now(lambda conn: list_handoffs(conn, self.project, state=state))

    def events(self, session: str) -> list[tuple[str, str]]:
        stream = self.session(session).stream
        return self.rows("select role, content from events where stream_id = :s and erased_at is null order by seq",
                         s=stream)  # fmt: skip


def prompt(session: str, text: str, *, source: Source = "transcript", id_: str | None = None, at: int | None = None,
           agent: str = "claude-code", genuine: bool = True) -> AgentEvent:  # fmt: skip
    key = natural_key(agent, id_, session=session, role="prompt", text=text) if id_ is None else natural_key(agent, id_)
    return AgentEvent(kind="prompt", agent=agent, session=session, key=key, source=source, text=text,
                      occurred_at_us=at, genuine=genuine)  # fmt: skip


def said(session: str, text: str) -> AgentEvent:
    key = natural_key("claude-code", None, session=session, role="said", text=text)
    return AgentEvent(kind="said", agent="claude-code", session=session, key=key, source="transcript", text=text)


def call(session: str, id_: str, command: str, *, source: Source = "transcript", **outcome: Any) -> AgentEvent:
    return AgentEvent(
        kind="tool", agent="claude-code", session=session, key=natural_key("claude-code", id_), source=source,
        tool=ToolCall(name="Bash", family="shell", command=command, **outcome),
    )  # fmt: skip


def edit(session: str, id_: str, path: str) -> AgentEvent:
    return AgentEvent(
        kind="tool", agent="claude-code", session=session, key=natural_key("claude-code", id_), source="transcript",
        tool=ToolCall(name="Edit", family="edit", paths=(path,), changes=((path, "edited"),), outcome="ok"),
    )  # fmt: skip


def boundary(session: str, kind: Any, id_: str) -> AgentEvent:
    return AgentEvent(kind=kind, agent="claude-code", session=session, key=natural_key("claude-code", id_),
                      source="hook")  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path / "memory.db")
    yield made
    made.store.close()


# ---- kept once


def test_the_same_events_are_kept_once_however_often_they_are_told(world: Agents) -> None:
    first = world.work("s1")
    again = world.work("s1")
    assert (first.stored, again.stored, again.revised, again.known) == (5, 0, 0, 5)
    assert len(world.events("s1")) == 5


def test_a_transcript_completes_a_call_that_a_hook_announced(world: Agents) -> None:
    world.told("s1", prompt("s1", "run it"), call("s1", "c1", "make", source="hook", ended=False))
    told = world.told("s1", call("s1", "c1", "make", outcome="ok", exit_code=0, output="built"))
    assert (told.stored, told.revised) == (0, 1)
    poorer = world.told("s1", call("s1", "c1", "make", source="hook", ended=False))
    assert (poorer.stored, poorer.revised, poorer.known) == (0, 0, 1)
    read = world.store.read_now(events_of_session, world.session("s1"))
    assert [(e.seq, e.event.kind) for e in read] == [(1, "prompt"), (2, "tool")]
    assert read[1].event.tool is not None
    assert read[1].event.tool.output == "built"


def test_a_prompt_told_by_hook_and_transcript_is_one(world: Agents) -> None:
    at = world.clock.now_us()
    world.told("s1", prompt("s1", "add a test", source="hook", at=at))
    told = world.told("s1", prompt("s1", "add a  test", id_="uuid-1", at=at + 3_000_000))
    assert (told.stored, told.known) == (0, 1)
    assert world.told("s1", prompt("s1", "add a  test", id_="uuid-1", at=at + 3_000_000)).known == 1
    later = world.told("s1", prompt("s1", "add a test", id_="uuid-2", at=at + 60_000_000))
    assert later.stored == 1, "the same words a minute later are said again"
    assert [role for role, _ in world.events("s1")] == ["user", "user"]


def test_the_same_hook_fired_by_two_agents_is_one_prompt(world: Agents) -> None:
    at = world.clock.now_us()
    world.told("s1", prompt("s1", "go on", source="hook", at=at))
    again = AgentEvent(kind="prompt", agent="claude-code", session="s1", key=natural_key("claude-code", "other"),
                       source="hook", text="go on", occurred_at_us=at + 500_000)  # fmt: skip
    assert world.told("s1", again).known == 1


def test_a_resumed_session_adds_only_what_is_new(world: Agents) -> None:
    world.work("s1")
    events = [call("s2", "s1-1", "pytest -q", outcome="failed", exit_code=1, output="E   assert 401 == 200"),
              prompt("s2", "and now the docs", id_="new")]  # fmt: skip
    told = world.told("s2", *events)
    assert (told.stored, told.known) == (1, 1)
    assert told.elsewhere == {world.session("s1").stream}
    assert [content for _, content in world.events("s2")] == ["and now the docs"]


def test_a_file_of_another_session_alone_makes_no_session(world: Agents) -> None:
    world.work("s1")
    told = world.told("copy", call("copy", "s1-1", "pytest -q"))
    assert told.stream is None
    assert [s.native for s in world.store.read_now(list_sessions, world.project)] == ["s1"]


# ---- digested


def test_the_end_of_a_session_makes_page_handoff_and_number_in_one_commit(world: Agents) -> None:
    world.work("s1")
    world.drain()
    session = world.session("s1")
    assert session.finished_seq == 1
    page = world.store.read_now(get_page, world.project, session.page)
    assert page.kind == "session"
    for word in ("Fix the failing login test", "src/login.py", "pytest", "401"):
        assert word in page.body
    [handoff] = world.handoffs("open")
    assert "update the docs" in handoff.body
    kinds = [r[0] for r in world.rows("select kind from changes order by seq")]
    assert kinds.count("session.digested") == kinds.count("page.written") == kinds.count("handoff.left") == 1


def test_digesting_again_without_anything_new_changes_nothing(world: Agents) -> None:
    world.work("s1")
    world.drain()
    before = world.rows("select seq, kind from changes order by seq")
    world.work("s1")
    world.drain(seconds=4000)
    assert world.rows("select seq, kind from changes order by seq") == before
    assert world.session("s1").finished_seq == 1


def test_a_digest_of_the_same_content_takes_no_number(world: Agents) -> None:
    """What came after it says nothing that the digest tells: a notification, and the end once more."""
    world.work("s1")
    world.drain()
    world.told("s1", boundary("s1", "notification", "n1"), boundary("s1", "session_end", "e2"))
    world.drain()
    session = world.session("s1")
    assert session.digested_seq == session.last_seq == 7
    assert session.finished_seq == 1
    assert world.store.read_now(get_page, world.project, session.page).version == 1


def test_a_session_that_goes_on_is_digested_again_under_a_new_number(world: Agents) -> None:
    world.work("s1")
    world.drain()
    world.told(
        "s1", prompt("s1", "now write the docs, please", id_="p2"), edit("s1", "e2", "docs/login.md"), ended=True
    )
    world.drain()
    session = world.session("s1")
    assert session.finished_seq == 2
    page = world.store.read_now(get_page, world.project, session.page)
    assert page.version == 2
    assert "docs/login.md" in page.body
    assert [h.state for h in world.handoffs()] == ["open", "replaced"]
    windows = world.rows("select start_seq, end_seq from windows order by id")
    assert windows == [(1, 5), (6, 7)]


def test_a_session_without_an_end_is_ended_by_idleness(world: Agents) -> None:
    world.told("s1", prompt("s1", "x" * 500))
    world.drain(seconds=60)
    assert world.session("s1").digested_seq == 0
    world.drain(seconds=1900)
    assert world.session("s1").digested_seq == 1


def test_the_start_of_another_session_ends_the_one_before_it_within_minutes(world: Agents) -> None:
    world.told("s1", prompt("s1", "x" * 500))
    world.told("s2", prompt("s2", "hello"))
    world.drain(seconds=130)
    assert world.session("s1").digested_seq == 1
    assert world.session("s2").digested_seq == 0


def test_a_phantom_makes_no_page_and_uses_nothing_up(world: Agents) -> None:
    world.told("s1", boundary("s1", "session_start", "a"), boundary("s1", "session_end", "b"))
    world.drain()
    session = world.session("s1")
    assert session.phantom
    assert world.pages() == []
    assert session.finished_seq is None


def test_a_trivial_session_makes_no_page_and_stays_searchable(world: Agents) -> None:
    world.told("s1", prompt("s1", "what is a zorblax?"), said("s1", "No idea."), ended=True)
    world.drain()
    assert world.pages() == []
    assert world.session("s1").trivial_because is not None
    assert set(world.found("zorblax")) == {"turn"}


def test_a_sub_agent_is_told_of_in_its_parents_page(world: Agents) -> None:
    world.work("s1")
    world.drain()
    world.told("sub", prompt("sub", "look into the docs", genuine=False), edit("sub", "x1", "docs/deep.md"),
               parent="s1", ended=True)  # fmt: skip
    world.drain()
    assert "docs/deep.md" in world.store.read_now(get_page, world.project, world.session("s1").page).body
    assert len(world.pages()) == 1


def test_a_late_import_does_not_replace_a_later_handoff(world: Agents) -> None:
    world.work("new")
    world.drain()
    old = prompt("old", "something of last year " * 30, at=1_700_000_000_000_000)
    world.told("old", old, ended=True)
    world.drain()
    assert [h.native for h in world.handoffs("open")] == ["new"]
    assert {h.native: h.state for h in world.handoffs()} == {"new": "open", "old": "replaced"}


# ---- offers


def test_an_offer_is_taken_up_by_work_and_by_nothing_else(world: Agents) -> None:
    world.work("s1")
    world.drain()
    [handoff] = world.handoffs("open")
    receiver = Receiver(agent="claude-code", native="s2")
    offer = world.store.write_now(
        lambda conn: make_offer(
            conn, world.project, receiver, handoff=handoff.id, items=[f"hnd_{handoff.id}"], body="b"
        )
    )
    stream = world.told("s2", boundary("s2", "session_start", "st")).stream
    world.store.write_now(note_shown, world.project, offer.id)

    def taken_up() -> int:
        return world.store.write_now(note_taken_up, world.project, stream, "claude-code", "s2")

    assert taken_up() == 0
    world.told("s2", boundary("s2", "compaction", "c"), boundary("s2", "session_end", "e"))
    assert taken_up() == 0, "a session that did nothing uses nothing up"
    world.told("s2", prompt("s2", "go on with it", id_="p"))
    assert taken_up() == 0, "a prompt alone is no work yet"
    world.told("s2", call("s2", "t1", "ls", outcome="ok"))
    assert taken_up() == 1
    assert [h.state for h in world.handoffs()] == ["acknowledged"]
    assert world.handoffs()[0].acknowledged_by == "claude-code/s2"


def test_the_same_offer_again_is_the_same_and_another_epoch_another(world: Agents) -> None:
    def offer(epoch: int) -> int:
        to = Receiver(agent="codex", native="n", epoch=epoch)
        return world.store.write_now(
            lambda conn: make_offer(conn, world.project, to, handoff=None, items=["pag_1@1"], body="text").id
        )

    assert offer(0) == offer(0)
    assert offer(1) != offer(0)
    assert world.store.read_now(current_epoch, world.project, "codex", "n") == 1
    assert len(world.store.read_now(offers_to, world.project, Receiver(agent="codex", native="n", epoch=1))) == 1


def test_the_right_handoff_among_worktrees_is_chosen(world: Agents) -> None:
    world.work("a", worktree="/code/a", branch="main")
    world.clock.advance(1)
    world.work("b", worktree="/code/b", branch="feature")
    world.drain()

    def choose(worktree: str, branch: str) -> tuple[str | None, str]:
        choice = world.store.read_now(lambda c: choose_handoff(c, world.project, worktree=worktree, branch=branch))
        return (None if choice.chosen is None else choice.chosen.native), choice.because

    assert choose("/code/a", "feature") == ("a", "left in this worktree")
    assert choose("/code/c", "main") == ("a", "left on this branch")
    assert choose("/code/c", "other") == ("b", "the newest of this project")
    for handoff in world.handoffs("open"):
        assert world.store.write_now(acknowledge_handoff, world.project, handoff.id, "x")
        assert not world.store.write_now(acknowledge_handoff, world.project, handoff.id, "y")
    assert choose("/code/a", "main") == (None, "no handoff is open")


# ---- pages


def page(slug: str, body: str, **kw: Any) -> Any:
    given = {"kind": "note", "author": "hand", "title": slug.title()} | kw
    title = given.pop("title")
    return lambda world: NewPage(project=world.project, slug=slug, text=PageText(title=title, body=body), **given)


def test_a_page_keeps_every_version_and_writes_none_for_the_same_text(world: Agents) -> None:
    for body in ("one", "two", "two"):
        world.store.write_now(write_page, page("p", body)(world))
    found = world.store.read_now(get_page, world.project, "p")
    assert (found.version, found.body) == (2, "two")
    assert [v.body for v in world.store.read_now(page_history, found.id)] == ["two", "one"]
    assert [v.body for v in world.store.read_now(page_history, found.id, 1)] == ["two"]
    assert [v.body for v in world.store.read_now(page_history, found.id, 50, 2)] == ["one"]


def test_writing_on_an_old_version_is_a_conflict_and_nothing_is_lost(world: Agents) -> None:
    for body in ("one", "two"):
        world.store.write_now(write_page, page("p", body)(world))
    with pytest.raises(Conflict, match="version 2"):
        world.store.write_now(write_page, page("p", "mine", base=1)(world))
    assert world.store.read_now(get_page, world.project, "p").body == "two"


def test_a_page_may_supersede_another_one_also_without_a_new_text(world: Agents) -> None:
    for slug in ("old", "new"):
        world.store.write_now(write_page, page(slug, "text")(world))
    world.store.write_now(write_page, page("new", "text", supersedes="old")(world))
    assert world.pages() == ["new"]


def test_sections_are_found_and_those_that_stay_keep_their_passages(world: Agents) -> None:
    world.store.write_now(write_page, page("p", "# Deploy\nuse quokka\n# Test\nuse wombat")(world))
    before = dict(world.rows("select ref_id, id from passages where kind = 'page'"))
    assert world.found("quokka") == ["page"]
    world.store.write_now(write_page, page("p", "# Deploy\nuse numbat\n# Test\nuse wombat")(world))
    assert world.found("quokka") == []
    assert world.found("wombat") == ["page"]
    after = dict(world.rows("select ref_id, id from passages where kind = 'page'"))
    assert len(before.items() & after.items()) == 1


def test_a_page_of_another_title_is_found_by_it_and_by_the_old_one_no_more(world: Agents) -> None:
    world.store.write_now(write_page, page("p", "# X\nsame text", title="Quokka")(world))
    world.store.write_now(write_page, page("p", "# X\nsame text", title="Numbat")(world))
    assert (world.found("quokka"), world.found("numbat")) == ([], ["page"])


@pytest.mark.parametrize("author", ["digest", "import", "distiller"])
def test_e03_what_a_person_deleted_is_not_written_again_by_itself(world: Agents, author: str) -> None:
    world.store.write_now(write_page, page("p", "one", source="file:CLAUDE.md", author=author)(world))
    world.store.write_now(delete_page, world.project, "p")
    assert world.found("one") == []
    assert world.store.write_now(write_page, page("p", "two", source="file:CLAUDE.md", author=author)(world)) is None
    assert world.pages() == []
    back = world.store.write_now(write_page, page("p", "three")(world))
    assert back is not None
    assert back.version == 2, "by hand it may come back"


# ---- erased


def test_an_erased_event_leaves_no_word_in_page_handoff_or_offer(world: Agents) -> None:
    world.told("s1", prompt("s1", "rename the Zorblax module, it is about quokkas", id_="p"),
               prompt("s1", "and keep the rest", id_="p2"), edit("s1", "e1", "src/kept.py"), said("s1", "Done."),
               ended=True)  # fmt: skip
    world.drain()
    stream = world.session("s1").stream
    [handoff] = world.handoffs()
    receiver = Receiver(agent="codex", native="n")
    world.store.write_now(lambda c: make_offer(
        c, world.project, receiver, handoff=handoff.id, items=[f"hnd_{handoff.id}"], body="about Zorblax"))  # fmt: skip
    world.erased(EventTarget(stream=stream, seq=1))
    assert world.kept("zorblax", "quokkas") == []
    assert world.residue(EventTarget(stream=stream, seq=1)) == 0
    assert "src/kept.py" in world.store.read_now(get_page, world.project, world.session("s1").page).body
    told = world.told("s1", prompt("s1", "rename the Zorblax module, it is about quokkas", id_="p"))
    assert told.stored == told.revised == 0, "a re-import stays out"


def test_an_erased_event_takes_its_other_tellings_with_it(world: Agents) -> None:
    world.told("s1", prompt("s1", "run"), call("s1", "c1", "deploy zorblax", source="hook", ended=False))
    world.told("s1", call("s1", "c1", "deploy zorblax", outcome="ok", output="fine"))
    world.erased(EventTarget(stream=world.session("s1").stream, seq=3))
    assert world.kept("zorblax") == []


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_sub_agent_did_leaves_its_parents_page_when_it_is_erased(world: Agents, *, whole: bool) -> None:
    world.work("s1")
    world.told("sub", prompt("sub", "look into it", genuine=False), edit("sub", "x1", "docs/zorblax.md"), parent="s1",
               ended=True)  # fmt: skip
    world.drain()
    assert "docs/zorblax.md" in world.store.read_now(get_page, world.project, world.session("s1").page).body
    stream = world.session("sub").stream
    world.erased(StreamTarget(stream=stream) if whole else EventTarget(stream=stream, seq=2))
    assert world.kept("zorblax") == []
    again = world.store.read_now(get_page, world.project, world.session("s1").page).body
    assert "src/login.py" in again
    assert "zorblax" not in "".join(h.body for h in world.handoffs())


def test_an_erased_session_is_gone_and_stays_out(world: Agents) -> None:
    world.work("s1", goal="teach the Zorblax to dance")
    world.drain()
    stream = world.session("s1").stream
    world.erased(StreamTarget(stream=stream))
    assert world.kept("zorblax") == []
    assert world.residue(StreamTarget(stream=stream)) == 0
    assert world.pages() == []
    assert world.handoffs() == []
    assert world.work("s1", goal="teach the Zorblax to dance").stored == 0


def test_an_erased_session_stays_out_also_under_keys_that_nobody_knew(world: Agents) -> None:
    world.told("s1", prompt("s1", "teach the zorblax", source="hook"))
    world.erased(StreamTarget(stream=world.session("s1").stream))
    told = world.told("s1", prompt("s1", "teach the zorblax", id_="u1"), said("s1", "the zorblax dances"))
    assert (told.stored, told.stream) == (0, None)
    assert world.kept("zorblax") == []


def test_an_erased_prompt_of_a_hook_stays_out_when_the_transcript_tells_it(world: Agents) -> None:
    at = world.clock.now_us()
    later = prompt("s1", "and more", id_="p2", at=at + 60_000_000)
    world.told("s1", prompt("s1", "teach the zorblax", source="hook", at=at), later)
    world.erased(EventTarget(stream=world.session("s1").stream, seq=1))
    told = world.told("s1", prompt("s1", "teach the zorblax", id_="u1", at=at + 1_000_000))
    assert told.stored == told.revised == 0


def test_a_later_telling_of_an_erased_one_stays_out(world: Agents) -> None:
    world.told("s1", prompt("s1", "run"), call("s1", "c1", "deploy zorblax", source="hook", ended=False))
    world.told("s1", call("s1", "c1", "deploy zorblax", outcome="ok", output="fine"))
    world.erased(EventTarget(stream=world.session("s1").stream, seq=2))
    told = world.told("s1", call("s1", "c1", "deploy zorblax", outcome="ok", output="fine, and longer"))
    assert told.stored == told.revised == 0
    assert world.kept("zorblax") == []


def test_a_digest_that_read_what_is_erased_is_not_written(world: Agents) -> None:
    world.work("s1", goal="teach the Zorblax to dance")
    world.drain()
    world.told("s1", prompt("s1", "one more thing", id_="p2"), edit("s1", "e9", "src/more.py"), ended=True)
    lease_of(world, "open_window")
    stream = world.session("s1").stream
    [(window,)] = world.rows("select max(id) from windows where stream_id = :s", s=stream)
    found = world.store.read_now(digest_input, window, SETTINGS)
    assert found is not None
    world.erase(EventTarget(stream=stream, seq=1))
    with pytest.raises(SubjectMoved):
        world.store.write_now(write_digest, make_digest(found))


def test_what_was_left_open_leaves_the_handoffs_that_carried_it_on(world: Agents) -> None:
    plan = AgentEvent(kind="plan", agent="claude-code", session="a", key=natural_key("claude-code", "plan"),
                      source="transcript", items=(("migrate the zorblax tables", "pending"),))  # fmt: skip
    world.told("a", prompt("a", "clean up the tables, all of them " * 20), edit("a", "a1", "a.sql"), plan, ended=True)
    world.drain()
    world.clock.advance(60)
    world.work("b")
    world.drain()
    assert "zorblax" in world.handoffs("open")[0].body
    world.erased(StreamTarget(stream=world.session("a").stream))
    assert world.kept("zorblax") == []
    assert [h.native for h in world.handoffs("open")] == ["b"]


def test_another_repository_in_the_same_folder_is_another_project(world: Agents) -> None:
    def project(*signs: tuple[str, str]) -> str:
        return world.store.write_now(resolve, signs, signs[0][1], SECRET).project.name

    here = ("common_dir", "/code/app/.git")
    assert project(("remote", "h/app"), here) == "h/app"
    assert project(("remote", "h/secret"), here) == "h/secret"
    assert project(("remote", "h/secret"), ("common_dir", "/home/u/clone/.git")) == "h/secret"
    assert project(here) == "h/secret", "the folder is that of whoever lies in it now"


def test_an_erased_subject_takes_all_sessions_and_pages(world: Agents) -> None:
    world.work("s1", goal="teach the Zorblax to dance")
    world.drain()
    world.store.write_now(write_page, page("p", "about Zorblax")(world))
    owner = world.rows("select subject_id from streams where kind = 'session'")[0][0]
    world.erased(SubjectTarget(subject=owner))
    assert world.kept("zorblax") == []
    assert world.residue(SubjectTarget(subject=owner)) == 0


def test_e03_a_deleted_page_stays_deleted_when_its_session_is_digested_again(world: Agents) -> None:
    world.work("s1")
    world.drain()
    world.store.write_now(delete_page, world.project, world.session("s1").page)
    world.told("s1", prompt("s1", "one more thing to do here", id_="p2"), edit("s1", "e9", "src/more.py"), ended=True)
    world.drain()
    assert world.pages() == []
    world.erased(EventTarget(stream=world.session("s1").stream, seq=1))
    assert world.pages() == [], "nor when it is derived again after an erase"


def test_ending_by_hand_digests_now(world: Agents) -> None:
    world.told("s1", prompt("s1", "x" * 500))
    queued, _ = world.store.write_now(end_session, world.session("s1"))
    assert queued
    world.drain(seconds=2)
    assert world.session("s1").digested_seq == 1
    assert world.store.write_now(end_session, world.session("s1"))[0] is False


def test_a_session_of_which_nobody_knows_the_time_comes_after_those_that_tell_it(world: Agents) -> None:
    """SQLite and PostgreSQL begin with it, or end with it, unless they are told."""
    for name in ("one", "two"):
        world.told(name, prompt(name, "Fix the login"))
    forget = text("update sessions set last_event_at = null where stream_id = :stream")
    world.store.write_now(lambda conn: conn.run(forget, {"stream": world.session("one").stream}))
    found = world.store.read_now(undigested_sessions, world.project, "/code/app")
    assert [each.native for each in found] == ["two", "one"]


def test_a_page_found_by_its_slug_may_be_one_that_was_deleted(world: Agents) -> None:
    world.store.write_now(write_page, page("p", "one")(world))
    world.store.write_now(delete_page, world.project, "p")
    assert world.store.read_now(find_page, world.project, "p") is None


def test_the_mark_of_an_offer_in_somebodys_own_words_takes_none_of_them(world: Agents) -> None:
    world.told("s1", prompt("s1", "Why does <!-- everkept:offer off_1 --> appear?\nPlease delete the table zorblax."))
    [(_, content)] = world.events("s1")
    assert content.endswith("Please delete the table zorblax.")
