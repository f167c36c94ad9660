"""Facts in the store: from evidence alone, over the subject that was read, once (G5, G6, G9)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from tests.factories import US, World, plain_reply

from everkept.domain.facts import FactDraft
from everkept.domain.jobs import Discard, Done
from everkept.domain.passage import analyse
from everkept.errors import NotFound, SubjectMoved
from everkept.store.facts import (
    FactsOf,
    NewFact,
    live_facts,
    open_conflicts,
    retire_by_hand,
    subject_revision,
    write_facts,
    write_verdicts,
)
from everkept.store.leases import finish
from everkept.store.streams import TIMER
from everkept.store.windows import (
    EXTRACT,
    SUMMARISE,
    fold_input,
    get_window,
    open_windows,
    stages_of,
    write_fold,
    write_slice_summary,
)


def lives_in(city: str, *, said_at: int = 0) -> NewFact:
    text = f"ana lives in {city}"
    draft = FactDraft(
        entity="ana",
        predicate="lives in",
        object=city,
        text=text,
        quote=city,
        confidence=0.9,
        single_valued=True,
        seqs=(),
    )
    return NewFact(draft=draft, said_at=said_at, zone_min=None, stream=None, analysed=analyse(text))


def by_hand(world: World, key: str, *, revision: int | None = None) -> FactsOf:
    return FactsOf(project=world.project.id, subject=1, window=None, slice=0, revision=revision, key=key)


def test_what_is_no_evidence_lies_in_the_window_and_in_no_question(make_world: Callable[..., World]) -> None:
    world = make_world(script=plain_reply)
    world.add("t", "I live in Lisbon")
    world.add("t", "Summary so far: Ana lives in Berlin", evidence=False)
    world.end("t")
    world.run_until_idle()

    assert world.model is not None
    assert world.windows("t") == [(1, 2)]
    asked = {q.step: q.user for q in world.model.questions}
    shown = {step: [city for city in ("Lisbon", "Berlin") if city in asked[step]] for step in ("facts", "summary")}
    assert shown == {"facts": ["Lisbon"], "summary": ["Lisbon"]}


def test_facts_made_from_a_subject_that_moved_are_not_written(world: World) -> None:
    world.create("t")
    read = world.read(subject_revision, 1)
    world.write(write_facts, by_hand(world, "a", revision=read), [lives_in("Lisbon")], "[]")

    with pytest.raises(SubjectMoved):
        world.write(write_facts, by_hand(world, "b", revision=read), [lives_in("Porto")], "[]")
    assert world.rows("select object from facts") == [("Lisbon",)]
    assert world.read(subject_revision, 1) == read + 1


def live(world: World) -> list[tuple[str, int | None]]:
    """(object, when it ended) of what is believed."""
    return [(city, end) for city, end in world.rows("select object, closed_at from facts where live order by said_at")]


@pytest.mark.parametrize("order", [*permutations([("Lisbon", 10), ("Berlin", 20), ("Porto", 30)])], ids=str)
def test_what_was_said_last_holds_whatever_was_written_last(world: World, order) -> None:
    world.create("t")
    for city, said_at in order:
        world.tick(60)
        world.write(write_facts, by_hand(world, city), [lives_in(city, said_at=said_at)], "[]")
    assert live(world) == [("Lisbon", 20), ("Berlin", 30), ("Porto", None)]


def test_what_has_ended_is_not_shown_as_known(world: World) -> None:
    world.create("t")
    for at, city in enumerate(("Berlin", "Lisbon"), 1):
        world.write(write_facts, by_hand(world, city), [lives_in(city, said_at=at)], "[]")
    assert [fact.object for fact in world.read(live_facts, 1, 10)] == ["Lisbon"]


def test_a_statement_is_one_fact_however_often_it_is_written(world: World) -> None:
    world.create("t")
    first = world.write(write_facts, by_hand(world, "a"), [lives_in("Lisbon")], "[]")
    revision, changes = world.read(subject_revision, 1), world.value("select count(*) from changes")
    again = world.write(write_facts, by_hand(world, "a"), [lives_in("Lisbon")], "[]")
    assert (first, again) == ([1], [])
    assert (world.read(subject_revision, 1), world.value("select count(*) from changes")) == (revision, changes)
    assert world.value("select count(*) from passages") == 1


def likes(thing: str, *, said_at: int) -> NewFact:
    """Neither one at a time nor several: a judge has to read it."""
    text = f"ana prefers {thing}"
    draft = FactDraft(
        entity="ana", predicate="usual order", object=thing, text=text, quote=thing, confidence=0.9, seqs=()
    )
    return NewFact(draft=draft, said_at=said_at, zone_min=None, stream=None, analysed=analyse(text))


def test_a_ruling_is_made_once_over_the_subject_that_the_judge_saw(world: World) -> None:
    world.create("t")
    project = world.project.id
    for said_at, thing in ((10, "tea"), (20, "coffee")):
        world.write(write_facts, by_hand(world, thing), [likes(thing, said_at=said_at)], "[]")
    assert world.read(open_conflicts, 1, 10) == [(1, 2)]
    assert world.rows("select object, live, unsettled from facts order by id") == [("tea", 0, 1), ("coffee", 1, 1)]
    saw = world.read(subject_revision, 1)

    with pytest.raises(SubjectMoved):
        world.write(write_verdicts, project, 1, saw - 1, [((1, 2), "both", "guessed")])
    world.write(write_verdicts, project, 1, saw, [((1, 2), "new", "said so")])
    world.write(write_verdicts, project, 1, saw + 1, [((1, 2), "old", "too late")])
    assert world.rows("select verdict, reason from verdicts") == [("new", "said so")]
    assert world.read(open_conflicts, 1, 10) == []
    rows = world.rows("select object, live, unsettled, closed_at, superseded_by from facts order by id")
    assert rows == [("tea", 1, 0, 20, 2), ("coffee", 1, 0, None, None)]


def test_facts_made_from_what_was_forgotten_meanwhile_are_not_written(world: World) -> None:
    world.create("t")
    (fact,) = world.write(write_facts, by_hand(world, "a"), [lives_in("Lisbon")], "[]")
    for why in ("wrong", None):
        read = world.read(subject_revision, 1)
        world.write(retire_by_hand, world.project.id, fact, why)
        with pytest.raises(SubjectMoved):
            world.write(write_facts, by_hand(world, "b", revision=read), [lives_in("Porto")], "[]")


def test_two_subjects_speak_of_things_of_their_own(world: World) -> None:
    for subject, city in ((1, "Berlin"), (2, "Lisbon")):
        world.create(f"t{subject}", subject=f"s{subject}")
        of = FactsOf(project=world.project.id, subject=subject, window=None, slice=0, revision=None, key="k")
        world.write(write_facts, of, [lives_in(city, said_at=subject)], "[]")
    slots = (
        "select f.subject_id, e.subject_id, f.object, f.closed_at from facts f join entities e on e.id = f.entity_id"
    )
    assert world.rows(f"{slots} order by f.id") == [(1, 1, "Berlin", None), (2, 2, "Lisbon", None)]


def test_an_end_is_known_once_what_gave_it_is_recorded(world: World) -> None:
    world.create("t")
    for at, city in enumerate(("Berlin", "Lisbon"), 1):
        world.write(write_facts, by_hand(world, city), [lives_in(city, said_at=at)], "[]")
        world.tick(60)
    known = "select o.object, n.recorded_at - o.recorded_at, o.closed_known_at - o.recorded_at from facts o"
    assert world.rows(f"{known} join facts n on n.id = o.closed_by") == [("Berlin", 60 * US, 60 * US)]


def test_an_end_that_a_judge_gave_is_known_from_the_ruling(world: World) -> None:
    world.create("t")
    for said_at, thing in ((10, "tea"), (20, "coffee")):
        world.write(write_facts, by_hand(world, thing), [likes(thing, said_at=said_at)], "[]")
        world.tick(60)
    saw = world.read(subject_revision, 1)
    world.write(write_verdicts, world.project.id, 1, saw, [((1, 2), "new", "said so")])
    known = "select object, closed_known_at - recorded_at from facts where closed_by is not null"
    assert world.rows(known) == [("tea", 120 * US)]


def test_a_fact_of_another_project_cannot_be_forgotten(make_world: Callable[..., World]) -> None:
    world, other = make_world(), make_world(project="other")
    world.create("t")
    world.write(write_facts, by_hand(world, "a"), [lives_in("Lisbon")], "[]")
    with pytest.raises(NotFound):
        other.write(retire_by_hand, other.project.id, 1, "not mine")
    assert live(world) == [("Lisbon", None)]


def test_facts_of_one_subject_are_extracted_by_one_job_at_a_time(world: World) -> None:
    for thread, subject in (("a", "ana"), ("b", "ana"), ("c", "bob")):
        world.add(thread, "I live in Lisbon", subject=subject)
        world.end(thread)
    for lease in world.claim(free=9, slots=9):
        if lease.kind == TIMER:
            world.write(finish, lease, world.write(open_windows, lease.args["stream"], world.settings), 0.1)
    leased = [(lease.kind, lease.subject) for lease in world.claim(free=9, slots=9)]
    assert sorted(leased) == [(EXTRACT, 1), (EXTRACT, 2), (SUMMARISE, 1), (SUMMARISE, 1), (SUMMARISE, 2)]


# ---- a window is done with its last slice


def in_slices(world: World) -> int:
    """A window of several slices, none of them worked; its number."""
    world.add("t", "long " * 24_000)
    world.run_until_idle()
    world.do("update windows set summary = null, learnings = null, summary_at = null, facts_at = null")
    world.do("update slices set summary = null, learnings = null, summary_at = null, facts_at = null")
    assert world.value("select slices from windows") == 5
    return 1


def test_the_facts_of_a_window_are_there_with_its_last_slice(world: World) -> None:
    window = in_slices(world)
    done = []
    for part in (3, 0, 4, 1, 2):
        of = FactsOf(project=world.project.id, subject=1, window=window, slice=part, revision=None)
        world.write(write_facts, of, [], "[]")
        done.append(world.value("select facts_at is not null from windows"))
    assert done == [0, 0, 0, 0, 1]


def test_a_summary_is_whole_with_its_last_slice_and_in_their_order(world: World) -> None:
    window = world.read(get_window, in_slices(world))
    whole = [
        world.write(write_slice_summary, window, part, f"part {part}", [f"learned {part}"]) for part in (3, 0, 4, 1, 2)
    ]
    assert whole == [False, False, False, False, True]
    assert world.rows("select summary, learnings from windows") == [(
        "part 0\npart 1\npart 2\npart 3\npart 4",
        '["learned 0", "learned 1", "learned 2", "learned 3", "learned 4"]',
    )]  # fmt: skip


def test_a_fold_waits_for_a_summary_that_is_late_and_of_two_only_the_first_is_kept(world: World) -> None:
    for n in range(3):
        world.add("t", f"hello {n}")
        world.end("t")
        world.run_until_idle()
    world.do("update streams set summary = null, summary_through = 0")
    world.do("update windows set summary = 'window ' || id")
    world.do("update windows set summary = null where id = 2")
    assert world.read(fold_input, 1) == (None, 0, [(1, "window 1")])
    world.do("update windows set skipped_because = 'memory off' where id = 2")
    assert world.read(fold_input, 1) == (None, 0, [(1, "window 1"), (2, ""), (3, "window 3")])

    assert world.write(write_fold, 1, 0, 3, "all three") == Done()
    assert isinstance(world.write(write_fold, 1, 0, 1, "only one"), Discard)
    assert world.read(fold_input, 1) == ("all three", 3, [])


def test_the_slice_that_is_worst_off_speaks_for_its_stage(world: World) -> None:
    window = world.read(get_window, in_slices(world))
    for part, state in enumerate(("done", "ready", "dead", "waiting", "done")):
        world.do("update jobs set state = ? where kind = ? and key = ?", state, EXTRACT, f"1.{part}")
    assert world.read(stages_of, [window])[1]["facts"].state == "dead"
