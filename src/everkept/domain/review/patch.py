"""What a proposal makes of a page, and how that is taken back: nothing outside of what it changes moves by a byte."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from everkept.domain.pages import Span, slug_of, spans_of
from everkept.domain.review.hunk import Hunk, hunk_of
from everkept.domain.review.values import Draft
from everkept.errors import Conflict


def patched(body: str, draft: Draft) -> str:
    """The page's text with the draft in it; `retire` leaves it as it is, for it takes the page as a whole away.

    Raises Conflict where it does not fit: its section is gone, was changed, or is there already.
    """
    newline = "\r\n" if "\r\n" in body else "\n"
    words = newline.join(draft.body.strip("\r\n").splitlines())
    match draft.action:
        case "create":
            return draft.body
        case "retire":
            return body
        case "append":
            return _at_end(body, words, newline)
        case "add_section":
            if any(span.section.anchor == slug_of(draft.section) for span in _spans(draft.title, body)):
                raise Conflict(f"the page has a section {draft.section!r} already", section=draft.section)
            return _at_end(body, f"## {draft.section}{newline * 2}{words}", newline)
        case "replace_section":
            return _in_place(body, words, _section(body, draft), newline)


@lru_cache(maxsize=8)
def _spans(title: str, body: str) -> tuple[Span, ...]:
    """Kept, since all that awaits a decision on a page is tried on the same text."""
    return tuple(spans_of(title, body))


def _at_end(body: str, words: str, newline: str) -> str:
    """Below an empty line; the page's own last line is ended where it was open."""
    if not body:
        return words + newline
    gap = newline * 2 if not body.endswith("\n") else newline if not body.endswith(("\n\n", "\n\r\n")) else ""
    return f"{body}{gap}{words}{newline}"


def _section(body: str, draft: Draft) -> Span:
    # Only the text before the first heading has the page's title; what it is called counts for its hash.
    found = next((s for s in _spans(draft.title, body) if s.section.anchor == draft.section), None)
    if found is None:
        raise Conflict(f"the page has no section {draft.section!r} any more", section=draft.section)
    if found.section.text_hash != draft.section_hash:
        raise Conflict(f"section {draft.section!r} was changed since the proposal was made", section=draft.section)
    return found


def _in_place(body: str, words: str, span: Span, newline: str) -> str:
    """The empty lines around the section's text stay."""
    old = body[span.start : span.end]
    head = old[: len(old) - len(old.lstrip("\r\n"))]
    tail = old[len(old.rstrip("\r\n")) :]
    return body[: span.start] + head + words + (tail or newline) + body[span.end :]


def reversed_patch(before: str, after: str, now: str) -> str:
    """`now` without what made `after` out of `before`, whatever was changed elsewhere since.

    Raises Conflict where the very lines in question were changed since.
    """
    if now == after:
        return before
    lines = after.splitlines(keepends=True)
    hunk = hunk_of(before.splitlines(keepends=True), lines)
    start = _place(hunk, lines, now)
    end = start + len("".join(lines[hunk.start : hunk.end]))
    old = "".join(hunk.old)
    if old and end < len(now) and not old.endswith(("\n", "\r")):
        old += "\n"  # it was the page's last line, and is not any more
    return now[:start] + old + now[end:]


def _place(hunk: Hunk, after: Sequence[str], now: str) -> int:
    """Where the hunk's lines stand in `now`: with as few of the lines around them as make the place the only one."""
    wanted = "".join(after[hunk.start : hunk.end])
    for above, below in _CONTEXTS:
        head = "".join(after[max(0, hunk.start - above) : hunk.start])
        tail = "".join(after[hunk.end : hunk.end + below])
        found = _line_starts(now, head + wanted + tail)
        if len(found) == 1:
            return found[0] + len(head)
    raise Conflict("what the proposal wrote was changed since; take it back by hand, on the newest version")


_CONTEXTS: Final = ((0, 0), *((a, b) for n in (1, 2, 4, 8, 16, 32) for a, b in ((n, n), (n, 0), (0, n))))
"""Lines (above, below) that are looked for together with the hunk."""


def _line_starts(text: str, words: str) -> list[int]:
    """Up to two places where `words` stand at the beginning of a line."""
    found: list[int] = []
    at = text.find(words)
    while at >= 0 and len(found) < 2:
        if at == 0 or text[at - 1] == "\n":
            found.append(at)
        at = text.find(words, at + 1)
    return found
