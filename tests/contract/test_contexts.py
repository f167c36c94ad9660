"""What agents are given at their start and with a prompt: bounded, the same bytes each time, never the same thing twice
(G11; D07, F04, H06)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_desk

from everkept.domain.context import CHARS_MAX, PROMPT_CHARS_MAX, PROMPT_TOKENS_MAX, TOKENS_MAX
from everkept.domain.transcript import estimate_tokens


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def a_checkout(top: Path, *, remote: str = "https://example.com/acme/app", branch: str = "main") -> Path:
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (top / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    return top


def a_worktree(top: Path, of: Path, *, branch: str) -> Path:
    own = of / ".git" / "worktrees" / top.name
    own.mkdir(parents=True)
    (own / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (own / "commondir").write_text("../..\n")
    top.mkdir()
    (top / ".git").write_text(f"gitdir: {own}\n")
    return top


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


def test_a_prompt_is_given_what_bears_on_it_within_its_budget(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    for n in range(12):
        desk.page(app, f"Billing part {n}", f"The billing service, part {n}: " + "invoices are kept. " * 60)
    desk.page(app, "Fonts", "Headings are set in a serif.")
    given = desk.prompt("codex", "s2", app, "Where does the billing service keep invoices?")
    assert "billing" in given.lower()
    assert "Headings are set" not in given
    assert len(given) <= PROMPT_CHARS_MAX
    assert estimate_tokens(given) <= PROMPT_TOKENS_MAX


def test_no_prompt_is_given_what_the_session_was_shown_before(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    desk.page(app, "Deploying", "The billing service is deployed with make ship.")
    asks = "How is the billing service deployed?"
    assert "make ship" in desk.prompt("codex", "s2", app, asks)
    assert "make ship" not in desk.prompt("codex", "s2", app, f"{asks} And when?")
    assert "make ship" in desk.start("codex", "s3", app)
    assert "make ship" not in desk.prompt("codex", "s3", app, asks)


def test_after_a_compaction_a_prompt_may_be_given_it_again(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    desk.page(app, "Deploying", "The billing service is deployed with make ship.")
    asks = "How is the billing service deployed?"
    assert "make ship" in desk.prompt("codex", "s2", app, asks)
    assert "make ship" in desk.start("codex", "s2", app, source="compact")
    assert "make ship" not in desk.prompt("codex", "s2", app, f"{asks} And when?")


@pytest.mark.parametrize("prompt", ["", "   ", "?!", "…", "👍"])
def test_a_prompt_without_words_is_given_nothing(desk: Desk, app: Path, prompt: str) -> None:
    desk.work("claude-code", "s1", app)
    assert desk.prompt("codex", "s2", app, prompt) == ""


def test_a_decision_stands_before_the_log_of_the_session_that_led_to_it(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app, "Choose the queue library for the mail service")
    desk.page(app, "Queue library of the mail service", "We chose river as the queue library of the mail service.",
              "decision")  # fmt: skip
    given = desk.prompt("codex", "s2", app, "Which queue library did we choose for the mail service?")
    first = next(line for line in given.splitlines() if line.startswith("## "))
    assert "queue-library-of-the-mail-service" in first
    assert "We chose river" in given
