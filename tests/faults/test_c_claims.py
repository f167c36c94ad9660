"""C: claims, crashes, retries. Work is taken once, given back when its worker dies, and never lost to somebody else."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.factories import HOUR_S, kind_of
from tests.faults.adapter import (
    Died,
    MemorySystem,
    Message,
    OpensSystems,
    Rejected,
    Trouble,
    contents,
    copies,
    finds,
    let_it_work,
    need,
)
from tests.faults.everkept_system import EverkeptSystem
from tests.faults.provider import Provider
from tests.faults.worlds import a_world, fact, receipts, replies, say
from tests.stubs.llm_server import Fail, Hang, Json, Say

from everkept.derive.extract_facts import KIND as FACTS
from everkept.domain.jobs import Discard, Done
from everkept.domain.transcript import estimate_tokens
from everkept.errors import LeaseLost, RateLimited
from everkept.store.jobs_by_hand import discard_by_hand, retry_by_hand
from everkept.store.providers import permits_left
from everkept.store.sqlite import choose_driver
from everkept.work.runner import ORDINARY_EVERY

pytestmark = pytest.mark.usefixtures("each_database")
SAID = "I live in Lisbon."
MINUTE_S = 60.0
DAY_S = 86_400.0
RETRIES_S = 3 * HOUR_S
"""Longer than all the retries of a job that is not dead by then."""
REAL_S = 20.0
"""What must not wait for something that hangs is done within this, also on a slow machine."""


def tell(system: MemorySystem, text: str = SAID, *, thread: str = "t1", subject: str = "ana") -> None:
    system.add(thread, [Message(content=text)], subject=subject, key="-".join([thread, *text.split()])[:200])


def work_until_it_dies(system: MemorySystem, seconds: float = HOUR_S) -> None:
    with suppress(Died):
        system.pass_time(seconds)
        system.wait_idle(5)
    system.kill()


def keep_working(system: MemorySystem, rounds: int = 4) -> None:
    """Hours in which a system that is up retries what failed."""
    for _ in range(rounds):
        let_it_work(system)


def states(system: MemorySystem, subject: str = "ana") -> list[str]:
    return [item.state for item in system.list(subject=subject, kind="message")]


def assert_remembered_once(system: MemorySystem, word: str = "Lisbon", subject: str = "ana") -> None:
    assert finds(system, subject, word)
    assert copies(system, subject, word) == 1, system.list(subject=subject)


def await_real(condition: Callable[[], bool]) -> bool:
    """Poll something that happens in real time in another process."""
    until = time.monotonic() + REAL_S
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


# ---- C01: the process dies after the claim


@pytest.mark.parametrize("point", ["runner.after_claim", "journal.after_reply", "runner.before_finish"])
def test_c01_work_whose_process_died_is_taken_up_again(another: OpensSystems, point: str) -> None:
    system = another(die_at=f"{point}:2")
    tell(system)
    work_until_it_dies(system)
    system.open()
    keep_working(system, 2)
    assert_remembered_once(system)
    assert system.trouble() == []


@pytest.mark.own_engine("claims by hand")
def test_c01_a_claim_of_a_worker_that_never_came_back_ends_with_its_lease(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.schedule("a")
        assert [lease.key for lease in world.claim("gone")] == ["a"]
        world.tick(599)
        world.maintain()
        assert world.claim("next") == []
        world.tick(HOUR_S)
        world.maintain()
        world.tick(HOUR_S)
        assert [lease.key for lease in world.claim("next")] == ["a"]


# ---- C02: a live job outlasts its lease


@pytest.mark.own_engine("leases by hand")
def test_c02_the_first_worker_of_a_job_that_was_taken_over_writes_nothing(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.schedule("a")
        [slow] = world.claim("slow")
        world.tick(601)
        world.maintain()
        world.tick(HOUR_S)
        [taken] = world.claim("quick")
        assert taken.fence > slow.fence
        with pytest.raises(LeaseLost):
            world.finish(slow, Done())
        world.finish(taken, Done())
        with pytest.raises(LeaseLost):
            world.finish(slow, Discard("I am late"))
        assert world.job("a")["state"] == "done"


def freeze(system: EverkeptSystem, url: str) -> None:
    """Stop it where it holds no lock: stopped with one it would hold up every other process for a while."""
    pid = system.wire.hello["pid"]
    while True:
        os.kill(pid, signal.SIGSTOP)
        if holds_a_server(url) if url.startswith("postgresql:") else holds_a_file(system.home / "everkept.db"):
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
        else:
            return


def holds_a_file(path: Path) -> bool:
    raw = choose_driver().module.connect(path, isolation_level=None, timeout=1)
    try:
        raw.execute("begin immediate")
        raw.execute("rollback")
    except choose_driver().module.OperationalError:
        return True
    finally:
        raw.close()
    return False


def holds_a_server(url: str) -> bool:
    """Whether anybody is in a transaction that writes."""
    locks = "select count(*) from pg_locks where locktype = 'advisory'"
    with psycopg.connect(url, autocommit=True) as raw:
        return raw.execute(locks).fetchone() != (0,)


@pytest.mark.own_engine("a process that is frozen and thawed")
def test_c02_a_frozen_process_that_thaws_after_another_did_its_work_adds_nothing(
    another: OpensSystems, provider: Provider, url_of: Callable[[Path], str]
) -> None:
    frozen = another()
    assert isinstance(frozen, EverkeptSystem)
    provider.outage(Hang())
    tell(frozen)
    frozen.pass_time(HOUR_S)
    assert await_real(lambda: provider.calls("facts") == 1 and provider.calls("summary") == 1)
    freeze(frozen, url_of(frozen.home))
    try:
        provider.clear()
        other = another()
        other.pass_time(2 * HOUR_S)
        keep_working(other)
        assert_remembered_once(other)
    finally:
        os.kill(frozen.wire.hello["pid"], signal.SIGCONT)
    frozen.pass_time(HOUR_S)
    assert frozen.wait_idle()
    assert_remembered_once(other)
    assert len(other.list(subject="ana", kind="episode")) == 1


# ---- C03: an input that kills the process


@pytest.mark.own_engine("the number of crashes that are borne")
def test_c03_work_that_kills_its_process_is_given_up_and_everything_else_goes_on(another: OpensSystems) -> None:
    system = another(work__crashes_max=2)
    tell(system, "I like poison.", thread="deadly", subject="bob")
    system.close()
    for _ in range(8):
        system = another(die_at="journal.before_ask:1", work__crashes_max=2)
        work_until_it_dies(system, 3 * HOUR_S)
    last = another(work__crashes_max=2)
    last.pass_time(30 * HOUR_S)
    tell(last)
    last.pass_time(3 * HOUR_S)
    assert last.wait_idle()
    assert_remembered_once(last)
    assert last.trouble()
    assert all("died or froze over it (2 of at most 2 times)" in each.cause for each in last.trouble())
    assert states(last, "bob") == ["failed"]


# ---- C04: an outage of eight minutes


@pytest.mark.parametrize("answer", [Fail(status=503), Fail(status=401), Fail(status=429)], ids=["503", "401", "429"])
def test_c04_an_outage_of_eight_minutes_costs_nothing_and_needs_no_hand(
    system: MemorySystem, provider: Provider, answer: Fail
) -> None:
    for n in range(3):
        tell(system, thread=f"t{n}", subject=f"person-{n}")
    provider.outage(answer)
    for _ in range(9):
        system.pass_time(32 * MINUTE_S if _ == 0 else MINUTE_S)
    assert system.trouble(), "nothing is said of the outage"
    assert [states(system, f"person-{n}") for n in range(3)] == [["waiting"]] * 3
    provider.clear()
    keep_working(system, 3)
    for n in range(3):
        assert_remembered_once(system, subject=f"person-{n}")
    assert system.trouble() == []


def test_c04_what_was_given_up_is_listed_with_its_cause_and_a_hand_requeues_it(
    system: MemorySystem, provider: Provider
) -> None:
    provider.outage(Fail(status=400, message="this model takes no such request"))
    tell(system)
    keep_working(system, 2)
    listed = system.trouble()
    assert listed
    assert all("no such request" in each.cause for each in listed), listed
    assert states(system) == ["failed"]
    provider.clear()
    for each in listed:
        system.retry(each)
    keep_working(system, 2)
    assert_remembered_once(system)
    assert (states(system), system.trouble()) == (["remembered"], [])


# ---- C05: rate limits, quotas, refusals


@pytest.mark.parametrize("headers", [{}, {"retry-after": "1"}, {"retry-after": "0"}], ids=["plain", "1 s", "at once"])
def test_c05_twenty_rate_limits_in_a_row_burn_no_budget(
    system: MemorySystem, provider: Provider, headers: dict[str, str]
) -> None:
    provider.weather(*[Fail(status=429, headers=headers)] * 20)
    tell(system)
    for _ in range(40):
        system.pass_time(20 * MINUTE_S)
    assert_remembered_once(system)
    assert system.trouble() == []


def test_c05_a_spent_quota_is_not_asked_hot(system: MemorySystem, provider: Provider) -> None:
    provider.outage(Fail(status=429, code="insufficient_quota", message="You exceeded your current quota"))
    for n in range(5):
        tell(system, thread=f"t{n}", subject=f"person-{n}")
    system.pass_time(HOUR_S)
    before = provider.calls()
    for _ in range(60):
        system.pass_time(MINUTE_S)
    assert provider.calls() - before <= 60, "more than one request a minute"
    provider.clear()
    keep_working(system, 2)
    for n in range(5):
        assert_remembered_once(system, subject=f"person-{n}")


@pytest.mark.parametrize(
    "refusal",
    [
        Say(refusal="I cannot help with that."),
        Say(text="", finish="content_filter"),
        Fail(status=400, code="content_filter", message="flagged by the content policy"),
        Fail(status=403, code="content_policy_violation", message="content policy"),
    ],
    ids=["said", "filtered", "400", "403"],
)
def test_c05_a_refusal_is_asked_once_and_shown(system: MemorySystem, provider: Provider, refusal: Any) -> None:
    provider.outage(refusal)
    tell(system, "I like things that one does not say.")
    keep_working(system)
    asked = Counter(a.step for a in provider.asked)
    assert set(asked.values()) == {1}, asked
    assert system.trouble()
    provider.clear()
    tell(system, thread="t2", subject="bob")
    keep_working(system, 1)
    assert_remembered_once(system, subject="bob")


@pytest.mark.own_engine("permits")
def test_c05_no_permit_and_no_lease_is_held_while_a_rate_limit_is_waited_out(tmp_path: Path) -> None:
    script = replies(facts=[RateLimited(retry_after_s=600)], summary=[RateLimited(retry_after_s=600)])
    with a_world(tmp_path, script=script) as world:
        say(world, SAID)
        world.run_until_idle()
        assert world.rows("select kind from jobs where state = 'leased'") == []
        assert world.write(permits_left, "fake", 0, 8) == 0
        world.tick(601)
        assert world.write(permits_left, "fake", 0, 8) >= 1
        local = world.wish("local")
        world.schedule(local.key)
        assert [lease.key for lease in world.claim("w2")] == ["local"]


# ---- C06: one bad job and all the others


def test_c06_a_call_that_hangs_holds_up_nobody_else(system: MemorySystem, provider: Provider) -> None:
    provider.weather(Hang())
    tell(system, thread="slow", subject="slow")
    system.pass_time(31 * MINUTE_S)
    assert await_real(lambda: provider.calls() >= 1)
    tell(system)
    system.pass_time(31 * MINUTE_S)
    assert await_real(lambda: copies(system, "ana", "Lisbon") == 1 and states(system) == ["remembered"])


@pytest.mark.own_engine("a job that raises")
@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("x"), RecursionError()])
def test_c06_a_job_that_raises_ends_no_worker(tmp_path: Path, error: Exception) -> None:
    async def run(args: Any, ctx: Any) -> Any:
        if ctx.lease.key == "bad":
            raise error
        return await ctx.finish(lambda _conn: None)

    with a_world(tmp_path) as world:
        world.runner(kinds=kind_of(run))
        for key in ("bad", "good", "better"):
            world.schedule(key)
        world.live(RETRIES_S, every=1200)
        assert world.states("work") == {"bad": "dead", "good": "done", "better": "done"}
        assert type(error).__name__ in world.job("bad")["error"]


@pytest.mark.own_engine("the order of claims")
def test_c06_a_tenant_with_a_thousand_jobs_stops_no_timer_of_another(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        lane = world.lane("busy")
        for n in range(1000):
            world.schedule(f"busy-{n}", lane=lane)
        world.schedule("timer", lane=world.lane("small"))
        world.promote()
        assert "timer" in [lease.key for lease in world.claim(free=4)]


# ---- C07: final writes


def test_c07_what_is_deleted_while_the_model_thinks_does_not_come_back(
    system: MemorySystem, provider: Provider
) -> None:
    provider.outage(Hang())
    tell(system)
    system.pass_time(31 * MINUTE_S)
    assert await_real(lambda: provider.calls() >= 1)
    system.delete(subject="ana")
    provider.clear()
    keep_working(system, 3)
    assert system.list(subject="ana") == []
    assert not finds(system, "ana", "Lisbon")


@pytest.mark.own_engine("jobs by hand")
def test_c07_a_job_that_was_discarded_meanwhile_stays_discarded(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.schedule("a")
        [lease] = world.claim()
        job = world.job("a")["id"]
        world.write(discard_by_hand, world.project.id, job, "not wanted")
        with pytest.raises(LeaseLost):
            world.finish(lease, Done())
        assert world.job("a")["state"] == "discarded"


# ---- C08: facts committed, status not


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_c08_a_death_around_the_final_commit_adds_no_paraphrase(
    another: OpensSystems, provider: Provider, at: int
) -> None:
    # One slot: what another job was asking at that moment would rightly be asked again.
    system = another(die_at=f"runner.after_finish:{at}", work__slots=1)
    tell(system)
    work_until_it_dies(system)
    system.open()
    keep_working(system, 2)
    assert_remembered_once(system)
    assert max(Counter(asked.step for asked in provider.asked).values()) == 1


# ---- C09: a failed item marked as processed


@pytest.mark.parametrize(
    "nothing",
    ["", "null", "{}", "[]", '{"error": "overloaded"}', '{"facts": null, "summary": null}'],
    ids=["empty", "null", "no keys", "a list", "an error", "null lists"],
)
def test_c09_an_answer_without_an_answer_is_no_success(system: MemorySystem, provider: Provider, nothing: str) -> None:
    provider.weather(*[Say(text=nothing)] * 2)
    tell(system)
    keep_working(system, 2)
    if system.trouble():  # a job that stood still with a slow machine is tried once more
        keep_working(system, 2)
    assert_remembered_once(system)
    assert system.trouble() == []


def test_c09_what_failed_is_shown_as_failed_and_not_as_remembered(system: MemorySystem, provider: Provider) -> None:
    need(system, "messages")
    provider.outage(Say(text=""))
    tell(system)
    keep_working(system)
    [message] = system.list(subject="ana", kind="message")
    assert message.state == "failed"
    assert "empty" in (message.reason or "")
    assert contents(system, "ana", "fact") == []


# ---- C10: another host name


@pytest.mark.own_engine("workers by name")
def test_c10_the_claims_of_a_worker_do_not_hang_on_its_name(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.schedule("a")
        assert world.claim("host-a:1") != []
        world.tick(601)
        world.runner("host-b:7", kinds=kind_of())
        world.maintain("host-b:7")
        world.tick(HOUR_S)
        world.run_until_idle("host-b:7")
        assert world.job("a")["state"] == "done"


# ---- C11: shutting down


def test_c11_what_was_waiting_when_it_was_shut_down_is_worked_after_the_next_start(system: MemorySystem) -> None:
    for n in range(20):
        tell(system, thread=f"t{n}", subject=f"person-{n}")
    system.close()
    system.open()
    keep_working(system, 1)
    assert [copies(system, f"person-{n}", "Lisbon") for n in range(20)] == [1] * 20


def test_c11_shutting_down_does_not_wait_for_a_call_that_hangs(another: OpensSystems, provider: Provider) -> None:
    system = another(work__drain_s=0.5)
    provider.outage(Hang())
    tell(system)
    system.pass_time(31 * MINUTE_S)
    assert await_real(lambda: provider.calls() >= 1)
    start = time.monotonic()
    system.close()
    assert time.monotonic() - start < REAL_S
    provider.clear()
    system.open()
    keep_working(system, 2)
    assert_remembered_once(system)
    assert system.trouble() == []


# ---- C12: what one input may cost


@pytest.mark.parametrize(
    "poison",
    [Say(text="no"), Fail(status=500), Fail(status=400), Json(value=[])],
    ids=["prose", "500", "400", "no body"],
)
def test_c12_one_poison_message_is_asked_a_bounded_number_of_times(
    system: MemorySystem, provider: Provider, poison: Any
) -> None:
    """The provider fails for it alone, and answers everybody else: most of its failures look like the provider's.

    The step may fail four times by its own fault, and before each the provider is blamed, until an ordinary question,
    asked with every sixth failure, shows that it is well.
    """
    mind = provider._mind
    asked: list[str] = []

    def moody(question: Any) -> Any:
        if "poison" not in str(question.body):
            return mind(question)
        asked.append(question.step)
        return poison

    provider._mind = moody
    tell(system, "I like poison.", thread="deadly", subject="bob")
    for n in range(24):
        tell(system, f"I like cheese number {n}.", thread=f"t{n}", subject="ana")
        system.pass_time(3 * HOUR_S)
    assert system.wait_idle(60)
    assert max(Counter(asked).values()) <= FACTS.policy.attempts_max * ORDINARY_EVERY, Counter(asked)
    assert states(system, "bob") == ["failed"]
    assert set(states(system)) == {"remembered"}


@pytest.mark.own_engine("what it shows to a model")
def test_c12_a_huge_message_is_asked_about_whole_and_in_pieces(tmp_path: Path) -> None:
    with a_world(tmp_path, script=replies(facts=[{"facts": []}])) as world:
        say(world, " ".join(f"w{n}" for n in range(30_000))[:200_000])
        world.run_until_idle()
        assert world.model is not None
        asked = [question for question in world.model.questions if question.step == "facts"]
        assert max(estimate_tokens(question.system + question.user) for question in world.model.questions) < 20_000
        seen = " ".join(question.user for question in asked)
        assert [n for n in range(0, 29_000, 997) if f"w{n}" not in seen] == []
        assert [receipt.state for receipt in receipts(world)] == ["remembered"]


@pytest.mark.own_engine("sizes that a client declares")
def test_c12_a_size_that_a_client_makes_up_costs_no_question(tmp_path: Path) -> None:
    with a_world(tmp_path, script=replies(facts=[{"facts": []}])) as world:
        world.add("t", SAID, tokens=10_000_000)
        world.end("t")
        world.live(HOUR_S, every=360)
        assert world.model is not None
        assert [world.model.calls_of(step) for step in ("facts", "summary")] == [1, 1]
        assert [receipt.state for receipt in receipts(world)] == ["remembered"]


# ---- C13: an older window, late


def test_c13_an_older_stretch_that_is_worked_late_does_not_overwrite_what_is_newer(
    system: MemorySystem, provider: Provider
) -> None:
    need(system, "times", "end")
    now = datetime.now(UTC)
    provider.outage(Fail(status=400))
    moves = [("I live in Berlin.", 300), ("I live in Lisbon.", 100), ("I live in Porto.", 200)]
    late: list[Trouble] = []
    for text, days_ago in (moves[0], moves[2], moves[1]):
        if text == moves[1][0]:
            late = system.trouble()
            provider.clear()
        said = Message(content=text, occurred_at=now - timedelta(days=days_ago))
        system.add(f"t-{days_ago}", [said], subject="ana", key="-".join(text.split()))
        system.end(f"t-{days_ago}")
        keep_working(system, 1)
    assert late
    for each in reversed(late):
        with suppress(Rejected):  # it was tried again by itself
            system.retry(each)
    keep_working(system, 2)

    def lives(days_ago: int) -> set[str]:
        found = system.search("Where do I live?", subject="ana", as_of=now - timedelta(days=days_ago))
        return {city for city in ("Berlin", "Porto", "Lisbon") for f in found if f.kind == "fact" and city in f.text}

    assert [lives(days) for days in (0, 150, 250)] == [{"Lisbon"}, {"Porto"}, {"Berlin"}]


# ---- C14: the judge fails


def belongs(place: str, **more: Any) -> dict[str, Any]:
    """A statement of which nobody can tell by its predicate whether another one replaces it."""
    unclear = {"predicate": "is part of", "statement": f"Ana is part of {place}.", "holds": "unclear"}
    return fact(f"I am part of {place}", place, **{**unclear, **more})


def _unclear(place: str) -> dict[str, Any]:
    return {"facts": [belongs(place)]}


def _two_homes(world: Any, subject: str = "ana") -> None:
    for place in ("Berlin", "Lisbon"):
        say(world, f"I am part of {place}", thread=f"{subject}-{place}", subject=subject)
        world.tick(HOUR_S)
        world.run_until_idle()


@pytest.mark.own_engine("contradictions that a judge settles")
@pytest.mark.parametrize(
    "bad", ["I do not know.", '{"verdicts": []}', '{"verdicts": [{"pair": 9, "verdict": "new"}]}', ""]
)
def test_c14_a_judge_who_fails_is_asked_again_and_meanwhile_both_are_marked(tmp_path: Path, bad: str) -> None:
    good = {"verdicts": [{"pair": 1, "verdict": "new"}]}
    script = replies(facts=[_unclear("Berlin"), _unclear("Lisbon")], conflicts=[bad, good])
    with a_world(tmp_path, script=script) as world:
        _two_homes(world)
        assert world.rows("select verdict from verdicts") == [(None,)]
        world.live(HOUR_S, every=360)
        assert world.rows("select verdict, reason from verdicts") == [("new", "judged by the model")]
        assert world.model is not None
        assert world.model.calls_of("conflicts") == 2


@pytest.mark.own_engine("contradictions that a judge settles")
def test_c14_a_judge_who_gave_up_is_dead_in_sight_and_a_new_contradiction_starts_it_again(tmp_path: Path) -> None:
    no, yes = "no", {"verdicts": [{"pair": n, "verdict": "new"} for n in range(1, 9)]}
    script = replies(facts=[_unclear(p) for p in ("Berlin", "Lisbon", "Porto")], conflicts=[no, no, yes])
    with a_world(tmp_path, script=script) as world:
        _two_homes(world)
        world.live(RETRIES_S, every=1200)
        assert list(world.states("judge_conflicts").values()) == ["dead"]
        assert world.value("select count(*) from verdicts where verdict is null") == 1
        say(world, "I am part of Porto", thread="third")
        world.live(RETRIES_S, every=1200)
        assert list(world.states("judge_conflicts").values()) == ["done"]
        assert world.value("select count(*) from verdicts where verdict is null") == 0


@pytest.mark.own_engine("contradictions that a judge settles")
def test_c14_a_pair_that_the_judge_leaves_out_is_asked_about_again(tmp_path: Path) -> None:
    first = {"verdicts": [{"pair": 1, "verdict": "new"}]}
    earlier = {"facts": [belongs("Aspen"), belongs("Birch", entity="Rex", statement="Rex is part of Birch.")]}
    later = {"facts": [belongs("Cedar"), belongs("Daisy", entity="Rex", statement="Rex is part of Daisy.")]}
    with a_world(tmp_path, script=replies(facts=[earlier, later], conflicts=[first])) as world:
        say(world, "I am part of Aspen, and Rex says: I am part of Birch", thread="one")
        world.live(60, every=60)
        say(world, "I am part of Cedar, and Rex says: I am part of Daisy", thread="two")
        world.live(HOUR_S, every=360)
        judged = world.rows("select verdict, reason from verdicts")
        assert judged == [("new", "judged by the model")] * 2
        assert world.model is not None
        assert world.model.calls_of("conflicts") == 2


# ---- C15: a parent whose child fails


def test_c15_a_stretch_of_which_one_stage_failed_is_told_and_the_next_one_goes_on(
    system: MemorySystem, provider: Provider
) -> None:
    need(system, "end", "episodes")
    provider.weather(Fail(status=400))
    tell(system)
    system.end("t1")
    keep_working(system, 2)
    assert states(system) == ["failed"]
    [episode] = system.list(subject="ana", kind="episode")
    assert episode.state in ("failed", "dead")
    assert episode.reason
    tell(system, "I like green tea.")
    system.end("t1")
    keep_working(system, 1)
    assert states(system) == ["failed", "remembered"]
    assert system.wait_idle()
    for each in system.trouble():
        system.retry(each)
    keep_working(system, 1)
    assert states(system) == ["remembered", "remembered"]
    assert_remembered_once(system)


@pytest.mark.own_engine("windows that are worked in slices")
def test_c15_one_slice_that_fails_leaves_the_others_and_a_hand_completes_the_whole(tmp_path: Path) -> None:
    asked: list[int] = []

    def answer(question: Any) -> Any:
        if question.step != "facts":
            return replies()(question)
        asked.append(1)
        return "no" if "second half" in question.user and not mended else {"facts": []}

    mended: list[bool] = []
    with a_world(tmp_path, script=answer, window__tokens_max=200) as world:
        world.add("t", "first half. " * 60 + "second half. " * 30)
        world.end("t")
        world.live(RETRIES_S, every=1200)
        [receipt] = receipts(world)
        assert receipt.state == "failed"
        done = Counter(world.states("extract_facts").values())
        assert done["dead"] >= 1
        assert done["done"] >= 1
        mended.append(True)
        for job, kind in world.rows("select id, kind from jobs where state = 'dead'"):
            assert kind == "extract_facts"
            world.write(retry_by_hand, world.project.id, job)
        world.live(HOUR_S, every=360)
        assert [receipt.state for receipt in receipts(world)] == ["remembered"]
