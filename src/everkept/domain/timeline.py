"""What all the statements about one subject come to, whatever order they were worked in (G9).

`settle` replays the statements in the order in which they were *said* and decides each against those said before it.
The result is a function of the set: row ids, arrival and batches cannot move it, so a late window closes its own facts
against what was said later. Nothing is deleted: each fact gets a state, and taking a fact away (retired by hand,
erased) and settling again gives what would have been without it.

The rules, in the order in which they are tried for a statement:

1. retired by hand: no influence, stays retired; pinned: nobody changes its state, but it may change others.
2. a correction retires the belief in the statement it takes back: the object it names, else the last other one.
3. a judged pair with verdict `old`: the later one is not believed.
4. a closure ends the validity of the matching open statement, at its own date, never before that one began.
5. the same object as an open statement: a duplicate that supports it. Not so if something closed it in between.
6. another object: `new` (judged, or one object at a time) closes the earlier at the later's date; `both` leaves it;
   what is not known is open: the later is live and both are unsettled. About an earlier period: it closes nothing.
A statement under `CONFIDENCE_MIN` closes, retires and replaces nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from everkept.domain.predicates import is_single_valued, normalise_name, normalise_predicate
from everkept.domain.text import stem

Verdict = Literal["old", "new", "both", "open"]
Pair = tuple[int, int]
"""Ids of two facts, the one said earlier first."""
CONFIDENCE_MIN = 0.5
RIVALS_MAX = 8
"""With how many of the last open statements of its kind a new one is compared where cardinality is not known."""
ANYTHING = frozenset(
    normalise_name(word)
    for word in (
        "partner", "boyfriend", "girlfriend", "job", "work", "freund", "freundin", "arbeit", "parceiro", "parceira",
        "namorado", "namorada", "emprego", "trabalho", "pareja", "novio", "novia", "trabajo", "恋人",
        "彼氏", "彼女", "仕事",
    )
)  # fmt: skip
"""Objects that name whatever is open of their kind: "we broke up" ends the relationship, with whomever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFact:
    """A statement as the timeline needs it. Entities are given under their canonical name."""

    id: int
    """Names the fact in the answer, and decides nothing."""
    said_us: int
    stream: int
    seq: int
    draft: int
    """Place among the accepted drafts of its window; orders statements of one event."""
    entity: str
    predicate: str
    object: str
    confidence: float
    valid_from_us: int | None = None
    valid_until_us: int | None = None
    single_valued: bool | None = None
    closes: bool = False
    correction: bool = False
    replaces: str = ""
    pinned: bool = False
    retired_by_hand: str | None = None
    """The reason somebody gave; None while nobody did."""

    @property
    def order(self) -> tuple[int, int, int, int]:
        return (self.said_us, self.stream, self.seq, self.draft)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactState:
    """What becomes of one fact."""

    id: int
    closed_at_us: int | None
    """When it ended in the world: its own end, or the one that another statement gave it."""
    closed_by: int | None
    """The fact that ended it; None where it said its own end."""
    retired: str | None
    """Why it is no longer believed: `corrected`, `judged`, or the reason given by hand."""
    superseded_by: int | None
    """The statement that took its place."""
    duplicate_of: int | None
    """The live statement that it only repeats."""
    unsettled: bool
    """Part of a contradiction without a verdict."""
    live: bool
    """Believed, no repetition, and not held back by an open contradiction; validity in time is another matter."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A fact while the statements are replayed."""

    fact: TimelineFact
    object: str
    end_us: int | None
    closed_by: int | None = None
    retired: str | None = None
    superseded_by: int | None = None
    duplicate_of: int | None = None
    open_with: set[int] = field(default_factory=set)
    shadowed: bool = False
    # Of the fact alone, and read for every pair of a slot:
    known_us: int = field(init=False)
    """From when it is known to hold."""
    claims_us: int = field(init=False)
    """The latest moment that it speaks about: when it was said, or when a plan begins."""
    about_the_past: bool = field(init=False)
    """Says itself that it was over when it was said."""
    weak: bool = field(init=False)

    def __post_init__(self) -> None:
        fact = self.fact
        self.known_us = fact.said_us if fact.valid_from_us is None else fact.valid_from_us
        self.claims_us = max(self.known_us, fact.said_us)
        self.about_the_past = fact.valid_until_us is not None and fact.valid_until_us <= fact.said_us
        self.weak = not fact.confidence >= CONFIDENCE_MIN

    @property
    def stands(self) -> bool:
        return self.retired is None and self.duplicate_of is None

    def holds_at(self, us: int) -> bool:
        return self.end_us is None or self.end_us > us

    def close(self, us: int, by: TimelineFact, *, replaced: bool) -> None:
        """End the validity, unless it ended before; never earlier than it began."""
        if self.fact.pinned:
            return
        at = us if self.fact.valid_from_us is None else max(us, self.fact.valid_from_us)
        if self.end_us is None or at < self.end_us:
            self.end_us, self.closed_by = at, by.id
            self.superseded_by = by.id if replaced else None


def settle(facts: Iterable[TimelineFact], verdicts: Mapping[Pair, Verdict]) -> list[FactState]:
    """The state of every fact, in the order in which they were said.

    `verdicts` may hold pairs that no rule would compare (near objects, found by their vectors); `open` marks one
    that waits for its judge. A verdict between statements that do not both stand has no effect.
    """
    return [_state(entry) for entry in _replay(facts, verdicts)]


def settle_and_find(
    facts: Iterable[TimelineFact], verdicts: Mapping[Pair, Verdict]
) -> tuple[list[FactState], list[Pair]]:
    """What `settle` and `find_conflicts` say, from one replay."""
    entries = _replay(facts, verdicts)
    return [_state(entry) for entry in entries], _conflicts(entries)


def find_conflicts(
    facts: Iterable[TimelineFact], verdicts: Mapping[Pair, Verdict], new_ids: Collection[int] | None = None
) -> list[Pair]:
    """Pairs that a judge must rule on, earlier said first; with `new_ids` only those with one of them.

    A ruling can uncover another pair (the statement before a refuted one), so ask again until there is none.
    """
    pairs = _conflicts(_replay(facts, verdicts))
    return [pair for pair in pairs if new_ids is None or pair[0] in new_ids or pair[1] in new_ids]


def _conflicts(replayed: Iterable[_Entry]) -> list[Pair]:
    entries = {entry.fact.id: entry for entry in replayed}
    pairs = [
        (entry.fact.id, later) for entry in entries.values() for later in sorted(entry.open_with)
        if entry.fact.order < entries[later].fact.order
    ]  # fmt: skip
    pairs.sort(key=lambda pair: (entries[pair[1]].fact.order, entries[pair[0]].fact.order))
    return pairs


def pair_of(one: TimelineFact, other: TimelineFact) -> Pair:
    """The key of a pair, by what was said first."""
    return (one.id, other.id) if one.order <= other.order else (other.id, one.id)


def judge_offline(earlier: TimelineFact, later: TimelineFact) -> Literal["new", "both"]:
    """The rule where no model is: one object at a time means the later one, everything else may hold together."""
    known = is_single_valued(later.predicate)
    said = {earlier.single_valued, later.single_valued} - {None}
    return "new" if known or (known is None and said == {True}) else "both"


@dataclass(slots=True)
class _Slot:
    """All statements with one entity and predicate, in the order in which they were said, up to the one in hand."""

    one_at_a_time: bool | None
    """What the predicate itself says; None where it depends on the statements."""
    said: list[_Entry] = field(default_factory=list)
    """Without closures."""
    not_many: list[_Entry] = field(default_factory=list)
    """Of `said`, without those that say themselves that several hold together."""
    single: list[_Entry] = field(default_factory=list)
    """Of `said`, those that say themselves that one holds at a time."""
    by_object: dict[str, list[_Entry]] = field(default_factory=lambda: defaultdict(list))

    def add(self, entry: _Entry) -> None:
        self.by_object[entry.object].append(entry)
        if entry.fact.closes:
            return
        self.said.append(entry)
        if entry.fact.single_valued is not False:
            self.not_many.append(entry)
        if entry.fact.single_valued is True:
            self.single.append(entry)

    def rivals(self, entry: _Entry) -> list[_Entry]:
        """Statements with another object that `holds_one` does not let stand beside `entry` as a matter of course."""
        if self.one_at_a_time is False:
            return []
        said = self.said
        if self.one_at_a_time is None and entry.fact.single_valued is not True:
            said = self.not_many if entry.fact.single_valued is None else self.single
        return [one for one in said if one.retired is None and one.duplicate_of is None and one.object != entry.object]

    def statements(self) -> list[_Entry]:
        return [entry for entry in self.said if entry.stands]

    def same(self, entry: _Entry) -> list[_Entry]:
        return [other for other in self.by_object[entry.object] if other.stands and not other.fact.closes]

    def holds_one(self, earlier: _Entry, later: _Entry) -> bool | None:
        if self.one_at_a_time is not None:
            return self.one_at_a_time
        one, other = earlier.fact.single_valued, later.fact.single_valued
        if one is None or other is None:
            return other if one is None else one
        return one if one == other else None


def _replay(facts: Iterable[TimelineFact], verdicts: Mapping[Pair, Verdict]) -> list[_Entry]:
    ordered = sorted(facts, key=lambda fact: fact.order)
    entries = [_Entry(fact, normalise_name(fact.object), fact.valid_until_us) for fact in ordered]
    by_id = {entry.fact.id: entry for entry in entries}
    grouped: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
    keys: dict[tuple[str, str], tuple[str, str]] = {}
    for entry in entries:
        said = entry.fact.entity, entry.fact.predicate
        if said not in keys:
            keys[said] = normalise_name(said[0]), normalise_predicate(said[1])
        grouped[keys[said]].append(entry)
    slots: dict[int, _Slot] = {}
    for (_, predicate), group in grouped.items():
        _retract(group)
        slots |= dict.fromkeys((entry.fact.id for entry in group), _Slot(is_single_valued(predicate)))
    judged = _judged_before(verdicts, by_id)
    for entry in entries:
        if entry.retired is None:
            _decide(entry, slots[entry.fact.id], judged.get(entry.fact.id, {}), by_id)
        slots[entry.fact.id].add(entry)
    _follow_duplicates(entries, by_id)
    _drop_moot(by_id)
    return entries


def _judged_before(verdicts: Mapping[Pair, Verdict], by_id: Mapping[int, _Entry]) -> dict[int, dict[int, Verdict]]:
    """Later fact → earlier fact → verdict, for pairs whose facts are both still there."""
    found: dict[int, dict[int, Verdict]] = defaultdict(dict)
    for (earlier, later), verdict in verdicts.items():
        if earlier in by_id and later in by_id and by_id[earlier].fact.order < by_id[later].fact.order:
            found[later][earlier] = verdict
    return found


def _retract(slot: Sequence[_Entry]) -> None:
    """Take back what was retired by hand, then what later statements of the slot correct."""
    for entry in slot:
        entry.retired = entry.fact.retired_by_hand
    for place, entry in enumerate(slot):
        if entry.fact.correction and entry.retired is None and not entry.weak:
            _correct(entry, slot[:place])


def _correct(entry: _Entry, before: Sequence[_Entry]) -> None:
    """Retire the statement that `entry` takes back, with its unbroken repetitions."""
    named = normalise_name(entry.fact.replaces)
    wrong: str | None = None
    for other in reversed(before):
        if other.retired is not None or other.fact.closes:
            continue
        if wrong is None and (other.object == named if named else other.object != entry.object):
            wrong = other.object
        if other.object == wrong:
            if not other.fact.pinned:
                other.retired, other.superseded_by = "corrected", entry.fact.id
        elif wrong is not None or not named:
            break


def _decide(entry: _Entry, slot: _Slot, verdicts: Mapping[int, Verdict], by_id: Mapping[int, _Entry]) -> None:
    """Decide one statement against those said before it."""
    if entry.fact.closes:
        _end_matching(entry, slot)
        return
    same = [other for other in slot.same(entry) if _tells_the_same(entry, other)]
    if _repeats(entry, same):
        return
    rivals = slot.rivals(entry)
    competing = (one for one in reversed(rivals) if slot.holds_one(one, entry) is None and _compete(one, entry))
    unknown = list(islice(competing, RIVALS_MAX))[::-1]
    # A verdict counts where the pair would be asked about today, so that one given on less knowledge cannot linger.
    judged = {id: verdict for id, verdict in verdicts.items() if _arguable(by_id[id], entry, slot, unknown)}
    refuters = [by_id[id] for id, verdict in judged.items() if verdict == "old"]
    if refuters and not entry.fact.pinned:
        entry.retired, entry.superseded_by = "judged", max(refuters, key=lambda one: one.fact.order).fact.id
        return
    if entry.weak:
        return
    for other in same:
        if other.weak and not other.fact.pinned:
            other.duplicate_of = entry.fact.id
    for other in rivals:
        if not _is_over(other, entry) and other.fact.id not in judged and slot.holds_one(other, entry):
            _replace(other, entry)
    for other in sorted((by_id[id] for id in judged), key=lambda one: one.fact.order):
        if judged[other.fact.id] == "new":
            _replace(other, entry)
        elif judged[other.fact.id] == "open":
            _leave_open(other, entry)
    for other in unknown:
        if other.fact.id not in judged:
            _leave_open(other, entry)


def _arguable(earlier: _Entry, later: _Entry, slot: _Slot, unknown: Sequence[_Entry]) -> bool:
    """Whether a verdict between the two has something to decide."""
    if earlier.fact.closes or not _compete(earlier, later):
        return False
    inside = any(earlier is one for one in slot.by_object[earlier.object])
    return not inside or earlier in unknown or slot.holds_one(earlier, later) is not None


def _end_matching(entry: _Entry, slot: _Slot) -> None:
    """A closure: end what it names. Where it fits several and none exactly, it ends none."""
    fact = entry.fact
    when = next(us for us in (fact.valid_until_us, fact.valid_from_us, fact.said_us) if us is not None)
    open_now = [other for other in slot.statements() if other.holds_at(min(when, fact.said_us))]
    exact = [other for other in open_now if other.object == entry.object]
    loose = [other for other in open_now if _names(entry.object, other.object)]
    chosen = exact or (loose if len(loose) == 1 else [])
    told = [other for other in slot.by_object[entry.object] if other.stands and other.fact.closes]
    if not chosen and told and not fact.pinned:
        entry.duplicate_of = told[-1].fact.id
    if not entry.weak:
        for other in chosen:
            other.close(when, fact, replaced=False)


def _names(said: str, object: str) -> bool:
    """Whether the object of a closure can mean `object`: "car" for "red car", "hike" for "go hiking", "job" for any."""
    if said in ANYTHING:
        return True
    if said.isascii():
        return {stem(word) for word in said.split()} <= {stem(word) for word in object.split()}
    return said in object or object in said


def _repeats(entry: _Entry, same: Sequence[_Entry]) -> bool:
    """Mark a repetition; True if `entry` only supports a statement that stands. A weak one never hides a firm one."""
    supported = [other for other in same if entry.weak or not other.weak]
    if entry.fact.valid_until_us is not None and not entry.weak:
        for other in same:
            other.close(entry.fact.valid_until_us, entry.fact, replaced=False)
    if not supported or entry.fact.pinned:
        return False
    entry.duplicate_of = supported[-1].fact.id
    return True


def _tells_the_same(entry: _Entry, other: _Entry) -> bool:
    """Whether a statement with the same object speaks of the same time, rather than of a new or a past one."""
    until = entry.fact.valid_until_us
    if not entry.about_the_past or until is None:
        return other.holds_at(entry.claims_us)
    return other.end_us == until if other.about_the_past else other.claims_us <= until


def _compete(earlier: _Entry, later: _Entry) -> bool:
    """Whether two statements claim the same time, so that only a judge can tell."""
    if not earlier.stands or earlier.fact.pinned or later.fact.pinned or later.weak:
        return False
    return not earlier.about_the_past and not later.about_the_past and earlier.holds_at(later.claims_us)


def _replace(earlier: _Entry, later: _Entry) -> None:
    """One object at a time: the later ends the earlier, or is itself about a time before the earlier began."""
    if later.about_the_past or later.weak or earlier.about_the_past:
        return
    began, begins = earlier.fact.valid_from_us, later.fact.valid_from_us
    if began is not None and begins is not None and begins < began:
        if not earlier.weak:
            later.close(began, earlier.fact, replaced=True)
        return
    earlier.close(later.known_us, later.fact, replaced=True)


def _is_over(earlier: _Entry, later: _Entry) -> bool:
    """Whether `_replace` would change nothing: it began and had ended before. Of a long slot nearly all have."""
    if earlier.end_us is None or earlier.end_us > later.known_us:
        return False
    began, begins = earlier.fact.valid_from_us, later.fact.valid_from_us
    return began is None or begins is None or begins >= began


def _leave_open(earlier: _Entry, later: _Entry) -> None:
    earlier.open_with.add(later.fact.id)
    later.open_with.add(earlier.fact.id)


def _follow_duplicates(entries: Sequence[_Entry], by_id: Mapping[int, _Entry]) -> None:
    """A weak statement may have been repeated before a firm one took its place: point all of them at the firm one."""
    for entry in entries:
        while entry.duplicate_of is not None and (next_id := by_id[entry.duplicate_of].duplicate_of) is not None:
            entry.duplicate_of = next_id


def _drop_moot(by_id: Mapping[int, _Entry]) -> None:
    """Open contradictions whose two sides no longer both stand are none; of the others, the later side is shown."""
    for entry in by_id.values():
        rest = {other for other in entry.open_with if entry.stands and by_id[other].stands}
        entry.open_with = rest
        entry.shadowed = any(by_id[other].fact.order > entry.fact.order for other in rest)


def _state(entry: _Entry) -> FactState:
    return FactState(
        id=entry.fact.id, closed_at_us=entry.end_us, closed_by=entry.closed_by, retired=entry.retired,
        superseded_by=entry.superseded_by, duplicate_of=entry.duplicate_of, unsettled=bool(entry.open_with),
        live=entry.stands and not entry.shadowed,
    )  # fmt: skip
