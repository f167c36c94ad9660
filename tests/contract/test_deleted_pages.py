"""What a person deleted stays deleted after an erase too, what had been superseded by it is current again, and an erase
takes a session in short bits (E03, G10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.contract.test_erase import lease_of
from tests.contract.test_sessions import call, prompt, said
from tests.contract.test_wiki import Wikis

from everkept.domain.erase import EventTarget, StreamTarget, SubjectTarget
from everkept.domain.ids import ProjectId
from everkept.domain.pages import PageText
from everkept.domain.scope import Scope
from everkept.store.connection import Connection
from everkept.store.destroy_agents import KEYS_PER_CHUNK, SECTIONS_PER_CHUNK
from everkept.store.erase import erase_chunk
from everkept.store.page_sections import sections_by_id
from everkept.store.pages import NewPage, find_page, list_pages, write_page
from everkept.store.search import find_postings


class Pages(Wikis):
    def distilled(self, slug: str, body: str = "one", author: str = "distiller", **more: Any) -> Any:
        """A page that nobody asked for, of session `s1` and of no source; None where it is not written."""
        given = {"stream": more.pop("stream", None) or self.session("s1").stream} | more
        new = NewPage(project=self.project, kind="note", slug=slug, text=PageText(title=slug.title(), body=body),
                      author=author, **given)  # fmt: skip
        return self.store.write_now(write_page, new)

    def deleted(self, slug: str = "zorblax") -> int:
        """A distilled page that a person deletes; the stream of its session."""
        self.work("s1")
        self.drain()
        self.distilled(slug)
        self.delete(slug)
        return int(self.session("s1").stream)

    def current(self) -> list[str]:
        return sorted(p.slug for p in self.store.read_now(list_pages, self.project) if p.kind != "session")

    def found_pages(self, word: str) -> list[str]:
        """Slugs of the pages that a search for the word shows."""

        def look(conn: Connection) -> list[int]:
            scope = Scope(project=ProjectId(self.project))
            some = [ids for _, ids in find_postings(conn, scope, word, ("page",))]
            found = text("select ref_id from passages where kind = 'page' and id in (select value from numbers(:ids))")
            return [row[0] for row in conn.rows(found, {"ids": f"[{','.join(some)}]"})]

        ids = self.store.read_now(look)
        return sorted({s.slug for s in self.store.read_now(sections_by_id, self.project, ids).values()})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Pages]:
    made = Pages(tmp_path)
    yield made
    made.store.close()


# ---- deleted, then erased


@pytest.mark.parametrize("author", ["digest", "distiller"])
def test_e03_a_deleted_page_without_a_source_is_not_written_again_after_an_erase(world: Pages, author: str) -> None:
    stream = world.deleted()
    world.erased(EventTarget(stream=stream, seq=1))
    assert world.kept("zorblax") == []
    assert world.distilled("zorblax", "two", author) is None
    assert world.current() == []


@pytest.mark.parametrize("whole", [True, False])
def test_e03_another_session_does_not_bring_a_deleted_page_back_after_an_erase(world: Pages, *, whole: bool) -> None:
    stream = world.deleted()
    target = StreamTarget(stream=stream) if whole else EventTarget(stream=stream, seq=1)
    world.erased(target)
    assert world.residue(target) == 0
    world.work("s2")
    assert world.distilled("zorblax", "two", stream=world.session("s2").stream, source="distilled:2:x") is None
    assert world.distilled("other", "two", stream=world.session("s2").stream) is not None


def test_a_person_may_write_a_deleted_and_erased_page_anew(world: Pages) -> None:
    stream = world.deleted()
    world.erased(EventTarget(stream=stream, seq=1))
    assert (world.write("zorblax", "by hand").version, world.current()) == (1, ["zorblax"])
    world.delete("zorblax")
    assert world.distilled("zorblax", "two") is None


def test_a_page_deleted_and_erased_twice_stays_deleted(world: Pages) -> None:
    stream = world.deleted()
    world.erased(EventTarget(stream=stream, seq=1))
    world.write("zorblax", "by hand", stream=stream)
    world.delete("zorblax")
    world.erased(EventTarget(stream=stream, seq=2))
    assert world.kept("zorblax") == []
    assert world.distilled("zorblax", "three") is None


def test_what_is_erased_with_its_owner_leaves_no_mark(world: Pages) -> None:
    stream = world.deleted()
    world.erased(EventTarget(stream=stream, seq=1))
    world.erased(StreamTarget(stream=stream))
    [(owner,)] = world.rows("select subject_id from streams where id = :s", s=stream)
    world.erased(SubjectTarget(subject=owner))
    assert world.rows("select count(*) from pages") == [(0,)]


# ---- superseded


def test_what_a_deleted_page_had_superseded_is_current_again(world: Pages) -> None:
    world.write("old", "Use the quokka.")
    world.write("new", "Use the wombat.", supersedes="old")
    assert world.found_pages("quokka") == []
    world.delete("new")
    assert world.current() == ["old"]
    assert world.found_pages("quokka") == ["old"]
    kinds = [r[0] for r in world.rows("select kind from changes order by seq")]
    assert kinds == ["page.written", "page.written", "page.deleted", "page.restored"]


def test_the_wiki_shows_that_nothing_supersedes_a_page_any_more(world: Pages) -> None:
    world.write("old", "Use the quokka.")
    world.write("new", "Use the wombat.", supersedes="old")
    world.follow()
    assert "superseded_by: new\n" in world.read("note/old.md")
    world.delete("new")
    world.follow()
    assert "superseded_by" not in world.read("note/old.md")
    world.check()


def test_of_three_pages_the_first_stays_superseded_when_the_second_is_deleted(world: Pages) -> None:
    world.write("a", "1")
    world.write("b", "2", supersedes="a")
    world.write("c", "3", supersedes="b")
    world.delete("b")
    assert world.current() == ["c"]
    world.delete("c")
    assert world.current() == ["a"]


@pytest.mark.parametrize("order", [("b", "c"), ("c", "b")])
def test_of_three_pages_the_first_is_current_when_those_after_it_are_erased(
    world: Pages, order: tuple[str, str]
) -> None:
    for session in ("b", "c"):
        world.work(session)
    world.drain()
    world.write("p-a", "1")
    world.write("p-b", "2", supersedes="p-a", stream=world.session("b").stream)
    world.write("p-c", "3", supersedes="p-b", stream=world.session("c").stream)
    for session in order:
        assert world.current()[0] != "p-a"
        world.erased(StreamTarget(stream=world.session(session).stream))
    assert world.current() == ["p-a"]


def test_no_two_pages_hide_each_other(world: Pages) -> None:
    world.write("a", "1")
    world.write("b", "2", supersedes="a")
    world.write("a", "1", supersedes="b")
    assert world.current() == ["a"]
    world.write("b", "2", supersedes="a")
    assert world.current() == ["b"]


def test_what_writes_by_itself_does_not_undo_that_a_person_superseded_its_page(world: Pages) -> None:
    world.work("s1")
    world.distilled("by-itself")
    world.write("by-hand", "It is otherwise.", supersedes="by-itself")
    world.write("beside", "A page of its own.")
    again = world.distilled("by-itself", "and one more thing", supersedes="by-hand")
    assert (again.version, world.current()) == (2, ["beside", "by-hand"])


# ---- searched


FRONT = '---\ntype: session\nsession: "quokka-7"\nbranches: ["main"]\nwombats:\n  - numbat\n---\n\n'


def test_the_body_of_a_page_is_found_and_its_front_matter_is_not(world: Pages) -> None:
    world.write("p", f"{FRONT}# Goal\n\nTeach the zorblax.\n")
    assert world.found_pages("zorblax") == ["p"]
    for word in ("branches", "quokka", "wombats", "numbat"):
        assert world.found_pages(word) == []


def test_the_page_of_a_session_is_found_by_what_happened_and_not_by_its_front_matter(world: Pages) -> None:
    world.work("s1")
    world.drain()
    slug = world.session("s1").page
    assert 'agent: "claude-code"' in world.page(slug).body
    assert world.found_pages("login") == [slug]
    assert world.found_pages("claude") == []


def test_text_between_two_rules_is_no_front_matter(world: Pages) -> None:
    world.write("p", "---\nThe quokka says:\n---\nno\n")
    assert world.found_pages("quokka") == ["p"]


# ---- in bits


def _calls(session: str, count: int) -> list[Any]:
    return [call(session, f"{session}-{n}", f"make {n}", outcome="ok") for n in range(count)]


@pytest.mark.parametrize("whole", ["stream", "subject"])
def test_an_erase_forgets_the_keys_of_a_session_some_at_a_time(world: Pages, whole: str) -> None:
    count = KEYS_PER_CHUNK + 20
    world.told("s1", *_calls("s1", count - 1), prompt("s1", "run them all"))
    world.told("s2", *_calls("s2", 3))
    stream = world.session("s1").stream
    [(owner,)] = world.rows("select subject_id from streams where id = :s", s=stream)
    done = world.erase(StreamTarget(stream=stream) if whole == "stream" else SubjectTarget(subject=owner))
    lease = lease_of(world, "erase_scope")
    left = "select count(*) from natural_keys where stream_id = :s and payload_hash <> ''"
    steps: list[int] = []
    while world.rows("select 1 from sessions where stream_id = :s", s=stream):
        before = world.rows(left, s=stream)[0][0]
        assert world.store.write_now(erase_chunk, lease, done.id)
        steps.append(before - world.rows(left, s=stream)[0][0])
    assert [n for n in steps if n] == [KEYS_PER_CHUNK, 21], "and the mark of the session itself"
    kept = "select count(*) from natural_keys where stream_id = :s"
    assert world.rows(kept, s=stream) == [(count + 1,)], "the keys stay, so that the session stays out"


def test_an_erase_takes_a_long_page_some_sections_at_a_time(world: Pages) -> None:
    world.work("s1")
    stream = world.session("s1").stream
    world.write("long", "\n".join(f"# Part {n}\nabout {n}" for n in range(10)), stream=stream)
    done = world.erase(StreamTarget(stream=stream))
    lease = lease_of(world, "erase_scope")
    most, before = 0, 10
    while before:
        assert world.store.write_now(erase_chunk, lease, done.id)
        [(after,)] = world.rows("select count(*) from page_sections")
        most, before = max(most, before - after), after
    assert most == SECTIONS_PER_CHUNK
    world.drain()
    assert world.store.read_now(find_page, world.project, "long") is None


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
def test_the_tellings_of_an_event_are_found_by_an_index(world: Pages) -> None:
    world.told("s1", prompt("s1", "run"), call("s1", "c1", "make", source="hook", ended=False), said("s1", "it runs"))
    world.told("s1", call("s1", "c1", "make", outcome="ok"))
    assert world.rows("select seq, revises from events where revises is not null") == [(4, 2)]
    plan = world.rows("explain query plan select seq from events where stream_id = 1 and revises = 2")
    assert "ix_events_revises" in plan[0][3]
