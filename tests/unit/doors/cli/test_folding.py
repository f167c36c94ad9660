"""A recalled text that is long is shown as the few lines that answer, and says how to see the rest."""

from __future__ import annotations

import pytest
from tests.unit.doors.cli.fake_service import FakeService, a_result, an_answer

from everkept.doors.cli.folding import CHARS_MAX, LINES_MAX, fold
from everkept.doors.cli.main import run

LONG = "\n".join([f"line {n}" for n in range(1, 500)] + ["the harbour closes at nine"] + ["more of it"] * 273)


def test_a_short_text_stays_as_it_is() -> None:
    folded = fold("one\ntwo", "two")
    assert (folded.text, folded.left_out) == ("one\ntwo", "")


def test_a_long_text_shows_the_lines_around_the_match_and_how_many_are_left_out() -> None:
    folded = fold(LONG, "when does the harbour close?")
    assert folded.text.splitlines()[:2] == ["line 499", "the harbour closes at nine"]
    assert len(folded.text.splitlines()) == LINES_MAX
    assert folded.left_out == "767 more lines"


def test_one_endless_line_is_cut_around_the_word_that_was_found() -> None:
    folded = fold(f"{'filler ' * 900}harbour{' filler' * 900}", "harbour")
    assert "harbour" in folded.text
    assert (folded.text[0], folded.text[-1]) == ("…", "…")
    assert len(folded.text) == CHARS_MAX
    assert folded.left_out == f"{900 * 7 * 2 + 7 - CHARS_MAX:,} more characters"


@pytest.mark.parametrize("text", ["", "\n\n", "word", "a\n" * 6, "x" * CHARS_MAX, "x" * 479 + "\n\n\n\n\n\n\n"])
def test_what_fits_leaves_nothing_out(text: str) -> None:
    assert fold(text, "?").left_out == ""


def test_recall_folds_at_the_terminal_and_shows_all_with_full(capsys: pytest.CaptureFixture[str]) -> None:
    found = an_answer(a_result(text=LONG))
    assert run(["recall", "harbour"], opener=FakeService(recall=found)) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == LINES_MAX + 2
    assert "… 767 more lines; everkept why evt_1_1" in out
    assert run(["recall", "harbour", "--full"], opener=FakeService(recall=found)) == 0
    assert len(capsys.readouterr().out.splitlines()) == 773 + 1


def test_a_page_is_shown_with_its_title_and_slug(capsys: pytest.CaptureFixture[str]) -> None:
    hit = a_result(kind="page", id="pag_1", speaker="Deploying: Steps", page="deploying#steps", thread=None)
    run(["recall", "deploy"], opener=FakeService(recall=an_answer(hit)))
    assert "Deploying: Steps · 2026-03-02 09:30 · deploying#steps · pag_1" in capsys.readouterr().out
