"""What agents are given at their start and with a prompt: bounded, the same bytes each time, never the same thing twice
(G11; D07, F04, H06)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk, a_worktree

from everkept.domain.context import CHARS_MAX, PROMPT_CHARS_MAX, PROMPT_TOKENS_MAX, TOKENS_MAX
from everkept.domain.transcript import estimate_tokens


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def plain(text: str) -> str:
    """Without the mark of its offer."""
    return re.sub(r"<!-- everkept:offer \w+ -->\n", "", text)


# ---- the start


def test_rules_come_first_then_where_the_last_session_left_off_then_what_may_help(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app, "Fix the login test")
    for kind in ("note", "gotcha", "decision", "rule", "slot"):
        desk.page(app, f"A {kind} page", f"What the {kind} says.", kind)
    given = desk.start("codex", "s2", app)
    headings = [line.removeprefix("## ") for line in given.splitlines() if line.startswith("## ")]
    assert headings == [
        "Rule: A rule page", "Slot: A slot page", "Where the last session left off: Fix the login test",
        "Decision: A decision page", "Gotcha: A gotcha page", "Note: A note page",
    ]  # fmt: skip


def test_rules_that_hold_everywhere_are_told_in_every_project(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    desk.run(desk.run(desk.app.service()).write_page("Answer in German", "Always.", kind="rule"))
    assert "## Rule: Answer in German (everywhere)" in desk.start("codex", "s2", app)


def test_a_folder_that_nobody_knows_is_told_nothing_and_becomes_known(desk: Desk, tmp_path: Path) -> None:
    nowhere = a_checkout(tmp_path / "new", remote="https://example.com/acme/new")
    assert desk.start("codex", "s1", nowhere) == ""
    assert desk.prompt("codex", "s1", nowhere, "What was decided about the login?") == ""


def test_a_prompt_is_answered_before_it_is_taken_in_and_after_all_that_came_before_it(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    desk.page(app, "Deploys", "Deploys go out on Tuesdays.", "note")
    desk.start("codex", "s2", app)
    first = desk.hook("codex", "UserPromptSubmit", app, session_id="s2", prompt="Fix the build")
    told = desk.hook("codex", "UserPromptSubmit", app, session_id="s2", prompt="When do deploys go out?")
    later = desk.hook("codex", "Stop", app, session_id="s2", last_assistant_message="On Tuesdays.")
    question = {"hook": told, "name": told["name"], "budget_ms": 10_000}
    desk.run(desk.hooks.answer(question))
    assert [record.name for record in desk.spool.records(10)] == [told["name"], later["name"]]
    assert first["name"] < told["name"]
    desk.settle()
    assert desk.spool.records(10) == []


def test_a_prompt_in_a_folder_that_nobody_knows_makes_it_known_and_is_answered(desk: Desk, tmp_path: Path) -> None:
    desk.run(desk.run(desk.app.service()).write_page("Answer in German", "Always.", kind="rule"))
    nowhere = a_checkout(tmp_path / "new", remote="https://example.com/acme/new")
    assert "Answer in German (everywhere)" in desk.prompt("codex", "s1", nowhere, "What holds here?")


def test_a_start_is_within_its_budget_and_says_what_it_costs_and_what_was_left_out(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    for n in range(30):
        desk.run(desk.service(app).write_page(f"Decision number {n}", f"We chose way {n}. " * 60, kind="decision"))
    given = desk.start("codex", "s2", app)
    assert len(given) <= CHARS_MAX
    assert estimate_tokens(given) <= TOKENS_MAX
    told = re.fullmatch(r"\(about ([\d,]+) tokens; (\d+) more did not fit\)", given.splitlines()[-1])
    assert told is not None
    assert abs(int(told[1].replace(",", "")) - estimate_tokens(given)) < 100
    assert int(told[2]) + given.count("\n## ") == 31


@pytest.mark.parametrize("words", ["漢字とかなの文章。", "مرحبا بالعالم ", "word "])
def test_the_budget_holds_in_every_script(desk: Desk, app: Path, words: str) -> None:
    desk.work("claude-code", "s1", app)
    for n in range(8):
        desk.run(desk.service(app).write_page(f"Page {n}", words * 400, kind="decision"))
    given = desk.start("codex", "s2", app)
    assert 0 < len(given) <= CHARS_MAX
    assert estimate_tokens(given) <= TOKENS_MAX


def test_the_same_store_and_question_give_the_same_bytes(tmp_path: Path, app: Path) -> None:
    """Also to another process that opens the store later."""
    with a_desk(tmp_path / "home") as desk:
        desk.work("claude-code", "s1", app)
        for kind in ("rule", "decision", "note"):
            desk.page(app, f"A {kind} page", f"What the {kind} says.", kind)
        given = [desk.start("codex", "s2", app) for _ in range(3)]
    with a_desk(tmp_path / "home") as later:
        given.append(later.start("codex", "s2", app))
        other = later.start("gemini", "s3", app)
    assert set(given) == {given[0]}
    assert plain(other) == plain(given[0])
    with a_desk(tmp_path / "home") as desk:
        offers = desk.rows("select agent, count(*) from offers group by 1 order by 1")
    assert offers == [("codex", 1), ("gemini", 1)], "the same again to the same receiver is one offer"


def test_the_choice_among_worktrees_is_explained_and_the_others_are_named(
    desk: Desk, app: Path, tmp_path: Path
) -> None:
    feature = a_worktree(tmp_path / "feature", app, branch="feature")
    desk.work("claude-code", "s1", feature, "Build the export")
    desk.work("claude-code", "s2", app, "Fix the login test")
    here = desk.start("codex", "s3", feature)
    assert "## Where the last session left off: Build the export\n" in here
    assert "## Other sessions left off, too" in here
    assert "Fix the login test (claude-code, main): everkept handoffs show hnd_" in here

    elsewhere = a_worktree(tmp_path / "third", app, branch="feature")
    assert "left off (left on this branch): Build the export" in desk.start("codex", "s4", elsewhere)
    fourth = a_worktree(tmp_path / "fourth", app, branch="other")
    assert "left off (the newest of this project): Fix the login test" in desk.start("codex", "s5", fourth)


def test_a_session_is_not_told_at_its_resume_what_it_did_itself(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    assert desk.start("claude-code", "s1", app, source="resume") == ""
    assert "src/login.py" in desk.start("claude-code", "s1", app, source="compact")


def test_the_offer_is_noted_before_it_is_given(desk: Desk, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.work("claude-code", "s1", app)
    given = desk.start("codex", "s2", app)
    [(offer, body, state)] = desk.rows("select id, body, state from offers")
    assert f"<!-- everkept:offer off_{offer} -->" in given
    assert (body, state) == (plain(given), "offered")
    desk.settle()
    assert desk.rows("select state from offers") == [("shown",)]


# ---- a prompt


@pytest.fixture
def started(desk: Desk, app: Path) -> Desk:
    """Session s2 of Codex has been given its start, before any page was written."""
    desk.work("claude-code", "s1", app)
    assert desk.start("codex", "s2", app)
    return desk


DEPLOYED = "The billing service is deployed with make ship."
ASKS = "How is the billing service deployed?"


def test_a_prompt_is_given_what_bears_on_it_within_its_budget(started: Desk, app: Path) -> None:
    for n in range(12):
        started.page(app, f"Billing part {n}", f"The billing service, part {n}: " + "invoices are kept. " * 60)
    given = started.prompt("codex", "s2", app, "Where does the billing service keep invoices?")
    assert "billing" in given.lower()
    assert len(given) <= PROMPT_CHARS_MAX
    assert estimate_tokens(given) <= PROMPT_TOKENS_MAX
    assert re.search(r"about \d+ tokens", given)


def test_no_prompt_is_given_what_the_session_was_shown_before(started: Desk, app: Path) -> None:
    started.page(app, "Deploying", DEPLOYED)
    assert "make ship" in started.prompt("codex", "s2", app, ASKS)
    assert "make ship" not in started.prompt("codex", "s2", app, f"{ASKS} And when?")
    assert "make ship" in started.start("codex", "s3", app)
    assert "make ship" not in started.prompt("codex", "s3", app, ASKS)


def test_what_was_changed_since_it_was_shown_is_no_news_to_a_prompt_but_to_a_resume(started: Desk, app: Path) -> None:
    started.page(app, "Deploying", DEPLOYED)
    assert "make ship" in started.prompt("codex", "s2", app, ASKS)
    started.page(app, "Deploying", "The billing service is deployed with make release.")
    assert "make release" in started.start("codex", "s2", app, source="resume")


def test_after_a_compaction_a_prompt_repeats_only_what_that_did_not_show(started: Desk, app: Path) -> None:
    started.page(app, "Deploying", DEPLOYED)
    assert "make ship" in started.prompt("codex", "s2", app, ASKS)
    assert "make ship" in started.start("codex", "s2", app, source="compact")
    assert "make ship" not in started.prompt("codex", "s2", app, f"{ASKS} And when?")


def test_what_the_start_could_not_give_the_first_prompt_gives(started: Desk, app: Path) -> None:
    first = started.prompt("gemini", "s4", app, "Good morning.")
    assert "Where the last session left off" in first
    assert "Where the last session left off" not in started.prompt("gemini", "s4", app, "Where did the last end?")


@pytest.mark.parametrize("prompt", ["", "   ", "?!", "…", "👍"])
def test_a_prompt_without_words_is_given_nothing(started: Desk, app: Path, prompt: str) -> None:
    assert started.prompt("codex", "s2", app, prompt) == ""


def test_a_decision_stands_before_the_log_of_the_session_that_led_to_it(started: Desk, app: Path) -> None:
    """F04: the log has the same words, and is newer."""
    started.page(app, "Queue library of the mail service", "We chose river as queue library of the mail service.",
                 "decision")  # fmt: skip
    started.work("claude-code", "s5", app, "Which queue library did we choose for the mail service?")
    given = started.prompt("codex", "s2", app, "Which queue library did we choose for the mail service?")
    headings = [line for line in given.splitlines() if line.startswith("## ")]
    assert "queue-library-of-the-mail-service" in headings[0]
    assert "We chose river" in given
    assert len(headings) == len(set(headings)), "nothing stands there twice"


def test_an_agent_that_names_no_session_has_one_for_each_place(tmp_path: Path) -> None:
    here = a_checkout(tmp_path / "one", remote="https://example.com/acme/one")
    there = a_checkout(tmp_path / "two", remote="https://example.com/acme/two")
    with a_desk(tmp_path / "home") as desk:
        for place in (here, there):
            desk.hook("myagent", "UserPromptSubmit", place, prompt=f"about {place.name}")
        desk.settle()
        found = desk.rows("select p.name, count(*) from sessions x join projects p on p.id = x.project_id group by 1")
        assert sorted(found) == [("example.com/acme/one", 1), ("example.com/acme/two", 1)]


def test_a_hundred_records_that_are_refused_hold_up_nobody_and_say_why(tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    with a_desk(tmp_path / "home") as desk:
        desk.hook("codex", "UserPromptSubmit", app, session_id="s0", prompt="Hello")
        desk.run(desk.hooks.drain(60))
        for _ in range(120):
            shown = desk.hook("codex", "SessionStart", app, session_id="s2")
            record = tmp_path / "home" / "spool" / "new" / shown["name"]
            record.write_text(record.read_text().replace('"format"', '"offer":"no-offer","format"', 1))
        desk.hook("codex", "UserPromptSubmit", app, session_id="s1", prompt="Fix the login")
        drained = desk.run(desk.hooks.drain(60))
        assert desk.rows("select count(*) from sessions where native_id like 's1@%'") == [(1,)]
        assert desk.hooks.waiting() == 0
        assert (drained.records, len(drained.refused)) == (1, 120)
