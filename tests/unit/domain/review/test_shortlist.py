"""A look at letters rules out only what holds too few of the stems, whatever the words and the language."""

from __future__ import annotations

import random
from importlib.resources import files

import pytest

from everkept.domain.review.known import Known, wishes_of
from everkept.domain.review.shortlist import Shortlist, letters_of
from everkept.domain.review.values import KnownPage
from everkept.domain.review.wish import wish_of
from everkept.domain.text import query_terms, stem

VOCABULARY = files("everkept.models").joinpath("data/bert_uncased_vocab.txt").read_text("utf-8").split()
SENTENCES = (
    "Use pnpm, not npm.", "Never run the migrations on Fridays.", "Run the database migration first.",
    "Don't commit to main without a review.", "Bitte nie auf main pushen.", "ｎｐｍ is wrong, use pnpm.",
    "npmではなくpnpmを使って", "Timeouts are 1,000 ms.", "Utiliser uv plutôt que pip.", "Apply happy-path tests only.",
)  # fmt: skip


def test_a_stem_is_its_word_but_for_one_letter_at_the_end() -> None:
    words = [word for word in VOCABULARY if word.isascii() and word.isalpha()]
    assert len(words) > 15_000
    assert [word for word in words if stem(word)[:-1] not in word] == []


@pytest.mark.parametrize("text", SENTENCES)
def test_every_term_of_a_text_may_be_held_by_it(text: str) -> None:
    terms = [*query_terms(text), *wish_of(text).terms]
    assert [term for term in terms if not Shortlist([term], 1).may_hold(letters_of(f"# A\n{text}\n"))] == []


def test_fewer_than_asked_for_are_ruled_out() -> None:
    looked_for = Shortlist(["pnpm", "npm", "lock"], 2)
    assert looked_for.may_hold("pnpm locks")
    assert not looked_for.may_hold("uv and pip")
    assert not Shortlist(["commit", "push"], 2).may_hold("commits")


def test_share_of_terms_is_not_rounded_up() -> None:
    stems = [f"{letter}{letter}{letter}" for letter in "abcdefghijklmno"]
    for held in range(1, 16):
        assert Shortlist(stems, held / 15 * 15).may_hold(" ".join(stems[:held])), held


def pages(seed: int) -> list[KnownPage]:
    chance = random.Random(seed)
    words = [*"use never run pnpm npm the tests with of not instead migration database commit main".split(),
             *chance.sample(VOCABULARY[2000:20_000], 40)]  # fmt: skip
    return [
        KnownPage(
            id=number, kind=chance.choice(("rule", "note")), slug=f"p{number}", title=f"Page {number}", version=1,
            pinned=False, author="hand", updated_at_us=number,
            body="\n".join(f"- {' '.join(chance.choices(words, k=chance.randint(2, 9)))}." for _ in range(6)),
        )
        for number in range(40)
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_what_pages_say_is_found_as_if_all_of_them_were_read(seed: int) -> None:
    known = Known(pages(seed))
    lines = [line for page in known.pages for line in wishes_of(page)]
    for line in lines[::5]:
        says = next((one.page for one in lines if one.wish.is_like(line.wish)), None)
        against = next((one for one in lines if one.page.kind == "rule" and one.wish.contradicts(line.wish)), None)
        assert known.says(line.wish) is says
        assert known.contradicting(line.wish) == against
        assert known.saying(line.text) is not None, "at least its own page"
