"""The smoke of the state machine of deliveries: its hard cases, some hundred steps, and proof that each rule worked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.crash.model.__main__ import run_once
from tests.crash.model.deliveries.machine import Deliveries
from tests.crash.model.deliveries.scenes import SCENES, play

SEEDS = (3, 5)
RUNS = 6
STEPS = 50
HAPPENED = (
    "ack.beyond_refused", "ack.done", "ack.old", "ack.refused", "ack.unread_refused", "change.offered_again",
    "change.parked", "change.taken_back", "consumer.busy", "consumer.not_kept", "consumer.removed",
    "consumer.taken_over", "effect.done", "effect.left_out", "erase.refused", "follower.died_in_effect",
    "follower.heard_all", "follower.moved", "hook.added", "hook.heard_all", "hook.moved", "hook.replayed_back",
    "merge.begun", "merge.refused", "post.again", "post.busy", "post.deaf", "post.dies", "post.down", "post.error",
    "post.hangs", "post.rejects", "post.well", "replay.back", "replay.on", "restart.after_kill", "restart.polite",
    "runs", "say.refused", "sender.killed_busy", "told.full", "trouble.full_rolled_back", "trouble.kill",
)  # fmt: skip
"""What must really have happened in the smoke: a check over what never happens proves nothing."""


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_hard_case_of_delivery_holds(scene: Callable[[Deliveries], None]) -> None:
    play(scene)


@pytest.mark.parametrize("number", SEEDS)
def test_no_delivery_is_violated_from_seed(number: int) -> None:
    """Again with more steps: `python -m tests.crash.model --machine deliveries --steps 2000 --seed <number>`."""
    run_once(Deliveries, number, RUNS, STEPS)


def test_every_rule_of_delivery_ran_and_every_outcome_happened() -> None:
    rules = {name for name in dir(Deliveries) if hasattr(getattr(Deliveries, name), "hypothesis_stateful_rule")}
    ran = {name.removeprefix("rule.") for name in Deliveries.tally if name.startswith("rule.")}
    missing_rules = sorted(rules - ran - {"go_on"})
    assert missing_rules == [], "these rules never did anything"
    missing = [name for name in HAPPENED if not Deliveries.tally[name]]
    assert missing == [], "the smoke proves nothing about these: choose seeds or weights under which they happen"
