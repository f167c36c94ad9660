"""The reply journal: no reply that was committed is asked for again, whatever becomes of the job (G8)."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text
from tests.factories import HOUR_S, World, plain_reply

from everkept.domain.replies import InvalidReply
from everkept.errors import InvalidOutput, OverBudget, StoreFull, SubjectMoved, Transient
from everkept.models.fakes import ScriptedModel
from everkept.models.journaled import JournaledModel
from everkept.ports.journal import Address, Recipe
from everkept.ports.models import Question, RawReply
from everkept.store.journal import (
    Spent,
    SpentByProject,
    StoreJournal,
    begin_ask,
    commit_reply,
    kept_replies,
    require_budget,
    shown_by_either,
    usage_by_project,
    usage_rows,
)

QUESTION = Question(step="facts", version="facts.1", system="be brief", user="what?", schema=None, timeout_s=5)
REPLY = RawReply(text="yes", tokens_in=10, tokens_out=2, usd=0.5)


class Die(Exception):
    """The process ends here."""


class DieAt:
    """Ends the process at one point, once."""

    def __init__(self, point: str = "") -> None:
        self.point = point

    def reach(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            raise Die(point)


def yes(text: str) -> str:
    if text != "yes":
        raise InvalidReply(f"{text} is not yes")
    return text


@pytest.fixture
def subject(world: World) -> int:
    world.create("t")
    return 1


class Desk:
    """Asks one question of one piece of work."""

    def __init__(self, world: World, *replies, asks_max: int = 2) -> None:
        self.world = world
        self.model = ScriptedModel(replies, name="fake:a")
        self.faults = DieAt()
        self.journaled = JournaledModel(
            self.model, StoreJournal(world.store, world.settings), self.faults, asks_max=asks_max
        )

    def ask(self, parse=yes, *, question: Question = QUESTION, work: str = "window:1.0", **kw) -> str:
        return self.world.run(
            self.journaled.ask(
                question,
                parse,
                project=self.world.project.id,
                subject=1,
                work=work,
                recipe=Recipe(shown={"first": 1}),
                **{"epoch": 0, **kw},
            )
        )

    def replies(self) -> list[tuple]:
        return self.world.rows("select ask, text, asked, rejected_because from replies order by id")


def test_a_reply_is_kept_raw_with_its_cost_and_its_recipe_and_without_the_prompt(world: World, subject: int) -> None:
    desk = Desk(world, REPLY)
    assert desk.ask() == "yes"
    row = world.rows("select text, tokens_in, tokens_out, usd, recipe, subject_id from replies")[0]
    assert row == ("yes", 10, 2, 0.5, '{"first": 1}', 1)
    assert not [cell for cell in world.rows("select * from replies")[0] if isinstance(cell, str) and "be brief" in cell]


def test_a_committed_reply_is_never_asked_for_again(world: World, subject: int) -> None:
    desk = Desk(world, "yes")
    assert [desk.ask(), desk.ask()] == ["yes", "yes"]
    assert desk.model.calls == 1


@pytest.mark.parametrize(("there", "outcome"), [("yes", "yes"), ("no", Transient)])
def test_a_reply_that_comes_between_looking_and_asking_is_used_and_not_paid_for_again(
    world: World, subject: int, monkeypatch: pytest.MonkeyPatch, there: str, outcome: object
) -> None:
    """Another run of the job, which stood still or lost its lease, was given it."""
    desk = Desk(world, "yes")
    journal = desk.journaled._journal

    async def allow(address: Address) -> None:
        await journal.begin(address, 1, b"hash", Recipe())
        await journal.commit(address, 1, RawReply(text=there, tokens_in=1, tokens_out=1, usd=None))

    monkeypatch.setattr(journal, "allow", allow)  # it is asked between the two
    if outcome is Transient:
        with pytest.raises(Transient):
            desk.ask()
    else:
        assert desk.ask() == outcome
    assert desk.model.calls == 0
    assert [row[:3] for row in desk.replies()] == [(1, there, 1)]
    assert world.counter("asked_again") == 0


def test_a_kept_reply_is_used_even_where_the_prompt_would_read_differently_today(world: World, subject: int) -> None:
    desk = Desk(world, "yes")
    desk.ask()
    moved = Question(
        step="facts", version="facts.1", system="be brief", user="other known facts", schema=None, timeout_s=5
    )
    assert desk.ask(question=moved) == "yes"
    assert desk.model.calls == 1


@pytest.mark.parametrize("part", ["work", "version", "step"])
def test_another_question_is_another_address(world: World, subject: int, part: str) -> None:
    desk = Desk(world, "yes", "yes")
    desk.ask()
    changed = {"version": "facts.2"} if part == "version" else {"step": "summary"} if part == "step" else {}
    other = Question(
        **{**{f: getattr(QUESTION, f) for f in ("step", "version", "system", "user", "schema", "timeout_s")}, **changed}
    )
    desk.ask(question=other, work="window:2.0" if part == "work" else "window:1.0")
    assert desk.model.calls == 2


def test_a_crash_after_the_commit_costs_no_second_question(world: World, subject: int) -> None:
    desk = Desk(world, "yes")
    desk.faults.point = "journal.after_commit"
    with pytest.raises(Die):
        desk.ask()
    assert desk.ask() == "yes"
    assert (desk.model.calls, world.counter("asked_again")) == (1, 0)


def test_a_reply_lost_before_its_commit_is_asked_for_again_and_counted(world: World, subject: int) -> None:
    desk = Desk(world, "yes", "yes")
    desk.faults.point = "journal.after_reply"
    with pytest.raises(Die):
        desk.ask()
    assert desk.ask() == "yes"
    assert (desk.model.calls, world.counter("asked_again")) == (2, 1)
    assert desk.replies() == [(1, "yes", 2, None)]


def test_a_question_that_never_left_counts_when_it_is_sent_again(world: World, subject: int) -> None:
    desk = Desk(world, "yes")
    desk.faults.point = "journal.before_ask"
    with pytest.raises(Die):
        desk.ask()
    assert desk.ask() == "yes"
    assert (desk.model.calls, world.counter("asked_again")) == (1, 1)


def test_a_rejected_reply_is_kept_with_its_reason(world: World, subject: int) -> None:
    desk = Desk(world, "no", "yes")
    with pytest.raises(Transient):
        desk.ask()
    assert desk.replies() == [(1, "no", 1, "no is not yes")]
    assert desk.ask() == "yes"
    assert [r[:2] for r in desk.replies()] == [(1, "no"), (2, "yes")]


def test_a_newer_parser_reads_the_kept_replies_first(world: World, subject: int) -> None:
    desk = Desk(world, "no")
    with pytest.raises(Transient):
        desk.ask()
    assert desk.ask(lambda text: f"read: {text}") == "read: no"
    assert desk.model.calls == 1
    assert desk.replies() == [(1, "no", 1, None)]


def test_at_most_asks_max_replies_are_paid_for(world: World, subject: int) -> None:
    desk = Desk(world, "no", "no", "never asked for")
    with pytest.raises(Transient):
        desk.ask()
    for _ in range(3):
        with pytest.raises(InvalidOutput):
            desk.ask()
    assert desk.model.calls == 2


def test_a_hand_that_retries_allows_as_many_again(world: World, subject: int) -> None:
    desk = Desk(world, "no", "no", "no", "yes")
    for error in (Transient, InvalidOutput):
        with pytest.raises(error):
            desk.ask()
    with pytest.raises(Transient):
        desk.ask(budget=2)
    assert desk.ask(budget=2) == "yes"
    assert desk.model.calls == 4


def test_a_failed_call_uses_up_no_ask(world: World, subject: int) -> None:
    desk = Desk(world, Transient("503"), Transient("503"), Transient("503"), "yes")
    for _ in range(3):
        with pytest.raises(Transient):
            desk.ask()
    assert desk.ask() == "yes"
    assert [r[:2] for r in desk.replies()] == [(1, "yes")]


def test_fresh_leaves_out_the_replies_up_to_that_ask_and_the_new_one_is_kept(world: World, subject: int) -> None:
    desk = Desk(world, "yes", "yes")
    desk.ask()
    desk.ask(fresh=1)
    desk.ask(fresh=1)
    assert desk.model.calls == 2
    assert [r[:2] for r in desk.replies()] == [(1, "yes"), (2, "yes")]


def test_a_paid_reply_that_the_store_could_not_take_is_kept_by_the_next_run(
    world: World, subject: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(world, "yes")

    async def full(*args: object) -> str:
        raise StoreFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(desk.journaled._journal, "commit", full)
        with pytest.raises(StoreFull):
            desk.ask()
    assert desk.ask() == "yes"
    assert (desk.model.calls, desk.replies()) == (1, [(1, "yes", 1, None)])


def test_a_bill_without_end_spends_no_budget(world: World, subject: int) -> None:
    desk = Desk(world, RawReply(text="yes", tokens_in=10, tokens_out=2, usd=float("inf")))
    assert desk.ask() == "yes"
    assert world.rows("select usd from replies") == [(None,)]


def test_of_two_kept_replies_the_newer_is_used(world: World, subject: int) -> None:
    desk = Desk(world, "first", "second")
    assert [desk.ask(str), desk.ask(str, fresh=1), desk.ask(str)] == ["first", "second", "second"]
    assert desk.model.calls == 2


def address(world: World) -> Address:
    return Address(
        project=world.project.id, subject=1, work="window:1.0", step="facts", version="facts.1", model="fake:a"
    )


def test_a_new_reply_is_kept_where_an_erase_left_only_a_later_one(world: World, subject: int) -> None:
    desk = Desk(world, "no", "no", REPLY, asks_max=3)
    for _ in range(2):
        with pytest.raises(Transient):
            desk.ask()
    world.store.write_now(lambda conn: conn.run(text("delete from replies where ask = 1")))
    assert desk.ask() == "yes"
    assert [row[:2] for row in desk.replies()] == [(2, "no"), (3, "yes")]


def test_the_first_committed_reply_to_a_question_wins(world: World, subject: int) -> None:
    """Two workers paid: a lease was lost in the middle. Both get the same answer, and the first one is kept."""
    for _ in range(2):
        world.write(begin_ask, address(world), 1, b"h", Recipe())
    texts = [
        world.write(commit_reply, address(world), 1, RawReply(text=t, tokens_in=1, tokens_out=1, usd=0.1))
        for t in ("first", "second")
    ]
    assert texts == ["first", "first"]
    assert [k.text for k in world.read(kept_replies, address(world))] == ["first"]


def test_a_worker_that_lost_its_lease_may_still_keep_what_it_paid_for(world: World, subject: int) -> None:
    world.write(begin_ask, address(world), 1, b"h", Recipe())
    world.tick(10 * HOUR_S)
    assert world.write(commit_reply, address(world), 1, REPLY) == "yes"


def test_an_erase_meanwhile_refuses_the_reply(world: World, subject: int) -> None:
    """E02: work in flight cannot write back what was erased."""
    world.write(begin_ask, address(world), 1, b"h", Recipe())
    world.do("update subjects set epoch = epoch + 1")
    with pytest.raises(SubjectMoved):
        world.write(commit_reply, address(world), 1, REPLY)
    assert world.read(kept_replies, address(world)) == []


def test_a_reply_to_a_question_that_was_erased_is_refused(world: World, subject: int) -> None:
    world.write(begin_ask, address(world), 1, b"h", Recipe())
    world.do("delete from replies")
    with pytest.raises(SubjectMoved):
        world.write(commit_reply, address(world), 1, REPLY)


def test_a_model_that_hangs_is_cut_off(world: World, subject: int) -> None:
    class Hanging(ScriptedModel):
        async def ask(self, question: Question) -> RawReply:
            await asyncio.Event().wait()
            raise AssertionError

    desk = Desk(world)
    desk.journaled.model = Hanging([])
    quick = Question(step="facts", version="facts.1", system="", user="", schema=None, timeout_s=0.01)
    with pytest.raises(Transient):
        desk.ask(question=quick)


def test_whether_the_provider_answered_is_told(world: World, subject: int) -> None:
    desk = Desk(world, "yes", Transient("503"))
    heard: list[str] = []
    desk.ask(heard=lambda: heard.append("asked"))
    desk.ask(heard=lambda: heard.append("kept"))
    with pytest.raises(Transient):
        desk.ask(work="window:2.0", heard=lambda: heard.append("failed"))
    assert heard == ["asked"]


# ---- through the pipeline


def pipeline(make_world, faults: DieAt) -> World:
    world = make_world(script=plain_reply, faults=faults)
    world.add("t", "I live in Lisbon")
    world.end("t")
    world.step()
    return world


@pytest.mark.parametrize(("point", "asked_again"), [("journal.after_commit", 0), ("journal.after_reply", 1)])
def test_a_job_that_died_with_its_reply_is_finished_by_the_next(make_world, point: str, asked_again: int) -> None:
    faults = DieAt()
    world = pipeline(make_world, faults)
    faults.point = point
    world.live(HOUR_S, every=300)

    assert set(world.states().values()) == {"done"}
    assert world.model is not None
    assert world.model.calls == 2 + asked_again
    assert world.counter("asked_again") == asked_again


def test_a_spent_budget_waits_for_tomorrow_without_a_call_and_without_an_attempt(make_world) -> None:
    world = make_world(script=plain_reply)
    world.set_project(models__daily_tokens_max=1)
    world.add("t", "I live in Lisbon")
    world.end("t")
    world.live(2 * HOUR_S, every=600)
    assert world.model.calls <= 2
    asked = world.model.calls
    world.add("t", "I moved to Porto")
    world.end("t")
    world.live(2 * HOUR_S, every=600)

    assert world.model.calls == asked
    waiting = world.rows("select attempts, error_class, state from jobs where state <> 'done' and uses = 'model'")
    assert set(waiting) == {(0, OverBudget.code, "waiting")}
    assert world.rows("select circuit from providers") == [("closed",)]
    world.live(26 * HOUR_S, every=HOUR_S)
    assert world.model.calls > asked


def test_a_question_that_is_sent_late_leaves_what_the_kept_reply_was_shown(world: World, subject: int) -> None:
    """An erase finds a reply by what was in view of it, whatever a second worker sends afterwards."""
    address = Address(
        project=world.project.id, subject=subject, work="window:1.0", step="facts", version="1", model="m", epoch=0
    )
    world.write(begin_ask, address, 1, b"first", Recipe(shown={"facts": [1, 2]}))
    world.write(commit_reply, address, 1, REPLY)
    world.write(begin_ask, address, 1, b"late", Recipe(shown={"facts": [3]}))
    assert world.rows("select recipe, request_hash, text from replies") == [('{"facts": [1, 2]}', b"first", "yes")]


def test_two_sendings_of_a_question_are_shown_as_one() -> None:
    earlier = {"stream": 1, "first": 3, "last": 9, "after": 5, "through": 8, "facts": [4, 2], "entities": [1]}
    later = {"stream": 1, "first": 2, "last": 7, "after": 6, "through": 9, "facts": [2, 5]}
    assert shown_by_either(earlier, later) == {
        "stream": 1, "first": 2, "last": 9, "after": 5, "through": 9, "facts": [2, 4, 5], "entities": [1],
    }  # fmt: skip


def spend(world: World, usd: float | None, *, work: str = "window:1.0") -> None:
    address = Address(project=world.project.id, subject=1, work=work, step="facts", version="1", model="m", epoch=0)
    world.write(begin_ask, address, 1, b"h", Recipe())
    world.write(commit_reply, address, 1, RawReply(text="yes", tokens_in=10, tokens_out=2, usd=usd))


def test_a_budget_of_dollars_is_the_projects_own_and_of_one_day(make_world, subject: int) -> None:
    world, other = make_world(), make_world(project="other")
    for one in (world, other):
        one.set_project(models__daily_usd_max=1.0)
    spend(world, 0.75)
    world.read(require_budget, world.project.id, world.settings)
    spend(world, 0.25, work="window:2.0")
    with pytest.raises(OverBudget, match=r"1\.00 of 1\.00 dollars") as over:
        world.read(require_budget, world.project.id, world.settings)

    left_us = 86_400_000_000 - world.clock.now_us() % 86_400_000_000
    assert over.value.retry_after_s == left_us / 1e6
    other.read(require_budget, other.project.id, other.settings)
    world.tick(left_us / 1e6)
    world.read(require_budget, world.project.id, world.settings)


def test_a_budget_of_tokens_is_spent_with_its_last_token(make_world, subject: int) -> None:
    world = make_world()
    spend(world, 0.1)
    world.set_project(models__daily_tokens_max=13)
    world.read(require_budget, world.project.id, world.settings)
    world.set_project(models__daily_tokens_max=12)
    with pytest.raises(OverBudget, match="12 of 12 tokens"):
        world.read(require_budget, world.project.id, world.settings)


def test_what_a_project_used_is_its_own(make_world, subject: int) -> None:
    world, other = make_world(), make_world(project="other")
    spend(world, 0.5)
    assert [row[1:] for row in world.read(usage_rows, world.project.id, 0)] == [
        ("default", "facts", "m", 1, 10, 2, 0.5, 0)
    ]
    assert world.read(usage_rows, other.project.id, 0) == []


def test_a_call_without_a_known_price_is_counted_and_told_apart_from_one_that_is_free(make_world, subject: int) -> None:
    world = make_world()
    for n, usd in enumerate((None, 0.0, 0.25)):
        spend(world, usd, work=f"window:{n}.0")
    assert [row[1:] for row in world.read(usage_rows, world.project.id, 0)] == [
        ("default", "facts", "m", 3, 30, 6, 0.25, 1)
    ]


def test_what_all_projects_used_is_summed_with_what_the_list_leaves_out(make_world, subject: int) -> None:
    world, other, third = make_world(), make_world(project="other"), make_world(project="third")
    make_world(project="idle")
    spend(world, 0.25)
    spend(other, 0.5, work="window:2.0")
    spend(other, None, work="window:3.0")
    spend(third, None, work="window:4.0")

    def one(calls: int, usd: float, unpriced: int) -> Spent:
        return Spent(calls=calls, tokens_in=10 * calls, tokens_out=2 * calls, usd=usd, unpriced=unpriced)

    everything = [("other", one(2, 0.5, 1)), ("default", one(1, 0.25, 0)), ("third", one(1, 0.0, 1))]
    for limit in (1, 2, 3):
        assert world.read(usage_by_project, 0, limit) == SpentByProject(
            total=one(4, 0.75, 2), projects=everything[:limit], left_out=3 - limit
        )
    assert world.read(usage_by_project, world.clock.now_us() + 1, 3) == SpentByProject(
        total=one(0, 0.0, 0), projects=[], left_out=0
    )


def test_a_question_sent_twice_keeps_what_either_sending_showed(world: World, subject: int) -> None:
    """The reply may be to the first: an erase of what only that one showed has to find it."""
    for shown in ([1, 2], [2, 3]):
        world.write(begin_ask, address(world), 1, b"h", Recipe(shown={"facts": shown}))
    assert world.rows("select recipe from replies") == [('{"facts": [1, 2, 3]}',)]
