"""Digests of genuine transcripts name what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from everkept.capture.agents import claude_code, codex, gemini
from everkept.capture.agents.reading import Format
from everkept.domain.digest import Digest, SessionEvent, content_hash, digest_session, to_handoff, to_page, trivial

DATA = Path(__file__).parents[3] / "data" / "transcripts"


def digest_of(name: str, of: Format = claude_code.FORMAT) -> Digest:
    events = of.read(DATA / name).events
    return digest_session([SessionEvent(seq, event) for seq, event in enumerate(events, 1)])


def test_a_failing_test_run_is_paired_with_the_edits_that_mended_it() -> None:
    digest = digest_of("entireio-cli/claude-code-2.0.76.jsonl")
    (failed,) = digest.failed
    assert (failed.command, failed.exit_code) == ("mise run test:ci", 1)
    assert failed.error.startswith("--- FAIL: TestEnableDisable (0.00s) setup_cmd_test.go:68: Expected enable output")
    assert failed.fix is not None
    assert failed.fix.files == ("cmd/entire/cli/integration_test/setup_cmd_test.go",)
    assert [change.words for change in digest.files] == ["edited 2 times"]
    assert (digest.open_ends, digest.branches) == ((), ("devA/improve-enable",))


def test_a_commit_with_nothing_to_commit_is_no_failure_and_hook_feedback_no_prompt() -> None:
    digest = digest_of("claude-reliability/claude-code-coverage-test-fix.jsonl")
    assert digest.failed == ()
    assert len(digest.prompts) == 1
    assert [change.path for change in digest.files] == ["src/math_utils.py", "tests/test_math_utils.py", ".gitignore"]
    assert [commit.id for commit in digest.commits] == ["6322cf4"]
    assert {run.command for run in digest.commands} >= {"git status", "pytest tests/test_math_utils.py"}


def test_a_message_that_asks_at_the_end_is_left_open() -> None:
    digest = digest_of("entireio-cli/claude-code-2.1.29-queue-two-models.jsonl")
    assert [(end.kind, end.text) for end in digest.open_ends] == [
        (
            "question",
            "The agent asked: “Which direction do you prefer? Or should I combine elements from different options?”",
        )
    ]
    assert [met.error for met in digest.errors] == ["Skill model is not a prompt-based skill"]
    assert (len(digest.prompts), len(digest.models)) == (3, 2)


def test_a_plan_that_was_finished_leaves_nothing_open_and_the_users_statement_is_quoted() -> None:
    digest = digest_of("entireio-cli/claude-code-2.1.3.jsonl")
    assert digest.open_ends == ()
    assert digest.decisions[0].quote.startswith("I think we can also remove the whole logic around")
    assert [run.command for run in digest.commands] == ["mise run test:integration", "mise run test && mise run lint"]


def test_a_file_that_was_written_and_removed_again_is_counted_and_not_named() -> None:
    digest = digest_of("entireio-cli/gemini-cli-session.json", gemini.FORMAT)
    assert digest.files == ()
    assert dict(digest.left_out)["files made and deleted again"] == 1
    assert digest.next_step.startswith("Now, I'll read `docs/color.md`")


def test_a_patch_of_codex_is_a_change() -> None:
    digest = digest_of("agent-sessions-fixtures/codex_small.jsonl", codex.FORMAT)
    assert [(change.path, change.words) for change in digest.files] == [("a.txt", "edited")]
    assert (digest.goal, digest.said[-1].text) == ("List the files", "Found 2 files.")


@pytest.mark.parametrize("path", sorted(DATA.glob("*/claude*.jsonl")), ids=lambda path: path.name)
def test_every_transcript_makes_a_page_and_a_handoff_that_read_twice_are_the_same(path: Path) -> None:
    one, again = digest_of(str(path)), digest_of(str(path))
    assert (to_page(one), to_handoff(one), content_hash(one)) == (
        to_page(again),
        to_handoff(again),
        content_hash(again),
    )
    assert len(to_page(one)) <= 6_000
    assert (trivial(one) is None) == bool(one.prompts and (one.files or one.failed))
