"""The Service protocol in dictionaries, for tests of the doors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from tests.stubs.fake_agents import FakeAgentMemory, scope_of, trusted_scope_of
from tests.stubs.fake_deliveries import FakeDeliveries
from tests.stubs.fake_reviews import FakeReviews
from tests.stubs.fake_workstreams import FakeWorkstreams

from everkept.api import views as v
from everkept.api.context_ask import ContextAsk
from everkept.api.service import KeyHolder
from everkept.capture.identity import Checkout
from everkept.domain.ids import event_id, parse_event_id, parse_row_id, row_id
from everkept.domain.session import AgentEvent
from everkept.errors import Conflict, InvalidInput, KeyConflict, NotFound, SubjectConflict

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTENT_MAX_BYTES = 2**20


class FakeService(FakeReviews, FakeDeliveries, FakeWorkstreams, FakeAgentMemory):
    """One project. `calls` is what was called, in order, for tests that look at how a door speaks."""

    def __init__(self, project: str, application: FakeApplication) -> None:
        super().__init__()
        self.project = project
        self.application = application
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.threads: dict[str, v.Thread] = {}
        self.messages: dict[str, list[v.Message]] = {}
        self.facts: dict[str, v.Fact] = {}
        self.keys: dict[tuple[str, str], tuple[Any, Any]] = {}
        self.jobs: dict[str, v.Job] = {"job_1": _job("job_1")}
        self.pauses = [v.Pause(what="kind", name="extract_facts", why="prices", by="hand", since=NOW)]
        self.episodes: dict[str, v.Episode] = {}
        self.fail_next: list[Exception] = []
        self.closed = False

    def _called(self, name: str, **given: Any) -> None:
        self.calls.append((name, given))
        if self.fail_next:
            raise self.fail_next.pop(0)

    # ---- capture

    async def create_thread(self, thread: str | None, subject: str, settings: dict[str, Any] | None = None) -> v.Thread:
        self._called("create_thread", thread=thread, subject=subject, settings=settings)
        return self._thread(thread or row_id("thr", len(self.threads) + 1), subject, settings)

    def _thread(self, name: str, subject: str, settings: dict[str, Any] | None = None) -> v.Thread:
        found = self.threads.get(name)
        if found is not None:
            if found.subject != subject:
                raise SubjectConflict(f"{name!r} belongs to another subject", thread=name)
            return found
        self.threads[name] = v.Thread(
            id=name, subject=subject, created_at=NOW, last_message_at=None, messages=0, captured=0, summary=None,
            window_due_at=None, settings=settings or {},
        )  # fmt: skip
        self.messages[name] = []
        return self.threads[name]

    async def get_thread(self, thread: str) -> v.Thread:
        self._called("get_thread", thread=thread)
        if thread not in self.threads:
            raise NotFound(f"there is no thread {thread!r} in this project", thread=thread)
        return self.threads[thread]

    async def list_threads(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Thread]:
        self._called("list_threads", subject=subject, limit=limit, cursor=cursor)
        return _page([t for t in self.threads.values() if subject in (None, t.subject)], limit, cursor)

    async def set_thread_settings(self, thread: str, settings: dict[str, Any]) -> v.Thread:
        found = await self.get_thread(thread)
        self.threads[thread] = found.model_copy(update={"settings": settings})
        return self.threads[thread]

    async def append(
        self, thread: str, messages: Sequence[v.MessageIn], *, subject: str | None = None, key: str | None = None
    ) -> v.AppendResult:
        self._called("append", thread=thread, messages=list(messages), subject=subject, key=key)
        for index, each in enumerate(messages):
            _check_unicode(each.content)
            if len(each.content.encode()) > CONTENT_MAX_BYTES:
                raise InvalidInput(
                    f"messages[{index}].content is over 1 MiB", field=f"messages[{index}].content", limit=2**20
                )
        if subject is None and thread not in self.threads:
            raise NotFound(f"there is no thread {thread!r}; give a subject to create it", thread=thread)
        self._thread(thread, subject or self.threads[thread].subject)
        receipts = [self._store(thread, each, each.key or (key and f"{key}/{i}")) for i, each in enumerate(messages)]
        return v.AppendResult(thread=thread, receipts=receipts, replayed=all(r.outcome == "replayed" for r in receipts))

    def _store(self, thread: str, message: v.MessageIn, key: str | None) -> v.Receipt:
        payload = message.model_copy(update={"key": None})
        if key is not None and (thread, key) in self.keys:
            first, receipt = self.keys[thread, key]
            if first != payload:
                raise KeyConflict(f"the key {key!r} was used with another payload", key=key)
            return receipt.model_copy(update={"outcome": "replayed"})
        seq = len(self.messages[thread]) + 1
        name = event_id(list(self.threads).index(thread) + 1, seq)
        self.messages[thread].append(
            v.Message(
                event_id=name,
                seq=seq,
                role=message.role,
                name=message.name,
                content=message.content,
                occurred_at=message.occurred_at or NOW,
                recorded_at=NOW,
                metadata=message.metadata or {},
                tokens=message.tokens or 1,
                model=message.model,
                evidence=message.evidence,
            )
        )
        self.threads[thread] = self.threads[thread].model_copy(update={"messages": seq, "last_message_at": NOW})
        receipt = v.Receipt(
            event_id=name, thread=thread, seq=seq, state="searchable", recorded_at=NOW, outcome="stored"
        )
        if key is not None:
            self.keys[thread, key] = (payload, receipt)
        return receipt

    async def list_messages(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]:
        await self.get_thread(thread)
        found = self.messages[thread][after_seq : after_seq + limit]
        more = found and found[-1].seq < len(self.messages[thread])
        return v.Page(items=found, next_cursor=str(found[-1].seq) if more else None)

    async def end_thread(self, thread: str) -> v.EndResult:
        found = await self.get_thread(thread)
        if found.captured == found.messages:
            return v.EndResult(episode_queued=False, reason="everything lies in an episode already")
        name = row_id("epi", len(self.episodes) + 1)
        stage = v.Stage(state="completed")
        self.episodes[name] = v.Episode(
            id=name, thread=thread, subject=found.subject, start_seq=found.captured + 1, end_seq=found.messages,
            opened_at=NOW, opened_because="end", archived=False, summary="a summary", learnings=[],
            stages={"summary": stage, "facts": stage},
        )  # fmt: skip
        self.threads[thread] = found.model_copy(update={"captured": found.messages})
        return v.EndResult(episode_queued=True, reason="the thread was ended")

    async def context(self, thread: str, question: str | None = None, *, tokens: int = 1200) -> v.ContextBlock:
        await self.get_thread(thread)
        recent = self.messages[thread][-5:]
        text = "\n".join(str(each.content) for each in recent)
        return v.ContextBlock(text=text, tokens=len(text.split()), recent=recent, summary=None, results=[])

    async def receipt(self, event_id: str) -> v.Receipt:
        message, thread = self._event(event_id)
        return v.Receipt(event_id=event_id, thread=thread, seq=message.seq, state="searchable", recorded_at=NOW)

    async def list_receipts(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Receipt]:
        listed = await self.list_messages(thread, after_seq=after_seq, limit=limit)
        receipts = [await self.receipt(each.event_id) for each in listed.items]
        return v.Page(items=receipts, next_cursor=listed.next_cursor)

    def _event(self, name: str) -> tuple[v.Message, str]:
        self._called("event", id=name)
        parse_event_id(name)
        for thread, messages in self.messages.items():
            for each in messages:
                if each.event_id == name:
                    return each, thread
        raise NotFound(f"there is no event {name!r}", id=name)

    # ---- memory

    async def recall(
        self, query: str, *, subject: str | None = None, thread: str | None = None, limit: int = 10,
        tokens: int | None = None, as_of: datetime | None = None, known_at: datetime | None = None,
        kinds: Sequence[str] | None = None, metadata: dict[str, Any] | None = None,
        explain: bool = False, held_back: bool = False,
    ) -> v.RecallAnswer:  # fmt: skip
        self._called("recall", query=query, subject=subject, thread=thread, limit=limit, metadata=metadata, as_of=as_of)
        _check_unicode(query)
        if not query.strip():
            raise InvalidInput("query is empty", field="query")
        words = set(query.lower().split())
        results = [
            v.RecallResult(
                kind="turn", id=each.event_id, text=str(each.content), score=1.0, subject=self.threads[name].subject,
                thread=name, seq=each.seq, speaker=each.role, occurred_at=each.occurred_at, event_ids=[each.event_id],
                signals={"words": 1.0} if explain else None,
            )
            for name, messages in self.messages.items()
            if subject in (None, self.threads[name].subject) and thread in (None, name)
            for each in messages
            if words & set(str(each.content).lower().split())
        ][:limit]  # fmt: skip
        text = "\n".join(each.text for each in results)
        return v.RecallAnswer(
            query=query, results=results, held_back=[] if held_back else None, text=text, tokens=len(text.split()),
            lexical_only=True, note="a fake",
        )  # fmt: skip

    async def remember(
        self, text: str, *, subject: str, predicate: str | None = None, object: str | None = None,
        entity: str | None = None, valid_from: datetime | None = None, valid_until: datetime | None = None,
        confidence: float = 1.0, pinned: bool = False, key: str | None = None,
    ) -> v.Remembered:  # fmt: skip
        self._called("remember", text=text, subject=subject, key=key)
        if key is not None and ("", key) in self.keys:
            return v.Remembered(**dict(self.facts[self.keys["", key][1]]), replayed=True)
        name = row_id("fct", len(self.facts) + 1)
        self.facts[name] = v.Fact(
            id=name, subject=subject, entity=entity or subject, predicate=predicate or "says", object=object or text,
            text=text, quote=None, confidence=confidence, valid_from=valid_from, valid_until=valid_until, said_at=NOW,
            recorded_at=NOW, retired_at=None, retired_because=None, superseded_by=None, pinned=pinned, unsettled=False,
            live=True, source="hand", episode_id=None, event_ids=[],
        )  # fmt: skip
        if key is not None:
            self.keys["", key] = (text, name)
        return v.Remembered(**dict(self.facts[name]))

    async def get_fact(self, fact_id: str) -> v.Fact:
        self._called("get_fact", fact_id=fact_id)
        parse_row_id("fct", fact_id)
        if fact_id not in self.facts:
            raise NotFound(f"there is no fact {fact_id!r}", id=fact_id)
        return self.facts[fact_id]

    async def list_facts(
        self, *, subject: str | None = None, query: str | None = None, as_of: datetime | None = None,
        known_at: datetime | None = None, include_retired: bool = False, limit: int = 50, cursor: str | None = None,
    ) -> v.Page[v.Fact]:  # fmt: skip
        self._called("list_facts", subject=subject, as_of=as_of, limit=limit, cursor=cursor)
        found = [f for f in self.facts.values() if subject in (None, f.subject) and (include_retired or f.live)]
        return _page(found, limit, cursor)

    async def forget(self, fact_id: str, *, reason: str = "by hand", undo: bool = False) -> v.Fact:
        found = await self.get_fact(fact_id)
        changed = {"retired_at": None if undo else NOW, "retired_because": None if undo else reason, "live": undo}
        self.facts[fact_id] = found.model_copy(update=changed)
        return self.facts[fact_id]

    async def pin_fact(self, fact_id: str, *, pinned: bool = True, by: str = "hand") -> v.Fact:
        self._called("pin_fact", pinned=pinned, by=by)
        self.facts[fact_id] = (await self.get_fact(fact_id)).model_copy(update={"pinned": pinned})
        return self.facts[fact_id]

    async def correct_fact(
        self, fact_id: str, *, object: str | None = None, text: str | None = None,
        valid_from: datetime | None = None, valid_until: datetime | None = None, by: str = "hand",
        key: str | None = None,
    ) -> v.Remembered:  # fmt: skip
        self._called("correct_fact", object=object, text=text, by=by, key=key)
        old = await self.get_fact(fact_id)
        return v.Remembered(**{**dict(old), "object": object or old.object, "corrects": fact_id, "stated_by": by})

    async def list_subjects(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[v.Subject]:
        self._called("list_subjects")
        names = sorted({thread.subject for thread in self.threads.values()})
        found = [v.Subject(name=name, threads=1, facts=0, created_at=NOW) for name in names]
        return _page(found, limit, cursor)

    async def list_entities(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Entity]:
        self._called("list_entities", subject=subject)
        names = sorted({fact.entity for fact in self.facts.values() if subject in (None, fact.subject)})
        found = [
            v.Entity(id=row_id("ent", i + 1), name=n, type="other", aliases=[], facts=1) for i, n in enumerate(names)
        ]
        return _page(found, limit, cursor)

    async def merge_entities(self, entity_id: str, *, into: str, by: str = "hand") -> v.Entity:
        self._called("merge_entities", entity=entity_id, into=into, by=by)
        merged = v.MergedEntity(id=entity_id, name="Annie", by=by, at=NOW)
        return v.Entity(id=into, name="Ana", type="person", aliases=["Annie"], facts=1, merged=[merged])

    async def split_entity(self, entity_id: str) -> v.Entity:
        self._called("split_entity", entity=entity_id)
        return v.Entity(id=entity_id, name="Annie", type="person", aliases=[], facts=1)

    async def list_episodes(
        self, *, thread: str | None = None, subject: str | None = None, query: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Episode]:  # fmt: skip
        self._called("list_episodes", thread=thread, subject=subject)
        found = [e for e in self.episodes.values() if thread in (None, e.thread) and subject in (None, e.subject)]
        return _page(found, limit, cursor)

    async def get_episode(self, episode_id: str) -> v.Episode:
        self._called("get_episode", episode_id=episode_id)
        parse_row_id("epi", episode_id)
        if episode_id not in self.episodes:
            raise NotFound(f"there is no episode {episode_id!r}", id=episode_id)
        return self.episodes[episode_id]

    async def retry_episode(self, episode_id: str, stage: str) -> v.Episode:
        return await self.get_episode(episode_id)

    async def reprocess(
        self, *, thread: str | None = None, subject: str | None = None, since: datetime | None = None,
        until: datetime | None = None, fresh: bool = False, include_skipped: bool = False, dry_run: bool = False,
    ) -> v.ReprocessPlan:  # fmt: skip
        self._called("reprocess", thread=thread, subject=subject, fresh=fresh, dry_run=dry_run)
        return v.ReprocessPlan(
            windows=1, calls=int(fresh), estimated_usd=None, scheduled=0 if dry_run else 1, dry_run=dry_run
        )

    async def erase(
        self, *, event: str | None = None, thread: str | None = None, session: str | None = None,
        subject: str | None = None, project: str | None = None, dry_run: bool = False,
    ) -> v.ErasePlan:  # fmt: skip
        self._called(
            "erase", event=event, thread=thread, session=session, subject=subject, project=project, dry_run=dry_run
        )
        if session is not None:
            self.known_session(session)
        if thread is not None:
            await self.get_thread(thread)
            if not dry_run:
                del self.threads[thread], self.messages[thread]
        if event is not None:
            self._event(event)
        if project is not None:
            self.application.project(project)
        return v.ErasePlan(
            scope=str(event or thread or session or subject or project),
            rows={"events": 1},
            residue=None if dry_run else 0,
            dry_run=dry_run,
        )

    async def export(self, subject: str) -> dict[str, Any]:
        self._called("export", subject=subject)
        return {
            "subject": subject,
            "threads": [t.model_dump(mode="json") for t in self.threads.values() if t.subject == subject],
        }

    async def why(self, any_id: str) -> v.Why:
        self._called("why", id=any_id)
        if any_id.startswith("evt"):
            message, _ = self._event(any_id)
            return v.Why(id=any_id, kind="event", text=str(message.content), events=[message], steps=[])
        fact = await self.get_fact(any_id)
        return v.Why(id=any_id, kind="fact", text=fact.text, events=[], steps=[{"step": "by hand"}])

    async def settle(self, *, timeout_s: float = 30.0) -> bool:
        self._called("settle", timeout_s=timeout_s)
        return True

    # ---- operate

    async def status(self, *, project_only: bool = False) -> v.Status:
        self._called("status", project_only=project_only)
        return v.Status(
            version="0", store={"path": ":memory:", "slow_ms": {"claim": 30}},
            messages=sum(map(len, self.messages.values())),
            episodes=len(self.episodes), facts=len(self.facts), backlog_due=1, backlog_armed=2, oldest_due_s=None,
            stages={"completed/dead": 3, "completed/completed": 4}, stuck=[], given_up=[],
            timings=[v.StageTiming(stage="facts", completed=1, p50_s=0.5, p95_s=None)], workers=[], periodic=[],
            providers=[v.Provider(
                name="openai", circuit="open", reason="401", since=NOW, next_probe_at=NOW, permits=8,
                in_flight=0, waiting=1,
            )],
            checks=[v.Check(name="fact_failures", ok=False, value=3, threshold=0, message="3 extractions failed")],
            model="none (deterministic extraction)", embedder="none", refused_finishes=5, asked_again=6, lanes=[],
            reviews=[],
        )  # fmt: skip

    async def diagnose(self, *, subject: str | None = None, full: bool = False, rows_only: bool = False) -> v.Diagnosis:
        self._called("diagnose", subject=subject, full=full, rows_only=rows_only)
        finding = v.Finding(
            cause="key_refused", title="The provider refuses the key", what="openai: 401", since=NOW,
            evidence={"waiting": 3}, means="Nothing is lost.", mend="set OPENAI_API_KEY", chosen=False,
        )  # fmt: skip
        return v.Diagnosis(
            ok=False, looked=True, at=NOW, version="0", store={"path": ":memory:"}, findings=[finding], lanes=[],
            workers=[], expired_leases=0, refused_finishes=0, dead_letters={}, erases_unfinished=0, held_back={},
        )  # fmt: skip

    async def list_jobs(
        self, *, state: str | None = None, kind: str | None = None, subject: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Job]:  # fmt: skip
        self._called("list_jobs", state=state, kind=kind, subject=subject)
        asked = {"state": state, "kind": kind, "subject": subject}
        found = [
            job for job in self.jobs.values()
            if all(value in (None, getattr(job, word)) for word, value in asked.items())
        ]  # fmt: skip
        return _page(found, limit, cursor)

    async def dead_causes(self) -> list[v.DeadCause]:
        return [v.DeadCause(kind="extract_facts", cause="timeout", jobs=1)]

    async def get_job(self, job_id: str) -> v.Job:
        self._called("get_job", job_id=job_id)
        parse_row_id("job", job_id)
        if job_id not in self.jobs:
            raise NotFound(f"there is no job {job_id!r}", id=job_id)
        return self.jobs[job_id]

    async def retry_job(self, job_id: str) -> v.Job:
        return await self.get_job(job_id)

    async def retry_jobs(self, *, kind: str | None = None, cause: str | None = None) -> int:
        self._called("retry_jobs", kind=kind, cause=cause)
        return 1

    async def pause_jobs(
        self, *, kind: str | None = None, provider: str | None = None, why: str = "by hand", by: str = "hand"
    ) -> v.Pause:
        self._called("pause_jobs", kind=kind, provider=provider, why=why, by=by)
        what: Literal["kind", "provider"] = "kind" if kind else "provider"
        self.pauses.append(v.Pause(what=what, name=kind or provider or "", why=why, by=by, since=NOW))
        return self.pauses[-1]

    async def resume_jobs(self, *, kind: str | None = None, provider: str | None = None) -> None:
        self._called("resume_jobs", kind=kind, provider=provider)
        if not any(each.name in (kind, provider) for each in self.pauses):
            raise NotFound("it is not paused")
        self.pauses = [each for each in self.pauses if each.name not in (kind, provider)]

    async def list_pauses(self) -> list[v.Pause]:
        return self.pauses

    async def discard_job(self, job_id: str, *, reason: str = "by hand") -> v.Job:
        return (await self.get_job(job_id)).model_copy(update={"state": "discarded", "error": reason})

    async def release_job(self, job_id: str) -> v.Job:
        return await self.get_job(job_id)

    async def list_projects(self) -> list[v.Project]:
        return [self.application.project(name) for name in self.application.services]

    async def create_project(self, name: str, settings: dict[str, Any] | None = None) -> v.Project:
        if name in self.application.services:
            raise Conflict(f"there is a project {name!r} already", name=name)
        self.application.services[name] = FakeService(name, self.application)
        return self.application.project(name)

    async def update_project(
        self, name: str, *, new_name: str | None = None, settings: dict[str, Any] | None = None
    ) -> v.Project:
        found = self.application.project(name)
        return found.model_copy(update={"name": new_name or name, "settings": settings or {}})

    async def merge_project(self, source: str, into: str, *, dry_run: bool = False) -> v.ProjectMerge:
        return v.ProjectMerge(
            source=source, into=self.application.project(into).name, state="planned" if dry_run else "running",
            rows={"threads": 1}, alike={"subjects": 1}, renamed=[], asked_at=None, done_at=None,
        )  # fmt: skip

    async def move_project(self, name: str, *, workspace: str) -> v.Project:
        return self.application.project(name).model_copy(update={"name": f"{workspace}/{name}"})

    async def ensure_workspace(self, name: str) -> v.Workspace:
        return v.Workspace(name=name, created_at=self.application.project("default").created_at)

    async def ensure_project(
        self, name: str, *, workspace: str = "default", settings: dict[str, Any] | None = None
    ) -> v.Project:
        called = name if workspace == "default" else f"{workspace}/{name}"
        self.application.services.setdefault(called, FakeService(called, self.application))
        return self.application.project(called).model_copy(update={"settings": settings or {}})

    async def find_merge(self, project: str) -> v.ProjectMerge | None:
        self.application.project(project)
        return None

    async def create_key(self, name: str, *, project: str | None = None) -> v.KeyCreated:
        where = project or self.project
        self.application.project(where)
        token = f"token-{len(self.application.tokens) + 1}"
        self.application.tokens[token] = where
        return v.KeyCreated(id=row_id("key", len(self.application.tokens)), name=name, project=where, token=token)

    async def list_keys(self) -> list[dict[str, Any]]:
        return [
            {"id": row_id("key", i + 1), "name": token, "project": project}
            for i, (token, project) in enumerate(self.application.tokens.items())
        ]

    async def revoke_key(self, key_id: str) -> None:
        for index, token in enumerate(list(self.application.tokens)):
            if row_id("key", index + 1) == key_id:
                del self.application.tokens[token]
                return
        raise NotFound(f"there is no key {key_id!r}", id=key_id)

    async def usage(self, *, days: int = 30) -> list[v.UsageRow]:
        self._called("usage", days=days)
        return []

    async def usage_by_project(self, *, days: int = 30) -> v.StoreUsage:
        self._called("usage_by_project", days=days)
        return v.StoreUsage(calls=0, tokens_in=0, tokens_out=0, usd=0.0, unpriced=0, projects=[], left_out=0)

    async def close(self) -> None:
        self.closed = True


class FakeIngest:
    """Takes everything and keeps what it was told."""

    def __init__(self, project: str | None) -> None:
        self.project = project
        self.told: list[Any] = []

    async def record(self, name: str, fields: Mapping[str, Any]) -> list[v.SessionTaken]:
        self.told.append((name, fields))
        return []

    async def events(
        self, events: Sequence[AgentEvent], *, checkout: Checkout | None = None,
        origin: Literal["hook", "import"] = "hook", ended: bool = False, titles: Mapping[str, str] | None = None,
    ) -> list[v.SessionTaken]:  # fmt: skip
        self.told.append((list(events), checkout, origin, ended, titles))
        return []


class FakeContexts:
    """Knows one remote, and a word for whoever asks from there."""

    def __init__(self, project: str | None) -> None:
        self.project = project
        self.asks: list[ContextAsk] = []

    async def give(self, ask: ContextAsk) -> v.AgentContext:
        self.asks.append(ask)
        try:
            scope: v.Scope | None = scope_of(ask.checkout)
        except NotFound:
            scope = None
        text = "" if scope is None else f"what {ask.agent} needs"
        return v.AgentContext(text=text, tokens=len(text) // 4, offer=None, scope=scope, because="asked")


class FakeApplication:
    def __init__(self, tokens: dict[str, str] | None = None) -> None:
        self.services: dict[str, FakeService] = {}
        self.tokens = dict(tokens or {})
        self.reasons: dict[str, str] = {}
        self.drained_s: float | None = None
        self.ingests: list[tuple[str | None, bool, FakeIngest]] = []
        self.asked_contexts: list[tuple[str | None, bool, FakeContexts]] = []
        for name in ("default", *self.tokens.values()):
            self.services.setdefault(name, FakeService(name, self))

    def project(self, name: str) -> v.Project:
        if name not in self.services:
            raise NotFound(f"there is no project {name!r}; known: {', '.join(self.services)}", project=name)
        number = list(self.services).index(name) + 1
        return v.Project(id=row_id("prj", number), name=name, created_at=NOW, settings={}, messages=0, facts=0)

    async def service(self, project: str = "default") -> FakeService:
        self.project(project)
        return self.services[project]

    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        return scope_of(checkout)

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        return trusted_scope_of(checkout)

    def ingest(self, *, project: str | None, confined: bool) -> FakeIngest:
        self.ingests.append((project, confined, FakeIngest(project)))
        return self.ingests[-1][2]

    def contexts(self, *, project: str | None, confined: bool) -> FakeContexts:
        self.asked_contexts.append((project, confined, FakeContexts(project)))
        return self.asked_contexts[-1][2]

    async def authenticate(self, token: str) -> KeyHolder | None:
        project = self.tokens.get(token)
        return None if project is None else KeyHolder(project=project, names=frozenset({project}))

    async def ready(self) -> dict[str, str]:
        return self.reasons

    async def close(self, *, drain_s: float = 5.0) -> None:
        self.drained_s = drain_s


def _page(items: list[Any], limit: int, cursor: str | None) -> v.Page[Any]:
    start = int(cursor) if cursor and cursor.isdigit() else 0
    end = start + limit
    return v.Page(items=items[start:end], next_cursor=str(end) if end < len(items) else None)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("this is not valid Unicode") from error


def _job(name: str) -> v.Job:
    return v.Job(
        id=name, kind="extract_facts.v1", key="epi_1", project="default", subject="ana", state="dead", due_at=NOW,
        attempts=4, crashes=0, error="the provider said no", error_class="permanent", input="epi_1", lease_owner=None,
        lease_until=None, fence=4, created_at=NOW, finished_at=NOW, history=[],
    )  # fmt: skip
