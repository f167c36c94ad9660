"""The text of proposals made by rule: one imperative line and its source, in the words of the evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from everkept.domain.digest.clip import clip, code, inert, one_line
from everkept.domain.ids import event_id
from everkept.domain.pages import slug_of
from everkept.domain.review.quotes import short
from everkept.domain.review.repeated import Repeated
from everkept.domain.review.values import Quote, Seen
from everkept.domain.review.wish import wish_from, wish_of, without_lead_in
from everkept.domain.review.wish_words import PROTESTS
from everkept.domain.text import fold

TITLE_CHARS: Final = 100
_SLUG_CHARS: Final = 60
_STATEMENT_CHARS: Final = 240
_STEP: Final = re.compile(r"^\d{1,2}[.)] `([^`]+)`$")
_ENDS: Final = (".", "!", "?", "。", "！", "？")


def rule_statement(group: Repeated) -> str:
    """What the user wants, in the clearest of the user's sentences: no mere protest, and one that says what is wanted
    beside what is not; else the shortest."""

    def clarity(text: str) -> tuple[bool, bool, int]:
        wish = wish_of(text)
        return bool(PROTESTS.search(fold(text))), not (wish.unwanted and wish.wanted), len(text)

    told = [quote.text for quote in group.quotes if wish_of(quote.text).tells] or [group.quotes[0].text]
    return sentence(without_lead_in(min(told, key=clarity)))


def sentence(text: str) -> str:
    """One sentence that begins large and ends with a mark; nothing in it means anything in markdown."""
    line = inert(one_line(text, _STATEMENT_CHARS)).rstrip("!。！ ").rstrip()
    line = line[:1].upper() + line[1:]
    return line if line.endswith(_ENDS) else f"{line}."


def sourced(statement: str, quote: Quote) -> str:
    """A statement with the words that it rests on, as all pages have them."""
    return f"- {statement}\n  > “{inert(short(quote.text))}” — {event_id(quote.stream, quote.seq)}\n"


def rule_slug(seen: Seen) -> str:
    """Of the wish and not of its wording, so that the same rule has the same page each time."""
    wish = wish_from(seen.shape)
    unwanted = ["not", *sorted(wish.unwanted)] if wish.unwanted else []
    return slug([*sorted(wish.wanted), *unwanted])


def slug(words: Sequence[str]) -> str:
    return slug_of(slug_of(" ".join(words))[:_SLUG_CHARS])


def title(text: str) -> str:
    return clip(one_line(text, TITLE_CHARS).rstrip(".:"), TITLE_CHARS)


def gotcha_statement(error: Seen, cure: str, sessions: int) -> str:
    program = error.shape.partition(": ")[0]
    told = inert(one_line(error.quotes[0].text, _STATEMENT_CHARS))
    then = f"{cure}, then run it again" if cure.endswith(" first") else cure
    return f"When {code(program)} fails with “{told}”: {then}. That worked in {sessions} sessions."


def steps_in(body: str) -> list[str]:
    """The steps of a page that `steps_text` wrote, or that a person wrote like it."""
    return [found[1] for found in map(_STEP.match, body.splitlines()) if found]


def steps_text(steps: Sequence[str], sessions: int) -> str:
    lines = [f"{number}. {code(step)}" for number, step in enumerate(steps, 1)]
    return "\n".join([f"Run in this order, as {sessions} sessions did:", "", *lines, ""])
