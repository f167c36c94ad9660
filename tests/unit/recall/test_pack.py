from datetime import UTC, datetime

from everkept.domain.transcript import estimate_tokens
from everkept.recall.pack import Item, pack


def turn(n: int, text: str = "") -> Item:
    return Item(
        id=f"evt_1_{n}",
        kind="turn",
        text=text or f"I moved to Lisbon, day {n}",
        speaker="Ann",
        thread="chat-1",
        occurred_at=datetime(2026, 1, n, 9, 30, tzinfo=UTC),
    )


def test_pack_shows_dates_and_sources_in_the_order_of_time() -> None:
    fact = Item(id="fct_1", kind="fact", text="Ann lives in Lisbon", quote="I moved to Lisbon", unsettled=True)
    packed = pack([turn(2), turn(1), fact])
    assert packed.text.splitlines() == [
        "Known facts:",
        '- Ann lives in Lisbon ("I moved to Lisbon") [contradicted elsewhere, not settled] (fct_1)',
        "What was said:",
        "- [2026-01-01 09:30] Ann: I moved to Lisbon, day 1 (chat-1, evt_1_1)",
        "- [2026-01-02 09:30] Ann: I moved to Lisbon, day 2 (chat-1, evt_1_2)",
    ]
    assert packed.kept == {"evt_1_1", "evt_1_2", "fct_1"}


def test_pack_stays_within_the_budget_and_keeps_the_best() -> None:
    packed = pack([turn(n) for n in range(1, 20)], 60)
    assert packed.tokens <= 60
    assert packed.tokens == estimate_tokens(packed.text)
    assert "evt_1_1" in packed.kept
    assert "evt_1_19" not in packed.kept


def test_the_best_that_is_too_long_is_cut_around_the_answer_and_not_replaced_by_a_lesser_one() -> None:
    long = "\n".join(["filler"] * 400 + ["the port is 8443"] + ["filler"] * 400)
    packed = pack([turn(1, long), turn(2)], 70, question="which port?")
    assert packed.kept == {"evt_1_1"}
    assert "the port is 8443" in packed.text
    assert packed.cut["evt_1_1"][0] == packed.cut["evt_1_1"][-1] == "…"
    assert packed.tokens <= 70
    assert packed.left_out == f"1 result of {estimate_tokens(turn(2).text)} tokens did not fit"


def test_what_finds_no_room_at_all_is_told_even_where_a_lesser_one_fits() -> None:
    packed = pack([turn(1, "long " * 500), turn(2)], 40)
    assert packed.kept == {"evt_1_2"}
    assert packed.left_out == f"1 result of {estimate_tokens('long ' * 500)} tokens did not fit"


def test_everything_that_fits_leaves_nothing_out() -> None:
    packed = pack([turn(1), turn(2)], 1000)
    assert (packed.left_out, packed.cut) == (None, {})


def test_pack_with_a_budget_under_one_item_says_so() -> None:
    packed = pack([turn(1, "x" * 500)], 40)
    assert packed.kept == frozenset()
    assert "nothing of what was recalled fits" in packed.text
    assert packed.tokens <= 40
    assert pack([turn(1)], 1).text == ""


def test_pack_of_nothing_is_empty() -> None:
    assert pack([], 10).text == ""


def test_pack_indents_further_lines() -> None:
    assert "one\n  two" in pack([turn(1, "one\ntwo\n")]).text
