"""What was seen in several sessions: the same signature, or the same wish in other words, counted over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everkept.domain.review.corrections import DENIED
from everkept.domain.review.values import EVIDENCE_MAX, Observation, Quote, Seen
from everkept.domain.review.wish import wish_from


@dataclass(frozen=True, slots=True)
class Repeated:
    """Signatures that mean one thing, the one seen in most sessions first."""

    seen: tuple[Seen, ...]

    @property
    def first(self) -> Seen:
        return self.seen[0]

    @property
    def signatures(self) -> tuple[str, ...]:
        return tuple(one.signature for one in self.seen)

    @property
    def sessions(self) -> int:
        """At least so many: a session that said it twice in different words counts once."""
        streams = {quote.stream for one in self.seen for quote in one.quotes}
        return max(len(streams), *(one.sessions for one in self.seen))

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """One an event; a quote of each session before a second one of any."""
        found = {(quote.stream, quote.seq): quote for one in self.seen for quote in one.quotes}
        firsts = {quote.stream: quote for quote in reversed(found.values())}
        ordered = [*reversed(firsts.values()), *found.values()]
        return tuple(dict.fromkeys(ordered))[:EVIDENCE_MAX]

    @property
    def confidence(self) -> float:
        """From the count alone: 2 sessions 0.67, 3 sessions 0.75, never certain."""
        return min(0.95, round(self.sessions / (self.sessions + 1), 2))


def each_once(own: Sequence[Observation], kind: str, seen: Mapping[str, Seen]) -> list[Seen]:
    """What a session shows of a kind, as it was seen in all, in the session's order."""
    signatures = dict.fromkeys(one.signature for one in own if one.kind == kind)
    return [seen[signature] for signature in signatures if signature in seen]


def wishes_repeated(own: Sequence[Seen], seen: Mapping[str, Seen]) -> list[Repeated]:
    """The corrections of a session, each with those of all sessions that want the same in other words."""
    groups: list[Repeated] = []
    taken: set[str] = set()
    others = [one for one in seen.values() if one.kind == "correction" and not one.shape.startswith(DENIED)]
    for one in own:
        if one.signature in taken or one.shape.startswith(DENIED):
            continue
        wish = wish_from(one.shape)
        alike = [other for other in others if other is not one and wish_from(other.shape).is_like(wish)]
        group = sorted([one, *alike], key=lambda each: (-each.sessions, each.signature))
        taken |= {each.signature for each in group}
        groups.append(Repeated(tuple(group)))
    return groups
