"""What one session shows: corrections, errors, recoveries, steps; and what shows nothing."""

from __future__ import annotations

import pytest
from tests.unit.domain.digest.sessions import edit, event, failing, prompt, said, shell, stream, tool

from everkept.domain.review.observe import observe
from everkept.domain.review.values import QUOTE_CHARS_MAX, Observation, ObservationKind
from everkept.domain.session import AgentEvent

TASK = prompt("Add an importer for the CSV files of the old shop, with a test for the empty file")
DONE = said("The importer is written, and its tests pass.")


def observed(kind: ObservationKind, *events: AgentEvent) -> list[Observation]:
    found = observe(7, stream([TASK, edit("/repo/src/importer.py"), *events, edit("/repo/src/importer.py"), DONE]))
    return [one for one in found if one.kind == kind]


def shapes(kind: ObservationKind, *events: AgentEvent) -> list[str]:
    return [one.shape for one in observed(kind, *events)]


# ---- corrections


@pytest.mark.parametrize("outcome", ["denied", "interrupted"])
def test_words_after_a_call_that_was_stopped_are_a_correction(outcome: str) -> None:
    (found,) = observed("correction", shell("npm install", "", outcome), prompt("No, pnpm instead of npm!"))  # type: ignore[arg-type]
    assert (found.shape, found.detail) == ("pnpm | npm", "stopped: npm install")
    assert (found.quote.stream, found.quote.seq, found.quote.text) == (7, 4, "No, pnpm instead of npm!")


def test_words_in_a_refusal_are_a_correction() -> None:
    told = "The user doesn't want to proceed with this tool use. The user said:\nuse pnpm rather than npm"
    assert shapes("correction", shell("npm install", told, "denied")) == ["pnpm | npm"]


def test_a_command_refused_without_a_word_is_a_correction_by_itself() -> None:
    assert shapes("correction", shell("git push --force origin main", "", "denied")) == [
        "denied: git push --force origin main"
    ]


@pytest.mark.parametrize(
    "output", ["Permission to use Bash with command rm has been denied.", "PreToolUse hook denied this call"]
)
def test_what_a_setting_or_a_hook_refused_is_no_correction(output: str) -> None:
    assert shapes("correction", shell("rm -rf build", output, "denied")) == []


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("never leave console.log in the code", "| code console.log leav"),
        ("Bitte keine Kommentare auf Deutsch", "| deutsch kommentar"),
        ("No uses comillas dobles en los textos", "| comilla dobl texto"),
        ("テストではデータベースをモックしないでください", "| テスト データベース モック"),
    ],
)
def test_a_standing_wish_is_a_correction_in_several_languages(text: str, shape: str) -> None:
    assert shapes("correction", prompt(text)) == [shape]


def test_a_file_edited_again_after_a_prompt_that_refuses_something_is_a_correction() -> None:
    assert shapes("correction", prompt("tabs, not spaces")) == ["tab | space"]


@pytest.mark.parametrize(
    "text",
    [
        "Run the tests", "Commit and push the changes", "looks good", "continue", "now update the docs as well",
        "Why did you use npm instead of pnpm?", "```\nnever do this\n```", "> don't use tabs",
        "This is what I get:\n2026-01-01 10:00:01 ERROR must not be null, use a default instead of null\n"
        "2026-01-01 10:00:02 WARN never do this in production\n2026-01-01 10:00:03 ERROR should not happen\n"
        "    at Object.<anonymous> (/a/b.js:1:3)\n2026-01-01 10:00:04 ERROR don't use eval in templates",
    ],
)  # fmt: skip
def test_tasks_questions_quotes_and_pasted_logs_correct_nothing(text: str) -> None:
    assert shapes("correction", prompt(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Don't make any changes to the schema yet", "Don't push the branch for now", "No need to run the linter",
        "Noch nicht committen, bitte keine Dateien anfassen, noch nicht", "Por ahora no toques las migraciones",
        "まだコミットしないでください、テストだけ",
    ],
)  # fmt: skip
def test_what_is_wanted_for_the_time_being_corrects_nothing(text: str) -> None:
    assert shapes("correction", prompt(text)) == []


def test_feedback_of_a_hook_and_words_of_the_agent_and_of_files_correct_nothing() -> None:
    assert (
        shapes(
            "correction",
            prompt("Stop hook feedback: never leave uncommitted changes", genuine=False),
            said("You should always run the linter, never skip it."),
            tool("Read", "read", output="Never use eval. Do not commit secrets."),
            event("prompt", "use pnpm, not npm", evidence=False),
        )
        == []
    )


def test_one_wish_said_twice_in_a_prompt_is_observed_once() -> None:
    assert shapes("correction", prompt("Never npm! We use pnpm here, not npm.")) == ["pnpm | npm"]


# ---- errors and recoveries

REFUSED = "FAIL src/a.test.ts\nError: connect ECONNREFUSED 127.0.0.1:5432"
FIRST = "pnpm: fail <path> error: connect econnrefused <address>"


def test_a_command_that_mends_another_is_a_recovery_of_its_error() -> None:
    events = [failing("pnpm test", REFUSED), shell("docker compose up -d db"), shell("pnpm test", "ok")]
    assert shapes("error", *events) == [FIRST]
    (found,) = observed("recovery", *events)
    assert (found.shape, found.detail) == (
        f"{FIRST} → run `docker compose up -d db` first", "run `docker compose up -d db` first",
    )  # fmt: skip


def test_another_way_to_run_it_is_a_recovery() -> None:
    error = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'acme'"
    (found,) = observed(
        "recovery",
        failing("python -m pytest tests/a.py", error),
        shell("PYTHONPATH=src python -m pytest tests/a.py", "ok"),
    )
    assert found.detail == "run `PYTHONPATH=src python -m pytest <path>` instead"


def test_a_command_like_it_in_its_place_is_a_recovery_also_if_it_came_out_well_itself_much_later() -> None:
    events = [
        failing("git push", "fatal: The current branch x has no upstream branch."),
        shell("git push -u origin HEAD", "ok"), edit("/repo/a.py"), shell("git push", "ok"),
    ]  # fmt: skip
    assert [one.detail for one in observed("recovery", *events)] == ["run `git push -u origin HEAD` instead"]


def test_a_command_of_the_same_program_before_the_next_success_was_done_first() -> None:
    events = [
        failing("go test ./...", "internal/mock.go:3:2: undefined: MockStore"), shell("go generate ./..."),
        shell("go test ./...", "ok"),
    ]  # fmt: skip
    assert [one.detail for one in observed("recovery", *events)] == ["run `go generate ./...` first"]


@pytest.mark.parametrize(
    "events",
    [
        [failing("grep -rn foo src", "")],
        [failing("git diff --exit-code", "diff --git a/x b/x")],
        [failing("test -f build/out", "")],
        [failing("git commit -m x", "nothing to commit, working tree clean")],
        [shell("rm -rf build", "Error: it was denied", "denied")],
        [shell("sleep 600", "Error: aborted", "interrupted")],
        [failing("pytest e2e", "FAILED e2e/test_ui.py::test_click - TimeoutError"), shell("pytest e2e", "ok")],
        [prompt("npm ERR! code E404\nError: it does not work")],
    ],
)  # fmt: skip
def test_answers_refusals_flaky_runs_and_pasted_logs_are_no_errors(events: list[AgentEvent]) -> None:
    assert shapes("error", *events) == []
    assert shapes("recovery", *events) == []


def test_what_an_edit_mended_is_an_error_without_a_recovery() -> None:
    events = [
        failing("mypy src", "src/a.py:3: error: Missing return statement"), edit("/repo/a.py"), shell("ruff check src"),
        shell("mypy src", "Success"),
    ]  # fmt: skip
    assert shapes("error", *events) == ["mypy: <path>: error: missing return statement"]
    assert shapes("recovery", *events) == []


def test_a_quote_stands_in_its_event_as_it_is() -> None:
    (found,) = observed("error", failing("pnpm test", REFUSED))
    assert found.quote.text == "FAIL src/a.test.ts Error: connect ECONNREFUSED 127.0.0.1:5432"


# ---- procedures


def test_steps_are_observed_in_rows_of_three_without_looks_and_repeats() -> None:
    rows = [
        one.detail.splitlines()
        for one in observed(
            "procedure", shell("npm version 1.2.3 && npm run build"), shell("git status"), shell("git push --tags"),
            shell("git push --tags"), shell("ls"), shell("npm publish"),
        )
        if "\n" in one.detail
    ]  # fmt: skip
    assert rows == [
        ["npm version <version>", "npm run build", "git push --tags"],
        ["npm run build", "git push --tags", "npm publish"],
    ]


def test_what_all_work_is_made_of_is_no_procedure() -> None:
    assert shapes("procedure", shell("pytest"), shell("git add -A"), shell("git commit -m x"), shell("git push")) == []


def test_a_way_out_of_a_failure_is_no_procedure() -> None:
    events = [
        failing("pnpm test", REFUSED), shell("docker compose up -d db"), shell("pnpm test", "ok"), shell("./deploy.sh"),
        shell("./announce.sh"),
    ]  # fmt: skip
    assert shapes("procedure", *events) == []


def test_a_step_run_once_more_after_it_failed_goes_on() -> None:
    events = [
        shell("make schema"),
        failing("make migrate", "error: locked"),
        shell("make migrate"),
        shell("./deploy.sh x"),
    ]
    assert next(one.detail for one in observed("procedure", *events)) == "make schema\nmake migrate\n./deploy.sh x"


# ---- all of it


def test_a_trivial_session_shows_nothing() -> None:
    assert observe(1, stream([prompt("What is 2 + 2? Never say five instead of four."), said("4")])) == ()
    assert observe(1, []) == ()


def test_what_a_sub_agent_did_is_not_observed_in_this_stream() -> None:
    of_it = {"session": "sub-1", "parent": "ses-1"}
    events = [TASK, edit("/repo/a.py"), prompt("use pnpm, not npm", **of_it), event("said", "done", **of_it), DONE]
    assert observe(7, stream(events)) == ()


def test_a_long_session_is_observed_within_bounds() -> None:
    events = [failing(f"./run.sh step{word}", f"Error: no {word} here") for word in (f"w{'x' * n}" for n in range(150))]
    assert len(observed("error", *events)) == 100


@pytest.mark.parametrize(
    "text", ["\ud800", "\x00\x1b[31m", "`" * 40, "a/" * 3_000, "not " * 2_000, "$(", "<<EOF\n", "\u202e", "🙂"]
)
def test_whatever_stands_in_a_session_is_observed_in_words_that_can_be_kept(text: str) -> None:
    hostile = [
        shell(f"./x.sh {text}", "", "denied"), prompt(f"never use {text} in scripts"),
        failing(f"./run.sh {text}", f"Error: {text} is not there"), shell(f"./other.sh {text}"),
        failing("make it", f"{text}"), shell("make ready"), shell("make it"), shell(f"./a.sh {text}"), shell("./b.sh"),
        shell("./c.sh"),
    ]  # fmt: skip
    found = observe(7, stream([TASK, edit("/repo/a.py"), *hostile, edit("/repo/a.py"), DONE]))
    assert found
    for one in found:
        assert one.quote.text.encode()
        assert len(one.quote.text) <= QUOTE_CHARS_MAX
        assert one.shape.encode()
