"""The smoke of the state machine of conversations: hard cases, some hundred steps, and proof that each rule worked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.crash.model.__main__ import run_once
from tests.crash.model.machine import Model
from tests.crash.model.scenes import SCENES, play

SEEDS = (3, 7)
RUNS = 6
STEPS = 60
HAPPENED = (
    "append.stored", "append.unknown_kept", "append.unknown_lost", "told.409", "told.other_subject", "replay.same",
    "replay.erased", "pulled", "claim", "claim.alone", "renewed", "expired", "killed.busy", "restart.after_kill",
    "restart.polite", "refused", "refused.taken", "subject_moved", "cut_off", "trouble.kill",
    "trouble.full_rolled_back", "group.full_inside", "reply.kept", "reply.rejected", "late.answered", "weather.down",
    "weather.limited", "weather.garbage", "weather.refusal", "ask.summary", "ask.facts", "done.open_window",
    "done.summarise_episode", "done.extract_facts", "done.fold_summary", "done.embed_passages", "done.erase_scope",
    "done.judge_conflicts", "failure.refused", "failure.provider_down", "failure.rate_limited", "dead.refused",
    "dead.crashed", "hand.retried", "hand.released", "forgotten", "undone", "erased.EventTarget", "erased.StreamTarget",
    "erased.SubjectTarget", "erased.in_flight", "erased.looked_for", "erased.looked_for_in_bytes", "foreign.refused",
    "foreign.erase_refused",
    "window.opened", "home.settled", "receipt.remembered", "receipt.skipped", "receipt.failed", "final.remembered",
    "final.skipped", "runs",
)  # fmt: skip
"""What must really have happened in the smoke: a check over what never happens proves nothing."""


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_hard_case_holds(scene: Callable[[Model], None]) -> None:
    play(scene)


@pytest.mark.parametrize("number", SEEDS)
def test_nothing_is_violated_from_seed(number: int) -> None:
    """Again with more steps: `python -m tests.crash.model --machine conversations --steps 2000 --seed <number>`."""
    run_once(Model, number, RUNS, STEPS)


def test_every_rule_ran_and_every_outcome_happened() -> None:
    rules = {name for name in dir(Model) if hasattr(getattr(Model, name), "hypothesis_stateful_rule")}
    ran = {name.removeprefix("rule.") for name in Model.tally if name.startswith("rule.")}
    assert len(ran) == len(rules), f"rules that never ran, of {sorted(rules)}: only {sorted(ran)}"
    missing = [name for name in HAPPENED if not Model.tally[name]]
    assert missing == [], "the smoke proves nothing about these: choose seeds or weights under which they happen"
