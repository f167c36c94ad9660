"""`Memory`: `AsyncMemory` without a loop of one's own. Made by scripts/generate_sync.py; do not edit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.doors.python.async_memory import AsyncMemory, AsyncThread
from everkept.doors.python.facade import Facade, MemoryFacade
from everkept.doors.python.following import Follow
from everkept.doors.python.items import Items
from everkept.doors.python.sync_reviews import Proposals, Reviews
from everkept.doors.python.sync_workstreams import Launches, Workstreams
from everkept.doors.python.words import ME, GivenMessage


class Thread(Facade[AsyncThread]):
    """One conversation."""

    @property
    def id(self) -> str:
        """The caller's own id of the thread, or the one that was made."""
        return self._inner.id

    @property
    def subject(self) -> str:
        """Whose memory it is in."""
        return self._inner.subject

    def add(
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
        return self._loop.wait(
            self._inner.add(
                role,
                content,
                name=name,
                occurred_at=occurred_at,
                metadata=metadata,
                tokens=tokens,
                model=model,
                evidence=evidence,
                key=key,
            )
        )

    def add_many(self, messages: Iterable[GivenMessage], *, key: str | None = None) -> v.AppendResult:
        """Append a batch: all of it is stored (or was before), or none. The same key and messages are stored once."""
        return self._loop.wait(self._inner.add_many(messages, key=key))

    def context(self, question: str | None = None, *, tokens: int = 1200) -> v.ContextBlock:
        """Prompt-ready memory: recent turns, and what is recalled for the question."""
        return self._loop.wait(self._inner.context(question, tokens=tokens))

    def end(self) -> v.EndResult:
        """Open the episode now. The thread stays writable."""
        return self._loop.wait(self._inner.end())

    def messages(self, *, after_seq: int = 0) -> Items[v.Message]:
        """The messages, oldest first."""
        return Items(self._loop, self._inner.messages(after_seq=after_seq))

    def receipt(self, event_id: str) -> v.Receipt:
        """Where a message is: accepted, searchable, embedded, remembered, skipped or failed."""
        return self._loop.wait(self._inner.receipt(event_id))

    def receipts(self, *, after_seq: int = 0) -> Items[v.Receipt]:
        """Where each message is, oldest first."""
        return Items(self._loop, self._inner.receipts(after_seq=after_seq))

    def info(self) -> v.Thread:
        """How the thread stands now."""
        return self._loop.wait(self._inner.info())

    def configure(self, settings: dict[str, Any]) -> v.Thread:
        """Replace the thread's own settings (`memory.enabled`, `window.idle_s`, …); others come from the project."""
        return self._loop.wait(self._inner.configure(settings))

    def erase(self, *, dry_run: bool = False) -> v.ErasePlan:
        """Destroy the thread and everything that rests on it. Cannot be undone."""
        return self._loop.wait(self._inner.erase(dry_run=dry_run))


class Memory(MemoryFacade):
    """The memory of one project. Made by `open` (in this process) or `connect` (over HTTP)."""

    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        project: str = "default",
        worker: bool = True,
        **settings: Any,
    ) -> Memory:
        """Open the store in `home` (default: EVERKEPT_HOME, else ~/.everkept), with a worker unless told not to.

        Other keywords are settings, e.g. `model="openai:gpt-5-mini"` or `window__idle_s=60` for `window.idle_s`.
        Raises ConfigInvalid, NotFound (no such project), StoreUnavailable."""
        return cls._start(AsyncMemory.open(home, project=project, worker=worker, **settings))

    @classmethod
    def connect(cls, url: str, *, api_key: str | None = None, project: str = "default") -> Memory:
        """Use the server at `url`. Nothing is asked of it yet."""
        return cls._start(AsyncMemory.connect(url, api_key=api_key, project=project))

    def thread(
        self, id: str | None = None, *, subject: str | None = None, settings: dict[str, Any] | None = None, **words: str
    ) -> Thread:
        """The thread with your own `id`, created if it does not exist; without an id, a new one.

        Without a subject an existing thread keeps its own, and a new one belongs to "me". Raises SubjectConflict."""
        return Thread(self._loop, self._loop.wait(self._inner.thread(id, subject=subject, settings=settings, **words)))

    def threads(self, *, subject: str | None = None, **words: str) -> Items[v.Thread]:
        """Threads of a subject, or of everybody."""
        return Items(self._loop, self._inner.threads(subject=subject, **words))

    def add(
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
        existing thread keeps its own, and a new one belongs to "me"."""
        return self._loop.wait(
            self._inner.add(
                content,
                role=role,
                thread=thread,
                subject=subject,
                name=name,
                occurred_at=occurred_at,
                metadata=metadata,
                evidence=evidence,
                key=key,
                **words,
            )
        )

    def receipt(self, event_id: str) -> v.Receipt:
        """Where a message is: accepted, searchable, embedded, remembered, skipped or failed."""
        return self._loop.wait(self._inner.receipt(event_id))

    def remember(
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
        return self._loop.wait(
            self._inner.remember(
                text,
                subject=subject,
                predicate=predicate,
                object=object,
                entity=entity,
                valid_from=valid_from,
                valid_until=valid_until,
                confidence=confidence,
                pinned=pinned,
                key=key,
                **words,
            )
        )

    def recall(
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
        return self._loop.wait(
            self._inner.recall(
                query,
                subject=subject,
                thread=thread,
                limit=limit,
                tokens=tokens,
                as_of=as_of,
                known_at=known_at,
                kinds=kinds,
                metadata=metadata,
                explain=explain,
                held_back=held_back,
                **words,
            )
        )

    def facts(
        self,
        *,
        subject: str | None = None,
        query: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        include_retired: bool = False,
        **words: str,
    ) -> Items[v.Fact]:
        """Facts that are believed and valid, or all of them."""
        return Items(
            self._loop,
            self._inner.facts(
                subject=subject, query=query, as_of=as_of, known_at=known_at, include_retired=include_retired, **words
            ),
        )

    def fact(self, fact_id: str) -> v.Fact:
        """One fact. Raises NotFound."""
        return self._loop.wait(self._inner.fact(fact_id))

    def forget(self, fact_id: str, *, reason: str = "by hand", undo: bool = False) -> v.Fact:
        """Retire one fact: belief ends, the evidence stays. `undo` brings it back."""
        return self._loop.wait(self._inner.forget(fact_id, reason=reason, undo=undo))

    def pin_fact(self, fact_id: str, *, pinned: bool = True, by: str = "hand") -> v.Fact:
        """A pinned fact is changed by hands alone, and comes first in its subject's context."""
        return self._loop.wait(self._inner.pin_fact(fact_id, pinned=pinned, by=by))

    def correct_fact(
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
        return self._loop.wait(
            self._inner.correct_fact(
                fact_id, object=object, text=text, valid_from=valid_from, valid_until=valid_until, by=by, key=key
            )
        )

    def subjects(self) -> Items[v.Subject]:
        """Whose memory there is."""
        return Items(self._loop, self._inner.subjects())

    def merge_entities(self, entity_id: str, *, into: str, by: str = "hand") -> v.Entity:
        """Two names of one thing: what is said of either is said of both. `split_entity` undoes it."""
        return self._loop.wait(self._inner.merge_entities(entity_id, into=into, by=by))

    def split_entity(self, entity_id: str) -> v.Entity:
        """It is a thing of its own again."""
        return self._loop.wait(self._inner.split_entity(entity_id))

    def entities(self, *, subject: str | None = None, **words: str) -> Items[v.Entity]:
        """What the facts are about."""
        return Items(self._loop, self._inner.entities(subject=subject, **words))

    def episodes(
        self, *, thread: str | None = None, subject: str | None = None, query: str | None = None, **words: str
    ) -> Items[v.Episode]:
        """Summaries of stretches of conversation."""
        return Items(self._loop, self._inner.episodes(thread=thread, subject=subject, query=query, **words))

    def episode(self, episode_id: str) -> v.Episode:
        """One episode. Raises NotFound."""
        return self._loop.wait(self._inner.episode(episode_id))

    def retry_episode(self, episode_id: str, stage: str) -> v.Episode:
        """Give a failed or dead stage (`summary` or `facts`) a new budget."""
        return self._loop.wait(self._inner.retry_episode(episode_id, stage))

    def reprocess(
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
        return self._loop.wait(
            self._inner.reprocess(
                thread=thread,
                subject=subject,
                since=since,
                until=until,
                fresh=fresh,
                include_skipped=include_skipped,
                dry_run=dry_run,
            )
        )

    def erase(
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
        return self._loop.wait(
            self._inner.erase(
                event=event, thread=thread, session=session, subject=subject, project=project, dry_run=dry_run
            )
        )

    def export(self, subject: str = ME) -> dict[str, Any]:
        """All that is kept about a subject: threads with messages, episodes, facts."""
        return self._loop.wait(self._inner.export(subject))

    def why(self, any_id: str) -> v.Why:
        """Where a thing comes from: events, sessions and versions behind it, what was asked, and what came of it."""
        return self._loop.wait(self._inner.why(any_id))

    def settle(self, *, timeout_s: float = 30.0) -> bool:
        """For scripts and tests: open what is due and wait until every receipt is final. False when time ran out."""
        return self._loop.wait(self._inner.settle(timeout_s=timeout_s))

    def scope(self, folder: str | os.PathLike[str] | None = None) -> v.Scope:
        """Which project the memory of a folder (default: the current one) is. Raises NotFound where nobody knows it."""
        return self._loop.wait(self._inner.scope(folder))

    def sessions(self, *, agent: str | None = None) -> Items[v.Session]:
        """Sessions of coding agents, newest first."""
        return Items(self._loop, self._inner.sessions(agent=agent))

    def session(self, session_id: str) -> v.Session:
        """One session. Raises NotFound."""
        return self._loop.wait(self._inner.session(session_id))

    def session_events(self, session_id: str, *, after_seq: int = 0) -> Items[v.Message]:
        """What happened in a session, oldest first; `metadata` has the kind of each, and what came of a call."""
        return Items(self._loop, self._inner.session_events(session_id, after_seq=after_seq))

    def end_session(self, session_id: str) -> v.EndResult:
        """Digest it now. It may go on afterwards."""
        return self._loop.wait(self._inner.end_session(session_id))

    def pages(
        self, *, kind: str | None = None, superseded: bool = False, links_to: str | None = None
    ) -> Items[v.KnowledgePage]:
        """Pages without their bodies, newest first; `superseded`: also those that another page took the place of.

        `links_to`: only those that link to this slug."""
        return Items(self._loop, self._inner.pages(kind=kind, superseded=superseded, links_to=links_to))

    def page(self, slug: str, *, version: int | None = None) -> v.KnowledgePage:
        """One page, as it stands or stood. Raises NotFound."""
        return self._loop.wait(self._inner.page(slug, version=version))

    def page_history(self, slug: str, *, before: int | None = None, limit: int = 50) -> list[v.PageVersion]:
        """The versions of a page, newest first, older than the version `before`."""
        return self._loop.wait(self._inner.page_history(slug, before=before, limit=limit))

    def write_page(
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
        return self._loop.wait(
            self._inner.write_page(
                title, body, kind=kind, slug=slug, base=base, reason=reason, supersedes=supersedes, author=author
            )
        )

    def pin_page(self, slug: str, *, pinned: bool = True) -> v.KnowledgePage:
        """Keep a page from proposals, or let them at it again."""
        return self._loop.wait(self._inner.pin_page(slug, pinned=pinned))

    def delete_page(self, slug: str) -> v.KnowledgePage:
        """Take a page out of search and lists: nothing brings it back by itself."""
        return self._loop.wait(self._inner.delete_page(slug))

    def handoffs(self, *, state: str | None = None) -> Items[v.Handoff]:
        """Where sessions left off, newest first; `state`: open, acknowledged, replaced, expired."""
        return Items(self._loop, self._inner.handoffs(state=state))

    def handoff(self, handoff_id: str) -> v.Handoff:
        """One handoff. Reading takes nothing up."""
        return self._loop.wait(self._inner.handoff(handoff_id))

    def choose_handoff(self, *, worktree: str | None = None, branch: str | None = None) -> v.HandoffChoice:
        """Which handoff a session in this place is offered, and why. Takes nothing up."""
        return self._loop.wait(self._inner.choose_handoff(worktree=worktree, branch=branch))

    def acknowledge_handoff(self, handoff_id: str, *, by: str) -> v.Handoff:
        """Say that it was taken up. Doing so twice changes nothing."""
        return self._loop.wait(self._inner.acknowledge_handoff(handoff_id, by=by))

    def accept_offer(self, offer_id: str) -> w.Offer:
        """Take up what was given to a session: a launch's packet and the handoff in it, both or neither."""
        return self._loop.wait(self._inner.accept_offer(offer_id))

    @property
    def workstreams(self) -> Workstreams:
        """Lines of work across several agents' sessions."""
        return Workstreams(self._loop, self._inner.workstreams)

    @property
    def launches(self) -> Launches:
        """Leased starts of agents within workstreams."""
        return Launches(self._loop, self._inner.launches)

    @property
    def reviews(self) -> Reviews:
        """Looks at finished sessions."""
        return Reviews(self._loop, self._inner.reviews)

    @property
    def proposals(self) -> Proposals:
        """Improvements of pages that reviews propose."""
        return Proposals(self._loop, self._inner.proposals)

    def timeline(
        self, *, kinds: Sequence[str] | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> Items[v.TimelineItem]:
        """What happened, newest first: `session`, `page`, `handoff`, `episode`, `fact`; `since` ≤ time < `until`."""
        return Items(self._loop, self._inner.timeline(kinds=kinds, since=since, until=until))

    def status(self) -> v.Status:
        """How it is: backlog, stages, what is stuck or given up, workers, providers."""
        return self._loop.wait(self._inner.status())

    def doctor(self, *, subject: str | None = None, full: bool = False, rows_only: bool = False) -> v.Diagnosis:
        """What is wrong, why, and what mends it; of `subject`, also why each of its facts is held back from recall."""
        return self._loop.wait(self._inner.doctor(subject=subject, full=full, rows_only=rows_only))

    def usage(self, *, days: int = 30) -> list[v.UsageRow]:
        """Tokens and money, by day, stage and model."""
        return self._loop.wait(self._inner.usage(days=days))

    def usage_by_project(self, *, days: int = 30) -> v.StoreUsage:
        """Tokens and money of all projects together, and of each, the dearest first."""
        return self._loop.wait(self._inner.usage_by_project(days=days))

    def jobs(self, *, state: str | None = None, kind: str | None = None, subject: str | None = None) -> Items[v.Job]:
        """Background work, newest first; of `subject`, what is in its lane."""
        return Items(self._loop, self._inner.jobs(state=state, kind=kind, subject=subject))

    def dead_causes(self) -> list[v.DeadCause]:
        """What dead jobs died of, by kind and class of error, the most first."""
        return self._loop.wait(self._inner.dead_causes())

    def job(self, job_id: str) -> v.Job:
        """One job. Raises NotFound."""
        return self._loop.wait(self._inner.job(job_id))

    def retry_job(self, job_id: str) -> v.Job:
        """Give a dead job a new budget."""
        return self._loop.wait(self._inner.retry_job(job_id))

    def retry_jobs(self, *, kind: str | None = None, cause: str | None = None) -> int:
        """Retry all dead jobs of a kind or an error class; how many there were."""
        return self._loop.wait(self._inner.retry_jobs(kind=kind, cause=cause))

    def pause_jobs(
        self, *, kind: str | None = None, provider: str | None = None, why: str = "by hand", by: str = "hand"
    ) -> v.Pause:
        """Begin no job of this kind, or none that asks this provider, in the whole store. What runs ends."""
        return self._loop.wait(self._inner.pause_jobs(kind=kind, provider=provider, why=why, by=by))

    def resume_jobs(self, *, kind: str | None = None, provider: str | None = None) -> None:
        """Go on with it. Raises NotFound where it is not paused."""
        self._loop.wait(self._inner.resume_jobs(kind=kind, provider=provider))

    def pauses(self) -> list[v.Pause]:
        """What is paused."""
        return self._loop.wait(self._inner.pauses())

    def discard_job(self, job_id: str, *, reason: str = "by hand") -> v.Job:
        """Give up on a job for good."""
        return self._loop.wait(self._inner.discard_job(job_id, reason=reason))

    def release_job(self, job_id: str) -> v.Job:
        """End a job's lease now: the old holder can write nothing any more."""
        return self._loop.wait(self._inner.release_job(job_id))

    def changes(
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

        `kinds`: `fact.added`, or `fact` for its whole family. Raises CursorExpired."""
        return self._loop.wait(
            self._inner.changes(
                consumer=consumer, after=after, limit=limit, kinds=kinds, subject=subject, wait_s=wait_s
            )
        )

    def ack(self, consumer: str, up_to: int) -> int:
        """Move a consumer's cursor forward, never back; the cursor afterwards."""
        return self._loop.wait(self._inner.ack(consumer, up_to))

    def follow(
        self,
        consumer: str,
        *,
        kinds: Sequence[str] | None = None,
        subject: str | None = None,
        until_idle: bool = False,
        ack_every: int = 1,
        owner: str | None = None,
    ) -> Follow:
        """Every change, one after the other, acknowledged once you ask for the next; `until_idle` ends with the newest.

        Of several that follow under one name one works, and another takes over where it ends or, a minute later, where
        it died; under the same `owner` it goes on at once. A server that cannot be reached is waited for. What was not
        acknowledged is given again: with `everkept.Inbox` its effect happens once, and `ack_every` may be larger, which
        is faster. Raises CursorExpired where the consumer is behind what is kept."""
        return Follow(
            self._loop,
            self._inner.follow(
                consumer, kinds=kinds, subject=subject, until_idle=until_idle, ack_every=ack_every, owner=owner
            ),
        )

    def consumers(self) -> list[v.Consumer]:
        """Who follows the changes, and how far each is."""
        return self._loop.wait(self._inner.consumers())

    def replay(self, consumer: str, after: int) -> v.Consumer:
        """Let a consumer go on after `after`, also back. Raises NotFound, CursorExpired."""
        return self._loop.wait(self._inner.replay(consumer, after))

    def projects(self) -> list[v.Project]:
        """All projects of this store."""
        return self._loop.wait(self._inner.projects())

    def create_project(self, name: str, *, settings: dict[str, Any] | None = None) -> v.Project:
        """The project of this name, made if there is none: asked twice, the answer is the same.

        Raises Conflict where it is there and has other settings than those that are given."""
        return self._loop.wait(self._inner.create_project(name, settings=settings))

    def update_project(
        self, name: str, *, new_name: str | None = None, settings: dict[str, Any] | None = None
    ) -> v.Project:
        """Rename a project, or replace its settings."""
        return self._loop.wait(self._inner.update_project(name, new_name=new_name, settings=settings))

    def merge_project(self, source: str, *, into: str, dry_run: bool = False) -> v.ProjectMerge:
        """Bring all that a project has into another one, in the background; its name means the other one at once.

        `dry_run`: what would move. Cannot be undone. Raises NotFound, Conflict."""
        return self._loop.wait(self._inner.merge_project(source, into=into, dry_run=dry_run))

    def move_project(self, name: str, *, workspace: str) -> v.Project:
        """Take a project to another workspace, made if there is none: it is then called `workspace/project`."""
        return self._loop.wait(self._inner.move_project(name, workspace=workspace))

    def ensure_workspace(self, name: str) -> v.Workspace:
        """The workspace of this name, made if there is none."""
        return self._loop.wait(self._inner.ensure_workspace(name))

    def ensure_project(
        self, name: str, *, workspace: str = "default", settings: dict[str, Any] | None = None
    ) -> v.Project:
        """The project of this name in that workspace, both made if there are none.

        `settings` are then its own; None leaves those it has. Raises Conflict where the name means another project."""
        return self._loop.wait(self._inner.ensure_project(name, workspace=workspace, settings=settings))

    def find_merge(self, project: str) -> v.ProjectMerge | None:
        """The newest merge that a project had a part in: how far it is, and what it had to call otherwise."""
        return self._loop.wait(self._inner.find_merge(project))

    def create_key(self, name: str, *, project: str | None = None) -> v.KeyCreated:
        """Make an API key for HTTP. Its token is shown this once."""
        return self._loop.wait(self._inner.create_key(name, project=project))

    def api_keys(self) -> list[dict[str, Any]]:
        """API keys, without their tokens."""
        return self._loop.wait(self._inner.api_keys())

    def revoke_key(self, key_id: str) -> None:
        """Raises NotFound."""
        self._loop.wait(self._inner.revoke_key(key_id))
