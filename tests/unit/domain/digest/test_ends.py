"""What a session leaves open, and what a later one settles."""

from __future__ import annotations

from tests.unit.domain.digest.sessions import edit, event, failing, plan, prompt, said, shell, stream

from everkept.domain.digest import Digest, OpenEnd, digest_session, merge_open_ends
from everkept.domain.digest.ends import CARRIED_MAX, ENDS_MAX
from everkept.domain.session import AgentEvent


def digest_of(*events: AgentEvent) -> Digest:
    return digest_session(stream(events))


def ends(*events: AgentEvent) -> list[tuple[str, str]]:
    return [(end.kind, end.text) for end in digest_of(*events).open_ends]


ITEMS = plan(("write docs", "pending"), ("fix parser", "in_progress"), ("add tests", "completed"))


def test_unfinished_items_of_the_last_plan_are_open() -> None:
    events = [prompt("go"), plan(("old", "pending")), ITEMS, said("Done.")]
    assert ends(*events) == [("plan", "write docs"), ("plan", "in progress: fix parser")]


def test_a_cleared_list_leaves_nothing_open_but_a_plan_in_words_clears_none() -> None:
    assert ends(prompt("go"), ITEMS, plan(), said("Done.")) == []
    assert len(ends(prompt("go"), ITEMS, event("plan", "a plan", detail="approved"), said("Done."))) == 2


def test_a_goal_kept_apart_does_not_hide_the_list() -> None:
    events = [prompt("go"), ITEMS, plan(("ship it", "in_progress"), detail="goal"), said("Done.")]
    assert [text for _, text in ends(*events)] == ["write docs", "in progress: fix parser", "in progress: ship it"]


def test_a_last_message_that_asks_is_open_and_one_that_is_polite_is_not() -> None:
    assert ends(prompt("go"), said("I can do A or B.\nWhich one? Or should I do both?")) == [
        ("question", "The agent asked: “Which one? Or should I do both?”")
    ]
    assert (
        ends(prompt("go"), said("Which one?"), prompt("A"), said("Done. Let me know if you need anything else!")) == []
    )


def test_a_turn_broken_off_is_open() -> None:
    stopped = shell("npm start", "", "interrupted")
    assert ends(prompt("go"), stopped) == [
        ("interrupted", "The last turn was interrupted at npm start (working on: “go”)")
    ]
    told = event("turn_end", detail="interrupted")
    assert [kind for kind, _ in ends(prompt("go"), edit("a.py"), told)] == ["interrupted"]


def test_a_session_that_stops_without_an_answer_is_open() -> None:
    killed = "The session stops in the middle of a turn, after pytest (working on: “go”)"
    assert ends(prompt("go"), said("I'll run it."), shell("pytest")) == [("interrupted", killed)]
    assert ends(prompt("go"), shell("pytest"), event("turn_end")) == []
    assert ends(prompt("go"), said("Ok."), prompt("and docs")) == [
        ("unanswered", "Nothing came of the last prompt: “and docs”")
    ]


def test_an_interruption_that_was_gone_on_from_is_settled() -> None:
    assert ends(prompt("go"), shell("npm start", "", "interrupted"), prompt("continue"), said("Done.")) == []


def test_a_failure_that_only_looked_leaves_nothing_open() -> None:
    events = [
        prompt("go"),
        failing("ls missing", "ls: missing: No such file"),
        failing("make", "error: x"),
        said("Done."),
    ]
    assert ends(*events) == [("failed", "make failed: error: x")]


def test_what_a_later_session_settles_is_not_handed_on() -> None:
    before = digest_of(
        prompt("write the parser"), ITEMS, failing("make", "error: x"), said("Shall I use tabs in the printer?")
    )
    later = digest_of(
        prompt("Use spaces in the printer, not tabs"), plan(("write docs", "completed")), shell("make"), said("Done.")
    )
    assert [end.text for end in merge_open_ends(before.open_ends, later)] == ["in progress: fix parser"]


def test_an_end_that_is_still_open_is_not_told_twice() -> None:
    before = digest_of(prompt("go"), ITEMS, failing("make", "error: x"), said("Done."))
    later = digest_of(prompt("go"), ITEMS, failing("make", "error: y"), said("Done."))
    assert merge_open_ends(before.open_ends, later) == ()


def test_a_command_that_only_failed_before_stays_open() -> None:
    before = digest_of(prompt("go"), failing("make", "error: x"), said("Done."))
    later = digest_of(prompt("look at make error x please"), said("I looked."))
    assert [(end.kind, end.carried) for end in merge_open_ends(before.open_ends, later)] == [("failed", 1)]


def test_a_brief_first_prompt_answers_the_question_before() -> None:
    before = digest_of(prompt("go"), said("Which colour should the button have?"))
    assert merge_open_ends(before.open_ends, digest_of(prompt("red"), said("Done."))) == ()


def test_a_session_without_a_prompt_settles_no_question() -> None:
    before = digest_of(prompt("go"), said("Which colour should the button have?"))
    assert len(merge_open_ends(before.open_ends, digest_of(said("hello")))) == 1


def test_ends_are_handed_on_in_bounds() -> None:
    later = digest_of(prompt("something else entirely, at some length to be no answer"))
    many = [OpenEnd(kind="plan", text=f"item {n}", key=f"item {n}") for n in range(40)]
    old = OpenEnd(kind="plan", text="old", key="old", carried=CARRIED_MAX)
    assert len(merge_open_ends([old, *many, *many], later)) == ENDS_MAX
    assert merge_open_ends([old], later) == ()
