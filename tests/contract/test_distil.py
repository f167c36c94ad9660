"""A digested session becomes knowledge pages: grounded, paid for once, written on what was seen, gone with its session
(G6, G8, G10; D04, E03)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_sessions import call, edit, prompt, said
from tests.factories import HOUR_S, World, open_store, plain_reply

from everkept.capture.agents.keeping import prepare
from everkept.derive.distil_session import make_pages
from everkept.domain.distilled import parse_pages
from everkept.domain.erase import EventTarget, StreamTarget
from everkept.domain.pages import PageText
from everkept.domain.session import AgentEvent
from everkept.errors import ProviderDown, Refused, SubjectMoved
from everkept.ports.clock import VirtualClock
from everkept.ports.models import Question
from everkept.store.digests import NEWEST_MAX
from everkept.store.distilled import distil_input, write_distilled
from everkept.store.erase import erase, residue
from everkept.store.jobs import prune_jobs
from everkept.store.pages import (
    NewPage,
    PageRow,
    delete_page,
    find_page,
    get_page,
    list_pages,
    page_history,
    write_page,
)
from everkept.store.sessions import SessionBatch, SessionHeader, append_session, find_native_session

QUOTE = "we decided that tokens expire after 15 minutes"
GOAL = f"Fix the failing login test; {QUOTE}"
KINDS = ("decision", "gotcha", "procedure", "concept", "rule", "note")


def statement(text: str = "Tokens expire after 15 minutes.", quote: str = QUOTE, **more: str) -> dict[str, str]:
    return {"text": text, "quote": quote, "section": "", "replaces": "", **more}


def page(*statements: dict[str, str], title: str = "Token lifetime", **more: Any) -> dict[str, Any]:
    made = {"action": "create", "page": "", "kind": "decision", "title": title, "supersedes": ""}
    return {**made, "statements": list(statements or [statement()]), **more}


def pages(*made: dict[str, Any]) -> dict[str, Any]:
    return {"pages": list(made)}


class Agents(World):
    """A coding agent at work, and a model that answers the question for pages as the test says."""

    def __init__(self, folder: Path) -> None:
        clock = VirtualClock()
        self.reply: Any = pages(page())
        super().__init__(open_store(folder / "everkept.db", clock), folder / "home", clock, script=self._reply)

    def _reply(self, question: Question) -> Any:
        if question.step != "pages":
            return plain_reply(question)
        return self.reply(question) if callable(self.reply) else self.reply

    def told(
        self, session: str, *events: AgentEvent, ended: bool = True, parent: str | None = None, meanwhile_s: float = 10
    ) -> None:
        header = SessionHeader(
            agent="claude-code", native=session, origin="hook", worktree="/code/app", branch="main", parent=parent
        )
        ready = prepare(events, secret=self.project.secret, now_us=self.clock.now_us())
        batch = SessionBatch(
            project=self.project.id, header=header, events=ready, base=self.settings, mark=header.native, ended=ended
        )
        self.write(append_session, batch)
        self.live(meanwhile_s)

    def work(self, session: str = "s1", goal: str = GOAL, **more: Any) -> None:
        self.told(
            session, prompt(session, goal),
            call(session, f"{session}-1", "pytest -q", outcome="failed", exit_code=1, output="E   assert 401 == 200"),
            edit(session, f"{session}-2", "src/login.py"),
            call(session, f"{session}-3", "pytest -q", outcome="ok", exit_code=0, output="12 passed"),
            said(session, "The login test passes now."), **more,
        )  # fmt: skip

    def configure(self, model: Any) -> None:
        """The process starts again, with this model or none."""
        self.model = model
        self._runners.clear()

    def rest(self) -> None:
        """So long that a session is asked about again that has gone on."""
        self.live(5 * HOUR_S, every=HOUR_S)

    def session(self, native: str = "s1") -> Any:
        return self.read(find_native_session, self.project.id, native)

    def asked(self) -> int:
        assert self.model is not None
        return self.model.calls_of("pages")

    def question(self) -> str:
        assert self.model is not None
        return next(q.user for q in reversed(self.model.questions) if q.step == "pages")

    def knowledge(self) -> list[PageRow]:
        return [p for p in self.read(list_pages, self.project.id) if p.kind in KINDS][::-1]

    def bodies(self) -> str:
        return "\n".join(p.body for p in self.knowledge())

    def by_hand(self, slug: str, body: str, **more: Any) -> PageRow:
        new = NewPage(project=self.project.id, kind="note", slug=slug, text=PageText(title=slug, body=body),
                      author="hand", **more)  # fmt: skip
        written = self.write(write_page, new)
        assert written is not None
        return written

    def job(self, key: str = "1", kind: str = "distil_session") -> dict[str, Any]:
        return super().job(key, kind)

    def rejected(self) -> list[Any]:
        return [json.loads(r[0]) for r in self.rows("select rejected from slices where rejected is not null")]

    def erase(self, target: Any) -> None:
        self.write(erase, self.project.id, target)
        self.live(60)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path)
    yield made
    made.close()
    made.store.close()


# ---- made


def test_a_digested_session_becomes_a_page_that_says_where_each_statement_is_from(world: Agents) -> None:
    world.work()
    [made] = world.knowledge()
    assert (made.kind, made.slug, made.title, made.author) == (
        "decision", "token-lifetime", "Token lifetime", "distiller",
    )  # fmt: skip
    assert made.body == f"- Tokens expire after 15 minutes.\n  > “{QUOTE}” — evt_{made.stream}_1\n"
    assert made.stream == world.session().stream
    assert made.reason == f"distilled from ses_{made.stream}"
    assert world.job()["state"] == "done"


def test_a_page_is_found_by_search_as_what_somebody_keeps_true(world: Agents) -> None:
    world.work()
    found = world.rows("select p.kind from passages p join page_sections n on n.id = p.ref_id and p.kind = 'page'"
                       " join pages g on g.id = n.page_id where g.kind = 'decision'")  # fmt: skip
    assert found == [("page",)]


def test_without_a_model_nothing_is_asked_and_nothing_waits(tmp_path: Path) -> None:
    world = Agents(tmp_path)
    world.model = None
    world.work()
    assert world.session().digested_seq == 5
    assert world.states("distil_session") == {}
    world.close()
    world.store.close()


def test_a_trivial_session_and_a_sub_agents_are_not_asked_about(world: Agents) -> None:
    world.told("small", prompt("small", "what is a zorblax?"), said("small", "No idea."))
    world.told("sub", prompt("sub", "look"), edit("sub", "x1", "docs/deep.md"), parent="s1")
    assert world.asked() == 0
    assert world.knowledge() == []


def test_memory_switched_off_before_the_question_is_asked_ends_it(world: Agents) -> None:
    assert world.model is not None
    world.model.fail_with(ProviderDown("no credit"))
    world.work()
    asked = world.asked()
    world.set_project(memory__enabled=False)
    world.model.fail_with(None)
    world.live(HOUR_S, every=60)
    assert (world.job()["state"], world.asked(), world.knowledge()) == ("discarded", asked, [])


def test_two_sessions_of_a_project_are_never_distilled_at_once(world: Agents) -> None:
    world.work("s1")
    world.work("s2", f"Once more: {GOAL}")
    keys = world.rows("select distinct serial_key from jobs where kind = 'distil_session'")
    assert (len(world.states("distil_session")), keys) == (2, [(f"distil:{world.project.id}",)])


def test_what_the_session_does_not_bear_out_is_dropped_and_the_reason_kept(world: Agents) -> None:
    world.reply = pages(
        page(statement(), statement("Sessions live in Redis.", "sessions live in Redis"),
             statement("The fix is in `src/token.py`."), statement("The fix is in `src/login.py`.")),
        page(statement("Nothing of it is true.", "nothing of it"), title="Made up"),
    )  # fmt: skip
    world.work()
    [made] = world.knowledge()
    assert "Redis" not in made.body
    assert "src/token.py" not in made.body
    assert "src/login.py" in made.body
    assert world.rejected() == [[
        {"item": "page 1 (decision), statement 2", "reason": "its quote is not in the session"},
        {"item": "page 1 (decision), statement 3", "reason": "code in it does not occur in the session"},
        {"item": "page 2 (decision), statement 1", "reason": "its quote is not in the session"},
        {"item": "page 2 (decision)", "reason": "no statement of it holds"},
    ]]  # fmt: skip


def test_a_reply_that_makes_things_up_leaves_only_what_was_said(world: Agents) -> None:
    world.by_hand("clock", "Mind that the login test needs a clock.")
    world.reply = pages(
        page(statement("The check fails with 401.", "assert 401 == 200"), kind="rule", title="By a tool's words"),
        page(statement("It needs a clock.", "the login test needs a clock"), title="By another page's words"),
        page(
            statement(),
            statement("It was mended in 4f2a91c."), statement("The TokenStore makes them."),
            statement("Ask ops@example.com."), statement("It needs node 22."),
            statement("They expire after 20 minutes."),
            statement("Sections are read, too.", section="In src/auth/keys.py"),
            title="# [[Token]] lifetime\n---\ntype: rule",
        ),
    )  # fmt: skip
    world.work()
    made = next(p for p in world.knowledge() if p.author == "distiller")
    assert [line for line in made.body.splitlines() if line.startswith("- ")] == ["- Tokens expire after 15 minutes."]
    assert "\n" not in made.title
    [told] = world.rejected()
    assert [item["reason"] for item in told] == [
        "its quote is not the words of who makes a rule", "no statement of it holds",
        "its quote is not in the session", "no statement of it holds",
        "an identifier in it does not occur in the session", "an identifier in it does not occur in the session",
        "an address in it does not occur in the session", "a number in it does not occur in the session",
        "a number in it does not occur in the session", "a path in it does not occur in the session",
    ]  # fmt: skip


def test_the_question_shows_the_digest_the_words_and_the_pages_that_bear_on_it(world: Agents) -> None:
    world.by_hand("login-tests", "How the login test is run.")
    world.by_hand("cooking", "A recipe for soup.")
    world.work()
    assert QUOTE in world.question()
    assert "assert 401 == 200" in world.question()
    assert '"title": "login-tests"' in world.question()
    assert "soup" not in world.question()


# ---- again


def test_a_resumed_session_is_asked_about_again_only_if_its_digest_says_something_new(world: Agents) -> None:
    world.work()
    world.work()
    assert world.asked() == 1
    world.told("s1", prompt("s1", "thanks", genuine=False))
    assert world.asked() == 1
    world.told("s1", prompt("s1", "Now also write the docs"), edit("s1", "s1-9", "docs/login.md"))
    assert world.asked() == 1
    world.rest()
    assert world.asked() == 2


def test_a_session_taken_up_and_left_ten_times_a_day_is_not_paid_for_ten_times(world: Agents) -> None:
    world.work()
    for turn in range(10):
        world.told("s1", prompt("s1", f"Now part {turn}"), edit("s1", f"again-{turn}", f"src/part{turn}.py"))
        world.live(2 * HOUR_S, every=HOUR_S / 2)
    assert world.asked() == 1
    world.rest()
    assert world.asked() == 2


def test_a_session_that_never_rests_is_asked_about_once_a_day(world: Agents) -> None:
    world.work()
    for turn in range(30):
        world.told("s1", prompt("s1", f"Now part {turn}"), edit("s1", f"again-{turn}", f"src/part{turn}.py"))
        world.live(2 * HOUR_S, every=HOUR_S / 2)
    assert world.asked() == 3


def test_a_session_that_goes_on_updates_its_page_and_keeps_what_else_stands_in_it(world: Agents) -> None:
    world.work()
    [made] = world.knowledge()
    world.by_hand(made.slug, made.body + "\n## By Ana\n\nMind the clock.\n")
    world.reply = pages(page(
        statement("Tokens expire after 1 hour.", "make it 1 hour", replaces="Tokens expire after 15 minutes."),
        statement("The docs are in `docs/login.md`.", "write the docs", section="Docs"),
        action="update", page=f"pag_{made.id}",
    ))  # fmt: skip
    world.told("s1", prompt("s1", "make it 1 hour, and write the docs"), edit("s1", "s1-9", "docs/login.md"))
    world.rest()
    assert '"yours": true' in world.question()
    [now] = world.knowledge()
    assert (now.id, now.version) == (made.id, 3)
    assert "15 minutes" not in now.body
    assert now.body.startswith("- Tokens expire after 1 hour.\n")
    assert "## By Ana\n\nMind the clock.\n" in now.body
    assert "## Docs\n\n- The docs are in `docs/login.md`.\n" in now.body
    assert [v.author for v in world.read(page_history, made.id)] == ["distiller", "hand", "distiller"]


def test_the_same_page_made_again_is_an_update_of_it(world: Agents) -> None:
    world.work()
    world.reply = pages(page(statement("It is 1 hour.", "make it 1 hour")))
    world.told("s1", prompt("s1", "make it 1 hour"), edit("s1", "s1-9", "docs/login.md"))
    world.rest()
    [now] = world.knowledge()
    assert now.version == 2
    assert "15 minutes" in now.body
    assert "1 hour" in now.body


def test_a_page_that_changed_while_the_model_answered_is_read_again_and_nothing_is_paid_twice(world: Agents) -> None:
    world.work()
    [made] = world.knowledge()

    def meanwhile(_question: Question) -> Any:
        world.by_hand(made.slug, made.body + "\nA line of Ana's.\n")
        return pages(page(statement("It is 1 hour.", "make it 1 hour"), action="update", page=f"pag_{made.id}"))

    world.reply = meanwhile
    world.told("s1", prompt("s1", "make it 1 hour"), edit("s1", "s1-9", "docs/login.md"))
    world.rest()
    [now] = world.knowledge()
    assert "A line of Ana's." in now.body
    assert "It is 1 hour." in now.body
    assert world.asked() == 2
    assert world.job()["attempts"] == 0


def test_a_page_of_another_session_or_of_a_hand_is_left_as_it_is(world: Agents) -> None:
    world.work("s1")
    hand = world.by_hand("kept", f"Ana keeps this: {GOAL}")
    [first] = [p for p in world.knowledge() if p.author == "distiller"]
    world.reply = lambda _q: pages(
        page(action="update", page=f"pag_{first.id}"),
        page(title="Kept", action="update", page=f"pag_{hand.id}", supersedes=f"pag_{hand.id}"),
    )
    world.work("s2", f"Once more: {GOAL}")
    assert {p.slug: (p.stream, p.version) for p in world.knowledge()} == {
        "token-lifetime": (world.session("s1").stream, 1),
        "kept": (None, 1),
        f"token-lifetime-{world.session('s2').stream}": (world.session("s2").stream, 1),
        f"kept-{world.session('s2').stream}": (world.session("s2").stream, 1),
    }


def test_a_later_session_supersedes_what_was_distilled_before(world: Agents) -> None:
    world.work("s1")
    [first] = world.knowledge()
    world.reply = pages(page(title="Token lifetime now", supersedes=f"pag_{first.id}"))
    world.work("s2", f"Once more: {GOAL}")
    [now] = world.knowledge()
    assert now.title == "Token lifetime now"
    assert world.read(get_page, world.project.id, first.slug).superseded_by == now.id


def test_a_page_that_somebody_deleted_stays_deleted(world: Agents) -> None:
    world.work()
    world.write(delete_page, world.project.id, "token-lifetime")
    world.told("s1", prompt("s1", "Now also write the docs"), edit("s1", "s1-9", "docs/login.md"))
    world.rest()
    assert world.asked() == 2
    assert world.knowledge() == []


# ---- digested while there was no model


def without_model(world: Agents, *sessions: str) -> None:
    model = world.model
    world.configure(None)
    for session in sessions:
        world.work(session, f"In {session}: {GOAL}")
    world.configure(model)


def streams_asked(world: Agents) -> set[int]:
    return {recipe["stream"] for recipe in (json.loads(r[0]) for r in world.rows("select recipe from replies"))}


def test_sessions_digested_while_there_was_no_model_are_asked_about_with_the_next_one(world: Agents) -> None:
    without_model(world, "s1", "s2")
    assert world.rows("select count(*) from replies") == [(0,)]
    world.work("s3")
    assert streams_asked(world) == {world.session(name).stream for name in ("s1", "s2", "s3")}
    world.work("s4")
    world.live(48 * HOUR_S, every=HOUR_S)
    assert world.asked() == 4


def test_a_history_is_not_paid_for_because_there_is_a_model_now(world: Agents) -> None:
    without_model(world, "of-last-month")
    world.live(31 * 24 * HOUR_S, every=24 * HOUR_S)
    without_model(world, *(f"s{n:02}" for n in range(NEWEST_MAX + 2)))
    world.work("now")
    assert world.asked() == NEWEST_MAX + 1
    passed = {world.session(name).stream for name in ("of-last-month", "s00", "s01")}
    assert not passed & streams_asked(world)


def test_of_a_history_that_is_imported_at_once_the_newest_sessions_are_asked_about(world: Agents) -> None:
    for number in range(NEWEST_MAX + 5):
        world.work(f"s{number:02}", f"In {number}: {GOAL}", meanwhile_s=0)
    world.tick(48 * HOUR_S)
    world.live(60)
    assert world.asked() == NEWEST_MAX
    assert world.session("s04").stream not in streams_asked(world)
    assert world.session("s05").stream in streams_asked(world)


def test_a_session_asked_about_is_not_caught_up_with_after_its_job_was_pruned(world: Agents) -> None:
    world.work("s1")
    world.tick(1)
    world.write(prune_jobs, 0.0)
    assert world.states("distil_session") == {}
    world.work("s2")
    assert world.asked() == 2
    assert len(world.states("distil_session")) == 1


# ---- weather


def test_a_reply_that_cannot_be_used_is_asked_for_once_more_and_kept(world: Agents) -> None:
    replies = iter(["no pages today", pages(page())])
    world.reply = lambda _q: next(replies)
    world.work()
    world.live(HOUR_S, every=60)
    assert world.asked() == 2
    assert len(world.knowledge()) == 1
    assert world.rows("select ask, rejected_because from replies where step = 'pages' order by ask") == [
        (1, "there is no JSON in the reply"), (2, None),
    ]  # fmt: skip


def test_a_reply_that_is_never_usable_ends_in_a_dead_letter_that_new_content_wakes(world: Agents) -> None:
    world.reply = "no pages today"
    world.work()
    world.live(HOUR_S, every=60)
    assert (world.job()["state"], world.asked()) == ("dead", 2)
    world.reply = pages(page())
    world.told("s1", prompt("s1", "Now also write the docs"), edit("s1", "s1-9", "docs/login.md"))
    world.rest()
    assert (world.job()["state"], world.asked()) == ("done", 3)
    assert len(world.knowledge()) == 1


def test_an_outage_of_two_days_loses_nothing_and_spends_nothing(world: Agents) -> None:
    assert world.model is not None
    world.model.fail_with(ProviderDown("no credit"))
    world.work()
    world.live(48 * HOUR_S, every=HOUR_S)
    assert world.job()["attempts"] == 0
    assert world.session().digested_seq == 5
    world.model.fail_with(None)
    world.live(HOUR_S, every=60)
    assert len(world.knowledge()) == 1


def test_no_session_is_history_because_a_provider_was_down_for_days(world: Agents) -> None:
    assert world.model is not None
    world.model.fail_with(ProviderDown("no credit"))
    for number in range(NEWEST_MAX + 2):
        world.work(f"s{number:02}", f"In {number}: {GOAL}")
    world.live(48 * HOUR_S, every=HOUR_S)
    world.model.fail_with(None)
    before = world.asked()
    world.live(2 * HOUR_S, every=60)
    assert set(world.states("distil_session").values()) == {"done"}
    assert world.asked() - before >= NEWEST_MAX


def test_a_refusal_is_final_and_visible(world: Agents) -> None:
    world.reply = Refused("not this")
    world.work()
    assert (world.job()["state"], world.job()["error_class"], world.asked()) == ("dead", "refused", 1)


# ---- erased


def test_erasing_an_event_takes_the_pages_of_its_session_and_distils_again_what_remains(world: Agents) -> None:
    world.work()
    stream = world.session().stream
    world.reply = pages(page(statement("The login test passes.", "The login test passes now"), kind="note"))
    world.erase(EventTarget(stream=stream, seq=1))
    left = world.read(residue, world.project.id, EventTarget(stream=stream, seq=1))
    assert {kind for kind, n in left.items() if n} == set()
    assert "15 minutes" not in world.bodies()
    kept = world.rows("select text from replies where step = 'pages'")
    assert not any("15 minutes" in reply for (reply,) in kept)
    versions = world.rows("select body from page_versions")
    assert not any("15 minutes" in body for (body,) in versions)


def test_erasing_another_event_distils_the_session_again(world: Agents) -> None:
    world.work()
    stream = world.session().stream
    world.erase(EventTarget(stream=stream, seq=5))
    assert world.asked() == 2
    [made] = world.knowledge()
    assert made.body.startswith("- Tokens expire after 15 minutes.")


def test_a_page_deleted_by_hand_stays_away_though_its_words_were_erased(world: Agents) -> None:
    world.work()
    world.write(delete_page, world.project.id, "token-lifetime")
    world.erase(EventTarget(stream=world.session().stream, seq=5))
    assert world.asked() == 2
    assert world.knowledge() == []
    assert world.read(lambda conn: find_page(conn, world.project.id, "token-lifetime")) is None


def test_erasing_a_session_leaves_nothing_of_what_was_distilled_from_it(world: Agents) -> None:
    world.work()
    stream = world.session().stream
    world.work("s2", f"Once more: {GOAL}")
    world.erase(StreamTarget(stream=stream))
    left = world.read(residue, world.project.id, StreamTarget(stream=stream))
    assert {kind for kind, n in left.items() if n} == set()
    assert [p.stream for p in world.knowledge()] == [world.session("s2").stream]


def test_pages_made_of_what_was_read_before_an_erase_are_refused(world: Agents) -> None:
    world.work()
    stream = world.session().stream
    found = world.read(distil_input, world.project.id, stream, world.settings)
    assert found is not None
    new = make_pages(found, [], parse_pages(json.dumps(pages(page(title="Late")))))
    world.write(erase, world.project.id, EventTarget(stream=stream, seq=1))
    with pytest.raises(SubjectMoved, match="erased while the session was distilled"):
        world.write(write_distilled, new)
    assert world.rows("select slug from pages where slug = 'late'") == []


def test_a_reply_given_while_its_session_was_erased_makes_no_page(world: Agents) -> None:
    def meanwhile(_question: Question) -> Any:
        world.reply = pages()
        world.write(erase, world.project.id, EventTarget(stream=world.session().stream, seq=1))
        return pages(page())

    world.reply = meanwhile
    world.work()
    world.live(60)
    assert world.knowledge() == []
    assert not any("15 minutes" in text for (text,) in world.rows("select text from replies where step = 'pages'"))
