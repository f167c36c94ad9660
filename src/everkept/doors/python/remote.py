"""The use cases over HTTP: what `api.service.Service` promises, asked of a server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx2
from pydantic_core import PydanticSerializationError

from everkept.api import views as v
from everkept.domain.ids import TRACEABLE, traceable_kind
from everkept.doors.python.asking import given, path_of, time_text
from everkept.doors.python.remote_agents import RemoteAgentMemory
from everkept.doors.python.remote_deliveries import RemoteDeliveries
from everkept.doors.python.remote_reviews import RemoteReviews
from everkept.doors.python.remote_workstreams import RemoteWorkstreams
from everkept.doors.python.wire import Wire
from everkept.errors import InvalidInput

LONG_S = 600.0
"""Longest wait for what touches everything of a subject."""
SETTLE_ROUND_S = 20.0


class RemoteService(RemoteAgentMemory, RemoteReviews, RemoteWorkstreams, RemoteDeliveries):
    """One project of the server at `url`. Requests that change something are sent again only where they carry a key,
    or where doing them twice is doing them once."""

    def __init__(
        self, url: str, *, api_key: str | None = None, project: str = "default",
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        headers = {"X-Everkept-Project": project}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        super().__init__(Wire(url, headers, transport))

    # ---- capture

    async def create_thread(self, thread: str | None, subject: str, settings: dict[str, Any] | None = None) -> v.Thread:
        body = given(id=thread, subject=subject, settings=settings)
        return self._read(v.Thread, await self._wire.ask("POST", "/v1/threads", body=body, safe=thread is not None))

    async def get_thread(self, thread: str) -> v.Thread:
        return self._read(v.Thread, await self._wire.ask("GET", path_of("threads", thread)))

    async def list_threads(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Thread]:
        query = {"subject": subject, "limit": limit, "cursor": cursor}
        return self._read(v.Page[v.Thread], await self._wire.ask("GET", "/v1/threads", query=query))

    async def set_thread_settings(self, thread: str, settings: dict[str, Any]) -> v.Thread:
        path, body = path_of("threads", thread), {"settings": settings}
        return self._read(v.Thread, await self._wire.ask("PATCH", path, body=body, safe=True))

    async def append(
        self, thread: str, messages: Sequence[v.MessageIn], *, subject: str | None = None, key: str | None = None
    ) -> v.AppendResult:
        path, body = path_of("threads", thread, "messages"), given(messages=_sent(messages), subject=subject)
        keyed = bool(messages) and all(each.key for each in messages)
        raw = await self._wire.ask("POST", path, body=body, key=key, safe=keyed)
        return self._read(v.AppendResult, raw)

    async def list_messages(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]:
        query = {"after_seq": after_seq, "limit": limit}
        raw = await self._wire.ask("GET", path_of("threads", thread, "messages"), query=query)
        return self._read(v.Page[v.Message], raw)

    async def end_thread(self, thread: str) -> v.EndResult:
        return self._read(v.EndResult, await self._wire.ask("POST", path_of("threads", thread, "end"), safe=True))

    async def context(self, thread: str, question: str | None = None, *, tokens: int = 1200) -> v.ContextBlock:
        body = given(question=question, tokens=tokens)
        raw = await self._wire.ask("POST", path_of("threads", thread, "context"), body=body, safe=True)
        return self._read(v.ContextBlock, raw)

    async def receipt(self, event_id: str) -> v.Receipt:
        return self._read(v.Receipt, await self._wire.ask("GET", path_of("receipts", event_id)))

    async def list_receipts(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Receipt]:
        query = {"after_seq": after_seq, "limit": limit}
        raw = await self._wire.ask("GET", path_of("threads", thread, "receipts"), query=query)
        return self._read(v.Page[v.Receipt], raw)

    # ---- memory

    async def recall(
        self, query: str, *, subject: str | None = None, thread: str | None = None, limit: int = 10,
        tokens: int | None = None, as_of: datetime | None = None, known_at: datetime | None = None,
        kinds: Sequence[str] | None = None, metadata: dict[str, Any] | None = None, explain: bool = False,
        held_back: bool = False,
    ) -> v.RecallAnswer:  # fmt: skip
        body = given(
            query=query, subject=subject, thread=thread, limit=limit, tokens=tokens, as_of=time_text(as_of),
            known_at=time_text(known_at), kinds=None if kinds is None else list(kinds), metadata=metadata,
            explain=explain, held_back=held_back,
        )  # fmt: skip
        return self._read(v.RecallAnswer, await self._wire.ask("POST", "/v1/recall", body=body, safe=True))

    async def remember(
        self, text: str, *, subject: str, predicate: str | None = None, object: str | None = None,
        entity: str | None = None, valid_from: datetime | None = None, valid_until: datetime | None = None,
        confidence: float = 1.0, pinned: bool = False, key: str | None = None,
    ) -> v.Remembered:  # fmt: skip
        body = given(
            text=text, subject=subject, predicate=predicate, object=object, entity=entity,
            valid_from=time_text(valid_from), valid_until=time_text(valid_until), confidence=confidence, pinned=pinned,
        )  # fmt: skip
        return self._read(v.Remembered, await self._wire.ask("POST", "/v1/remember", body=body, key=key))

    async def get_fact(self, fact_id: str) -> v.Fact:
        return self._read(v.Fact, await self._wire.ask("GET", path_of("facts", fact_id)))

    async def list_facts(
        self, *, subject: str | None = None, query: str | None = None, as_of: datetime | None = None,
        known_at: datetime | None = None, include_retired: bool = False, limit: int = 50, cursor: str | None = None,
    ) -> v.Page[v.Fact]:  # fmt: skip
        asked = {
            "subject": subject, "query": query, "as_of": time_text(as_of), "known_at": time_text(known_at),
            "include_retired": include_retired, "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return self._read(v.Page[v.Fact], await self._wire.ask("GET", "/v1/facts", query=asked))

    async def forget(self, fact_id: str, *, reason: str = "by hand", undo: bool = False) -> v.Fact:
        body = {"reason": reason, "undo": undo}
        return self._read(
            v.Fact, await self._wire.ask("POST", path_of("facts", fact_id, "forget"), body=body, safe=True)
        )

    async def pin_fact(self, fact_id: str, *, pinned: bool = True, by: str = "hand") -> v.Fact:
        body = {"pinned": pinned, "by": by}
        return self._read(v.Fact, await self._wire.ask("PUT", path_of("facts", fact_id, "pin"), body=body, safe=True))

    async def correct_fact(
        self, fact_id: str, *, object: str | None = None, text: str | None = None,
        valid_from: datetime | None = None, valid_until: datetime | None = None, by: str = "hand",
        key: str | None = None,
    ) -> v.Remembered:  # fmt: skip
        body = given(
            object=object, text=text, valid_from=time_text(valid_from), valid_until=time_text(valid_until), by=by
        )
        raw = await self._wire.ask("POST", path_of("facts", fact_id, "correct"), body=body, key=key)
        return self._read(v.Remembered, raw)

    async def list_subjects(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[v.Subject]:
        query = {"limit": limit, "cursor": cursor}
        return self._read(v.Page[v.Subject], await self._wire.ask("GET", "/v1/subjects", query=query))

    async def list_entities(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Entity]:
        query = {"subject": subject, "limit": limit, "cursor": cursor}
        return self._read(v.Page[v.Entity], await self._wire.ask("GET", "/v1/entities", query=query))

    async def merge_entities(self, entity_id: str, *, into: str, by: str = "hand") -> v.Entity:
        body = {"into": into, "by": by}
        return self._read(v.Entity, await self._wire.ask("POST", path_of("entities", entity_id, "merge"), body=body))

    async def split_entity(self, entity_id: str) -> v.Entity:
        return self._read(v.Entity, await self._wire.ask("POST", path_of("entities", entity_id, "split")))

    async def list_episodes(
        self, *, thread: str | None = None, subject: str | None = None, query: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Episode]:  # fmt: skip
        asked = {"thread": thread, "subject": subject, "query": query, "limit": limit, "cursor": cursor}
        return self._read(v.Page[v.Episode], await self._wire.ask("GET", "/v1/episodes", query=asked))

    async def get_episode(self, episode_id: str) -> v.Episode:
        return self._read(v.Episode, await self._wire.ask("GET", path_of("episodes", episode_id)))

    async def retry_episode(self, episode_id: str, stage: str) -> v.Episode:
        raw = await self._wire.ask("POST", path_of("episodes", episode_id, "retry"), query={"stage": stage})
        return self._read(v.Episode, raw)

    async def reprocess(
        self, *, thread: str | None = None, subject: str | None = None, since: datetime | None = None,
        until: datetime | None = None, fresh: bool = False, include_skipped: bool = False, dry_run: bool = False,
    ) -> v.ReprocessPlan:  # fmt: skip
        body = given(
            thread=thread, subject=subject, since=time_text(since), until=time_text(until), fresh=fresh,
            include_skipped=include_skipped, dry_run=dry_run,
        )  # fmt: skip
        raw = await self._wire.ask("POST", "/v1/reprocess", body=body, safe=dry_run, timeout_s=LONG_S)
        return self._read(v.ReprocessPlan, raw)

    async def erase(
        self, *, event: str | None = None, thread: str | None = None, session: str | None = None,
        subject: str | None = None, project: str | None = None, dry_run: bool = False,
    ) -> v.ErasePlan:  # fmt: skip
        named = {"events": event, "threads": thread, "sessions": session, "subjects": subject, "projects": project}
        chosen = [(kind, id) for kind, id in named.items() if id is not None]
        if len(chosen) != 1:
            raise InvalidInput("name exactly one of event, thread, session, subject, project", field="event")
        path, query = path_of(*chosen[0]), {"dry_run": dry_run}
        raw = await self._wire.ask("DELETE", path, query=query, safe=dry_run, timeout_s=LONG_S)
        return self._read(v.ErasePlan, raw)

    async def export(self, subject: str) -> dict[str, Any]:
        raw = await self._wire.ask("GET", path_of("subjects", subject, "export"), timeout_s=LONG_S)
        return self._read(dict[str, Any], raw)

    async def why(self, any_id: str) -> v.Why:
        kind = TRACEABLE[traceable_kind(any_id)]
        return self._read(v.Why, await self._wire.ask("GET", path_of(kind, any_id, "why")))

    async def settle(self, *, timeout_s: float = 30.0) -> bool:
        end = time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, end - time.monotonic())
            body = {"timeout_s": min(left_s, SETTLE_ROUND_S)}
            answer = self._read(dict[str, bool], await self._wire.ask("POST", "/v1/settle", body=body, safe=True))
            if answer["settled"] or left_s <= SETTLE_ROUND_S:
                return answer["settled"]

    # ---- operate

    async def status(self, *, project_only: bool = False) -> v.Status:
        """`project_only` is for the server to decide, from the key."""
        return self._read(v.Status, await self._wire.ask("GET", "/v1/status"))

    async def diagnose(self, *, subject: str | None = None, full: bool = False, rows_only: bool = False) -> v.Diagnosis:
        query = given(subject=subject, full=full or None, rows_only=rows_only or None)
        return self._read(v.Diagnosis, await self._wire.ask("GET", "/v1/doctor", query=query, timeout_s=LONG_S))

    async def list_jobs(
        self, *, state: str | None = None, kind: str | None = None, subject: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Job]:  # fmt: skip
        query = {"state": state, "kind": kind, "subject": subject, "limit": limit, "cursor": cursor}
        return self._read(v.Page[v.Job], await self._wire.ask("GET", "/v1/jobs", query=query))

    async def dead_causes(self) -> list[v.DeadCause]:
        return self._read(v.Page[v.DeadCause], await self._wire.ask("GET", "/v1/jobs/causes")).items

    async def get_job(self, job_id: str) -> v.Job:
        return self._read(v.Job, await self._wire.ask("GET", path_of("jobs", job_id)))

    async def retry_job(self, job_id: str) -> v.Job:
        return self._read(v.Job, await self._wire.ask("POST", path_of("jobs", job_id, "retry")))

    async def retry_jobs(self, *, kind: str | None = None, cause: str | None = None) -> int:
        body = given(kind=kind, cause=cause)
        return self._read(dict[str, int], await self._wire.ask("POST", "/v1/jobs/retry-all", body=body))["retried"]

    async def pause_jobs(
        self, *, kind: str | None = None, provider: str | None = None, why: str = "by hand", by: str = "hand"
    ) -> v.Pause:
        body = given(kind=kind, provider=provider, why=why, by=by)
        return self._read(v.Pause, await self._wire.ask("POST", "/v1/jobs/pause", body=body, safe=True))

    async def resume_jobs(self, *, kind: str | None = None, provider: str | None = None) -> None:
        await self._wire.ask("POST", "/v1/jobs/resume", body=given(kind=kind, provider=provider))

    async def list_pauses(self) -> list[v.Pause]:
        return self._read(v.Page[v.Pause], await self._wire.ask("GET", "/v1/jobs/pauses")).items

    async def discard_job(self, job_id: str, *, reason: str = "by hand") -> v.Job:
        raw = await self._wire.ask("POST", path_of("jobs", job_id, "discard"), body={"reason": reason}, safe=True)
        return self._read(v.Job, raw)

    async def release_job(self, job_id: str) -> v.Job:
        return self._read(v.Job, await self._wire.ask("POST", path_of("jobs", job_id, "release")))

    async def list_projects(self) -> list[v.Project]:
        return self._read(v.Page[v.Project], await self._wire.ask("GET", "/v1/projects")).items

    async def create_project(self, name: str, settings: dict[str, Any] | None = None) -> v.Project:
        body = given(name=name, settings=settings)
        return self._read(v.Project, await self._wire.ask("POST", "/v1/projects", body=body))

    async def update_project(
        self, name: str, *, new_name: str | None = None, settings: dict[str, Any] | None = None
    ) -> v.Project:
        body = given(name=new_name, settings=settings)
        return self._read(v.Project, await self._wire.ask("PATCH", path_of("projects", name), body=body))

    async def merge_project(self, source: str, into: str, *, dry_run: bool = False) -> v.ProjectMerge:
        body = {"into": into, "dry_run": dry_run}
        return self._read(v.ProjectMerge, await self._wire.ask("POST", path_of("projects", source, "merge"), body=body))

    async def move_project(self, name: str, *, workspace: str) -> v.Project:
        body = {"workspace": workspace}
        return self._read(v.Project, await self._wire.ask("POST", path_of("projects", name, "move"), body=body))

    async def ensure_workspace(self, name: str) -> v.Workspace:
        return self._read(v.Workspace, await self._wire.ask("PUT", path_of("workspaces", name), safe=True))

    async def ensure_project(
        self, name: str, *, workspace: str = "default", settings: dict[str, Any] | None = None
    ) -> v.Project:
        path, body = path_of("workspaces", workspace, "projects", name), given(settings=settings)
        return self._read(v.Project, await self._wire.ask("PUT", path, body=body, safe=True))

    async def find_merge(self, project: str) -> v.ProjectMerge | None:
        raw = await self._wire.ask("GET", path_of("projects", project, "merge"))
        return None if raw == b"null" else self._read(v.ProjectMerge, raw)

    async def create_key(self, name: str, *, project: str | None = None) -> v.KeyCreated:
        body = given(name=name, project=project)
        return self._read(v.KeyCreated, await self._wire.ask("POST", "/v1/keys", body=body))

    async def list_keys(self) -> list[dict[str, Any]]:
        return self._read(v.Page[dict[str, Any]], await self._wire.ask("GET", "/v1/keys")).items

    async def revoke_key(self, key_id: str) -> None:
        await self._wire.ask("DELETE", path_of("keys", key_id))

    async def usage(self, *, days: int = 30) -> list[v.UsageRow]:
        return self._read(v.Page[v.UsageRow], await self._wire.ask("GET", "/v1/usage", query={"days": days})).items

    async def usage_by_project(self, *, days: int = 30) -> v.StoreUsage:
        return self._read(v.StoreUsage, await self._wire.ask("GET", "/v1/usage/projects", query={"days": days}))

    async def close(self) -> None:
        await self._wire.close()


def _sent(messages: Sequence[v.MessageIn]) -> list[dict[str, Any]]:
    try:
        return [each.model_dump(mode="json", exclude_unset=True) for each in messages]
    except PydanticSerializationError as error:
        raise InvalidInput(f"a message holds what is no JSON: {error}", field="messages") from error
