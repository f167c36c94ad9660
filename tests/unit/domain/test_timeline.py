"""The outcome depends on what was said and when, never on when it was worked (G9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.domain import timeline
from everkept.domain.timeline import (
    FactState,
    Pair,
    TimelineFact,
    Verdict,
    find_conflicts,
    judge_offline,
    settle,
    settle_and_find,
)

DAY = 86_400_000_000


def say(id: int, day: int, object: str, predicate: str = "lives in", **fields: Any) -> TimelineFact:
    made = {"stream": 1, "seq": day + 1, "draft": id, "entity": "Ana", "confidence": 0.9, **fields}
    return TimelineFact(id=id, said_us=day * DAY, predicate=predicate, object=object, **made)


def states(*facts: TimelineFact, verdicts: dict[Pair, Verdict] | None = None) -> dict[int, FactState]:
    return {state.id: state for state in settle(facts, verdicts or {})}


def live(found: dict[int, FactState]) -> set[int]:
    """Believed and without an end."""
    return {id for id, state in found.items() if state.live and state.closed_at_us is None}


def test_later_statement_closes_the_earlier_at_its_time() -> None:
    found = states(say(1, 0, "Berlin"), say(2, 10, "Lisbon"))
    assert live(found) == {2}
    assert (found[1].closed_at_us, found[1].closed_by, found[1].superseded_by) == (10 * DAY, 2, 2)


def test_late_window_closes_its_own_facts() -> None:
    found = states(say(2, 10, "Lisbon"), say(1, 0, "Berlin"))
    assert live(found) == {2}


def test_valid_until_is_never_before_valid_from() -> None:
    found = states(say(1, 5, "Berlin", valid_from_us=5 * DAY), say(2, 10, "Lisbon", valid_from_us=5 * DAY))
    assert found[1].closed_at_us == 5 * DAY


def test_statement_about_an_earlier_period_closes_nothing() -> None:
    found = states(say(1, 0, "Berlin"), say(2, 10, "Rome", valid_until_us=-400 * DAY))
    assert live(found) == {1}
    assert found[2].live
    assert found[2].closed_at_us == -400 * DAY


def test_statement_with_an_earlier_start_is_ended_by_what_came_after() -> None:
    found = states(say(1, 0, "Lisbon", valid_from_us=-100 * DAY), say(2, 10, "Porto", valid_from_us=-900 * DAY))
    assert live(found) == {1}
    assert found[2].closed_at_us == -100 * DAY


def test_repetition_is_kept_and_supports_the_first() -> None:
    found = states(say(1, 0, "Berlin"), say(2, 10, "berlin."))
    assert live(found) == {1}
    assert found[2].duplicate_of == 1


def test_return_to_an_earlier_object_is_a_new_fact() -> None:
    found = states(say(1, 0, "Berlin"), say(2, 10, "Lisbon"), say(3, 20, "Berlin"))
    assert live(found) == {3}
    assert found[3].duplicate_of is None
    assert [found[id].closed_at_us for id in (1, 2)] == [10 * DAY, 20 * DAY]


def test_many_valued_statements_stand_together() -> None:
    assert live(states(say(1, 0, "tea", "likes"), say(2, 1, "coffee", "loves"))) == {1, 2}


def test_closure_names_what_it_ends_in_another_form_of_the_word() -> None:
    found = states(say(1, 0, "go hiking in Saxony", "plans to"), say(2, 3, "hike", "plans to", closes=True))
    assert (found[1].closed_at_us, found[1].closed_by) == (3 * DAY, 2)


def test_closure_ends_the_matching_statement_at_its_date() -> None:
    car = say(1, 0, "a red car", "owns")
    found = states(car, say(2, 10, "car", "owns", closes=True, valid_until_us=7 * DAY))
    assert (found[1].closed_at_us, found[1].closed_by, found[1].superseded_by) == (7 * DAY, 2, None)
    assert found[2].live


def test_closure_that_fits_several_ends_none() -> None:
    found = states(say(1, 0, "red car", "owns"), say(2, 1, "blue car", "owns"), say(3, 9, "car", "owns", closes=True))
    assert {1, 2} <= live(found)


def test_closure_by_a_general_word_ends_what_is_open() -> None:
    found = states(say(1, 0, "Tom", "is dating"), say(2, 9, "partner", "is together with", closes=True))
    assert found[1].closed_at_us == 9 * DAY


def test_closure_never_ends_before_the_beginning() -> None:
    found = states(
        say(1, 5, "car", "owns", valid_from_us=5 * DAY), say(2, 9, "car", "owns", closes=True, valid_until_us=DAY)
    )
    assert found[1].closed_at_us == 5 * DAY


def test_statement_after_a_closure_is_new() -> None:
    found = states(say(1, 0, "car", "owns"), say(2, 5, "car", "owns", closes=True), say(3, 9, "car", "owns"))
    assert found[3].live
    assert found[3].duplicate_of is None


def test_correction_retires_belief_and_what_it_had_closed_reopens() -> None:
    found = states(say(1, 0, "Berlin"), say(2, 5, "Lisbon"), say(3, 6, "Berlin", correction=True))
    assert found[2].retired == "corrected"
    assert found[2].superseded_by == 3
    assert live(found) == {1}
    assert found[3].duplicate_of == 1


def test_correction_takes_back_the_object_that_it_names() -> None:
    found = states(
        say(1, 0, "tea", "likes"),
        say(2, 1, "beer", "likes"),
        say(3, 2, "coffee", "likes", correction=True, replaces="tea"),
    )
    assert live(found) == {2, 3}
    assert found[1].retired == "corrected"


def test_weak_statement_closes_nothing() -> None:
    assert live(states(say(1, 0, "Berlin"), say(2, 5, "Lisbon", confidence=0.4))) == {1, 2}
    assert live(states(say(1, 0, "Berlin"), say(2, 5, "Lisbon", confidence=float("nan")))) == {1, 2}
    assert states(say(1, 0, "Berlin"), say(2, 5, "Rome", correction=True, confidence=0.3))[1].retired is None


def test_weak_statement_never_stands_for_a_firm_one() -> None:
    found = states(say(1, 0, "Berlin", confidence=0.3), say(2, 5, "Berlin"))
    assert live(found) == {2}
    assert found[1].duplicate_of == 2


def test_weak_repetitions_follow_to_the_firm_one() -> None:
    found = states(say(1, 0, "Berlin", confidence=0.3), say(2, 1, "Berlin", confidence=0.3), say(3, 5, "Berlin"))
    assert [found[id].duplicate_of for id in (1, 2, 3)] == [3, 3, None]


def test_pinned_fact_keeps_its_state() -> None:
    found = states(say(1, 0, "Berlin", pinned=True), say(2, 5, "Lisbon"), say(3, 6, "Rome", correction=True))
    assert found[1] == replace(found[1], live=True, closed_at_us=None, retired=None, unsettled=False)


def test_fact_retired_by_hand_stays_so_and_undo_restores() -> None:
    facts = [say(1, 0, "Berlin"), say(2, 5, "Lisbon", retired_by_hand="by hand"), say(3, 9, "Berlin")]
    found = states(*facts)
    assert found[2].retired == "by hand"
    assert live(found) == {1}
    assert live(states(facts[0], replace(facts[1], retired_by_hand=None), facts[2])) == {3}


def test_unknown_cardinality_is_open_until_judged() -> None:
    facts = [say(1, 0, "chess club", "is part of"), say(2, 5, "book club", "is part of")]
    found = states(*facts)
    assert find_conflicts(facts, {}) == [(1, 2)]
    assert find_conflicts(facts, {}, new_ids={3}) == []
    assert all(found[id].unsettled for id in (1, 2))
    assert live(found) == {2}
    assert live(states(*facts, verdicts={(1, 2): "both"})) == {1, 2}
    assert live(states(*facts, verdicts={(1, 2): "new"})) == {2}
    old = states(*facts, verdicts={(1, 2): "old"})
    assert (live(old), old[2].retired, old[2].superseded_by) == ({1}, "judged", 1)


def test_caller_gives_pairs_of_near_objects() -> None:
    facts = [say(1, 0, "tea every morning", "likes"), say(2, 5, "tea", "dislikes")]
    assert find_conflicts(facts, {(1, 2): "open"}) == [(1, 2)]
    assert live(states(*facts, verdicts={(1, 2): "open"})) == {2}
    assert live(states(*facts, verdicts={(1, 2): "new"})) == {2}


def test_offline_rule() -> None:
    assert judge_offline(say(1, 0, "a"), say(2, 1, "b")) == "new"
    assert judge_offline(say(1, 0, "a", "knows"), say(2, 1, "b", "knows")) == "both"
    assert judge_offline(say(1, 0, "a", "knows"), say(2, 1, "b", "knows", single_valued=True)) == "new"


# ---- order independence

days = st.integers(-20, 40)
maybe_day = st.none() | days


@st.composite
def facts_of_one_subject(draw: st.DrawFn) -> list[TimelineFact]:
    made: list[TimelineFact] = []
    for id in range(1, draw(st.integers(2, 9)) + 1):
        start, end = draw(maybe_day), draw(maybe_day)
        if start is not None and end is not None and end < start:
            start, end = end, start
        made.append(
            TimelineFact(
                id=id, said_us=draw(st.integers(0, 20)) * DAY, stream=draw(st.integers(1, 2)),
                seq=draw(st.integers(1, 3)), draft=id, entity=draw(st.sampled_from(["Ana", "Tom"])),
                predicate=draw(st.sampled_from(["lives in", "moved to", "likes", "is part of"])),
                object=draw(st.sampled_from(["Berlin", "Lisbon", "Old Lisbon", "partner"])),
                confidence=draw(st.sampled_from([0.3, 0.9])), single_valued=draw(st.sampled_from([None, True, False])),
                valid_from_us=None if start is None else start * DAY, valid_until_us=None if end is None else end * DAY,
                closes=draw(st.integers(0, 5)) == 0, correction=draw(st.integers(0, 5)) == 0,
                replaces=draw(st.sampled_from(["", "", "Berlin"])), pinned=draw(st.integers(0, 9)) == 0,
                retired_by_hand="by hand" if draw(st.integers(0, 9)) == 0 else None,
            )
        )  # fmt: skip
    return made


def judge(earlier: TimelineFact, later: TimelineFact) -> Verdict:
    """A judge that is the same for the same pair, and gives every ruling."""
    rulings: list[Verdict] = ["old", "new", "both"]
    return rulings[(earlier.id * 7 + later.id * 3) % 3]


def work(batches: Sequence[Sequence[TimelineFact]]) -> list[FactState]:
    """Facts arrive in batches; after each, everything that is open is judged, as the jobs would."""
    known: dict[int, TimelineFact] = {}
    verdicts: dict[Pair, Verdict] = {}
    for batch in batches:
        known |= {fact.id: fact for fact in batch}
        while pairs := [pair for pair in find_conflicts(known.values(), verdicts) if pair not in verdicts]:
            verdicts |= {pair: judge(known[pair[0]], known[pair[1]]) for pair in pairs}
    return settle(known.values(), verdicts)


@given(facts_of_one_subject(), st.data())
def test_any_order_and_grouping_ends_in_the_same_states(facts: list[TimelineFact], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(facts))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(facts) - 1))))
    batches = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(facts)], strict=True)]
    assert work([facts]) == work(batches)


@given(facts_of_one_subject(), st.data())
def test_row_ids_decide_nothing(facts: list[TimelineFact], data: st.DataObject) -> None:
    names = data.draw(st.permutations([fact.id + 100 for fact in facts]))
    renamed = {fact.id: name for fact, name in zip(facts, names, strict=True)}

    def name(id: int | None) -> int | None:
        return None if id is None else renamed[id]

    expected = [
        replace(
            state, id=renamed[state.id], closed_by=name(state.closed_by), superseded_by=name(state.superseded_by),
            duplicate_of=name(state.duplicate_of),
        )
        for state in settle(facts, {})
    ]  # fmt: skip
    assert settle([replace(fact, id=renamed[fact.id]) for fact in facts], {}) == expected


@given(facts_of_one_subject())
def test_states_are_sound(facts: list[TimelineFact]) -> None:
    by_id = {fact.id: fact for fact in facts}
    found = settle(facts, {})
    assert len(found) == len(facts)
    standing = {state.id for state in found if state.retired is None and state.duplicate_of is None}
    for state in found:
        fact = by_id[state.id]
        if fact.valid_from_us is not None and state.closed_at_us is not None:
            assert fact.valid_from_us <= state.closed_at_us
        if state.closed_by is not None:
            assert not by_id[state.closed_by].confidence < 0.5
        if fact.pinned and fact.retired_by_hand is None:
            assert state.live
            assert state.closed_at_us == fact.valid_until_us
        assert not (fact.retired_by_hand and state.live)
        assert state.duplicate_of is None or state.duplicate_of in standing
        assert not state.unsettled or state.id in standing


def test_notes_stand_beside_each_other_without_being_compared() -> None:
    notes = [say(n, n, f"note {n}", "note", single_valued=False) for n in range(50)]
    one = say(50, 50, "the one", "note", single_valued=True)
    assert live(states(*notes)) == set(range(50))
    assert find_conflicts(notes, {}) == []
    assert find_conflicts([*notes, one], {}) == [(n, 50) for n in range(42, 50)]


def test_one_replay_tells_states_and_conflicts() -> None:
    facts = [say(1, 0, "tea", "sips"), say(2, 1, "coffee", "sips"), say(3, 2, "Rome"), say(4, 3, "Porto")]
    assert settle_and_find(facts, {}) == (settle(facts, {}), find_conflicts(facts, {}))


def test_a_statement_replaces_what_still_held_and_not_all_that_ever_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long slot is settled in the writer's lock: what had ended already is not ended again."""
    asked: list[tuple[int, int]] = []
    replace_one = timeline._replace

    def noted(earlier: Any, later: Any) -> None:
        asked.append((earlier.fact.id, later.fact.id))
        replace_one(earlier, later)

    monkeypatch.setattr(timeline, "_replace", noted)
    found = states(*(say(n, n, f"town {n}") for n in range(1, 101)))
    assert asked == [(n, n + 1) for n in range(1, 100)]
    assert [found[n].superseded_by for n in range(1, 101)] == [*range(2, 101), None]
