"""Facts without a model: only what a clear sentence of a person says, quoted. Restraint goes before recall."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from everkept.derive.offline.patterns import (
    ENDS_OBJECT,
    LEADS_CORRECTION,
    MEANT,
    NAMES_WRONG,
    NO_OBJECT,
    NOT_A_DEED,
    NOT_A_PLACE,
    NOT_A_TASTE,
    NOT_MEANT,
    RULES,
    SPLITS_LIST,
    Rule,
)
from everkept.domain.dates import Dated, find_dates
from everkept.domain.facts import FactDraft
from everkept.domain.predicates import is_single_valued, normalise_name
from everkept.domain.transcript import Turn

EXTRACTOR = "offline.1"
"""Version of the rules; it stands where a model's prompt version would."""
OBJECT_WORDS_MAX = 7
OBJECT_CHARS_MAX = 80
SENTENCE_CHARS_MAX = 400
TURN_CHARS_MAX = 20_000
"""Longer turns are pasted documents, not speech; they are searched, and nothing is concluded from them."""
_SENTENCE = re.compile(
    r"[^.!?。！？\n]+(?:(?:\.(?=\w)|(?:(?<=\bSt)|(?<=\bDr)|(?<=\bMr)|(?<=\bMs)|(?<=\bMrs))\.)[^.!?。！？\n]+)*[.!?。！？]*"
)
_PASTED = re.compile(r"```.*?(?:```|\Z)|^[>|].*$", re.DOTALL | re.MULTILINE)
_QUESTION = re.compile(r"[?？]\s*$|(?:か|の)。?$")
_STRAIGHT = str.maketrans("’‘“”", "''\"\"")


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of a turn, as written and with straight quotes (same length)."""

    turn: Turn
    written: str
    plain: str
    speaker: str


def extract_offline(turns: Sequence[Turn], *, subject: str, known_names: Mapping[str, str]) -> list[FactDraft]:
    """Drafts of the window in the order in which they were said. `subject` names a speaker who has no name."""
    drafts: list[FactDraft] = []
    seen: set[tuple[object, ...]] = set()
    for sentence in _sentences(turns, subject, known_names):
        for draft in _read(sentence, drafts):
            identity = (normalise_name(draft.entity), draft.predicate, normalise_name(draft.object), draft.closes)
            if identity not in seen:
                seen.add(identity)
                drafts.append(draft)
    return drafts


def _sentences(turns: Sequence[Turn], subject: str, known_names: Mapping[str, str]) -> list[_Sentence]:
    found: list[_Sentence] = []
    for turn in turns:
        if not turn.evidence or not _is_human(turn, turns) or len(turn.content) > TURN_CHARS_MAX:
            continue
        content = _PASTED.sub(lambda pasted: "\n" * len(pasted[0]), turn.content)
        speaker = turn.name or known_names.get(turn.role) or subject
        for match in _SENTENCE.finditer(content):
            written = match[0].strip()
            if 3 <= len(written) <= SENTENCE_CHARS_MAX and not _QUESTION.search(written):
                found.append(_Sentence(turn, written, written.translate(_STRAIGHT).rstrip(".!。！ "), speaker))
    return found


def _is_human(turn: Turn, turns: Sequence[Turn]) -> bool:
    """A user; or, where both sides of a chat have names and no machine speaks, the other person."""
    if turn.role == "user":
        return True
    if turn.role != "assistant" or turn.name is None:
        return False
    return all(other.name is not None and other.role in ("user", "assistant") for other in turns if other.evidence)


def _read(sentence: _Sentence, earlier: Sequence[FactDraft]) -> list[FactDraft]:
    if NOT_MEANT.search(sentence.plain):
        return []
    found: list[FactDraft] = []
    starts: set[int] = set()
    for rule in RULES:
        for match in rule.pattern.finditer(sentence.plain):
            inside_quotes = sentence.plain[: match.start()].count('"') % 2 == 1
            of_another = match.groupdict().get("who") is not None
            if inside_quotes or (match.start() in starts and not of_another):
                continue
            drafts = _drafts(rule, match, sentence)
            if drafts:
                starts.add(match.start())
                found += drafts
    return _corrected(found, sentence, earlier)


def _drafts(rule: Rule, match: re.Match[str], sentence: _Sentence) -> list[FactDraft]:
    dates = find_dates(sentence.plain, sentence.turn.occurred_at_us, sentence.turn.zone_min)
    if rule.needs and not any(date.relation == rule.needs for date in dates):
        return []
    groups = match.groupdict()
    said = groups.get("object") or ""
    raw = [rule.object] if rule.object else _objects(said, match.start("object") if said else 0, rule, dates)
    entity = (groups.get("who") or sentence.speaker).strip()
    topic = " ".join((groups.get("topic") or "").lower().split())
    predicate = rule.predicate.replace("{topic}", topic)
    start, end = _validity(rule, dates)
    return [
        FactDraft(
            entity=entity, predicate=predicate, object=one, text=_statement(rule, entity, predicate, one),
            quote=sentence.written, confidence=rule.confidence, valid_from_us=start, valid_until_us=end, kind=rule.kind,
            object_type=rule.object_type, single_valued=is_single_valued(predicate), closes=rule.closes,
            seqs=(sentence.turn.seq,),
        )
        for one in raw if normalise_name(one) != normalise_name(entity)
    ]  # fmt: skip


def _statement(rule: Rule, entity: str, predicate: str, object: str) -> str:
    if rule.verb_last:
        return f"{entity}は{object}{rule.says or predicate}"
    if rule.possessive:
        return f"{entity}'s {predicate} is {object}"
    return f"{entity} {rule.says or predicate} {object}"


def _objects(said: str, at: int, rule: Rule, dates: Sequence[Dated]) -> list[str]:
    """The object cut where the clause or a time begins; none if it names nothing or is too long to be one thing."""
    if not rule.predicate.startswith("has birthday"):
        for date in dates:
            if at <= date.start < at + len(said):
                said = said[: date.start - at]
    parts = SPLITS_LIST.split(said) if rule.listed else [ENDS_OBJECT.sub("", said)]
    cut = (ENDS_OBJECT.sub("", part).strip(" \t'\"-.,") for part in parts)
    bare = (re.sub(r"\s+(?:in|on|at|from|for|to|of|am|im|em|en)$", "", part) for part in cut)
    names = (part.removesuffix("'s") if rule.kind == "entity" else part for part in bare)
    return [part for part in names if _names_something(part) and not _of_another_kind(part, rule)]


def _of_another_kind(part: str, rule: Rule) -> bool:
    if rule.taste:
        return NOT_A_TASTE.search(part) is not None
    if rule.predicate == "plans to":
        return NOT_A_DEED.search(part) is not None
    return rule.object_type == "place" and NOT_A_PLACE.search(part) is not None


def _names_something(part: str) -> bool:
    words = part.lower().split()
    if not words or len(words) > OBJECT_WORDS_MAX or len(part) > OBJECT_CHARS_MAX:
        return False
    return words[0] not in NO_OBJECT or (len(words) > 1 and words[0] in ("the", "a", "an", "to", "la", "el", "o"))


def _validity(rule: Rule, dates: Sequence[Dated]) -> tuple[int | None, int | None]:
    since = next((date.from_us for date in dates if date.relation == "since"), None)
    until = next((date.until_us for date in dates if date.relation == "until"), None)
    at = next((date.from_us for date in dates if date.relation == "on"), None) if rule.event else None
    if rule.closes:
        return None, at if at is not None else since
    start = since if since is not None else at
    return (None, until) if start is not None and until is not None and start > until else (start, until)


def _corrected(found: list[FactDraft], sentence: _Sentence, earlier: Sequence[FactDraft]) -> list[FactDraft]:
    """ "Actually I live in Porto, not Lisbon" takes Lisbon back; so does "No, I meant Porto" of what was just said."""
    wrong = NAMES_WRONG.search(sentence.plain)
    if not LEADS_CORRECTION.search(sentence.plain):
        return found
    named = wrong["wrong"].strip() if wrong else ""
    if found and named:
        return [draft if draft.closes else replace(draft, correction=True, replaces=named) for draft in found]
    meant = MEANT.search(sentence.plain)
    if found or meant is None:
        return found
    mine = [draft for draft in earlier if draft.entity == sentence.speaker and not draft.closes]
    taken_back = [draft for draft in mine if not named or normalise_name(draft.object) == normalise_name(named)]
    if not taken_back or (not named and taken_back[-1].seqs[0] < sentence.turn.seq - 2):
        return found
    last = taken_back[-1]
    right = meant["object"].strip()
    text = last.text.replace(last.object, right)
    return [replace(last, object=right, text=text, quote=sentence.written, seqs=(sentence.turn.seq,), correction=True,
                    replaces=last.object)]  # fmt: skip
