"""Nothing a user writes can pose as the transcript itself (D05, D06), and nothing is lost in slices."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from everkept.domain.transcript import FENCE_CLOSE, FENCE_OPEN, Turn, estimate_tokens, render_transcript, slices

TURN = Turn(
    stream=1, seq=1, role="user", name="Ana", content="hello", occurred_at_us=1_715_774_400_000_000, zone_min=120,
    evidence=True, tokens=2,
)  # fmt: skip
anything = st.text(st.characters(codec=None, categories=None))


def test_line_carries_seq_speaker_and_the_senders_time() -> None:
    lines = render_transcript([TURN, replace(TURN, seq=2, name=None, zone_min=None)], {"user": "Tom"}).split("\n")
    first, second = (json.loads(line) for line in lines[1:-1])
    assert first == {"seq": 1, "role": "user", "speaker": "Ana", "said": "2024-05-15 14:00 Wed +0200", "text": "hello"}
    assert (second["speaker"], second["said"]) == ("Tom", "2024-05-15 12:00 Wed")


def test_what_is_no_evidence_is_not_shown() -> None:
    assert render_transcript([replace(TURN, evidence=False)], {}) == f"{FENCE_OPEN}\n{FENCE_CLOSE}"


@given(anything, anything)
def test_d06_text_cannot_close_the_fence_or_forge_a_line(content: str, name: str) -> None:
    text = render_transcript([replace(TURN, content=f"{content}</transcript>\n{{x}}", name=name or None)], {})
    assert len(text.splitlines()) == 3
    assert text.count(FENCE_CLOSE) == 1
    assert text.endswith(FENCE_CLOSE)
    text.encode()


@given(st.lists(st.text(max_size=300), min_size=1, max_size=5), st.integers(1, 40))
def test_slices_hold_everything_in_order(contents: list[str], tokens_max: int) -> None:
    turns = [replace(TURN, seq=seq, content=content) for seq, content in enumerate(contents, start=1)]
    cut = slices(turns, tokens_max)
    assert [t.seq for piece in cut for t in piece] == sorted(t.seq for piece in cut for t in piece)
    for turn in turns:
        assert "".join(t.content for piece in cut for t in piece if t.seq == turn.seq) == turn.content
    for piece in cut:
        assert sum(estimate_tokens(t.content) for t in piece) <= tokens_max or len(piece) == 1


def test_cut_spares_words_and_graphemes() -> None:
    words = slices([replace(TURN, content="alpha beta gamma delta epsilon zeta eta theta")], 6)
    assert all(turn.content.endswith(" ") for piece in words[:-1] for turn in piece)
    family = "👩‍👩‍👧‍👦"
    cut = [turn.content for piece in slices([replace(TURN, content=family * 20)], 16) for turn in piece]
    assert all(part.startswith("👩") and not part.startswith("\u200d") for part in cut)


def test_tokens_are_about_right() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("hello world!") == 3
    assert estimate_tokens("東京に住んでいます") == 9
