"""What a person puts right, pins and joins in what is remembered, and that the order of work decides nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import permutations
from pathlib import Path

import pytest

from everkept.api.local import LocalService
from everkept.api.views import MessageIn
from everkept.bootstrap import open_application
from everkept.config import load
from everkept.errors import Conflict, InvalidInput, KeyConflict, NotFound

LISBON = "I live in Lisbon."


def run(home: Path, steps: Callable[[LocalService], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        application = await open_application(load({}, home), worker=True)
        try:
            await steps(await application.service())
        finally:
            await application.close()

    asyncio.run(all_of_it())


async def say(service: LocalService, text: str, *, thread: str = "chat", subject: str = "ana") -> str:
    """The event, once what it says is remembered."""
    done = await service.append(thread, [MessageIn(content=text)], subject=subject)
    await service.end_thread(thread)
    assert await service.settle(timeout_s=20)
    return done.receipts[0].event_id


async def believed(service: LocalService) -> list[str]:
    return sorted(fact.text for fact in (await service.list_facts()).items)


async def only_fact(service: LocalService) -> str:
    (fact,) = (await service.list_facts()).items
    return fact.id


def test_a_correction_takes_the_place_of_what_was_wrong_and_keeps_it_with_its_history(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        await say(service, LISBON)
        wrong = await only_fact(service)
        right = await service.correct_fact(wrong, object="Porto", by="ana", key="k1")

        assert (right.object, right.stated_by, right.corrects, right.source) == ("Porto", "ana", wrong, "hand")
        assert "Porto" in right.text
        assert await believed(service) == [right.text]
        old = await service.get_fact(wrong)
        assert (old.retired_because, old.superseded_by) == ("corrected", right.id)
        again = await service.correct_fact(wrong, object="Porto", by="ana", key="k1")
        assert (again.id, again.replayed) == (right.id, True)
        with pytest.raises(Conflict):
            await service.correct_fact(wrong, object="Faro")

    run(tmp_path, steps)


def test_a_sentence_is_not_put_right_by_a_value_and_what_is_not_believed_is_not_pinned(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        stated = await service.remember("Ana works in Alpha Ltd.", subject="ana")
        with pytest.raises(InvalidInput, match="text"):
            await service.correct_fact(stated.id, object="Delta Ltd.")
        assert await believed(service) == ["Ana works in Alpha Ltd."]
        right = await service.correct_fact(stated.id, text="Ana works in Delta Ltd.")
        assert right.object == "Ana works in Delta Ltd.", "a sentence is its own object"
        with pytest.raises(Conflict):
            await service.pin_fact(stated.id)

    run(tmp_path, steps)


def test_what_repeats_the_wrong_statement_later_does_not_bring_it_back_by_being_worked_late(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        await say(service, LISBON)
        await service.append("late", [MessageIn(content=LISBON)], subject="ana")
        right = await service.correct_fact(await only_fact(service), object="Porto")
        await service.end_thread("late")
        assert await service.settle(timeout_s=20)

        assert await believed(service) == [right.text]

    run(tmp_path, steps)


def test_the_words_of_a_statement_alone_can_be_put_right(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        stated = await service.remember("Ana like tea", subject="ana")
        right = await service.correct_fact(stated.id, text="Ana likes tea", object="Ana likes tea")
        assert await believed(service) == ["Ana likes tea"]
        worded = await service.correct_fact(right.id, text="Ana likes green tea")
        assert await believed(service) == ["Ana likes green tea"]
        assert (await service.get_fact(right.id)).superseded_by == worded.id
        with pytest.raises(InvalidInput):
            await service.correct_fact(worded.id, text="Ana likes green tea")
        with pytest.raises(NotFound):
            await service.correct_fact("fct_99", text="x")
        with pytest.raises(KeyConflict):
            await _other_words_under_one_key(service, worded.id)

    run(tmp_path, steps)


async def _other_words_under_one_key(service: LocalService, fact: str) -> None:
    made = await service.correct_fact(fact, text="Ana likes white tea", key="same")
    assert made.text == "Ana likes white tea"
    await service.correct_fact(fact, text="Ana likes black tea", key="same")


def test_the_key_of_a_correction_is_refused_for_another_fact(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        one = await service.remember("Ana like tea", subject="ana")
        other = await service.remember("Anna likes tea", subject="ana")
        right = "Ana likes tea"
        made = await service.correct_fact(one.id, text=right, object=right, key="same")
        assert (await service.correct_fact(one.id, text=right, object=right, key="same")).id == made.id
        with pytest.raises(KeyConflict):
            await service.correct_fact(other.id, text=right, object=right, key="same")

    run(tmp_path, steps)


def test_a_pinned_fact_is_closed_by_nothing_that_is_said_until_it_is_unpinned(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        await say(service, LISBON)
        lisbon = await only_fact(service)
        assert (await service.pin_fact(lisbon)).pinned
        await say(service, "I moved to Porto.", thread="later")
        kept = await service.get_fact(lisbon)
        assert (kept.live, kept.valid_until, kept.retired_at) == (True, None, None)

        assert not (await service.pin_fact(lisbon, pinned=False)).pinned
        assert (await service.get_fact(lisbon)).valid_until is not None
        await service.pin_fact(lisbon)
        assert (await service.get_fact(lisbon)).live

    run(tmp_path, steps)


def test_a_hand_may_put_a_pinned_fact_right_and_what_is_right_is_pinned(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        wrong = await service.remember("Ana lives in Lisbon", subject="ana", predicate="lives in", object="Lisbon",
                                       pinned=True)  # fmt: skip
        right = await service.correct_fact(wrong.id, object="Porto")
        assert right.pinned
        assert await believed(service) == ["Ana lives in Porto"]

    run(tmp_path, steps)


def test_what_is_pinned_comes_first_in_the_context_whatever_is_asked(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        await service.remember("Ana is allergic to nuts", subject="ana", pinned=True)
        await service.remember("Ana likes tea", subject="ana")
        await say(service, "What a day.")
        for question in (None, "What does Ana drink?"):
            block = await service.context("chat", question, tokens=300)
            assert block.text.startswith("To be kept in mind:\n- Ana is allergic to nuts"), block.text
            assert block.text.count("allergic") == 1
            assert block.tokens <= 300

    run(tmp_path, steps)


def test_a_pin_and_a_correction_outlive_the_erase_of_another_message_of_their_window(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        done = await service.append(
            "chat", [MessageIn(content=text) for text in (LISBON, "I like tea.", "I like jazz.")], subject="ana",
        )  # fmt: skip
        await service.end_thread("chat")
        assert await service.settle(timeout_s=20)
        facts = {fact.object: fact.id for fact in (await service.list_facts()).items}
        await service.pin_fact(facts["tea"])
        await service.correct_fact(facts["jazz"], object="blues")
        await service.erase(event=done.receipts[0].event_id)
        assert await service.settle(timeout_s=20)

        found = {fact.object: fact for fact in (await service.list_facts()).items}
        assert set(found) == {"tea", "blues"}
        assert found["tea"].pinned

    run(tmp_path, steps)


def test_erasing_what_was_wrong_leaves_no_word_of_it_in_what_put_it_right(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        event = await say(service, LISBON)
        right = await service.correct_fact(await only_fact(service), object="Porto", text="Ana lives in Porto")
        await service.erase(event=event)
        assert await service.settle(timeout_s=20)

        kept = await service.get_fact(right.id)
        assert (kept.corrects, kept.text) == (None, "Ana lives in Porto")
        words = await service._store.read(
            lambda conn: conn.raw.execute("select count(*) from facts where replaces <> '' or correction").fetchone()[0]
        )
        assert words == 0

    run(tmp_path, steps)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_in_which_windows_are_worked_decides_nothing_beside_a_correction(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """Three threads are worked in any order, before and after a hand put one place right."""
    said = ("I live in Lisbon.", "I like tea.", "I live in Lisbon.")

    async def steps(service: LocalService) -> None:
        for n, text in enumerate(said):
            await service.append(f"t{n}", [MessageIn(content=text)], subject="ana")
        await service.remember("Ana lives in Lisbon", subject="ana", predicate="lives in", object="Lisbon")
        stated = next(fact for fact in (await service.list_facts()).items if fact.object == "Lisbon")
        await service.correct_fact(stated.id, object="Porto", text="Ana lives in Porto")
        for n in order:
            await service.end_thread(f"t{n}")
            assert await service.settle(timeout_s=20)
        objects = sorted(fact.object for fact in (await service.list_facts()).items)
        assert "Porto" in objects
        seen.append(objects)

    seen: list[list[str]] = []
    run(tmp_path, steps)
    order = (0, 1, 2)
    run(tmp_path / "in-order", steps)
    assert seen[0] == seen[1]


# ---- two names of one thing


async def say_as(service: LocalService, name: str, text: str, thread: str) -> str:
    done = await service.append(thread, [MessageIn(content=text, name=name)], subject="family")
    await service.end_thread(thread)
    assert await service.settle(timeout_s=20)
    return done.receipts[0].event_id


async def two_names(service: LocalService) -> tuple[str, str, list[str]]:
    """(Ana, Annie, the events that named them)."""
    events = [
        await say_as(service, "Ana", "I live in Lisbon.", "one"),
        await say_as(service, "Annie", "I live in Porto.", "two"),
    ]
    entities = {entity.name: entity.id for entity in (await service.list_entities(subject="family")).items}
    return entities["Ana"], entities["Annie"], events


async def lives(service: LocalService) -> list[tuple[str, str, bool]]:
    """(who, where, whether it is over) of all that is believed or was."""
    facts = (await service.list_facts(include_retired=True)).items
    return sorted((fact.entity, fact.object, fact.valid_until is not None) for fact in facts)


def test_what_is_said_of_two_names_is_said_of_one_once_they_are_merged_and_not_when_they_are_split(
    tmp_path: Path,
) -> None:
    async def steps(service: LocalService) -> None:
        ana, annie, _ = await two_names(service)
        before = await lives(service)
        assert before == [("Ana", "Lisbon", False), ("Annie", "Porto", False)]

        merged = await service.merge_entities(annie, into=ana, by="marta")
        assert [(each.name, each.by) for each in merged.merged] == [("Annie", "marta")]
        assert (merged.name, merged.aliases, merged.facts) == ("Ana", ["Annie"], 2)
        assert await lives(service) == [("Ana", "Lisbon", True), ("Ana", "Porto", False)]
        listed = [entity.name for entity in (await service.list_entities(subject="family")).items]
        assert "Annie" not in listed

        assert (await service.split_entity(annie)).name == "Annie"
        assert await lives(service) == before

    run(tmp_path, steps)


def test_a_split_lets_what_it_had_ended_of_another_merged_name_hold_again(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        ana, annie, _ = await two_names(service)
        await service.remember("Ann likes tea", subject="family", entity="Ann")
        (ann,) = [e.id for e in (await service.list_entities(subject="family")).items if e.name == "Ann"]
        await service.merge_entities(ana, into=ann)
        await service.merge_entities(annie, into=ann)
        homes = [(who, where, over) for who, where, over in await lives(service) if where in ("Lisbon", "Porto")]
        assert homes == [("Ann", "Lisbon", True), ("Ann", "Porto", False)]
        await service.split_entity(annie)
        homes = [(who, where, over) for who, where, over in await lives(service) if where in ("Lisbon", "Porto")]
        assert homes == [("Ann", "Lisbon", False), ("Annie", "Porto", False)]

    run(tmp_path, steps)


@pytest.mark.parametrize("merged_first", [True, False])
def test_it_makes_no_difference_whether_a_window_is_worked_before_or_after_a_merge(
    tmp_path: Path, merged_first: bool
) -> None:
    async def steps(service: LocalService) -> None:
        ana, annie, _ = await two_names(service)
        await service.append("three", [MessageIn(content="I live in Faro.", name="Annie")], subject="family")
        if merged_first:
            await service.merge_entities(annie, into=ana)
        await service.end_thread("three")
        assert await service.settle(timeout_s=20)
        if not merged_first:
            await service.merge_entities(annie, into=ana)
        assert await lives(service) == [("Ana", "Faro", False), ("Ana", "Lisbon", True), ("Ana", "Porto", True)]

    run(tmp_path, steps)


def test_an_erase_of_what_named_one_leaves_the_other_with_its_own_name_alone(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        ana, annie, (named_ana, _) = await two_names(service)
        await service.merge_entities(annie, into=ana)
        await service.erase(event=named_ana)
        assert await service.settle(timeout_s=20)

        assert await lives(service) == [("Annie", "Porto", False)]
        (left,) = [e for e in (await service.list_entities(subject="family")).items if e.facts and e.name != "Porto"]
        assert (left.name, left.aliases, left.merged) == ("Annie", [], [])

    run(tmp_path, steps)


def test_an_erase_of_what_named_the_merged_one_takes_its_name_and_what_it_had_ended(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        ana, annie, (_, named_annie) = await two_names(service)
        await service.merge_entities(annie, into=ana)
        await service.erase(event=named_annie)
        assert await service.settle(timeout_s=20)

        assert await lives(service) == [("Ana", "Lisbon", False)]
        assert all(not entity.aliases for entity in (await service.list_entities(subject="family")).items)

    run(tmp_path, steps)


def test_what_cannot_be_merged_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def steps(service: LocalService) -> None:
        ana, annie, _ = await two_names(service)
        await service.remember("Bo likes tea", subject="other", entity="Bo")
        (bo,) = (await service.list_entities(subject="other")).items
        with pytest.raises(InvalidInput):
            await service.merge_entities(ana, into=ana)
        with pytest.raises(InvalidInput, match="one subject"):
            await service.merge_entities(bo.id, into=ana)
        with pytest.raises(NotFound):
            await service.merge_entities("ent_999", into=ana)
        with pytest.raises(Conflict):
            await service.split_entity(ana)
        await service.merge_entities(annie, into=ana)
        with pytest.raises(Conflict, match="already"):
            await service.merge_entities(annie, into=ana)
        with pytest.raises(Conflict):
            await service.merge_entities(ana, into=annie)

    run(tmp_path, steps)
