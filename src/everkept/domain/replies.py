"""Reading a model's raw text strictly: what is not there is not made up, and one bad item does not spoil the rest.

Around the JSON, prose and code fences are tolerated. Inside it, every required key must be present with its type;
enums are compared after trimming, lower-casing and `_` for spaces, and a value that is still unknown rejects its item
with the reason (D03). Only an unknown *type of entity* becomes `other`, because a label is no reason to lose a fact.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

from everkept.domain.facts import ENTITY_TYPES, EntityType, FactDraft, FactKind

T = TypeVar("T")
Ruling = Literal["old", "new", "both"]
Change = Literal["state", "ended", "correction"]
Holds = Literal["one", "many", "unclear"]
HOLDS: Final[dict[Holds, bool | None]] = {"one": True, "many": False, "unclear": None}
SUMMARY_CHARS_MAX = 6_000
LEARNINGS_MAX = 30
LEARNING_CHARS_MAX = 1_000
_STARTS_MAX = 200
_STRETCH = 16
"""Characters of the stretches that are compared where a text repeats itself without sentences."""
_FENCED = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?。！？।؟\n]+")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class InvalidReply(Exception):
    """A model's text that cannot be used; `reason` says why, in words for the journal."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RejectedItem:
    item: str
    """The item as JSON, cut to 500 characters."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsReply:
    drafts: tuple[FactDraft, ...]
    rejected: tuple[RejectedItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryReply:
    summary: str
    learnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictsReply:
    rulings: Mapping[int, Ruling]
    """By the pair's number in the question, from 1."""
    missing: tuple[int, ...]
    """Pairs without a usable verdict: they stay open."""
    rejected: tuple[RejectedItem, ...]


def parse_facts(text: str) -> FactsReply:
    """Raises InvalidReply for no JSON, a cut one, another shape, or a reply that repeats itself."""
    items = _required(find_object(text, ("facts",)), "facts", list)
    drafts, rejected = _each(items, _fact)
    texts = Counter(draft.text for draft in drafts)
    if len(drafts) >= 8 and len(texts) * 2 < len(drafts):
        raise InvalidReply("the reply repeats itself")
    if items and not drafts:
        raise InvalidReply(f"no item can be used: {rejected[0].reason}")
    return FactsReply(drafts=tuple(drafts), rejected=tuple(rejected))


def parse_summary(text: str, *, system: str = "") -> SummaryReply:
    """Raises InvalidReply for another shape, repetition, or a reply that restates its instructions (`system`)."""
    found = find_object(text, ("summary", "learnings"))
    summary = _prose(_required(found, "summary", str), system)
    learnings = _required(found, "learnings", list)
    kept = dict.fromkeys(_learning(item, system) for item in learnings)
    kept.pop("", None)
    if len(kept) > LEARNINGS_MAX:
        raise InvalidReply(f"more than {LEARNINGS_MAX} learnings")
    return SummaryReply(summary=summary, learnings=tuple(kept))


def _learning(item: object, system: str) -> str:
    if not isinstance(item, str):
        raise InvalidReply("learnings holds something that is not text")
    bare = " ".join(_storable(item, "a learning").split())
    if len(bare) > LEARNING_CHARS_MAX:
        raise InvalidReply(f"a learning is longer than {LEARNING_CHARS_MAX} characters")
    if repeats_itself(bare):
        raise InvalidReply("the reply repeats itself")
    if restates(bare, system):
        raise InvalidReply("the reply restates its instructions")
    return bare


def parse_fold(text: str, *, system: str = "") -> str:
    return _prose(_required(find_object(text, ("summary",)), "summary", str), system)


def parse_verdicts(text: str, pairs: int) -> VerdictsReply:
    """Rulings for the pairs 1 to `pairs`. Two different rulings for one pair leave it open."""
    items = _required(find_object(text, ("verdicts",)), "verdicts", list)
    read, rejected = _each(items, lambda item: _verdict(item, pairs))
    rulings: dict[int, Ruling] = {}
    torn: set[int] = set()
    for pair, ruling in read:
        if rulings.setdefault(pair, ruling) != ruling:
            torn.add(pair)
    for pair in torn:
        del rulings[pair]
        rejected.append(RejectedItem(str(pair), "two different verdicts for one pair"))
    if pairs and not rulings:
        raise InvalidReply(f"no verdict can be used: {rejected[0].reason if rejected else 'the list is empty'}")
    missing = tuple(pair for pair in range(1, pairs + 1) if pair not in rulings)
    return VerdictsReply(rulings=rulings, missing=missing, rejected=tuple(rejected))


def find_object(text: str, keys: Iterable[str]) -> dict[str, Any]:
    """The JSON object in the text that has all `keys`; the longest if several do. Raises InvalidReply."""
    keys = tuple(keys)
    if not text.strip():
        raise InvalidReply("the reply is empty")
    found: list[tuple[int, dict[str, Any]]] = []
    for source in [*_FENCED.findall(text), text]:
        found += [(size, value) for size, value in _objects(source) if all(key in value for key in keys)]
        if found:
            return max(found, key=lambda item: item[0])[1]
    if "{" not in text:
        raise InvalidReply("there is no JSON in the reply")
    if any(True for _ in _objects(text)):
        raise InvalidReply(f"no object has the keys {', '.join(keys)}")
    raise InvalidReply("the JSON is cut or malformed")


def _objects(text: str) -> Iterable[tuple[int, dict[str, Any]]]:
    """Every outermost JSON object of the text with its length."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_STARTS_MAX):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        yield end - at, value
        at = text.find("{", end)


def _each(items: list[Any], read: Callable[[dict[str, Any]], T]) -> tuple[list[T], list[RejectedItem]]:
    good: list[T] = []
    bad: list[RejectedItem] = []
    for item in items:
        try:
            if not isinstance(item, dict):
                raise InvalidReply("the item is not an object")
            good.append(read(item))
        except InvalidReply as error:
            shown = _UNSTORABLE.sub("\ufffd", json.dumps(item, ensure_ascii=False, default=str)[:500])
            bad.append(RejectedItem(shown, error.reason))
    return good, bad


def _fact(item: dict[str, Any]) -> FactDraft:
    change = _choice(item, "change", get_args(Change))
    confidence = _required(item, "confidence", (int, float))
    if isinstance(confidence, bool) or not math.isfinite(confidence):
        raise InvalidReply("confidence is not a finite number")
    return FactDraft(
        entity=_required(item, "entity", str), predicate=_required(item, "predicate", str),
        object=_required(item, "object", str), text=_required(item, "statement", str),
        quote=_required(item, "quote", str), confidence=float(confidence),
        valid_from_said=_date_said(item, "valid_from"), valid_until_said=_date_said(item, "valid_until"),
        kind=_kind(item), object_type=_entity_type(item), single_valued=HOLDS[_choice(item, "holds", get_args(Holds))],
        closes=change == "ended", correction=change == "correction", replaces=_optional_text(item, "replaces"),
        seqs=(_required(item, "seq", int),),
    )  # fmt: skip


def _kind(item: dict[str, Any]) -> FactKind:
    kind: FactKind = _choice(item, "kind", get_args(FactKind))
    return kind


def _entity_type(item: dict[str, Any]) -> EntityType:
    said = _enum_form(_required(item, "object_type", str))
    return next((known for known in ENTITY_TYPES if known == said), "other")


def _verdict(item: dict[str, Any], pairs: int) -> tuple[int, Ruling]:
    pair = _required(item, "pair", int)
    if isinstance(pair, bool) or not 1 <= pair <= pairs:
        raise InvalidReply(f"there is no pair {pair}")
    return pair, _choice(item, "verdict", get_args(Ruling))


def _choice(item: dict[str, Any], key: str, allowed: tuple[Any, ...]) -> Any:
    said = _enum_form(_required(item, key, str))
    if said not in allowed:
        raise InvalidReply(f"{key} {said[:40]!r} is not one of {', '.join(allowed)}")
    return said


def _enum_form(text: str) -> str:
    return "_".join(text.strip().lower().split())


def _date_said(item: dict[str, Any], key: str) -> str | None:
    if key not in item:
        raise InvalidReply(f"{key} is missing")
    value = item[key]
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise InvalidReply(f"{key} is not text")
    return value.strip()


def _optional_text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return _storable(value.strip(), key) if isinstance(value, str) else ""


def _required(item: dict[str, Any], key: str, kind: type[T] | tuple[type, ...]) -> Any:
    if key not in item:
        raise InvalidReply(f"{key} is missing")
    if not isinstance(item[key], kind):
        raise InvalidReply(f"{key} has the wrong type ({type(item[key]).__name__})")
    return _storable(item[key], key) if isinstance(item[key], str) else item[key]


def _storable(text: str, key: str) -> str:
    if _UNSTORABLE.search(text):
        raise InvalidReply(f"{key} holds a NUL character or a lone surrogate")
    return text


def _prose(text: str, system: str) -> str:
    bare = text.strip()
    if not bare:
        raise InvalidReply("the summary is empty")
    if len(bare) > SUMMARY_CHARS_MAX:
        raise InvalidReply(f"the summary is longer than {SUMMARY_CHARS_MAX} characters")
    if repeats_itself(bare):
        raise InvalidReply("the reply repeats itself")
    if restates(bare, system):
        raise InvalidReply("the reply restates its instructions")
    return bare


def restates(text: str, system: str) -> bool:
    """Whether the text holds a line of the instructions, however its spaces and line breaks fall (D04)."""
    said = " ".join(text.split())
    return any(len(line) >= 60 and " ".join(line.split()) in said for line in system.splitlines())


def repeats_itself(text: str) -> bool:
    """Whether at least four sentences are said and most are the same one, or all of it is said four times (D04).

    The second is seen in any script, with or without punctuation: every stretch of some characters comes back.
    """
    text = text.casefold()
    sentences = Counter(" ".join(found.split()) for found in _SENTENCE.findall(text) if found.strip())
    total = sum(sentences.values())
    if total >= 4 and max(sentences.values()) * 2 > total:
        return True
    said = " ".join(text.split())
    stretches = [said[at : at + _STRETCH] for at in range(len(said) - _STRETCH + 1)]
    return len(stretches) > len(set(stretches)) * 4
