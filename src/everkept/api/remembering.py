"""Recall, facts, episodes, working memory, and deriving again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from everkept.api import views as v
from everkept.api.capturing import Capturing
from everkept.api.origins import why_handoff, why_page, why_session
from everkept.api.present import (
    bounded,
    cursor_of,
    episode_view,
    fact_view,
    message_view,
    microseconds,
    moment,
    page,
    read_cursor,
)
from everkept.api.proposal_origins import why_proposal
from everkept.capture.messages import check_key, check_name, key_hash
from everkept.capture.redaction import cleaned, strip_private
from everkept.derive.tools import analyse_fact
from everkept.domain.facts import FactDraft, check_bounds
from everkept.domain.ids import parse_event_id, parse_row_id, row_id, traceable_kind
from everkept.domain.predicates import normalise_name
from everkept.errors import Conflict, InvalidInput, KeyConflict, NotFound
from everkept.recall.validity import FactRow as Validity
from everkept.recall.validity import Moment, held_back
from everkept.store.connection import Connection
from everkept.store.entity_merges import members_of
from everkept.store.facts import (
    FactRow,
    FactsOf,
    NewFact,
    events_of_facts,
    facts_by_id,
    find_hand_fact,
    list_entities,
    list_facts,
    retire_by_hand,
    write_facts,
)
from everkept.store.jobs import schedule
from everkept.store.jobs_by_hand import retry_by_hand
from everkept.store.projects import all_secrets, ensure_subject, find_subject
from everkept.store.reprocess import Selection, plan_reprocess, reprocess_chunk
from everkept.store.streams import events_at, get_thread, list_events
from everkept.store.subjects import list_subjects
from everkept.store.trace import trace_window
from everkept.store.windows import EXTRACT, SUMMARISE, WindowRow, find_window, jobs_of, list_windows, stages_of

STAGES = {"summary": SUMMARISE, "facts": EXTRACT}
FACTS_SCAN = 500


def entity_views(conn: Connection, rows: Sequence[tuple[Any, ...]]) -> list[v.Entity]:
    """Of rows of `list_entities`."""
    merged = members_of(conn, [row[0] for row in rows])
    return [
        v.Entity(
            id=row_id("ent", entity), name=name, type=type_, facts=facts,
            aliases=[each for each in json.loads(aliases) if each != name],
            merged=[
                v.MergedEntity(id=row_id("ent", member), name=said, by=by, at=moment(at))
                for member, said, by, at in merged.get(entity, [])
            ],
        )
        for entity, name, type_, facts, aliases in rows
    ]  # fmt: skip


class Remembering(Capturing):
    # ---- facts

    async def remember(
        self, text: str, *, subject: str, predicate: str | None = None, object: str | None = None,
        entity: str | None = None, valid_from: datetime | None = None, valid_until: datetime | None = None,
        confidence: float = 1.0, pinned: bool = False, key: str | None = None,
    ) -> v.Remembered:  # fmt: skip
        text = strip_private(text)
        check_name(subject, "subject")
        if key is not None:
            check_key(key)
        draft = FactDraft(
            entity=entity or subject, predicate=predicate or "note", object=object or text[:500], text=text, quote="",
            confidence=confidence, valid_from_us=microseconds(valid_from, "valid_from"),
            valid_until_us=microseconds(valid_until, "valid_until"), single_valued=None if predicate else False,
        )  # fmt: skip
        fault = check_bounds(draft)
        if fault is not None:
            raise InvalidInput(fault[1], field=fault[0])
        now = self._parts.clock.now_us()
        fact = NewFact(
            draft=draft, said_at=now, zone_min=None, stream=None, analysed=analyse_fact(draft, now), pinned=pinned
        )
        fact_id, replayed = await self._write(self._remember, subject, fact, key)
        stated = await self.get_fact(row_id("fct", fact_id))
        return v.Remembered(**dict(stated), replayed=replayed)

    def _remember(self, conn: Connection, subject: str, fact: NewFact, key: str | None) -> tuple[int, bool]:
        """(fact, whether it was stated before under this key)."""
        owner = ensure_subject(conn, self._project_id, subject)
        secrets = all_secrets(conn, self._project_id)
        names = (
            [f"hand:{key_hash(key, s)}" for s in secrets] if key else [f"hand:{fact.said_at}:{fact.draft.text[:80]}"]
        )
        known = next((row for name in names if (row := find_hand_fact(conn, owner, name)) is not None), None)
        if known is not None:
            before = facts_by_id(conn, self._project_id, [known]).get(known)
            if before is None or not _says(before, fact):
                raise KeyConflict(
                    "this key was used before with another payload; use a new key for a new fact", field="key"
                )
            return known, True
        of = FactsOf(project=self._project_id, subject=owner, window=None, slice=0, revision=None, key=names[0])
        return write_facts(conn, of, [fact], "[]")[0], False

    async def get_fact(self, fact_id: str) -> v.Fact:
        row = parse_row_id("fct", fact_id)

        def read(conn: Connection) -> v.Fact:
            facts = facts_by_id(conn, self._project_id, [row])
            if row not in facts:
                raise NotFound(f"there is no fact {fact_id}", id=fact_id)
            return self._fact_view(conn, facts[row], self._now())

        return await self._store.read(read)

    def _now(self, as_of: datetime | None = None, known_at: datetime | None = None) -> Moment:
        now = self._parts.clock.now_us()
        as_of_us, known_us = microseconds(as_of, "as_of"), microseconds(known_at, "known_at")
        return Moment(
            as_of_us=now if as_of_us is None else as_of_us, known_at_us=now if known_us is None else known_us,
            confidence_floor=self._project_settings.recall.confidence_floor,
        )  # fmt: skip

    def _fact_view(self, conn: Connection, fact: FactRow, at: Moment) -> v.Fact:
        events = events_of_facts(conn, [fact.id]).get(fact.id, [])
        return fact_view(fact, events, live=withheld(fact, at) is None)

    async def list_facts(
        self, *, subject: str | None = None, query: str | None = None, as_of: datetime | None = None,
        known_at: datetime | None = None, include_retired: bool = False, limit: int = 50, cursor: str | None = None,
    ) -> v.Page[v.Fact]:  # fmt: skip
        bounded(limit, "limit", 1, 1000)
        at = self._now(as_of, known_at)
        words = (query or "").casefold().split()

        def read(conn: Connection) -> v.Page[v.Fact]:
            owner = None if subject is None else find_subject(conn, self._project_id, check_name(subject, "subject"))
            if subject is not None and owner is None:
                return v.Page(items=[])
            found: list[FactRow] = []
            before = read_cursor(cursor)
            while len(found) <= limit:
                rows = list_facts(conn, self._project_id, owner, before, FACTS_SCAN)
                found += [f for f in rows if (include_retired or withheld(f, at) is None) and _holds(f, words)]
                if len(rows) < FACTS_SCAN:
                    break
                before = rows[-1].id
            shown = found[:limit]
            events = events_of_facts(conn, [f.id for f in shown])
            items = [fact_view(f, events.get(f.id, []), live=withheld(f, at) is None) for f in shown]
            return v.Page(items=items, next_cursor=cursor_of(shown[-1].id) if len(found) > limit else None)

        return await self._store.read(read)

    async def forget(self, fact_id: str, *, reason: str = "by hand", undo: bool = False) -> v.Fact:
        row = parse_row_id("fct", fact_id)
        if not reason.strip():
            raise InvalidInput("reason is empty", field="reason")
        await self._write(retire_by_hand, self._project_id, row, None if undo else cleaned(reason))
        return await self.get_fact(fact_id)

    async def list_subjects(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[v.Subject]:
        bounded(limit, "limit", 1, 1000)
        rows = await self._store.read(list_subjects, self._project_id, read_cursor(cursor), limit + 1)
        items = [
            v.Subject(name=r.name, threads=r.threads, facts=r.facts, created_at=moment(r.created_at)) for r in rows
        ]
        return page(items, rows, limit)

    async def list_entities(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Entity]:
        bounded(limit, "limit", 1, 1000)

        def read(conn: Connection) -> v.Page[v.Entity]:
            owner = None if subject is None else find_subject(conn, self._project_id, subject)
            if subject is not None and owner is None:
                return v.Page(items=[])
            rows = list_entities(conn, self._project_id, owner, read_cursor(cursor), limit + 1)
            items = entity_views(conn, rows[:limit])
            return v.Page(items=items, next_cursor=cursor_of(rows[limit - 1][0]) if len(rows) > limit else None)

        return await self._store.read(read)

    # ---- episodes

    async def list_episodes(
        self, *, thread: str | None = None, subject: str | None = None, query: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Episode]:  # fmt: skip
        bounded(limit, "limit", 1, 1000)
        if query is not None:
            return await self._find_episodes(query, subject, thread, limit)

        def read(conn: Connection) -> v.Page[v.Episode]:
            scope = self._scope(conn, subject, thread)
            if scope is None:
                return v.Page(items=[])
            rows = list_windows(
                conn,
                self._project_id,
                stream=scope.stream,
                subject=scope.subject,
                before=read_cursor(cursor),
                limit=limit + 1,
            )
            stages = stages_of(conn, rows[:limit])
            return page([episode_view(w, stages[w.id]) for w in rows[:limit]], rows, limit)

        return await self._store.read(read)

    async def _find_episodes(
        self, query: str, subject: str | None, thread: str | None, limit: int
    ) -> v.Page[v.Episode]:
        """The episodes that a recall finds, best first."""
        raise NotImplementedError  # Recalling searches

    async def get_episode(self, episode_id: str) -> v.Episode:
        def read(conn: Connection) -> v.Episode:
            window = self._window(conn, episode_id)
            return episode_view(window, stages_of(conn, [window])[window.id])

        return await self._store.read(read)

    def _window(self, conn: Connection, episode_id: str) -> WindowRow:
        window = find_window(conn, parse_row_id("epi", episode_id))
        if window is None or window.project != self._project_id:
            raise NotFound(f"there is no episode {episode_id}", id=episode_id)
        return window

    async def retry_episode(self, episode_id: str, stage: str) -> v.Episode:
        if stage not in STAGES:
            raise InvalidInput(
                f"stage {stage!r} is not one of {', '.join(STAGES)}", field="stage", allowed=list(STAGES)
            )

        def retry(conn: Connection) -> None:
            window = self._window(conn, episode_id)
            now = stages_of(conn, [window])[window.id][stage]
            if now.state in ("completed", "skipped"):
                raise Conflict(
                    f"the {stage} of {episode_id} is {now.state}; there is nothing to retry",
                    id=episode_id,
                    state=now.state,
                )
            if now.state == "dead" and now.job is not None:
                retry_by_hand(conn, self._project_id, now.job)
            elif now.state != "processing":  # one run is enough, however many ask for it
                schedule(conn, [replace(wish, due_at_us=conn.now()) for wish in jobs_of(window, kinds=[STAGES[stage]])])

        await self._write(retry)
        return await self.get_episode(episode_id)

    async def reprocess(
        self, *, thread: str | None = None, subject: str | None = None, since: datetime | None = None,
        until: datetime | None = None, fresh: bool = False, include_skipped: bool = False, dry_run: bool = False,
    ) -> v.ReprocessPlan:  # fmt: skip
        scope = await self._store.read(self._scope, subject, thread)
        if scope is None:
            raise NotFound(f"there is no subject {subject!r}", subject=subject)
        selection = Selection(
            project=self._project_id, stream=scope.stream, subject=scope.subject, since=microseconds(since, "since"),
            until=microseconds(until, "until"), include_skipped=include_skipped, fresh=fresh,
            model=None if self._parts.tools.model is None else self._parts.tools.model.model.name,
        )  # fmt: skip
        plan = await self._store.read(plan_reprocess, selection)
        model = self._parts.tools.model
        calls = 0 if model is None else plan.questions
        usd = 0.0 if model is None or not calls else model.model.estimate_usd(plan.tokens_in, plan.tokens_out)
        scheduled = 0
        if not dry_run:
            before = None
            while chunk := await self._write(reprocess_chunk, selection, before):
                scheduled += chunk.scheduled
                before = chunk.last
                if chunk.done:
                    break
        return v.ReprocessPlan(
            windows=plan.windows, calls=calls, estimated_usd=usd, scheduled=scheduled, dry_run=dry_run
        )

    # ---- why, export

    async def why(self, any_id: str) -> v.Why:
        """Raises NotFound, which names the kinds that can be traced."""
        match traceable_kind(any_id):
            case "ses":
                return await self._store.read(why_session, self._project_id, any_id)
            case "pag":
                return await self._store.read(why_page, self._project_id, any_id)
            case "hnd":
                return await self._store.read(why_handoff, self._project_id, any_id)
            case "epi":
                return await self._store.read(self._why_episode, any_id)
            case "evt":
                return await self._store.read(self._why_event, any_id)
            case "prp":
                return await self._store.read(why_proposal, self._project_id, any_id)
            case _:
                return await self._store.read(self._why_fact, parse_row_id("fct", any_id))

    def _why_fact(self, conn: Connection, fact_id: int) -> v.Why:
        facts = facts_by_id(conn, self._project_id, [fact_id])
        if fact_id not in facts:
            raise NotFound(f"there is no fact {row_id('fct', fact_id)}", id=row_id("fct", fact_id))
        fact = facts[fact_id]
        places = events_of_facts(conn, [fact_id]).get(fact_id, [])
        steps: list[dict[str, Any]] = []
        if fact.window is None:
            steps.append({"step": "by hand", "at": fact_view(fact, [], live=True).recorded_at.isoformat()})
        else:
            steps += trace_window(conn, fact.window)
        view = self._fact_view(conn, fact, self._now())
        steps.append(
            {
                "step": "state",
                "live": view.live,
                "closed_by": None if fact.closed_by is None else row_id("fct", fact.closed_by),
                "superseded_by": view.superseded_by,
                "retired": view.retired_because,
                "unsettled": view.unsettled,
                "held_back": withheld(fact, self._now()),
            }
        )
        events = [message_view(e) for e in events_at(conn, self._project_id, places)]
        return v.Why(id=view.id, kind="fact", text=fact.text, events=events, steps=steps)

    def _why_episode(self, conn: Connection, episode_id: str) -> v.Why:
        window = self._window(conn, episode_id)
        limit = window.end_seq - window.start_seq + 1
        events = [message_view(e) for e in list_events(conn, window.stream, window.start_seq, window.end_seq, limit)]
        return v.Why(
            id=episode_id, kind="episode", text=window.summary or "", events=events, steps=trace_window(conn, window.id)
        )

    def _why_event(self, conn: Connection, id_: str) -> v.Why:
        events = [message_view(e) for e in events_at(conn, self._project_id, [parse_event_id(id_)])]
        if not events:
            raise NotFound(f"there is no event {id_}", id=id_)
        return v.Why(id=id_, kind="event", text=events[0].content or "", events=events, steps=[])

    async def export(self, subject: str) -> dict[str, Any]:
        threads = [t async for t in _pages(self.list_threads, subject=subject)]
        if not threads and await self._store.read(find_subject, self._project_id, subject) is None:
            raise NotFound(f"there is no subject {subject!r}", subject=subject)
        messages = {}
        for t in threads:
            stream = await self._store.read(get_thread, self._project_id, t.id)
            messages[t.id] = await self._store.read(self._all_messages, stream.id, stream.last_seq)
        facts = [f async for f in _pages(self.list_facts, subject=subject, include_retired=True)]
        episodes = [e async for e in _pages(self.list_episodes, subject=subject)]
        return {
            "subject": subject,
            "threads": [{**t.model_dump(mode="json"), "messages": messages[t.id]} for t in threads],
            "episodes": [e.model_dump(mode="json") for e in episodes],
            "facts": [f.model_dump(mode="json") for f in facts],
        }

    def _all_messages(self, conn: Connection, stream: int, last: int) -> list[dict[str, Any]]:
        return [message_view(e).model_dump(mode="json") for e in list_events(conn, stream, 1, last, limit=last)]


async def _pages(list_: Any, **filters: Any) -> Any:
    cursor = None
    while True:
        found = await list_(limit=200, cursor=cursor, **filters)
        for item in found.items:
            yield item
        cursor = found.next_cursor
        if cursor is None:
            return


def _says(known: FactRow, stated: NewFact) -> bool:
    """Whether a fact by hand is what is stated again; its entity may have been known under another spelling."""
    d = stated.draft
    return normalise_name(known.entity) == normalise_name(d.entity) and (
        known.text, known.predicate, known.object, known.confidence, known.valid_from, known.valid_until, known.pinned
    ) == (d.text, d.predicate, d.object, d.confidence, d.valid_from_us, d.valid_until_us, stated.pinned)  # fmt: skip


def _holds(fact: FactRow, words: Sequence[str]) -> bool:
    text = f"{fact.text} {fact.quote or ''}".casefold()
    return all(w in text for w in words)


def withheld(fact: FactRow, at: Moment) -> str | None:
    """Why a fact is not shown at that moment; None where it is."""
    reason = held_back(
        Validity(
            id=fact.id,
            confidence=fact.confidence,
            valid_from_us=fact.replaced_at if fact.valid_from is None else fact.valid_from,
            # What says that something ended stays true after that end.
            valid_until_us=None if fact.closes else fact.valid_until,
            closed_at_us=None if fact.closes else fact.closed_at,
            closed_known_at_us=fact.closed_known_at,
            recorded_at_us=fact.recorded_at,
            retired_at_us=fact.retired_at,
        ),
        at,
    )
    if reason is not None:
        return str(reason)
    if fact.duplicate_of is not None:
        return "retired"
    return None
