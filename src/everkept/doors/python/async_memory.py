"""`AsyncMemory`: memory for people and agents, embedded or over HTTP. `Memory` is generated from this file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.api.service import Service
from everkept.capture.identity import Checkout, look_at
from everkept.doors.python.async_reviews import AsyncProposals, AsyncReviews
from everkept.doors.python.async_workstreams import AsyncLaunches, AsyncWorkstreams
from everkept.doors.python.following import AsyncFollow
from everkept.doors.python.items import AsyncItems
from everkept.doors.python.opening import Close, Opening, open_embedded, open_remote
from everkept.doors.python.words import (
    ME,
    GivenMessage,
    as_message,
    find_scope,
    find_subject,
    key_or_new,
    subject_or_me,
)
from everkept.errors import InvalidInput, NotFound

PAGE = 100
"""Items fetched at once by a list that is iterated over."""


class AsyncThread:
    """One conversation."""

    def __init__(self, service: Service, thread: v.Thread) -> None:
        self._service = service
        self._thread = thread

    @property
    def id(self) -> str:
        """The caller's own id of the thread, or the one that was made."""
        return self._thread.id

    @property
    def subject(self) -> str:
        """Whose memory it is in."""
        return self._thread.subject

    async def add(
        self,
        role: str,
        content: str,
        *,
        name: str | None = None,
        occurred_at: datetime | None = None,
        metadata: dict[str, Any] | None = None,
        tokens: int | None = None,
        model: str | None = None,
        evidence: bool = True,
        key: str | None = None,
    ) -> v.Receipt:
        """Append one message: durable on return, and searchable. Raises KeyConflict, InvalidInput, StoreFull."""
        given = {
            "role": role, "content": content, "name": name, "occurred_at": occurred_at, "metadata": metadata,
            "tokens": tokens, "model": model, "evidence": evidence,
        }  # fmt: skip
        result = await self.add_many([given], key=key)
        return result.receipts[0]

    async def add_many(self, messages: Iterable[GivenMessage], *, key: str | None = None) -> v.AppendResult:
        """Append a batch: all of it is stored (or was before), or none. The same key and messages are stored once."""
        batch = [as_message(each) for each in messages]
        return await self._service.append(self.id, batch, subject=self.subject, key=key_or_new(key))

    async def context(self, question: str | None = None, *, tokens: int = 1200) -> v.ContextBlock:
        """Prompt-ready memory: recent turns, and what is recalled for the question."""
        return await self._service.context(self.id, question, tokens=tokens)

    async def end(self) -> v.EndResult:
        """Open the episode now. The thread stays writable."""
        return await self._service.end_thread(self.id)

    def messages(self, *, after_seq: int = 0) -> AsyncItems[v.Message]:
        """The messages, oldest first."""

        async def fetch(cursor: str | None) -> v.Page[v.Message]:
            page = await self._service.list_messages(self.id, after_seq=int(cursor or after_seq), limit=PAGE)
            following = str(page.items[-1].seq) if page.items and page.next_cursor else None
            return v.Page(items=page.items, next_cursor=following)

        return AsyncItems(fetch)

    async def receipt(self, event_id: str) -> v.Receipt:
        """Where a message is: accepted, searchable, embedded, remembered, skipped or failed."""
        return await self._service.receipt(event_id)

    def receipts(self, *, after_seq: int = 0) -> AsyncItems[v.Receipt]:
        """Where each message is, oldest first."""

        async def fetch(cursor: str | None) -> v.Page[v.Receipt]:
            return await self._service.list_receipts(self.id, after_seq=int(cursor or after_seq), limit=PAGE)

        return AsyncItems(fetch)

    async def info(self) -> v.Thread:
        """How the thread stands now."""
        return await self._service.get_thread(self.id)

    async def configure(self, settings: dict[str, Any]) -> v.Thread:
        """Replace the thread's own settings (`memory.enabled`, `window.idle_s`, …); others come from the project."""
        return await self._service.set_thread_settings(self.id, settings)

    async def erase(self, *, dry_run: bool = False) -> v.ErasePlan:
        """Destroy the thread and everything that rests on it. Cannot be undone."""
        return await self._service.erase(thread=self.id, dry_run=dry_run)


class AsyncMemory:
    """The memory of one project. Made by `open` (in this process) or `connect` (over HTTP)."""

    def __init__(self, service: Service, close: Close) -> None:
        self._service = service
        self._close = close

    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        project: str = "default",
        worker: bool = True,
        **settings: Any,
    ) -> Opening[AsyncMemory]:
        """Open the store in `home` (default: EVERKEPT_HOME, else ~/.everkept), with a worker unless told not to.

        Other keywords are settings, e.g. `model="openai:gpt-5-mini"` or `window__idle_s=60` for `window.idle_s`.
        Raises ConfigInvalid, NotFound (no such project), StoreUnavailable.
        """

        async def opened() -> AsyncMemory:
            return cls(*await open_embedded(home, project, settings, worker=worker))

        return Opening(opened)

    @classmethod
    def connect(cls, url: str, *, api_key: str | None = None, project: str = "default") -> Opening[AsyncMemory]:
        """Use the server at `url`. Nothing is asked of it yet."""

        async def opened() -> AsyncMemory:
            return cls(*await open_remote(url, api_key, project))

        return Opening(opened)

    async def close(self) -> None:
        """Finish what is due for at most 5 s and leave the rest to the next start."""
        await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- capture

    async def thread(
        self, id: str | None = None, *, subject: str | None = None, settings: dict[str, Any] | None = None, **words: str
    ) -> AsyncThread:
        """The thread with your own `id`, created if it does not exist; without an id, a new one.

        Without a subject an existing thread keeps its own, and a new one belongs to "me". Raises SubjectConflict.
        """
        name, owner, metadata = find_scope(id, subject, words)
        if metadata:
            raise InvalidInput("metadata belongs to messages, not to threads", field=next(iter(metadata)))
        if name is not None and owner is None and settings is None:
            try:
                return AsyncThread(self._service, await self._service.get_thread(name))
            except NotFound:
                owner = ME
        return AsyncThread(self._service, await self._service.create_thread(name, subject_or_me(owner), settings))

    def threads(self, *, subject: str | None = None, **words: str) -> AsyncItems[v.Thread]:
        """Threads of a subject, or of everybody."""
        owner = find_subject(subject, words)
        return AsyncItems(lambda cursor: self._service.list_threads(subject=owner, limit=PAGE, cursor=cursor))

    async def add(
        self,
        content: str,
        *,
        role: str = "user",
        thread: str | None = None,
        subject: str | None = None,
        name: str | None = None,
        occurred_at: datetime | None = None,
        metadata: dict[str, Any] | None = None,
        evidence: bool = True,
        key: str | None = None,
        **words: str,
    ) -> v.Receipt:
        """Append one message: durable on return, and searchable.

        Without a thread it goes into one that is kept for such notes, one for each subject. Without a subject an
        existing thread keeps its own, and a new one belongs to "me".
        """
        conversation, owner, more = find_scope(thread, subject, words)
        if conversation is None:
            owner = subject_or_me(owner)
            conversation = f"inbox:{owner}"
        given = {
            "role": role, "content": content, "name": name, "occurred_at": occurred_at, "evidence": evidence,
            "metadata": {**more, **(metadata or {})} or None,
        }  # fmt: skip
        batch, key = [as_message(given)], key_or_new(key)
        try:
            result = await self._service.append(conversation, batch, subject=owner, key=key)
        except NotFound:
            if owner is not None:
                raise
            result = await self._service.append(conversation, batch, subject=ME, key=key)
        return result.receipts[0]

    async def receipt(self, event_id: str) -> v.Receipt:
        """Where a message is: accepted, searchable, embedded, remembered, skipped or failed."""
        return await self._service.receipt(event_id)

    # ---- memory

    async def remember(
        self,
        text: str,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        entity: str | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        confidence: float = 1.0,
        pinned: bool = False,
        key: str | None = None,
        **words: str,
    ) -> v.Fact:
        """State a durable fact by hand."""
        return await self._service.remember(
            text, subject=subject_or_me(find_subject(subject, words)), predicate=predicate, object=object,
            entity=entity, valid_from=valid_from, valid_until=valid_until, confidence=confidence, pinned=pinned,
            key=key_or_new(key),
        )  # fmt: skip

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
        **words: str,
    ) -> v.RecallAnswer:
        """Search turns, facts and episodes. `as_of`: the world at that time; `known_at`: what was believed then."""
        conversation, owner, more = find_scope(thread, subject, words)
        return await self._service.recall(
            query, subject=owner, thread=conversation, limit=limit, tokens=tokens, as_of=as_of, known_at=known_at,
            kinds=kinds, metadata={**more, **(metadata or {})} or None, explain=explain, held_back=held_back,
        )  # fmt: skip

    def facts(
        self,
        *,
        subject: str | None = None,
        query: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        include_retired: bool = False,
        **words: str,
    ) -> AsyncItems[v.Fact]:
        """Facts that are believed and valid, or all of them."""
        owner = find_subject(subject, words)
        return AsyncItems(
            lambda cursor: self._service.list_facts(
                subject=owner, query=query, as_of=as_of, known_at=known_at, include_retired=include_retired, limit=PAGE,
                cursor=cursor,
            )
        )  # fmt: skip

    async def fact(self, fact_id: str) -> v.Fact:
        """One fact. Raises NotFound."""
        return await self._service.get_fact(fact_id)

    async def forget(self, fact_id: str, *, reason: str = "by hand", undo: bool = False) -> v.Fact:
        """Retire one fact: belief ends, the evidence stays. `undo` brings it back."""
        return await self._service.forget(fact_id, reason=reason, undo=undo)

    async def pin_fact(self, fact_id: str, *, pinned: bool = True, by: str = "hand") -> v.Fact:
        """A pinned fact is changed by hands alone, and comes first in its subject's context."""
        return await self._service.pin_fact(fact_id, pinned=pinned, by=by)

    async def correct_fact(
        self,
        fact_id: str,
        *,
        object: str | None = None,
        text: str | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        by: str = "hand",
        key: str | None = None,
    ) -> v.Remembered:
        """State what is right in its place: a fact of its own, that retires the wrong one and its repetitions."""
        return await self._service.correct_fact(
            fact_id, object=object, text=text, valid_from=valid_from, valid_until=valid_until, by=by, key=key
        )

    def subjects(self) -> AsyncItems[v.Subject]:
        """Whose memory there is."""
        return AsyncItems(lambda cursor: self._service.list_subjects(limit=PAGE, cursor=cursor))

    async def merge_entities(self, entity_id: str, *, into: str, by: str = "hand") -> v.Entity:
        """Two names of one thing: what is said of either is said of both. `split_entity` undoes it."""
        return await self._service.merge_entities(entity_id, into=into, by=by)

    async def split_entity(self, entity_id: str) -> v.Entity:
        """It is a thing of its own again."""
        return await self._service.split_entity(entity_id)

    def entities(self, *, subject: str | None = None, **words: str) -> AsyncItems[v.Entity]:
        """What the facts are about."""
        owner = find_subject(subject, words)
        return AsyncItems(lambda cursor: self._service.list_entities(subject=owner, limit=PAGE, cursor=cursor))

    def episodes(
        self, *, thread: str | None = None, subject: str | None = None, query: str | None = None, **words: str
    ) -> AsyncItems[v.Episode]:
        """Summaries of stretches of conversation."""
        conversation, owner, metadata = find_scope(thread, subject, words)
        if metadata:
            raise InvalidInput("episodes have no metadata", field=next(iter(metadata)))
        return AsyncItems(
            lambda cursor: self._service.list_episodes(
                thread=conversation, subject=owner, query=query, limit=PAGE, cursor=cursor
            )
        )

    async def episode(self, episode_id: str) -> v.Episode:
        """One episode. Raises NotFound."""
        return await self._service.get_episode(episode_id)

    async def retry_episode(self, episode_id: str, stage: str) -> v.Episode:
        """Give a failed or dead stage (`summary` or `facts`) a new budget."""
        return await self._service.retry_episode(episode_id, stage)

    async def reprocess(
        self,
        *,
        thread: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        fresh: bool = False,
        include_skipped: bool = False,
        dry_run: bool = False,
    ) -> v.ReprocessPlan:
        """Derive again from events and journaled replies. `fresh` asks the model again, which is paid for."""
        return await self._service.reprocess(
            thread=thread, subject=subject, since=since, until=until, fresh=fresh, include_skipped=include_skipped,
            dry_run=dry_run,
        )  # fmt: skip

    async def erase(
        self,
        *,
        event: str | None = None,
        thread: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        dry_run: bool = False,
    ) -> v.ErasePlan:
        """Destroy exactly one thing and everything that rests on it. Cannot be undone."""
        return await self._service.erase(
            event=event, thread=thread, session=session, subject=subject, project=project, dry_run=dry_run
        )

    async def export(self, subject: str = ME) -> dict[str, Any]:
        """All that is kept about a subject: threads with messages, episodes, facts."""
        return await self._service.export(subject)

    async def why(self, any_id: str) -> v.Why:
        """Where a thing comes from: events, sessions and versions behind it, what was asked, and what came of it."""
        return await self._service.why(any_id)

    async def settle(self, *, timeout_s: float = 30.0) -> bool:
        """For scripts and tests: open what is due and wait until every receipt is final. False when time ran out."""
        return await self._service.settle(timeout_s=timeout_s)

    # ---- coding agents

    async def scope(self, folder: str | os.PathLike[str] | None = None) -> v.Scope:
        """Which project the memory of a folder (default: the current one) is. Raises NotFound where nobody knows it."""
        return await self._service.resolve_scope(await asyncio.to_thread(_look_at, folder))

    def sessions(self, *, agent: str | None = None) -> AsyncItems[v.Session]:
        """Sessions of coding agents, newest first."""
        return AsyncItems(lambda cursor: self._service.list_sessions(agent=agent, limit=PAGE, cursor=cursor))

    async def session(self, session_id: str) -> v.Session:
        """One session. Raises NotFound."""
        return await self._service.get_session(session_id)

    def session_events(self, session_id: str, *, after_seq: int = 0) -> AsyncItems[v.Message]:
        """What happened in a session, oldest first; `metadata` has the kind of each, and what came of a call."""

        async def fetch(cursor: str | None) -> v.Page[v.Message]:
            return await self._service.session_events(session_id, after_seq=int(cursor or after_seq), limit=PAGE)

        return AsyncItems(fetch)

    async def end_session(self, session_id: str) -> v.EndResult:
        """Digest it now. It may go on afterwards."""
        return await self._service.end_session(session_id)

    def pages(
        self, *, kind: str | None = None, superseded: bool = False, links_to: str | None = None
    ) -> AsyncItems[v.KnowledgePage]:
        """Pages without their bodies, newest first; `superseded`: also those that another page took the place of.

        `links_to`: only those that link to this slug.
        """
        return AsyncItems(
            lambda cursor: self._service.list_pages(
                kind=kind, superseded=superseded, links_to=links_to, limit=PAGE, cursor=cursor
            )
        )

    async def page(self, slug: str, *, version: int | None = None) -> v.KnowledgePage:
        """One page, as it stands or stood. Raises NotFound."""
        return await self._service.get_page(slug, version=version)

    async def page_history(self, slug: str, *, before: int | None = None, limit: int = 50) -> list[v.PageVersion]:
        """The versions of a page, newest first, older than the version `before`."""
        return await self._service.page_history(slug, before=before, limit=limit)

    async def write_page(
        self,
        title: str,
        body: str,
        *,
        kind: str = "note",
        slug: str | None = None,
        base: int | None = None,
        reason: str | None = None,
        supersedes: str | None = None,
        author: str = "hand",
    ) -> v.KnowledgePage:
        """A new page, or the next version of one. Raises Conflict where `base` is not its newest version."""
        return await self._service.write_page(
            title, body, kind=kind, slug=slug, base=base, reason=reason, supersedes=supersedes, author=author
        )

    async def pin_page(self, slug: str, *, pinned: bool = True) -> v.KnowledgePage:
        """Keep a page from proposals, or let them at it again."""
        return await self._service.pin_page(slug, pinned=pinned)

    async def delete_page(self, slug: str) -> v.KnowledgePage:
        """Take a page out of search and lists: nothing brings it back by itself."""
        return await self._service.delete_page(slug)

    def handoffs(self, *, state: str | None = None) -> AsyncItems[v.Handoff]:
        """Where sessions left off, newest first; `state`: open, acknowledged, replaced, expired."""
        return AsyncItems(lambda cursor: self._service.list_handoffs(state=state, limit=PAGE, cursor=cursor))

    async def handoff(self, handoff_id: str) -> v.Handoff:
        """One handoff. Reading takes nothing up."""
        return await self._service.get_handoff(handoff_id)

    async def choose_handoff(self, *, worktree: str | None = None, branch: str | None = None) -> v.HandoffChoice:
        """Which handoff a session in this place is offered, and why. Takes nothing up."""
        return await self._service.choose_handoff(worktree=worktree, branch=branch)

    async def acknowledge_handoff(self, handoff_id: str, *, by: str) -> v.Handoff:
        """Say that it was taken up. Doing so twice changes nothing."""
        return await self._service.acknowledge_handoff(handoff_id, by=by)

    async def accept_offer(self, offer_id: str) -> w.Offer:
        """Take up what was given to a session: a launch's packet and the handoff in it, both or neither."""
        return await self._service.accept_offer(offer_id)

    @property
    def workstreams(self) -> AsyncWorkstreams:
        """Lines of work across several agents' sessions."""
        return AsyncWorkstreams(self._service)

    @property
    def launches(self) -> AsyncLaunches:
        """Leased starts of agents within workstreams."""
        return AsyncLaunches(self._service)

    @property
    def reviews(self) -> AsyncReviews:
        """Looks at finished sessions."""
        return AsyncReviews(self._service)

    @property
    def proposals(self) -> AsyncProposals:
        """Improvements of pages that reviews propose."""
        return AsyncProposals(self._service)

    def timeline(
        self, *, kinds: Sequence[str] | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> AsyncItems[v.TimelineItem]:
        """What happened, newest first: `session`, `page`, `handoff`, `episode`, `fact`; `since` ≤ time < `until`."""
        return AsyncItems(
            lambda cursor: self._service.timeline(kinds=kinds, since=since, until=until, limit=PAGE, cursor=cursor)
        )

    # ---- operate

    async def status(self) -> v.Status:
        """How it is: backlog, stages, what is stuck or given up, workers, providers."""
        return await self._service.status()

    async def doctor(self, *, subject: str | None = None, full: bool = False, rows_only: bool = False) -> v.Diagnosis:
        """What is wrong, why, and what mends it; of `subject`, also why each of its facts is held back from recall."""
        return await self._service.diagnose(subject=subject, full=full, rows_only=rows_only)

    async def usage(self, *, days: int = 30) -> list[v.UsageRow]:
        """Tokens and money, by day, stage and model."""
        return await self._service.usage(days=days)

    async def usage_by_project(self, *, days: int = 30) -> v.StoreUsage:
        """Tokens and money of all projects together, and of each, the dearest first."""
        return await self._service.usage_by_project(days=days)

    def jobs(
        self, *, state: str | None = None, kind: str | None = None, subject: str | None = None
    ) -> AsyncItems[v.Job]:
        """Background work, newest first; of `subject`, what is in its lane."""
        return AsyncItems(
            lambda cursor: self._service.list_jobs(state=state, kind=kind, subject=subject, limit=PAGE, cursor=cursor)
        )

    async def dead_causes(self) -> list[v.DeadCause]:
        """What dead jobs died of, by kind and class of error, the most first."""
        return await self._service.dead_causes()

    async def job(self, job_id: str) -> v.Job:
        """One job. Raises NotFound."""
        return await self._service.get_job(job_id)

    async def retry_job(self, job_id: str) -> v.Job:
        """Give a dead job a new budget."""
        return await self._service.retry_job(job_id)

    async def retry_jobs(self, *, kind: str | None = None, cause: str | None = None) -> int:
        """Retry all dead jobs of a kind or an error class; how many there were."""
        return await self._service.retry_jobs(kind=kind, cause=cause)

    async def pause_jobs(
        self, *, kind: str | None = None, provider: str | None = None, why: str = "by hand", by: str = "hand"
    ) -> v.Pause:
        """Begin no job of this kind, or none that asks this provider, in the whole store. What runs ends."""
        return await self._service.pause_jobs(kind=kind, provider=provider, why=why, by=by)

    async def resume_jobs(self, *, kind: str | None = None, provider: str | None = None) -> None:
        """Go on with it. Raises NotFound where it is not paused."""
        await self._service.resume_jobs(kind=kind, provider=provider)

    async def pauses(self) -> list[v.Pause]:
        """What is paused."""
        return await self._service.list_pauses()

    async def discard_job(self, job_id: str, *, reason: str = "by hand") -> v.Job:
        """Give up on a job for good."""
        return await self._service.discard_job(job_id, reason=reason)

    async def release_job(self, job_id: str) -> v.Job:
        """End a job's lease now: the old holder can write nothing any more."""
        return await self._service.release_job(job_id)

    async def changes(
        self,
        *,
        consumer: str | None = None,
        after: int | None = None,
        limit: int = 100,
        kinds: Sequence[str] | None = None,
        subject: str | None = None,
        wait_s: float = 0.0,
    ) -> v.ChangePage:
        """Changes after the consumer's cursor, waited for where there are none. Reading moves nothing: `ack` does.

        `kinds`: `fact.added`, or `fact` for its whole family. Raises CursorExpired.
        """
        return await self._service.changes(
            consumer=consumer, after=after, limit=limit, kinds=kinds, subject=subject, wait_s=wait_s
        )

    async def ack(self, consumer: str, up_to: int) -> int:
        """Move a consumer's cursor forward, never back; the cursor afterwards."""
        return await self._service.ack(consumer, up_to)

    def follow(
        self,
        consumer: str,
        *,
        kinds: Sequence[str] | None = None,
        subject: str | None = None,
        until_idle: bool = False,
        ack_every: int = 1,
        owner: str | None = None,
    ) -> AsyncFollow:
        """Every change, one after the other, acknowledged once you ask for the next; `until_idle` ends with the newest.

        Of several that follow under one name one works, and another takes over where it ends or, a minute later, where
        it died; under the same `owner` it goes on at once. A server that cannot be reached is waited for. What was not
        acknowledged is given again: with `everkept.Inbox` its effect happens once, and `ack_every` may be larger, which
        is faster. Raises CursorExpired where the consumer is behind what is kept.
        """
        return AsyncFollow(
            self._service, consumer, kinds=kinds, subject=subject, until_idle=until_idle, ack_every=ack_every,
            owner=owner,
        )  # fmt: skip

    async def consumers(self) -> list[v.Consumer]:
        """Who follows the changes, and how far each is."""
        return await self._service.list_consumers()

    async def replay(self, consumer: str, after: int) -> v.Consumer:
        """Let a consumer go on after `after`, also back. Raises NotFound, CursorExpired."""
        return await self._service.replay_consumer(consumer, after)

    async def projects(self) -> list[v.Project]:
        """All projects of this store."""
        return await self._service.list_projects()

    async def create_project(self, name: str, *, settings: dict[str, Any] | None = None) -> v.Project:
        """The project of this name, made if there is none: asked twice, the answer is the same.

        Raises Conflict where it is there and has other settings than those that are given.
        """
        return await self._service.create_project(name, settings)

    async def update_project(
        self, name: str, *, new_name: str | None = None, settings: dict[str, Any] | None = None
    ) -> v.Project:
        """Rename a project, or replace its settings."""
        return await self._service.update_project(name, new_name=new_name, settings=settings)

    async def merge_project(self, source: str, *, into: str, dry_run: bool = False) -> v.ProjectMerge:
        """Bring all that a project has into another one, in the background; its name means the other one at once.

        `dry_run`: what would move. Cannot be undone. Raises NotFound, Conflict.
        """
        return await self._service.merge_project(source, into, dry_run=dry_run)

    async def move_project(self, name: str, *, workspace: str) -> v.Project:
        """Take a project to another workspace, made if there is none: it is then called `workspace/project`."""
        return await self._service.move_project(name, workspace=workspace)

    async def ensure_workspace(self, name: str) -> v.Workspace:
        """The workspace of this name, made if there is none."""
        return await self._service.ensure_workspace(name)

    async def ensure_project(
        self, name: str, *, workspace: str = "default", settings: dict[str, Any] | None = None
    ) -> v.Project:
        """The project of this name in that workspace, both made if there are none.

        `settings` are then its own; None leaves those it has. Raises Conflict where the name means another project.
        """
        return await self._service.ensure_project(name, workspace=workspace, settings=settings)

    async def find_merge(self, project: str) -> v.ProjectMerge | None:
        """The newest merge that a project had a part in: how far it is, and what it had to call otherwise."""
        return await self._service.find_merge(project)

    async def create_key(self, name: str, *, project: str | None = None) -> v.KeyCreated:
        """Make an API key for HTTP. Its token is shown this once."""
        return await self._service.create_key(name, project=project)

    async def api_keys(self) -> list[dict[str, Any]]:
        """API keys, without their tokens."""
        return await self._service.list_keys()

    async def revoke_key(self, key_id: str) -> None:
        """Raises NotFound."""
        await self._service.revoke_key(key_id)


def _look_at(folder: str | os.PathLike[str] | None) -> Checkout:
    return look_at(Path(folder or ".").absolute())
