"""A memory of a few lists behind the protocol `Service`: enough of it to see what a command asks and prints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from everkept.api import views as v
from everkept.capture.identity import Checkout
from everkept.errors import EverkeptError, NotFound

AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def a_fact(**changes: Any) -> v.Fact:
    fields = {
        "id": "fct_1",
        "subject": "me",
        "entity": "me",
        "predicate": "lives in",
        "object": "Lisbon",
        "text": "me lives in Lisbon",
        "quote": "I moved to Lisbon",
        "confidence": 0.9,
        "valid_from": AT,
        "valid_until": None,
        "said_at": AT,
        "recorded_at": AT,
        "retired_at": None,
        "retired_because": None,
        "superseded_by": None,
        "pinned": False,
        "unsettled": False,
        "live": True,
        "source": "window",
        "episode_id": "epi_1",
        "event_ids": ["evt_1_1"],
    }
    return v.Fact(**{**fields, **changes})


def a_result(**changes: Any) -> v.RecallResult:
    fields = {
        "kind": "turn",
        "id": "evt_1_1",
        "text": "I moved to Lisbon",
        "score": 0.83,
        "subject": "me",
        "thread": "chat-1",
        "seq": 1,
        "speaker": "user",
        "occurred_at": AT,
    }
    return v.RecallResult(**{**fields, **changes})


def an_answer(*results: v.RecallResult, **changes: Any) -> v.RecallAnswer:
    fields = {
        "query": "where?",
        "results": list(results),
        "held_back": None,
        "text": "a block",
        "tokens": 3,
        "lexical_only": False,
    }
    return v.RecallAnswer(**{**fields, **changes})


def a_message(**changes: Any) -> v.Message:
    fields = {
        "event_id": "evt_1_1",
        "seq": 1,
        "role": "user",
        "name": None,
        "content": "I moved to Lisbon",
        "occurred_at": AT,
        "recorded_at": AT,
        "metadata": {},
        "tokens": 5,
        "model": None,
        "evidence": True,
    }
    return v.Message(**{**fields, **changes})


def an_episode(**changes: Any) -> v.Episode:
    done = v.Stage(state="completed", attempts=1)
    fields = {
        "id": "epi_1",
        "thread": "chat-1",
        "subject": "me",
        "start_seq": 1,
        "end_seq": 2,
        "opened_at": AT,
        "opened_because": "ended",
        "archived": False,
        "summary": "Moving to Lisbon.",
        "learnings": ["lives in Lisbon"],
        "stages": {"summary": done, "facts": done},
    }
    return v.Episode(**{**fields, **changes})


def a_job(**changes: Any) -> v.Job:
    fields = {
        "id": "job_1",
        "kind": "extract_facts.v1",
        "key": "1",
        "project": "default",
        "subject": "me",
        "state": "dead",
        "due_at": AT,
        "attempts": 4,
        "crashes": 0,
        "error": "garbage came back",
        "error_class": "invalid_output",
        "input": "epi_1",
        "lease_owner": None,
        "lease_until": None,
        "fence": 4,
        "created_at": AT,
        "finished_at": None,
        "history": [{"at": "2026-03-02", "class": "transient", "error": "reset"}],
    }
    return v.Job(**{**fields, **changes})


def a_status(**changes: Any) -> v.Status:
    fields = {
        "version": "0.1.0",
        "store": {"path": "/home/me/.everkept/everkept.db", "size_bytes": 1_234_567, "journal_mode": "wal"},
        "messages": 1204,
        "episodes": 83,
        "facts": 211,
        "backlog_due": 0,
        "backlog_armed": 2,
        "oldest_due_s": None,
        "stages": {"completed/completed": 80, "completed/dead": 2, "pending/pending": 1},
        "stuck": [],
        "given_up": [],
        "timings": [v.StageTiming(stage="facts", completed=80, p50_s=0.02, p95_s=1.5)],
        "workers": [],
        "periodic": [],
        "providers": [],
        "checks": [],
        "model": "none (deterministic extraction)",
        "embedder": "wordllama",
        "refused_finishes": 0,
        "asked_again": 0,
        "lanes": [],
        "reviews": [],
    }
    return v.Status(**{**fields, **changes})


def a_check(*, ok: bool) -> v.Check:
    message = "oldest due work waits 3 s" if ok else "the oldest due work waits 900 s; the limit is 300 s"
    return v.Check(name="due_work_old", ok=ok, value=3 if ok else 900, threshold=300, message=message)


class FakeService:
    """Answers with what it was given; remembers every call as (name, arguments); accepts each key once."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.threads: dict[str, list[v.MessageIn]] = {}

    async def append(
        self, thread: str, messages: Sequence[v.MessageIn], *, subject: str | None = None, key: str | None = None
    ) -> v.AppendResult:
        self.calls.append(("append", {"thread": thread, "subject": subject, "key": key}))
        if thread not in self.threads and subject is None:
            raise NotFound(f"there is no thread {thread!r}")
        kept = self.threads.setdefault(thread, [])
        receipts = [self._receipt(thread, kept, message) for message in messages]
        return v.AppendResult(
            thread=thread, receipts=receipts, replayed=all(each.outcome == "replayed" for each in receipts)
        )

    def _receipt(self, thread: str, kept: list[v.MessageIn], message: v.MessageIn) -> v.Receipt:
        known = [place for place, other in enumerate(kept, 1) if message.key and other.key == message.key]
        if not known:
            kept.append(message)
        seq = known[0] if known else len(kept)
        return v.Receipt(
            event_id=f"evt_{list(self.threads).index(thread) + 1}_{seq}",
            thread=thread,
            seq=seq,
            state="searchable",
            recorded_at=AT,
            outcome="replayed" if known else "stored",
        )

    async def end_thread(self, thread: str) -> v.EndResult:
        self.calls.append(("end_thread", {"thread": thread}))
        return v.EndResult(episode_queued=True, reason="the window opens now")

    async def settle(self, *, timeout_s: float = 30.0) -> bool:
        return bool(self.answers.get("settle", True))

    async def list_episodes(self, *, thread: str | None = None, **words: Any) -> v.Page[v.Episode]:
        self.calls.append(("list_episodes", {"thread": thread, **words}))
        if thread is not None and thread in self.threads:
            return v.Page(items=[an_episode(thread=thread, end_seq=len(self.threads[thread]))])
        answer: v.Page[v.Episode] = self.answers.get("list_episodes", v.Page(items=[]))
        return answer

    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        """Nobody knows the folder, where no answer says whose it is."""
        answer = self.answers.get("resolve_scope", NotFound("there is no memory of this folder yet"))
        if isinstance(answer, EverkeptError):
            raise answer
        self.calls.append(("resolve_scope", {"create": create}))
        return answer

    def __getattr__(self, name: str) -> Any:
        """Every other use case: record the call, then give (or raise) the answer of that name."""
        if name.startswith("_") or name not in self.answers:
            raise AttributeError(name)

        async def call(*places: Any, **words: Any) -> Any:
            self.calls.append((name, {**{str(place): value for place, value in enumerate(places)}, **words}))
            answer = self.answers[name]
            if isinstance(answer, EverkeptError):
                raise answer
            return answer

        return call

    @asynccontextmanager
    async def __call__(self, project: str, *, worker: bool) -> AsyncIterator[Any]:
        """The fake as an opener."""
        self.calls.append(("open", {"project": project, "worker": worker}))
        yield self
