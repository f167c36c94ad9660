"""What the storm would see, and how it strikes: without its processes."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from tests.postgres import server_url

from everkept.prove.record import Record
from everkept.prove.storm.aftermath import Aftermath, _paid_twice
from everkept.prove.storm.databases import throw_away
from everkept.prove.storm.followers import Inbox
from everkept.prove.storm.model import GARBAGE_MAX, PATIENCE, WEATHER, StormyModel
from everkept.prove.storm.processes import Program
from everkept.prove.storm.strikes import Blow, Crew, Strikes
from everkept.prove.storm.watch import Watch

LEASE_S = 5.0


class Rows:
    """A database that answers what it is told to."""

    is_server = True

    def __init__(self, *rows: tuple[Any, ...], deadlocks: int = 0) -> None:
        self._rows = list(rows)
        self.counted = deadlocks

    def rows(self, _sql: str) -> list[tuple[Any, ...]]:
        return self._rows

    def deadlocks(self) -> int:
        return self.counted


# ---- watching


@pytest.mark.parametrize(
    ("overdue_s", "calm_s", "stuck"),
    [(4.0, 60.0, False), (6.0, 60.0, True), (6.0, 4.0, False)],
    ids=["taken back in time", "left standing", "nobody was there"],
)
def test_a_lease_that_ended_may_stand_for_another_while_somebody_works(
    overdue_s: float, calm_s: float, stuck: bool
) -> None:
    database = cast("Any", Rows((7, "extract_facts", int(overdue_s * 1e6))))
    watch = Watch(database, lease_s=LEASE_S, calm_s=lambda: calm_s, settle_s=0.0)
    watch.look()
    watch.look()
    assert watch.seen.violations == (
        ["G7: extract_facts (job_7) stood under a lease that had ended 6.0 s before"] if stuck else []
    )
    assert watch.seen.longest_overdue_s == min(overdue_s, calm_s)


def test_deadlocks_are_counted_over_restarts_which_begin_at_nothing_again() -> None:
    database = Rows(deadlocks=0)
    watch = Watch(cast("Any", database), lease_s=LEASE_S, calm_s=lambda: 0.0, settle_s=0.0)
    for counted in (1, 1, 3, 0, 2):
        database.counted = counted
        watch.look()
    assert watch.seen.deadlocks == 5


# ---- following


def test_an_inbox_has_each_change_once_and_notices_one_that_was_left_out() -> None:
    inbox = Inbox("default")
    for seq in (1, 2, 2, 3, 5):
        inbox.once(seq)
    assert (inbox.last, inbox.given_again) == (5, 1)
    assert inbox.violations == ["G11: after change 3 of default its follower was given 5"]


# ---- counting what was refused


@pytest.mark.parametrize(
    ("logged", "counted", "deaths", "whole"),
    [(3, 3, 0, True), (3, 2, 1, True), (3, 2, 0, False), (2, 3, 5, False)],
)
def test_refused_finishes_are_all_counted_but_for_one_a_death(
    logged: int, counted: int, deaths: int, whole: bool, tmp_path: Path
) -> None:
    worker = Program("worker-0", ["worker"], tmp_path, {})
    worker.log.write_text('{"event": "finish refused: the lease was lost"}\n' * logged, "utf-8")
    record = Record(tmp_path / "record.jsonl")
    after = Aftermath(
        database=cast("Any", Rows((counted,))), record=record, crew=Crew(servers=[], workers=[worker]), clients=[],
        inboxes=[], rivals=[], model=None, broker=None, publisher=None, deaths=deaths, chance=random.Random(1),
    )  # fmt: skip
    found = list(after._refused())
    worker.close()
    record.close()
    assert after.refused_finishes == counted
    assert (found == []) == whole


# ---- what was paid


@pytest.mark.parametrize(
    ("asked_at", "replies", "violations"),
    [
        ([10, 30], [(1, 20, "no JSON"), (1, 40, None)], 0),
        ([10], [(1, 20, None)], 0),
        ([10, 15], [(2, 20, None)], 0),
        ([10, 30], [(2, 20, None)], 1),
        ([10, 15], [(1, 20, None)], 1),
        ([10, 30, 50], [(1, 20, "no JSON"), (1, 40, None)], 2),
        ([10, 30], [(1, 20, "no JSON"), (1, None, None)], 0),
    ],
    ids=["rejected", "once", "cut off", "though answered", "uncounted", "a third time", "on its way"],
)
def test_a_question_is_paid_once_but_for_a_reply_that_could_not_be_used(
    asked_at: list[int], replies: list[tuple[int, int | None, str | None]], violations: int
) -> None:
    raw = sqlite3.connect(":memory:")
    raw.execute("create table replies(request_hash, asked, replied_at, rejected_because, work, step)")
    raw.executemany("insert into replies values(x'07', ?, ?, ?, 'window:1', 'summary')", replies)
    with StormyModel(seed=1) as model:
        model.asked_at_us = [(b"\x07", at_us) for at_us in asked_at]
        assert len(list(_paid_twice(raw, model, 0))) == violations
    raw.close()


def test_a_slow_answer_about_the_time_makes_no_question_look_asked_again() -> None:
    """Both clocks are this machine's here: the one of the database is ahead by nothing."""
    with throw_away(server_url()) as database:
        assert database.ahead_us_min() <= 0


# ---- the model's weather


def asked(words: str) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "answer"}, {"role": "user", "content": words}]}


def test_every_question_is_answered_in_the_end_and_the_seed_draws_what_comes_before() -> None:
    drawn = []
    for _ in range(2):
        with StormyModel(seed=9) as model:
            drawn.append([[model.draw(asked(f"question {n}")) for _ in range(PATIENCE)] for n in range(200)])
    assert drawn[0] == drawn[1]
    assert {how for hows in drawn[0] for how in hows} == set(WEATHER)
    assert all(hows[-1] == "fine" and hows.count("garbage") <= GARBAGE_MAX for hows in drawn[0])


# ---- striking


class Struck:
    """A process that only says what was done to it."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name = name
        self.up_since_s: float | None = 0.0
        self.alive = True
        self._told = told

    def is_alive(self) -> bool:
        return self.alive

    def __getattr__(self, what: str) -> Callable[[], None]:
        if what not in ("start", "kill", "freeze", "thaw", "ask_to_stop"):
            raise AttributeError(what)
        return lambda: self._do(what)

    def _do(self, what: str) -> None:
        self.alive = {"start": True, "kill": False, "ask_to_stop": False}.get(what, self.alive)
        self._told.append(f"{what} {self.name}")


def struck(seed: int, *, times: int = 40) -> list[str]:
    told: list[str] = []
    crew = Crew(servers=[], workers=cast("Any", [Struck(f"worker-{n}", told) for n in range(4)]))
    blows = [Blow(name="database restarted", weight=20, strike=lambda: told.append("restart"))]
    strikes = Strikes(crew, blows, random.Random(seed), mean_s=3600.0, lease_s=LEASE_S)
    strikes.start()
    for _ in range(times):
        strikes._strike()
    strikes.stop()
    return told


def test_the_seed_draws_the_strikes() -> None:
    assert struck(1) == struck(1) != struck(2)


def test_whoever_was_struck_is_up_in_the_end() -> None:
    told = struck(3)
    for name in (f"worker-{n}" for n in range(4)):
        done = [line.split()[0] for line in told if line.endswith(name)]
        assert done.count("freeze") == done.count("thaw")
        assert done.count("start") == done.count("kill") + done.count("ask_to_stop")


def test_who_ended_without_a_blow_is_started_again() -> None:
    told: list[str] = []
    ended = Struck("worker-0", told)
    ended.alive = False
    strikes = Strikes(
        Crew(servers=[], workers=cast("Any", [ended])), [], random.Random(1), mean_s=3600.0, lease_s=LEASE_S
    )
    strikes.start()
    strikes.stop()
    assert told == ["start worker-0"]
    assert strikes.counts == {"ended by itself": 1}
