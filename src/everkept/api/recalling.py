"""Recall, and the working memory of a thread."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from everkept.api import views as v
from everkept.api.present import bounded, message_view, microseconds, moment
from everkept.api.remembering import Remembering, withheld
from everkept.capture.messages import check_name
from everkept.domain.ids import event_id, row_id
from everkept.domain.scope import Scope
from everkept.domain.transcript import estimate_tokens
from everkept.errors import EverkeptError, InvalidInput
from everkept.recall.pack import Item, Packed, pack
from everkept.recall.said import Said
from everkept.recall.search import Query, Ranked, RankedHit, choose
from everkept.recall.validity import Moment
from everkept.store.connection import Connection
from everkept.store.facts import FactRow, events_of_facts, facts_by_id, pinned_facts
from everkept.store.merging import Merge, merge_into
from everkept.store.page_sections import SectionRow, sections_by_id
from everkept.store.projects import subject_names
from everkept.store.search import KINDS, Hit
from everkept.store.streams import EventRow, events_at, get_thread, last_events, thread_names
from everkept.store.windows import WindowRow, windows_by_id

QUERY_CHARS_MAX = 20_000
RECENT_MAX = 40
SUMMARY_SHARE = 0.2
RECENT_SHARE = 0.4
PINNED_SHARE = 0.2
PINNED_MAX = 50
SPEAKER_TOKENS = 6
"""What the name before a recent message costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A recall, checked."""

    query: Query
    subject: str | None
    thread: str | None
    at: Moment
    limit: int
    metadata: Mapping[str, Any]
    explain: bool
    besides: frozenset[tuple[int, int]] = frozenset()
    """Turns that are shown anyway."""
    everything: bool = False
    """Every candidate is looked at, not just the best: what is held back is asked for, or few may pass the filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """The hits that are to be shown, those that are held back, and why (passage → reason)."""

    ranked: Ranked
    facts: dict[int, FactRow]
    reasons: dict[int, str]
    shown: list[RankedHit]
    withheld: list[RankedHit]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What the hits stand for, read in the same snapshot."""

    events: dict[tuple[int, int], EventRow]
    threads: dict[int, str]
    facts: dict[int, FactRow]
    evidence: dict[int, list[tuple[int, int]]]
    windows: dict[int, WindowRow]
    sections: dict[int, SectionRow]
    subjects: dict[int, str]


class Recalling(Remembering):
    async def recall(
        self,
        query: str,
        *,
        subject: str | None = None,
        thread: str | None = None,
        limit: int = 10,
        tokens: int | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        kinds: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        explain: bool = False,
        held_back: bool = False,
    ) -> v.RecallAnswer:
        bounded(limit, "limit", 1, 100)
        if tokens is not None:
            bounded(tokens, "tokens", 1, 100_000)
        if subject is not None:
            check_name(subject, "subject")
        asked = _Asked(
            query=await self._query(query, kinds, as_of, known_at),
            subject=subject,
            thread=thread,
            at=self._now(as_of, known_at),
            limit=limit,
            metadata=metadata or {},
            explain=explain,
            everything=held_back or bool(metadata),
        )
        arriving = await self._store.glance(merge_into, self._project_id)
        results, held, note = await self._look(asked)
        packed = pack([_item(r) for r in results], tokens, question=query)
        over = [v.HeldBack(id=r.id, text=r.text, reason="over_budget") for r in results if r.id not in packed.kept]
        return v.RecallAnswer(
            query=query,
            results=_packed(results, packed),
            held_back=[*held, *over] if held_back else None,
            text=packed.text,
            tokens=packed.tokens,
            lexical_only=note is not None,
            note="; ".join(told for told in (packed.left_out, note, _not_yet(arriving)) if told) or None,
        )

    async def _look(self, asked: _Asked) -> tuple[list[v.RecallResult], list[v.HeldBack], str | None]:
        if self._parts.searcher().is_quick(self._project_id):
            return await self._store.glance(self._search, asked)
        return await self._store.read(self._search, asked)

    async def _query(
        self, text: str, kinds: Sequence[str] | None, as_of: datetime | None, known_at: datetime | None
    ) -> Query:
        if not text.strip():
            raise InvalidInput("query is empty", field="query")
        if len(text) > QUERY_CHARS_MAX:
            raise InvalidInput(
                f"query has {len(text):,} characters; the limit is {QUERY_CHARS_MAX:,}",
                field="query",
                limit=QUERY_CHARS_MAX,
            )
        vector, model = None, None
        embedder = self._parts.tools.embedder
        if embedder is not None:
            try:
                vector, model = await embedder.embed_query(text), embedder.name
            except EverkeptError:  # the words and the static vectors still find; the answer says what is missing
                model = None
        return Query(
            text=text, kinds=tuple(kinds or KINDS), said_until_us=microseconds(as_of, "as_of"),
            recorded_until_us=microseconds(known_at, "known_at"), vector=vector, model=model,
        )  # fmt: skip

    def _search(self, conn: Connection, asked: _Asked) -> tuple[list[v.RecallResult], list[v.HeldBack], str | None]:
        scope = self._scope(conn, asked.subject, asked.thread)
        if scope is None:
            return [], [], None
        best = self._best(conn, scope, asked, depth=None if asked.everything else 2 * asked.limit + len(asked.besides))
        named = {} if scope.subject is None or asked.subject is None else {int(scope.subject): asked.subject}
        rows = self._rows(conn, best.shown, best.facts, named)
        results = [r for r in (self._result(hit, rows, best.ranked, asked) for hit in best.shown) if r is not None]
        held = [
            v.HeldBack(
                id=row_id("fct", hit.hit.ref), text=best.facts[hit.hit.ref].text, reason=best.reasons[hit.hit.id]
            )
            for hit in best.withheld if hit.hit.kind == "fact" and hit.hit.ref in best.facts
        ]  # fmt: skip
        return results, held[: asked.limit], self._note(best.ranked, asked)

    def _best(self, conn: Connection, scope: Scope, asked: _Asked, depth: int | None) -> _Best:
        """What to show of the best `depth` candidates; of all of them where too many of those fall out."""
        ranked = self._parts.searcher().search(conn, scope, replace(asked.query, depth=depth))
        facts = self._facts_of(conn, ranked.hits)
        reasons = self._reasons(conn, ranked.hits, facts, asked)
        shown, withheld_hits = choose(ranked.hits, asked.limit, reasons)
        if len(shown) < asked.limit and len(ranked.hits) == depth:
            return self._best(conn, scope, asked, None)
        return _Best(ranked=ranked, facts=facts, reasons=reasons, shown=shown, withheld=withheld_hits)

    def _note(self, ranked: Ranked, asked: _Asked) -> str | None:
        """Why vectors had no say, where they had none."""
        if self._parts.tools.embedder is not None and asked.query.model is None:
            return "the question could not be embedded: found by its words and static vectors"
        return (
            (ranked.note or "nothing in this scope has vectors yet: found by its words")
            if ranked.lexical_only
            else None
        )

    def _facts_of(self, conn: Connection, hits: Sequence[RankedHit]) -> dict[int, FactRow]:
        ids = [h.hit.ref for h in hits if h.hit.kind == "fact" and h.hit.ref is not None]
        return facts_by_id(conn, self._project_id, ids) if ids else {}

    def _rows(
        self, conn: Connection, shown: Sequence[RankedHit], facts: dict[int, FactRow], named: dict[int, str]
    ) -> _Rows:
        """What the shown hits stand for; the candidates behind them are not read. `named` is the subject asked for."""
        events = self._events_of(conn, shown)
        windows = [h.hit.ref for h in shown if h.hit.kind == "episode" and h.hit.ref is not None]
        mine = [h.hit.ref for h in shown if h.hit.kind == "fact" and h.hit.ref is not None]
        sections = [h.hit.ref for h in shown if h.hit.kind == "page" and h.hit.ref is not None]
        return _Rows(
            events=events,
            facts=facts,
            windows=windows_by_id(conn, windows) if windows else {},
            sections=sections_by_id(conn, self._project_id, sections) if sections else {},
            evidence=events_of_facts(conn, mine) if mine else {},
            threads=thread_names(conn, sorted({s for s, _ in events})),
            subjects=named or subject_names(conn, sorted({h.hit.subject for h in shown})),
        )

    def _events_of(self, conn: Connection, hits: Sequence[RankedHit]) -> dict[tuple[int, int], EventRow]:
        places = [(h.hit.stream, h.hit.seq) for h in hits if h.hit.stream is not None and h.hit.seq is not None]
        return {(e.stream, e.seq): e for e in events_at(conn, self._project_id, places)} if places else {}

    def _reasons(
        self, conn: Connection, hits: Sequence[RankedHit], facts: dict[int, FactRow], asked: _Asked
    ) -> dict[int, str]:
        """{passage: why it is not shown}."""
        events = self._events_of(conn, hits) if asked.metadata else {}
        reasons: dict[int, str] = {}
        for hit in hits:
            why = _why_not(hit.hit, facts, events, asked)
            if why is not None:
                reasons[hit.hit.id] = why
        return reasons

    def _result(self, hit: RankedHit, rows: _Rows, ranked: Ranked, asked: _Asked) -> v.RecallResult | None:
        h = hit.hit
        common: dict[str, Any] = {
            "score": round(hit.score, 4), "subject": rows.subjects.get(h.subject, ""),
            "signals": {k: round(x, 4) for k, x in ranked.signals(hit).items()} if asked.explain else None,
        }  # fmt: skip
        if h.kind == "turn":
            event = rows.events.get((h.stream or 0, h.seq or 0))
            if event is None or event.content is None:
                return None
            id_ = event_id(event.stream, event.seq)
            return v.RecallResult(
                kind="turn",
                id=id_,
                text=event.content,
                thread=rows.threads.get(event.stream),
                seq=event.seq,
                speaker=event.name or event.role,
                occurred_at=moment(event.occurred_at, event.zone_min),
                event_ids=[id_],
                **common,
            )
        if h.kind == "fact":
            fact = rows.facts.get(h.ref or 0)
            if fact is None:
                return None
            return v.RecallResult(
                kind="fact",
                id=row_id("fct", fact.id),
                text=fact.text,
                thread=None,
                seq=None,
                speaker=fact.entity,
                quote=fact.quote,
                occurred_at=moment(fact.said_at, fact.zone_min),
                unsettled=fact.unsettled,
                event_ids=[event_id(*e) for e in rows.evidence.get(fact.id, [])],
                **common,
            )
        if h.kind == "page":
            return self._page_result(rows.sections.get(h.ref or 0), common)
        window = rows.windows.get(h.ref or 0)
        if window is None or not window.summary:
            return None
        return v.RecallResult(
            kind="episode",
            id=row_id("epi", window.id),
            text=window.summary,
            thread=window.thread,
            seq=window.start_seq,
            speaker=None,
            occurred_at=moment(h.occurred_at_us) if h.occurred_at_us is not None else None,
            **common,
        )

    def _page_result(self, section: SectionRow | None, common: dict[str, Any]) -> v.RecallResult | None:
        if section is None:
            return None
        where = section.title if section.heading == section.title else f"{section.title}: {section.heading}"
        return v.RecallResult(
            kind="page", id=row_id("pag", section.page), text=section.body, thread=None, seq=None, speaker=where,
            occurred_at=moment(section.updated_at), page=f"{section.slug}#{section.anchor}", heading=section.heading,
            **common,
        )  # fmt: skip

    async def _find_episodes(
        self, query: str, subject: str | None, thread: str | None, limit: int
    ) -> v.Page[v.Episode]:
        answer = await self.recall(query, subject=subject, thread=thread, limit=min(limit, 100), kinds=("episode",))
        return v.Page(items=[await self.get_episode(r.id) for r in answer.results])

    # ---- working memory

    async def context(self, thread: str, question: str | None = None, *, tokens: int = 1200) -> v.ContextBlock:
        bounded(tokens, "tokens", 1, 100_000)
        stream, events = await self._store.read(self._recent, thread)
        recent = _within([message_view(e) for e in events], int(tokens * RECENT_SHARE))
        summary = stream.summary
        if summary is not None and estimate_tokens(summary) > tokens * SUMMARY_SHARE:
            summary = _cut(summary, int(tokens * SUMMARY_SHARE))
        verbatim = [m.content or "" for m in recent]
        pinned = await self._store.read(self._pinned, stream.subject, int(tokens * PINNED_SHARE))
        new = None if summary is None or Said(verbatim).holds(summary) else summary
        used = sum(_cost(m) for m in recent) + sum(estimate_tokens(each) for each in [*pinned, new or ""])
        results: list[v.RecallResult] = []
        text = ""
        if question is not None and tokens - used > 0:
            asked = _Asked(
                query=await self._query(question, None, None, None),
                subject=stream.subject_name,
                thread=None,
                at=self._now(),
                limit=20,
                metadata={},
                explain=False,
                besides=frozenset((stream.id, m.seq) for m in recent),
            )
            found, _, _ = await self._look(asked)
            packed = pack(
                [_item(r) for r in found], tokens - used, question=question, besides=[new or "", *pinned, *verbatim]
            )
            results, text = _packed(found, packed), packed.text
        block = _block(pinned, new, text, recent)
        return v.ContextBlock(
            text=block, tokens=estimate_tokens(block), recent=recent, summary=summary, results=results
        )

    def _pinned(self, conn: Connection, subject: int, tokens: int) -> list[str]:
        """The statements that a hand keeps in view, as many as fit, those that hold now."""
        kept: list[str] = []
        for fact in pinned_facts(conn, subject, PINNED_MAX):
            tokens -= estimate_tokens(fact.text)
            if tokens >= 0 and withheld(fact, self._now()) is None:
                kept.append(fact.text)
        return kept

    def _recent(self, conn: Connection, thread: str) -> tuple[Any, list[EventRow]]:
        stream = get_thread(conn, self._project_id, thread)
        return stream, last_events(conn, stream.id, RECENT_MAX)


def _not_yet(arriving: Merge | None) -> str | None:
    if arriving is None:
        return None
    return f"the project {arriving.source_name!r} is being merged into this one: some of it is not here yet"


def _why_not(
    h: Hit, facts: Mapping[int, FactRow], events: Mapping[tuple[int, int], EventRow], asked: _Asked
) -> str | None:
    if h.kind == "fact":
        fact = facts.get(h.ref or 0)
        why = "retired" if fact is None else withheld(fact, asked.at)
        return why or ("other metadata" if asked.metadata else None)
    if h.kind in ("episode", "page"):
        late = h.occurred_at_us is not None and h.occurred_at_us > min(asked.at.as_of_us, asked.at.known_at_us)
        return "not_yet_known" if late else "other metadata" if asked.metadata else None
    if (h.stream, h.seq) in asked.besides:
        return "shown already"
    return None if not asked.metadata or _matches(events.get((h.stream or 0, h.seq or 0)), asked) else "other metadata"


def _matches(event: EventRow | None, asked: _Asked) -> bool:
    own = json.loads(event.metadata or "{}") if event is not None else {}
    return all(own.get(key) == value for key, value in asked.metadata.items())


def _packed(results: Sequence[v.RecallResult], packed: Packed) -> list[v.RecallResult]:
    """Those that are in the block, each with as much of its text."""
    return [
        r.model_copy(update={"text": packed.cut[r.id]}) if r.id in packed.cut else r
        for r in results if r.id in packed.kept
    ]  # fmt: skip


def _item(r: v.RecallResult) -> Item:
    return Item(
        id=r.id, kind=r.kind, text=r.text, speaker=r.speaker, occurred_at=r.occurred_at, thread=r.thread, quote=r.quote,
        unsettled=r.unsettled,
    )  # fmt: skip


def _cost(message: v.Message) -> int:
    return estimate_tokens(message.content or "") + SPEAKER_TOKENS


def _within(messages: Sequence[v.Message], tokens: int) -> list[v.Message]:
    """The newest messages that fit, oldest first; of the last one at least its end, where anything fits at all."""
    kept: list[v.Message] = []
    for message in reversed(messages):
        if _cost(message) > tokens:
            end = "" if kept else _tail(message.content or "", tokens - SPEAKER_TOKENS)
            return [message.model_copy(update={"content": end})] if end else kept[::-1]
        tokens -= _cost(message)
        kept.append(message)
    return kept[::-1]


def _tail(text: str, tokens: int) -> str:
    """The longest end of a text, marked as such, within a budget; empty where nothing fits."""
    least, most = 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if estimate_tokens(f"…{text[-middle:]}") <= tokens:
            least = middle
        else:
            most = middle - 1
    return f"…{text[-least:]}" if least else ""


def _cut(text: str, tokens: int) -> str:
    """The end of a summary (what is latest) within a budget, at a line where there is one."""
    kept: list[str] = []
    for line in reversed(text.splitlines()):
        if estimate_tokens("\n".join([line, *kept])) > tokens:
            break
        kept.insert(0, line)
    return "\n".join(kept)


def _indented(text: str) -> str:
    """Further lines set in, so that nothing that was said reads like a heading or another speaker's turn."""
    return "\n  ".join(text.strip().splitlines())


def _block(pinned: Sequence[str], summary: str | None, recalled: str, recent: Sequence[v.Message]) -> str:
    parts = []
    if pinned:
        parts.append("To be kept in mind:\n" + "\n".join(f"- {_indented(each)}" for each in pinned))
    if summary:
        parts.append(f"So far in this conversation:\n  {_indented(summary)}")
    if recalled:
        parts.append(recalled)
    if recent:
        lines = "\n".join(f"{_indented(m.name or m.role)}: {_indented(m.content or '')}" for m in recent)
        parts.append(f"Most recent messages:\n{lines}")
    return "\n\n".join(parts)
