"""Commands that failed and what mended them; what only looks like a failure."""

from __future__ import annotations

import pytest
from tests.unit.domain.digest.sessions import edit, event, failing, prompt, said, shell, stream, tool

from everkept.domain.digest import Digest, digest_session
from everkept.domain.session import AgentEvent


def digest_of(*events: AgentEvent) -> Digest:
    return digest_session(stream([prompt("go"), *events]))


def test_a_failed_command_is_paired_with_its_next_success_and_what_changed_in_between() -> None:
    digest = digest_of(
        edit("z.py"),
        failing("pytest -v tests", "FAILED tests/a.py::t - assert 0", 1),
        edit("/repo/a.py"),
        shell("pip install x"),
        shell("cd /repo && pytest tests 2>&1 | tail -3", "3 passed"),
        edit("later.py"),
        said("Done."),
    )
    (failed,) = digest.failed
    assert (failed.command, failed.exit_code, failed.error) == ("pytest tests", 1, "FAILED tests/a.py::t - assert 0")
    assert failed.fix is not None
    assert (failed.fix.files, failed.fix.commands, failed.fix.seq) == (("a.py",), ("pip install x",), 6)
    assert digest.open_ends == ()


def test_every_error_of_a_command_is_told_and_the_same_one_is_counted() -> None:
    digest = digest_of(
        failing("make", "error: a"), failing("make", "error: a"), failing("make", "error: b"), shell("make")
    )
    assert [(failed.error, failed.times) for failed in digest.failed] == [("error: a", 2), ("error: b", 1)]
    assert all(failed.fix for failed in digest.failed)


def test_a_command_that_fails_again_after_a_success_is_open() -> None:
    digest = digest_of(failing("make", "error: a"), shell("make"), failing("make", "error: a"), said("Sorry."))
    assert [failed.fix is None for failed in digest.failed] == [False, True]
    assert [end.kind for end in digest.open_ends] == ["failed"]


def test_a_chain_mends_the_commands_in_it_and_is_mended_by_its_parts() -> None:
    one = digest_of(failing("pytest", "1 failed"), edit("a.py"), shell("ruff check . && pytest && git commit -m x"))
    other = digest_of(failing("mise run test && mise run lint", "lint"), shell("mise run test"), shell("mise run lint"))
    assert [one.failed[0].fix is not None, other.failed[0].fix is not None] == [True, True]


def test_the_command_as_run_is_told_where_it_differs() -> None:
    digest = digest_of(
        failing("pytest", "ModuleNotFoundError: No module named 'a'"), shell("PYTHONPATH=. pytest", "ok")
    )
    assert digest.failed[0].fix is not None
    assert digest.failed[0].fix.command == "PYTHONPATH=. pytest"


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("grep -rn unsafe src", "", 1),
        ("rg foo", "Exit code 1", None),
        ("git diff --exit-code", "diff --git a b", 1),
        ("diff a b", "1c1\n< a", 1),
        ("test -f a", "", 1),
        ("[ -d x ]", "", 1),
        ("cmp a b", "a b differ", 1),
        ("git add . && git commit -m x", "Exit code 1\nOn branch master\nnothing to commit, working tree clean", 1),
        ("cd src && grep x y", "", 1),
        ("which foo", "", 1),
    ],
)
def test_an_answer_is_no_failure(command: str, output: str, code: int | None) -> None:
    digest = digest_of(failing(command, output, code))
    assert digest.failed == ()
    assert [(run.outcome, run.decided_by.endswith("is an answer")) for run in digest.commands] == [("ok", True)]


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("grep -rn x missing", "grep: missing: No such file or directory", 2),
        ("rg '('", "regex parse error", 2),
        ("diff a b", "diff: b: No such file or directory", 2),
        ("git commit -m x", "error: pathspec", 1),
        ("pytest", "", 1),
    ],
)
def test_trouble_of_such_a_command_is_a_failure(command: str, output: str, code: int) -> None:
    assert [failed.exit_code for failed in digest_of(failing(command, output, code)).failed] == [code]


def test_denied_and_interrupted_calls_are_no_failures() -> None:
    denied = shell("git push --force", "The user doesn't want to proceed", "denied")
    digest = digest_of(denied, shell("npm start", "", "interrupted"))
    assert [(call.outcome, call.what) for call in digest.stopped] == [
        ("denied", "git push --force"),
        ("interrupted", "npm start"),
    ]
    assert (digest.failed, digest.commands) == ((), ())


def test_a_failure_that_a_filter_hides_is_read_in_the_output() -> None:
    digest = digest_of(shell("pytest | tail -2", "FAILED tests/a.py::t\n1 failed in 0.2s", "ok", 0))
    (failed,) = digest.failed
    assert (failed.command, failed.exit_code, failed.decided_by) == ("pytest", None, "the output says tests failed")
    assert digest_of(shell("cat old.log | tail -2", "1 failed in 0.2s", "ok", 0)).failed == ()
    assert digest_of(shell("pytest", "npm ERR! quoted in a passing test", "ok", 0)).failed == ()


def test_where_the_agent_tells_no_outcome_the_output_may() -> None:
    digest = digest_of(shell("npm test", "npm ERR! code 1", "unknown"), shell("npm run lint", "fine", "unknown"))
    assert [failed.command for failed in digest.failed] == ["npm test"]
    assert [(run.command, run.outcome) for run in digest.commands] == [("npm run lint", "unknown")]


def test_other_commands_have_their_last_outcome_and_their_number() -> None:
    digest = digest_of(shell("npm run build"), shell("npm run build"), shell("ls"))
    assert [(run.command, run.times, run.looks) for run in digest.commands] == [
        ("npm run build", 2, False),
        ("ls", 1, True),
    ]


def test_errors_of_other_tools_and_of_the_agent_are_met_not_failed() -> None:
    missing = tool(
        "Edit", "edit", "failed", paths=("/repo/a.py",), output="<tool_use_error>String not found</tool_use_error>"
    )
    digest = digest_of(missing, missing, event("notification", "API Error: 529 overloaded", detail="api_error"))
    assert [(met.what, met.error, met.times) for met in digest.errors] == [
        ("Edit a.py", "String not found", 2),
        ("", "API Error: 529 overloaded", 1),
    ]
    assert digest.failed == ()


def test_commits_are_read_from_what_git_says() -> None:
    digest = digest_of(shell("git add a && git commit -m x", "[main 6322cf4] Add a\n 1 file changed"))
    assert [(commit.branch, commit.id, commit.subject) for commit in digest.commits] == [("main", "6322cf4", "Add a")]


def test_outcomes_are_counted_with_the_rule_that_decided() -> None:
    digest = digest_of(
        shell("a", code=0), shell("b", code=0), failing("grep x y", "", 1), edit("a.py", outcome="denied")
    )
    assert digest.outcomes == (
        ("ok", "exit code", 2),
        ("ok", "exit code 1 of grep is an answer", 1),
        ("denied", "the agent says so", 1),
    )
