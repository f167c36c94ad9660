"""Text made short: whole words, whole lines, no half character, and nothing that a terminal or a parser would obey."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

ELLIPSIS: Final = "…"
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])?")
# Control characters but tab and newline, what turns the direction of writing, halves of surrogate pairs.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_JOINS: Final = "\u200d\ufe0e\ufe0f"
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})(.*)$")
_CODE_LINES_SHOWN: Final = 6


def clean(text: str) -> str:
    """Without terminal codes, control characters and half characters; line ends are newlines."""
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _UNFIT.sub("", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def one_line(text: str, limit: int) -> str:
    """The text on one line in at most `limit` characters, ended with an ellipsis where it was cut."""
    # Nothing beyond a few times the limit can be shown, however much of it is white space.
    return clip(" ".join(clean(text[: limit * 8 + 256]).split()), limit, more=len(text) > limit * 8 + 256)


def clip(text: str, limit: int, *, more: bool = False) -> str:
    """At most `limit` characters, cut between words. `more`: the text goes on beyond what is given."""
    if len(text) <= limit and not (more and len(text) + 2 > limit):
        return f"{text} {ELLIPSIS}" if more else text
    room = limit - 2
    if room < 1:
        return ELLIPSIS[:limit]
    end = _word_end(text, room)
    if not end:
        word = f"[one word of {len(text):,} characters]" if " " not in text else ELLIPSIS
        return word if len(word) <= limit else ELLIPSIS
    return f"{text[:end].rstrip()} {ELLIPSIS}"


def _word_end(text: str, room: int) -> int:
    """Where to cut at or before `room`: 0 where the first word is longer."""
    end = min(room, len(text))
    while end > 0 and end < len(text) and not _is_seam(text, end):
        end -= 1
    return end


def _is_seam(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if before.isspace() or after.isspace():
        return True
    if after in _JOINS or before in _JOINS or unicodedata.combining(after):
        return False
    return _without_spaces(before) and _without_spaces(after)


def _without_spaces(char: str) -> bool:
    """Of a script that is written without spaces: there is a seam between any two characters."""
    return "\u0e00" <= char <= "\u0eff" or "\u2e80" <= char <= "\u9fff" or "\uf900" <= char <= "\uffef"


def prose(text: str, limit: int) -> str:
    """A message of several lines in at most `limit` characters, cut after a line or between words.

    Fences are taken away: short code stays as lines, of longer code its first line and the number of lines.
    """
    kept: list[str] = []
    used = 0
    for line in _unfenced(clean(text[: limit * 8])):
        if used + len(line) + 1 > limit - 2:
            rest = limit - used - 3
            if rest > 40:
                kept.append(clip(line, rest, more=True))
            elif kept:
                kept[-1] += f" {ELLIPSIS}"
            return "\n".join(kept)
        kept.append(line)
        used += len(line) + 1
    return "\n".join(kept).strip()


def _unfenced(text: str) -> Iterator[str]:
    """Lines without fences, without trailing space and with at most one empty line in a row."""
    code: list[str] | None = None
    language = ""
    before = ""
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence:
            if code is None:
                code, language = [], fence[1].strip()
            else:
                yield from _code(code, language)
                code, before = None, ""
        elif code is not None:
            code.append(line.rstrip())
        elif line.strip() or before:
            before = line.rstrip()
            yield before
    if code:
        yield from _code(code, language)


def _code(lines: list[str], language: str) -> Iterator[str]:
    if len(lines) <= _CODE_LINES_SHOWN:
        yield from lines
    else:
        yield f"[{len(lines)} lines of {one_line(language, 20) or 'text'}: {one_line(lines[0], 80)}]"


def inert(text: str) -> str:
    """One line that is text and nothing else in markdown: no link, image, tag or fence."""
    for mark, harmless in _ESCAPED:
        if mark in text:
            text = text.replace(mark, harmless)
    return _TAG.sub(r"\\<", text)


_ESCAPED: Final = (("```", "\\`\\`\\`"), ("~~~", "\\~\\~\\~"), ("[[", "\\[\\["), ("](", "\\]("), ("![", "!\\["))
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_BLOCK = re.compile(r"^([ \t]*)(#|---|===|\*\*\*|___|>|\||\+\+\+)")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(.*?)[ \t#]*$")


def inert_lines(text: str) -> list[str]:
    """Lines that begin no heading, rule, quote or table of their own; a heading of theirs stands in bold."""
    lines = (_HEADING.sub(_in_bold, line) for line in text.split("\n"))
    return [_BLOCK.sub(r"\1\\\2", inert(line)) for line in lines]


def _in_bold(heading: re.Match[str]) -> str:
    words = heading[1].replace("**", "").strip()
    return f"**{words}**" if words else ""


def code(text: str) -> str:
    """A code span that holds the text whatever ticks are in it."""
    ticks = max((len(run) for run in re.findall("`+", text)), default=0)
    if not ticks:
        return f"`{text}`"
    if ticks >= 2:  # a longer row of ticks would look like a fence
        text = re.sub("`{2,}", "`", text)
    return f"`` {text} ``"
