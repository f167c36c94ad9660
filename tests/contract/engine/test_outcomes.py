"""What becomes of a failed job, by the class of its error; the weather of a provider; an outage of two days (G7)."""

from __future__ import annotations

import itertools
import json

import pytest
from tests.factories import HOUR_S, MINUTE_S, World, kind_of, plain_reply

from everkept.domain.jobs import Discard, Done, Retry, Snooze
from everkept.errors import (
    EverkeptError,
    InvalidOutput,
    OverBudget,
    Permanent,
    ProviderDown,
    RateLimited,
    Refused,
    StoreFull,
    StoreUnavailable,
    SubjectMoved,
    Transient,
)
from everkept.store.providers import forget_other_pools, note_answer, note_failure, permits_left

POOL = "fake"


def failing(world: World, error: Exception | None, *, pool: str | None = None, attempts_max: int = 4) -> list[float]:
    """A worker whose one kind of job raises `error`; when it ran, in seconds."""
    ran: list[float] = []

    async def run(args, ctx):
        ran.append(world.clock.monotonic_s())
        if error is not None:
            raise error
        ctx.heard()
        return await ctx.finish(lambda _conn: None)

    world.runner(kinds=kind_of(run, attempts_max=attempts_max), pools={"model": pool})
    return ran


# class of the error → state, attempts spent, seconds until it is tried again (at least, at most)
SINGLE_FAILURES = [
    pytest.param(Transient("x"), ("waiting", 1), (2.5, 5), id="transient"),
    pytest.param(RateLimited("x", retry_after_s=77), ("waiting", 0), (77, 77), id="rate_limited with Retry-After"),
    pytest.param(RateLimited("x"), ("waiting", 0), (2.5, 5), id="rate_limited"),
    pytest.param(ProviderDown("x"), ("waiting", 0), (2.5, 5), id="provider_down"),
    pytest.param(OverBudget("x", retry_after_s=3600), ("waiting", 0), (3600, 3600), id="over_budget"),
    pytest.param(SubjectMoved("x"), ("waiting", 0), (0, 0), id="subject_moved"),
    pytest.param(StoreUnavailable("x"), ("waiting", 0), (2.5, 5), id="store_unavailable"),
    pytest.param(StoreFull("x"), ("waiting", 0), (2.5, 5), id="store_full"),
    pytest.param(InvalidOutput("x"), ("dead", 1), None, id="invalid_output"),
    pytest.param(Refused("x"), ("dead", 1), None, id="refused"),
    pytest.param(Permanent("x"), ("dead", 1), None, id="permanent"),
    pytest.param(ValueError("x"), ("waiting", 1), (2.5, 5), id="internal"),
    pytest.param(EverkeptError("x"), ("waiting", 1), (2.5, 5), id="internal of ours"),
]


@pytest.mark.parametrize(("error", "expected", "again_s"), SINGLE_FAILURES)
def test_the_class_of_an_error_decides_what_becomes_of_the_job(world: World, error, expected, again_s) -> None:
    failing(world, error)
    world.schedule("a")
    world.step()

    job = world.job("a")
    assert (job["state"], job["attempts"]) == expected
    assert job["crashes"] == 0
    assert job["error_class"] == (error.code if isinstance(error, EverkeptError) else "internal")
    assert "x" in job["error"]
    assert [r["class"] for r in json.loads(job["history"])] == [job["error_class"]]
    if again_s is not None:
        assert again_s[0] <= job["due_at"] <= again_s[1]


@pytest.mark.parametrize("error", [Transient("x"), ValueError("x")])
def test_an_error_that_spends_is_tried_four_times_with_a_growing_wait_and_is_then_dead(world: World, error) -> None:
    ran = failing(world, error)
    world.schedule("a")
    for _ in range(20):
        world.step()
        world.tick(max(0.0, world.job("a")["due_at"]))

    assert (world.job("a")["state"], len(ran)) == ("dead", 4)
    waits = [b - a for a, b in itertools.pairwise(ran)]
    assert all(least <= wait <= 2 * least for least, wait in zip((2.5, 5, 10), waits, strict=True))


def test_the_wait_grows_to_an_hour_at_most(world: World) -> None:
    ran = failing(world, ValueError("x"), attempts_max=100)
    world.schedule("a")
    for _ in range(20):
        world.step()
        world.tick(max(0.0, world.job("a")["due_at"]))

    waits = [b - a for a, b in itertools.pairwise(ran)]
    assert HOUR_S / 2 <= waits[-1] <= HOUR_S
    assert len(set(waits[-5:])) == 5, "jitter spreads them"


def test_no_lease_is_held_while_waiting(world: World) -> None:
    failing(world, RateLimited("x", retry_after_s=50))
    world.schedule("a")
    world.step()
    assert (world.job("a")["owner"], world.value("select sum(running) from lanes")) == (None, 0)


@pytest.mark.parametrize(
    ("outcome", "state"), [(Done(), "done"), (Discard("gone"), "discarded"), (Snooze(0, "later"), "waiting")], ids=str
)
def test_outcomes_are_values(world: World, outcome, state) -> None:
    async def run(args, ctx):
        return outcome

    world.runner(kinds=kind_of(run))
    world.schedule("a")
    world.step()
    assert (world.job("a")["state"], world.job("a")["attempts"]) == (state, 0)


def test_a_job_keeps_the_last_twenty_of_its_failures(world: World) -> None:
    world.schedule("a")
    for n in range(25):
        (lease,) = world.claim()
        world.finish(lease, Retry(world.clock.now_us(), "rate_limited", f"no {n}", spend=False))
    assert [row["error"] for row in json.loads(world.job("a")["history"])] == [f"no {n}" for n in range(5, 25)]


def test_a_kind_nobody_knows_is_tried_again_and_named(world: World) -> None:
    world.runner(kinds=kind_of())
    world.schedule("a", kind="from_the_future")
    world.step()

    job = world.job("a", "from_the_future")
    assert (job["state"], job["attempts"]) == ("waiting", 0)
    assert "from_the_future" in job["error"]


def test_a_job_that_raises_does_not_end_the_worker(world: World) -> None:
    """C06."""

    async def run(args, ctx):
        if ctx.lease.key == "bad":
            raise RuntimeError("boom")
        return await ctx.finish(lambda _conn: None)

    world.runner(kinds=kind_of(run))
    world.schedule("bad")
    world.schedule("good")
    world.run_until_idle()
    assert world.states("work") == {"bad": "waiting", "good": "done"}


def test_a_job_that_is_done_still_says_how_often_it_failed(world: World) -> None:
    world.schedule("a")
    for outcome in (Retry(world.clock.now_us(), "transient", "x", spend=True), Done()):
        (lease,) = world.claim()
        world.finish(lease, outcome)
    assert (world.job("a")["state"], world.job("a")["attempts"]) == ("done", 1)
    world.schedule("a")
    assert world.job("a")["attempts"] == 0


# ---- the circuit


def circuit(world: World) -> tuple[str, int]:
    """(state, permits)."""
    row = world.rows("select circuit, permits from providers where pool = ?", POOL)[0]
    return row[0], int(row[1])


def left(world: World, running: int = 0) -> int:
    return world.write(permits_left, POOL, running, 8)


def fail(world: World, error_class: str, retry_after_s: float | None = None) -> bool:
    def note(conn) -> bool:
        return note_failure(conn, POOL, error_class, "x", probe_s=60, retry_after_s=retry_after_s)

    return world.write(note)


def test_permits_bound_what_runs_at_once(world: World) -> None:
    assert [left(world, n) for n in (0, 5, 8, 11)] == [8, 3, 0, 0]


def test_provider_down_opens_the_circuit_for_all_but_one_probe(world: World) -> None:
    left(world)
    assert fail(world, "provider_down")
    assert (circuit(world)[0], left(world)) == ("open", 0)
    world.tick(60)
    assert [left(world, 0), left(world, 1)] == [1, 0]


def test_the_first_transient_failure_is_the_jobs_own_the_second_in_a_row_the_providers(world: World) -> None:
    left(world)
    assert [fail(world, "transient") for _ in range(3)] == [False, True, True]
    assert circuit(world)[0] == "open"


def test_an_answer_between_two_failures_keeps_the_circuit_closed(world: World) -> None:
    left(world)
    for _ in range(6):
        assert not fail(world, "transient")
        world.write(note_answer, POOL, 8)
    assert circuit(world)[0] == "closed"


def test_probes_come_less_and_less_often_up_to_ten_minutes(world: World) -> None:
    left(world)
    waits = []
    for _ in range(8):
        fail(world, "provider_down")
        waited = 0
        while not left(world):
            world.tick(30)
            waited += 30
        waits.append(waited)
    assert waits == [60, 120, 240, 480, 600, 600, 600, 600]


def test_calls_that_fail_together_are_one_failure_and_the_latest_time_to_come_back_counts(world: World) -> None:
    left(world)
    for _ in range(5):
        assert fail(world, "provider_down")
    world.tick(60)
    assert left(world) == 1
    fail(world, "rate_limited", 10)
    fail(world, "rate_limited", 90)
    world.tick(89)
    assert left(world) == 0
    world.tick(1)
    assert left(world) == 1


def test_an_answer_to_what_was_asked_before_the_circuit_opened_leaves_it_open(world: World) -> None:
    left(world)
    fail(world, "provider_down")
    world.write(note_answer, POOL, 8)
    assert (circuit(world)[0], left(world)) == ("open", 0)


def test_a_provider_that_wants_to_be_left_alone_for_years_is_asked_after_a_day(world: World) -> None:
    left(world)
    fail(world, "rate_limited", 1e9)
    world.tick(24 * HOUR_S)
    assert left(world) == 1


def test_a_probe_that_was_refused_was_answered_and_closes_the_circuit(world: World) -> None:
    failing(world, Refused("no"), pool=POOL)
    left(world)
    fail(world, "provider_down")
    world.tick(60)
    world.schedule("a", uses="model")
    world.step()
    assert (world.job("a")["state"], circuit(world)[0]) == ("dead", "closed")


def test_a_new_key_wakes_what_waited_for_the_old_one_and_nothing_else(world: World) -> None:
    left(world)
    fail(world, "provider_down")
    for key, error_class in (("a", "provider_down"), ("b", "over_budget")):
        world.schedule(key)
        (lease,) = world.claim()
        world.finish(lease, Retry(world.clock.now_us() + 600_000_000, error_class, "x", spend=False))
    world.write(forget_other_pools, ["new key"])
    assert (world.job("a")["due_at"], world.job("b")["due_at"]) == (0, 600)


def test_an_answer_closes_the_circuit(world: World) -> None:
    left(world)
    fail(world, "provider_down")
    world.tick(60)
    world.write(note_answer, POOL, 8)
    assert (circuit(world)[0], left(world)) == ("closed", 8)


def test_rate_limits_halve_the_permits_and_answers_let_them_grow_back(world: World) -> None:
    left(world)
    permits = []
    for _ in range(4):
        fail(world, "rate_limited", 10)
        permits.append(circuit(world)[1])
    assert permits == [4, 2, 1, 1]
    world.tick(HOUR_S)
    for n in range(60):
        world.write(note_answer, POOL, 8)
        assert circuit(world)[1] <= 8
        if n == 0:
            assert circuit(world)[1] == 2
    assert circuit(world) == ("closed", 8)


def test_retry_after_is_honoured_for_the_whole_pool(world: World) -> None:
    left(world)
    fail(world, "rate_limited", 90)
    world.tick(89)
    assert left(world) == 0
    world.tick(1)
    assert left(world) == 1


def test_jobs_of_a_pool_that_is_out_are_not_claimed_and_local_ones_are(world: World) -> None:
    ran = failing(world, ProviderDown("no key"), pool=POOL)
    for n in range(6):
        world.schedule(f"m{n}", uses="model", lane=world.lane(f"s{n}"))
    world.step()
    before = world.rows("select * from jobs where state = 'ready'")
    world.tick(20)
    world.schedule("local")
    world.run_until_idle()

    assert len(ran) == 4 + 1
    assert world.rows("select count(*) from jobs where uses = 'model' and attempts > 0") == [(0,)]
    assert [
        r for r in world.rows("select * from jobs where state = 'ready' and uses = 'model'") if r in before
    ] == before


def test_work_goes_on_by_itself_once_the_provider_is_mended(modelled: World) -> None:
    assert modelled.model is not None
    modelled.model.fail_with(ProviderDown("the key was revoked"))
    for n in range(10):
        modelled.add(f"t{n}", "I live in Lisbon", subject=f"s{n}")
    modelled.live(3 * HOUR_S, every=60)
    assert set(modelled.states("extract_facts").values()) <= {"waiting", "ready"}
    assert circuit(modelled)[0] == "open"

    modelled.model.fail_with(None)
    modelled.live(30 * MINUTE_S, every=60)
    assert set(modelled.states().values()) == {"done"}
    assert circuit(modelled)[0] == "closed"


@pytest.mark.parametrize("error", [ProviderDown("402"), Transient("503"), RateLimited("429")], ids=lambda e: e.code)
def test_c04_an_outage_of_two_days_loses_nothing_and_needs_no_hand(modelled: World, error) -> None:
    assert modelled.model is not None
    modelled.model.fail_with(error)
    for hour in range(0, 48, 2):
        modelled.add(f"t{hour}", "I live in Lisbon", subject=f"s{hour % 5}")
        modelled.live(2 * HOUR_S, every=1200)

    assert modelled.rows("select key, attempts, error from jobs where state = 'dead' or attempts > 1") == []
    modelled.model.fail_with(None)
    modelled.live(2 * HOUR_S, every=300)
    assert set(modelled.states().values()) == {"done"}
    assert modelled.value("select count(*) from windows") == 24
    assert modelled.value("select count(*) from windows where facts_at is null or summary_at is null") == 0


@pytest.mark.parametrize("error", [ProviderDown("402"), Transient("503"), RateLimited("429")], ids=lambda e: e.code)
def test_requests_of_an_hour_are_bounded_while_a_provider_is_out(modelled: World, error) -> None:
    assert modelled.model is not None
    modelled.model.fail_with(error)
    for n in range(20):
        modelled.add(f"t{n}", "I live in Lisbon", subject=f"s{n}")
    modelled.tick(HOUR_S)
    per_hour = []
    for _ in range(3):
        asked = modelled.model.calls
        modelled.live(HOUR_S, every=30)
        per_hour.append(modelled.model.calls - asked)

    assert per_hour[0] <= 4 + 12
    assert max(per_hour[1:]) <= 7


def test_work_without_a_call_during_an_outage_lets_no_attempt_be_spent(modelled: World) -> None:
    """Short folds and kept replies end well without asking anybody: that tells nothing of the provider."""
    assert modelled.model is not None
    modelled.add("early", "hello", subject="zoe")
    modelled.live(HOUR_S, every=600)
    modelled.model.fail_with(Transient("503"))
    modelled.add("late", "I live in Lisbon")
    stream = modelled.stream("early")
    for _ in range(40):
        modelled.schedule(str(stream), kind="fold_summary", uses="model", args=json.dumps({"stream": stream}))
        modelled.live(15 * MINUTE_S, every=300)

    assert modelled.rows("select kind, key from jobs where state = 'dead' or attempts > 1") == []


def test_a_run_on_kept_replies_does_not_close_the_circuit(world: World) -> None:
    async def run(args, ctx):
        return await ctx.finish(lambda _conn: None)

    world.runner(kinds=kind_of(run), pools={"model": POOL})
    left(world)
    fail(world, "provider_down")
    world.tick(60)
    world.schedule("a", uses="model")
    world.step()

    assert world.job("a")["state"] == "done"
    assert circuit(world)[0] == "open"


def test_a_worker_spends_its_probe_on_what_has_been_due_for_longest(world: World) -> None:
    """And not on whose turn it is: one bad question could be every probe."""
    ran: list[str] = []

    async def run(args, ctx):
        ran.append(ctx.lease.key)
        world.tick(5)
        ctx.heard()
        return await ctx.finish(lambda _conn: None)

    world.runner(kinds=kind_of(run), pools={"model": POOL})
    world.schedule("before", uses="model")
    world.step()
    world.schedule("long due", uses="model")
    world.tick(1)
    world.schedule("just due", lane=world.lane("new"), uses="model")
    fail(world, "provider_down")
    world.tick(MINUTE_S)
    world.step()
    assert ran == ["before", "long due"]


def test_an_answer_that_cannot_be_used_is_an_answer(make_world) -> None:
    """Three replies in a row that do not parse are no outage."""
    world = make_world(script=lambda _question: "no JSON here")
    for n in range(5):
        world.add(f"t{n}", "I live in Lisbon", subject=f"s{n}")
    world.live(HOUR_S, every=60)

    assert circuit(world)[0] == "closed"
    assert set(world.states("extract_facts").values()) == {"dead"}
    assert {("invalid_output",)} == set(world.rows("select error_class from jobs where kind = 'extract_facts'"))
    assert world.model.calls_of("facts") == 2 * 5


def test_c05_a_refusal_is_final_at_once_and_no_outage(make_world) -> None:
    world = make_world(script=lambda question: Refused("no") if question.step == "facts" else plain_reply(question))
    for n in range(5):
        world.add(f"t{n}", "I live in Lisbon", subject=f"s{n}")
    world.live(HOUR_S, every=60)

    assert world.model.calls_of("facts") == 5
    assert set(world.states("extract_facts").values()) == {"dead"}
    assert set(world.states("summarise_episode").values()) == {"done"}
    assert circuit(world)[0] == "closed"


def test_a_poison_question_is_asked_a_bounded_number_of_times(make_world) -> None:
    """C12: one window whose question always times out, among others that are answered."""

    def answer(question):
        return Transient("timed out") if "poison" in question.user else plain_reply(question)

    world = make_world(script=answer)
    world.add("bad", "this is poison", subject="bad")
    for n in range(30):
        world.add(f"t{n}", "hello", subject=f"s{n % 3}")
        world.live(10 * MINUTE_S, every=60)
    world.live(6 * HOUR_S, every=60)

    poison = sum("poison" in q.user and q.step == "facts" for q in world.model.questions)
    assert poison <= 60
    others = dict(
        world.rows("select j.state, count(*) from jobs j where kind = 'extract_facts' and key <> '1.0' group by 1")
    )
    assert others == {"done": 30}


# ---- the subject moved


def test_a_job_whose_subject_moved_runs_again_at_once_without_spending_an_attempt(world: World) -> None:
    ran: list[int] = []

    async def run(args, ctx):
        ran.append(1)
        if len(ran) <= 6:
            raise SubjectMoved("moved")
        return await ctx.finish(lambda _conn: None)

    world.runner(kinds=kind_of(run, attempts_max=2))
    world.schedule("a")
    world.run_until_idle()
    assert (world.job("a")["state"], len(ran), world.clock.monotonic_s()) == ("done", 7, 0.0)


def test_facts_extracted_while_the_subject_moved_are_not_written_and_cost_no_second_reply(make_world) -> None:
    moved: list[int] = []

    def answer(question):
        if question.step == "facts" and not moved:
            moved.append(1)
            world.do("update subjects set revision = revision + 1")
        return plain_reply(question)

    world = make_world(script=answer)
    world.add("t", "I live in Lisbon")
    world.end("t")
    world.run_until_idle()

    job = world.job("1.0", "extract_facts")
    assert (job["state"], job["attempts"]) == ("done", 0)
    assert world.model.calls_of("facts") == 1
