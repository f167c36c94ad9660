"""Turns as an extractor sees them: fenced so that no text of a user can pose as anything but data (D05, D06).

A turn is one line of JSON. Its text cannot hold a line break or an angle bracket, so it can neither forge a second
turn nor close the fence; a reader of JSON gets the original characters back, so verbatim quotes survive.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from everkept.domain.dates import local_time

FENCE_OPEN = "<transcript>"
FENCE_CLOSE = "</transcript>"
_HIDDEN = re.compile("[<>\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DENSE = ((0x1100, 0x11FF), (0x2E80, 0x9FFF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF), (0x1F000, 0x3FFFF))
_DENSE_CHAR = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _DENSE) + "]")
_NOT_LATIN = re.compile("[\u0250-\U0010ffff]")
_NEVER_FIRST = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]")
_CUT_AFTER = (re.compile(r"\n\s*"), re.compile(r"[.!?。！？]\s*"), re.compile(r"\s+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One event of a stream as it was said; a slice of a long one keeps the seq and holds a part of the content."""

    stream: int
    seq: int
    role: str
    name: str | None
    content: str
    occurred_at_us: int
    """Microseconds since 1970, UTC."""
    zone_min: int | None
    """The sender's offset from UTC in minutes; None where it is not known."""
    evidence: bool
    """False for compaction summaries, recalled context and what was said while memory was off."""
    tokens: int

    def speaker(self, known_names: Mapping[str, str]) -> str:
        return self.name or known_names.get(self.role) or self.role


def render_transcript(turns: Iterable[Turn], known_names: Mapping[str, str]) -> str:
    """The evidence of a window, one line a turn, inside a fence that its text cannot close.

    `known_names` gives the name of a role where a turn carries none (`{"user": "Ana"}`). Turns that are no evidence
    are left out: an extractor never sees them (G5).
    """
    lines = [fence_line(_turn_fields(turn, known_names)) for turn in turns if turn.evidence]
    return "\n".join([FENCE_OPEN, *lines, FENCE_CLOSE])


def _turn_fields(turn: Turn, known_names: Mapping[str, str]) -> dict[str, object]:
    said = local_time(turn.occurred_at_us, turn.zone_min)
    fields: dict[str, object] = {"seq": turn.seq, "role": turn.role, "speaker": turn.speaker(known_names)}
    fields["said"] = said.strftime("%Y-%m-%d %H:%M %a") + ("" if turn.zone_min is None else said.strftime(" %z"))
    fields["text"] = turn.content
    return fields


def fence_line(fields: Mapping[str, object]) -> str:
    """One line of JSON without any character that could end the line, the fence or the encoding."""
    text = _LONE_SURROGATE.sub("\ufffd", json.dumps(fields, ensure_ascii=False))
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def estimate_tokens(text: str) -> int:
    """About how many tokens a model counts: 4 Latin characters or 1 CJK character each, 2 of other scripts."""
    if text.isascii():
        return -(-len(text) // 4)
    quarters = len(text) + len(_NOT_LATIN.findall(text)) + 2 * len(_DENSE_CHAR.findall(text))
    return -(-quarters // 4)


def slices(turns: Sequence[Turn], tokens_max: int) -> list[list[Turn]]:
    """Cut a window into pieces of at most `tokens_max` estimated tokens; nothing is dropped.

    A turn over the limit is divided by characters, never inside a grapheme; joined, its parts are the whole again.
    """
    assert tokens_max > 0
    found: list[list[Turn]] = []
    room = 0
    for turn in turns:
        for part in _parts(turn, tokens_max):
            if not found or part.tokens > room:
                found.append([])
                room = tokens_max
            found[-1].append(part)
            room -= part.tokens
    return found


def _parts(turn: Turn, tokens_max: int) -> list[Turn]:
    tokens = estimate_tokens(turn.content)
    if tokens <= tokens_max:
        return [replace(turn, tokens=tokens)]
    parts: list[Turn] = []
    rest = turn.content
    while rest:
        end = _cut(rest, tokens_max)
        parts.append(replace(turn, content=rest[:end], tokens=estimate_tokens(rest[:end])))
        rest = rest[end:]
    return parts


def _cut(text: str, tokens_max: int) -> int:
    """Where to end a piece of at most `tokens_max`: after a line, a sentence, a word, or at worst a grapheme."""
    hard = _fitting(text, tokens_max)
    if hard == len(text):
        return hard
    soft = hard * 4 // 5
    for boundary in _CUT_AFTER:
        ends = [found.end() for found in boundary.finditer(text, soft, hard)]
        if ends:
            return ends[-1]
    end = hard
    while end > hard // 2 and _inside_grapheme(text, end):
        end -= 1
    return end if end > hard // 2 else hard


def _fitting(text: str, tokens_max: int) -> int:
    """The longest prefix within `tokens_max`, at least one character."""
    low, high = 1, min(len(text), tokens_max * 4)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= tokens_max:
            low = middle
        else:
            high = middle - 1
    return low


def _inside_grapheme(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if unicodedata.combining(after) or unicodedata.category(after) in ("Mn", "Me", "Mc") or _NEVER_FIRST.match(after):
        return True
    if before == "\u200d" or (before == "\r" and after == "\n"):
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    return bool(_REGIONAL.match(before) and _REGIONAL.match(after))
