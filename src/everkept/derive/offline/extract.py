"""Facts without a model: only what a clear sentence of a person says, quoted. Restraint goes before recall."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from everkept.derive.offline.limits import (
    A_CLAUSE_BEGINS,
    ENDS_GOODS,
    ENDS_NAME,
    ENDS_OBJECT,
    JOINED,
    LEADS_CORRECTION,
    LOOSE_END,
    MEANT,
    NAMES_WRONG,
    NO_OBJECT,
    NOT_A_DEED,
    NOT_A_NAME,
    NOT_A_PLACE,
    NOT_A_TASTE,
    NOT_MEANT,
    NOT_OWNED,
    NOW,
    OWN,
    POINTS_ELSEWHERE,
    RELATIVE,
    REPORTED,
    REWRITTEN,
    SOMEBODY_ELSES,
    SPLITS_LIST,
)
from everkept.derive.offline.rule import Rule
from everkept.derive.offline.rules import rules_for
from everkept.derive.offline.rules_english import KIN_CALLED
from everkept.derive.offline.sentences import split_sentences
from everkept.domain.dates import Dated, find_dates
from everkept.domain.facts import FactDraft
from everkept.domain.predicates import is_single_valued, normalise_name, normalise_predicate, without_article
from everkept.domain.transcript import Turn

EXTRACTOR = "offline.2"
"""Version of the rules; it stands where a model's prompt version would."""
OBJECT_WORDS_MAX = 7
PLAN_WORDS_MAX = 10
OBJECT_CHARS_MAX = 80
SENTENCE_CHARS_MAX = 400
TURN_CHARS_MAX = 20_000
"""Longer turns are pasted documents, not speech; they are searched, and nothing is concluded from them."""
_QUESTION = re.compile(r"[?？]\s*$|か。?$")
_STRAIGHT = str.maketrans("’‘“”„", '\'\'"""')
_LIKES = ("likes", "dislikes")
_VOWEL = re.compile(r"^(?:[aeio]|u(?!ni|se|k\b)|hour|honest)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of a turn, as written and with straight quotes (same length)."""

    turn: Turn
    written: str
    plain: str
    speaker: str

    def dates(self, *, ahead: bool) -> list[Dated]:
        return find_dates(self.plain, self.turn.occurred_at_us, self.turn.zone_min, ahead=ahead)


@dataclass(frozen=True, slots=True)
class _Clause:
    """Where a rule found its statement in a sentence."""

    sentence: _Sentence
    rule: Rule
    match: re.Match[str]
    dates: Sequence[Dated]

    def group(self, name: str) -> str:
        return self.match.groupdict().get(name) or ""


def extract_offline(turns: Sequence[Turn], *, subject: str, known_names: Mapping[str, str]) -> list[FactDraft]:
    """Drafts of the window in the order in which they were said. `subject` names a speaker who has no name."""
    drafts: list[FactDraft] = []
    seen: set[tuple[object, ...]] = set()
    for sentence in _sentences(turns, subject, known_names):
        for draft in _read(sentence, drafts):
            identity = (
                normalise_name(draft.entity), normalise_predicate(draft.predicate), normalise_name(draft.object),
                draft.closes,
            )  # fmt: skip
            if identity not in seen:
                seen.add(identity)
                drafts.append(draft)
    return drafts


def _sentences(turns: Sequence[Turn], subject: str, known_names: Mapping[str, str]) -> list[_Sentence]:
    found: list[_Sentence] = []
    for turn in turns:
        if not turn.evidence or not is_human(turn, turns) or len(turn.content) > TURN_CHARS_MAX:
            continue
        speaker = turn.name or known_names.get(turn.role) or subject
        found += [
            _Sentence(turn, written, written.translate(_STRAIGHT).rstrip(".!。！ "), speaker)
            for written in split_sentences(turn.content)
            if 3 <= len(written) <= SENTENCE_CHARS_MAX and not _QUESTION.search(written)
        ]
    return found


def is_human(turn: Turn, turns: Sequence[Turn]) -> bool:
    """A user; or, where both sides of a chat have names and no machine speaks, the other person."""
    if turn.role == "user":
        return True
    if turn.role != "assistant" or turn.name is None or turn.name.casefold() in ("assistant", "bot", "agent"):
        return False
    return all(other.name is not None and other.role in ("user", "assistant") for other in turns if other.evidence)


def _read(sentence: _Sentence, earlier: Sequence[FactDraft]) -> list[FactDraft]:
    if REPORTED.search(sentence.plain):
        return []
    doubted = NOT_MEANT.search(sentence.plain) is not None
    found: list[tuple[int, FactDraft]] = []
    taken: set[int] = set()
    for rule in rules_for(sentence.plain):
        if doubted and not rule.names:
            continue
        for match in rule.pattern.finditer(sentence.plain):
            at = match.start("object") if match.groupdict().get("object") else match.start()
            if _of_another(rule, match, sentence) or (at in taken and not rule.beside):
                continue
            drafts = _drafts(_Clause(sentence, rule, match, sentence.dates(ahead=rule.ahead)))
            if drafts:
                taken.add(at)
                found += [(match.start(), draft) for draft in drafts]
    found.sort(key=lambda item: item[0])
    return _corrected([draft for _, draft in found], sentence, earlier)


def _of_another(rule: Rule, match: re.Match[str], sentence: _Sentence) -> bool:
    """Whether the clause is a quotation, or hangs on a word that makes it no statement of its own."""
    before = sentence.plain[: match.start()]
    if rule.predicate in _LIKES and match[0][:2] == "I " and not A_CLAUSE_BEGINS.search(before):
        return True
    return before.count('"') % 2 == 1 or SOMEBODY_ELSES.search(before) is not None


def _drafts(clause: _Clause) -> list[FactDraft]:
    rule, sentence = clause.rule, clause.sentence
    if not _dated_as_needed(clause):
        return []
    entity = _entity(clause)
    topic = " ".join(clause.group("topic").split())
    predicate = rule.predicate.replace("{topic}", topic.lower())
    start, end = _validity(clause)
    single = is_single_valued(predicate)
    if rule.now_replaces and NOW.search(sentence.plain[: clause.match.start("object")], clause.match.start()):
        single = True
    return [
        FactDraft(
            entity=entity, predicate=predicate, object=without_article(one), quote=sentence.written,
            text=_statement(rule, entity, predicate, topic, one), confidence=rule.confidence, valid_from_us=start,
            valid_until_us=end, kind=rule.kind, object_type=rule.object_type, single_valued=single,
            closes=rule.closes, seqs=(sentence.turn.seq,),
        )
        for one in _objects(clause)
        if entity and normalise_name(one) != normalise_name(entity)
    ]  # fmt: skip


def _dated_as_needed(clause: _Clause) -> bool:
    if clause.rule.ahead:
        return _coming(clause) is not None
    return not clause.rule.needs or any(date.relation == clause.rule.needs for date in clause.dates)


def _coming(clause: _Clause) -> Dated | None:
    """The first date of the sentence that is not over yet."""
    said = clause.sentence.turn.occurred_at_us
    return next((date for date in clause.dates if date.relation == "on" and date.until_us > said), None)


def _entity(clause: _Clause) -> str:
    """Who the statement is about; empty if the words name nobody."""
    if kin := clause.group("kin").lower():
        known = KIN_CALLED.get(kin, kin)
        named = known if clause.group("kin").islower() else clause.group("kin")
        return clause.rule.kin.format(kin=KIN_CALLED.get(kin, named), speaker=clause.sentence.speaker)
    who = _name(clause.group("who"))
    return "" if NOT_A_NAME.search(who) else who or clause.sentence.speaker


def _name(said: str) -> str:
    name = said.strip()
    for pattern, written in REWRITTEN:
        name = pattern.sub(written, name)
    return name


def _statement(rule: Rule, entity: str, predicate: str, topic: str, said: str) -> str:
    bare = without_article(said)
    return rule.text.format(
        entity=entity, predicate=predicate, topic=topic if topic[:1].isupper() else topic.lower(), object=said,
        bare=bare, a="an" if _VOWEL.match(bare) else "a", an="an" if _VOWEL.match(topic) else "a",
    ).replace("  ", " ")  # fmt: skip


def _objects(clause: _Clause) -> list[str]:
    """The object cut where the clause or a time begins; none if it names nothing or is too long to be one thing."""
    rule = clause.rule
    if rule.object:
        return [rule.object]
    said = clause.group("object")
    if not rule.predicate.startswith("has birthday"):
        said = _without_times(said, clause.match.start("object"), clause.dates)
    parts = SPLITS_LIST.split(said) if rule.listed else [said]
    cut = [_cut(part, rule) for part in parts]
    return [f"{rule.lead}{part}{rule.tail}" for part in cut if _names_something(part, rule)]


def _without_times(said: str, at: int, dates: Sequence[Dated]) -> str:
    """The words without a time in front of them, up to the first time within them."""
    begins, ends = at, at + len(said)
    for date in dates:
        if date.start <= begins + 1 < date.end:
            begins = min(date.end, ends)
        elif begins < date.start < ends:
            ends = date.start
    return said[begins - at : ends - at]


def _cut(part: str, rule: Rule) -> str:
    if rule.predicate in _LIKES and RELATIVE.search(part):
        return ""
    if not (rule.taste and JOINED.search(part) and not POINTS_ELSEWHERE.search(part)):
        part = ENDS_OBJECT.sub("", part)
    if normalise_predicate(rule.predicate) in ("owns", "tem", "tiene"):
        part = ENDS_GOODS.sub("", part)
    part = part.strip(" \t'\"-.,")
    if rule.kind == "entity":
        part = _name(ENDS_NAME.sub("", part))
    while LOOSE_END.search(part):
        part = LOOSE_END.sub("", part).strip()
    return OWN.sub("their", part) if rule.ahead else part


def _names_something(part: str, rule: Rule) -> bool:
    words = part.lower().split()
    if not words or len(words) > (PLAN_WORDS_MAX if rule.ahead else OBJECT_WORDS_MAX) or len(part) > OBJECT_CHARS_MAX:
        return False
    if words[0] in NO_OBJECT and (len(words) == 1 or words[0] not in ("the", "a", "an", "to", "la", "el", "o")):
        return False
    if POINTS_ELSEWHERE.search(part.replace("their ", "") if rule.ahead else part):
        return False
    return not _of_another_kind(part, rule)


def _of_another_kind(part: str, rule: Rule) -> bool:
    if rule.taste:
        return NOT_A_TASTE.search(part) is not None
    if rule.predicate == "plans to":
        return not rule.lead and NOT_A_DEED.search(part) is not None
    if rule.object_type == "person" or rule.object_type == "animal":
        return NOT_A_NAME.search(part) is not None
    if normalise_predicate(rule.predicate) == "owns":
        return NOT_OWNED.search(part) is not None
    return rule.object_type == "place" and NOT_A_PLACE.search(part) is not None


def _validity(clause: _Clause) -> tuple[int | None, int | None]:
    rule = clause.rule
    if rule.ahead:
        coming = _coming(clause)
        return (None, None) if coming is None else (coming.from_us, coming.until_us)
    since = next((date.from_us for date in clause.dates if date.relation == "since"), None)
    until = next((date.until_us for date in clause.dates if date.relation == "until"), None)
    at = next((date.from_us for date in clause.dates if date.relation == "on"), None) if rule.event else None
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
