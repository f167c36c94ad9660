"""The reviewer without a model on synthetic histories: of what it proposes how much was planted, and how much of it.

    python -m tests.bench.review_quality [--seeds FIRST COUNT] [--show]

Every proposal is approved at once, as a project with automatic approval would, so that what it proposes again later is
counted against it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.bench.report import Figure, Goal
from tests.bench.review_histories import HELD_OUT_FROM, History, history
from tests.bench.review_plants import Plant

from everkept.capture.agents.formats import recognise
from everkept.domain.digest import SessionEvent
from everkept.domain.review.observe import observe
from everkept.domain.review.patch import patched
from everkept.domain.review.propose import propose
from everkept.domain.review.values import EVIDENCE_MAX, Draft, KnownPage, Observation, Seen

RECORDINGS = Path(__file__).parents[1] / "data" / "transcripts"
SEEDS, SEEDS_QUICK = 20, 5
PRECISION_LEAST, RECALL_LEAST = 0.8, 0.6


def measure(_home: Path, *, quick: bool) -> Iterator[Figure]:
    """Over seeds that were not used while the reviewer was tuned."""
    scores = [score(history(seed)) for seed in range(HELD_OUT_FROM, HELD_OUT_FROM + (SEEDS_QUICK if quick else SEEDS))]
    whole = added(scores)
    yield Figure(
        name=f"precision, {len(scores)} histories", value=whole.precision, unit="of 1", peer="goal",
        peer_value=PRECISION_LEAST, goal=Goal(of="value", sense="least", bound=PRECISION_LEAST),
    )  # fmt: skip
    yield Figure(
        name=f"recall, {len(scores)} histories", value=whole.recall, unit="of 1", peer="goal",
        peer_value=RECALL_LEAST, goal=Goal(of="value", sense="least", bound=RECALL_LEAST),
    )  # fmt: skip
    yield Figure(
        name="proposals a session", value=whole.proposed / whole.sessions, unit="", peer="planted a session",
        peer_value=whole.planted / whole.sessions,
    )  # fmt: skip
    sessions, proposed = proposed_on_recordings()
    yield Figure(
        name="proposals on genuine sessions, none of which repeats another", value=proposed, unit="", peer="sessions",
        peer_value=sessions, goal=Goal(of="value", sense="most", bound=0),
    )  # fmt: skip


def proposed_on_recordings() -> tuple[int, int]:
    """(genuine sessions, proposals after them, one after the other as if they were of one project)."""
    store, sessions, proposed = Store(), 0, 0
    for path in sorted(path for path in RECORDINGS.rglob("*.json*") if "part" not in path.parts):
        form = recognise(path)
        if form is None:
            continue
        sessions += 1
        own = observe(sessions, [SessionEvent(seq, event) for seq, event in enumerate(form.read(path).events, 1)])
        made = propose(own, store.seen_with(own), tuple(store.pages.values()), frozenset())
        proposed += len(made.drafts)
    return sessions, proposed


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    sessions: int
    planted: int
    proposed: int
    right: int
    """Proposals that answer something planted which none answered before."""
    found: int
    """What was planted and is named by one of them."""
    missed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def precision(self) -> float:
        return self.right / self.proposed if self.proposed else 0.0

    @property
    def recall(self) -> float:
        return self.found / self.planted if self.planted else 0.0


def added(scores: Sequence[Score]) -> Score:
    return Score(
        sessions=sum(s.sessions for s in scores), planted=sum(s.planted for s in scores),
        proposed=sum(s.proposed for s in scores), right=sum(s.right for s in scores),
        found=sum(s.found for s in scores),
        missed=tuple(m for s in scores for m in s.missed), wrong=tuple(w for s in scores for w in s.wrong),
    )  # fmt: skip


def score(told: History) -> Score:
    """A proposal is right if it says something of what was planted that no earlier one said."""
    said: dict[Plant, str] = {}
    proposed = right = 0
    wrong: list[str] = []
    for draft in (draft for _, made in reviewed(told) for draft in made):
        proposed += 1
        plant = _answered(draft, told)
        before = "" if plant is None else said.get(plant, "")
        if plant is not None and any(p.casefold() in _text(draft) and p.casefold() not in before for p in plant.parts):
            right += 1
            said[plant] = before + _text(draft)
        else:
            wrong.append(f"{draft.action} {draft.kind} {draft.slug}: {draft.body[:200]!r}")
    missed = [p for p in told.planted if p.needle.casefold() not in said.get(p, "")]
    return Score(
        sessions=len(told.sessions), planted=len(told.planted), proposed=proposed, right=right,
        found=len(told.planted) - len(missed), missed=tuple(f"{p.kind} {p.needle}" for p in missed), wrong=tuple(wrong),
    )  # fmt: skip


def reviewed(told: History) -> Iterator[tuple[int, tuple[Draft, ...]]]:
    """(session, what is proposed after it), one session after the other."""
    store = Store()
    for session in told.sessions:
        own = observe(session.stream, session.events)
        made = propose(own, store.seen_with(own), tuple(store.pages.values()), frozenset())
        for draft in made.drafts:
            store.approve(draft)
        yield session.stream, made.drafts


def _answered(draft: Draft, told: History) -> Plant | None:
    """What most of its evidence was planted for, if it is of that kind."""
    at = Counter(told.places.get((quote.stream, quote.seq)) for quote in draft.evidence)
    plant, count = at.most_common(1)[0]
    return plant if plant is not None and 2 * count > len(draft.evidence) and draft.kind == plant.kind else None


def _text(draft: Draft) -> str:
    return draft.body.casefold()


@dataclass(slots=True)
class Store:
    """As much of a store as a reviewer needs: what was observed, and pages."""

    observed: list[Observation] = field(default_factory=list)
    pages: dict[str, KnownPage] = field(default_factory=dict)

    def seen_with(self, own: Sequence[Observation]) -> dict[str, Seen]:
        """Each signature of the project with its counts, this session among them."""
        self.observed += own
        of: dict[str, list[Observation]] = {}
        for one in self.observed:
            of.setdefault(one.signature, []).append(one)
        return {signature: _seen(signature, found[::-1]) for signature, found in of.items()}

    def approve(self, draft: Draft) -> None:
        page = self.pages.get(draft.slug)
        if draft.action == "retire":
            del self.pages[draft.slug]
        elif page is None:
            self.pages[draft.slug] = KnownPage(
                id=len(self.pages) + 1, kind=draft.kind, slug=draft.slug, title=draft.title, version=1,
                body=patched("", draft), pinned=False, author="review", updated_at_us=len(self.observed),
            )  # fmt: skip
        else:
            body = patched(page.body, draft)
            self.pages[draft.slug] = replace(
                page, body=body, version=page.version + 1, updated_at_us=len(self.observed)
            )


def _seen(signature: str, newest_first: Sequence[Observation]) -> Seen:
    by_stream = {one.quote.stream: one.quote for one in reversed(newest_first)}
    return Seen(
        kind=newest_first[0].kind, signature=signature, shape=newest_first[0].shape, sessions=len(by_stream),
        times=len(newest_first), quotes=tuple(sorted(by_stream.values(), key=lambda q: -q.stream))[:EVIDENCE_MAX],
        detail=next((one.detail for one in newest_first if one.detail), ""),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs=2, type=int, default=(HELD_OUT_FROM, SEEDS), metavar=("FIRST", "COUNT"))
    parser.add_argument("--show", action="store_true", help="name what was missed and what was wrong")
    given = parser.parse_args()
    first, count = given.seeds
    whole = added([score(history(seed)) for seed in range(first, first + count)])
    print(f"precision {whole.precision:.2f}, recall {whole.recall:.2f}: {whole.found} of {whole.planted} planted, "
          f"{whole.proposed} proposed in {whole.sessions} sessions")  # fmt: skip
    for name, ones in (("missed", whole.missed), ("wrong", whole.wrong)) if given.show else ():
        print(f"\n{name}:", *(f"{number:4}  {what}" for what, number in Counter(ones).most_common()), sep="\n")


if __name__ == "__main__":
    main()
