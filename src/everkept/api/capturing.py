"""Threads, messages, receipts and working memory."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import bounded, message_view, moment, page, read_cursor, receipt_view, thread_view
from everkept.capture.messages import Given, check_key, check_messages, check_name
from everkept.config import validate_overrides
from everkept.domain.ids import event_id, parse_event_id
from everkept.errors import SubjectMoved
from everkept.store.connection import Connection
from everkept.store.projects import find_subject, get_project
from everkept.store.receipts import ReceiptRow, receipts_of
from everkept.store.remaking import Replayed, lost_effects, remake_effects
from everkept.store.streams import (
    Append,
    Appended,
    NewMessage,
    StreamRow,
    append_events,
    create_thread,
    get_thread,
    list_events,
    list_threads,
    request_end,
    set_thread_settings,
    timer_due,
)

LARGE_CHARS = 50_000


class Capturing(Cases):
    async def create_thread(self, thread: str | None, subject: str, settings: dict[str, Any] | None = None) -> v.Thread:
        name = f"thr_{uuid.uuid4().hex}" if thread is None else check_name(thread, "thread")
        checked = json.dumps(validate_overrides(settings or {}))
        check_name(subject, "subject")
        stream = await self._write(create_thread, self._project_id, name, subject, checked, self._settings)
        return await self._thread_view(stream)

    async def _thread_view(self, stream: StreamRow) -> v.Thread:
        due = await self._store.read(timer_due, [stream.id])
        return thread_view(stream, due.get(stream.id))

    async def get_thread(self, thread: str) -> v.Thread:
        return await self._thread_view(await self._store.read(get_thread, self._project_id, thread))

    async def list_threads(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Thread]:
        bounded(limit, "limit", 1, 1000)

        def read(conn: Connection) -> tuple[list[StreamRow], dict[int, int]]:
            owner = None if subject is None else find_subject(conn, self._project_id, subject)
            if subject is not None and owner is None:
                return [], {}
            rows = list_threads(conn, self._project_id, owner, read_cursor(cursor), limit + 1)
            return rows, timer_due(conn, [r.id for r in rows])

        rows, due = await self._store.read(read)
        return page([thread_view(r, due.get(r.id)) for r in rows], rows, limit)

    async def set_thread_settings(self, thread: str, settings: dict[str, Any]) -> v.Thread:
        checked = json.dumps(validate_overrides(settings))
        stream = await self._write(set_thread_settings, self._project_id, thread, checked, self._settings)
        return await self._thread_view(stream)

    async def append(
        self, thread: str, messages: Sequence[v.MessageIn], *, subject: str | None = None, key: str | None = None
    ) -> v.AppendResult:
        check_name(thread, "thread")
        if subject is not None:
            check_name(subject, "subject")
        if key is not None:
            check_key(key)
        append = Append(
            project=self._project_id, thread=thread, subject=subject, base=self._settings,
            messages=await self._checked(thread, messages, key), formers=len(self._project.former_secrets),
        )  # fmt: skip
        pace, settings = self._parts.pace, self._project_settings
        await pace.admit(self._project_id, settings, patience_s=self._parts.patience_s)
        try:
            answer: list[Appended] = await self._store.write_item(append_events, append)
        except SubjectMoved:  # a project was merged into this one since it was opened: by its keys they may be known
            self._project = await self._store.read(get_project, self._project.name)
            append = replace(
                append, messages=await self._checked(thread, messages, key), formers=len(self._project.former_secrets)
            )
            answer = await self._store.write_item(append_events, append)
        pace.spend(self._project_id, settings, sum(not a.replayed for a in answer))
        await self._remake([
            Replayed(a.stream, a.seq, m.analysed) for a, m in zip(answer, append.messages, strict=True) if a.replayed
        ])  # fmt: skip
        return v.AppendResult(
            thread=thread, receipts=await self._receipts(thread, answer), replayed=all(a.replayed for a in answer)
        )

    async def _checked(self, thread: str, messages: Sequence[v.MessageIn], key: str | None) -> tuple[NewMessage, ...]:
        check = partial(
            check_messages,
            [_given(m) for m in messages],
            thread=thread,
            key=key,
            secret=self._project.secret,
            former=self._project.former_secrets,
            now_us=self._parts.clock.now_us(),
        )
        # Analysing a megabyte takes a second; what is small is not worth the way to another thread.
        large = sum(len(m.content) for m in messages) > LARGE_CHARS
        return await asyncio.to_thread(check) if large else check()

    async def _remake(self, replayed: Sequence[Replayed]) -> None:
        """Effects that were lost of messages that were there already."""
        if not replayed:
            return
        lost = await self._store.read(lost_effects, self._project_id, replayed, self._settings)
        if lost:
            await self._write(remake_effects, self._project_id, replayed, self._settings)

    async def _receipts(self, thread: str, answer: list[Appended]) -> list[v.Receipt]:
        """What was stored now is searchable and no more; what was replayed may have come further since."""
        replayed = [(a.stream, a.seq) for a in answer if a.replayed]
        earlier = {}
        if replayed:
            rows = await self._store.read(receipts_of, self._project_id, replayed, self._settings)
            earlier = {(r.stream, r.seq): receipt_view(r, "replayed") for r in rows}
        return [
            earlier.get((a.stream, a.seq))
            or v.Receipt.model_construct(
                event_id=event_id(a.stream, a.seq), thread=thread, seq=a.seq, state="searchable",
                reason="waits for its episode", recorded_at=moment(a.recorded_at), outcome="stored", next_try_at=None,
                episode_id=None, summary=None, facts=None,
            )
            for a in answer
        ]  # fmt: skip

    async def list_messages(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]:
        bounded(limit, "limit", 1, 1000)
        bounded(after_seq, "after_seq", 0, 10**15)

        def read(conn: Connection) -> list[v.Message]:
            stream = get_thread(conn, self._project_id, thread)
            events = list_events(conn, stream.id, after_seq + 1, stream.last_seq, limit + 1)
            return [message_view(e) for e in events]

        found = await self._store.read(read)
        more = len(found) > limit
        return v.Page(items=found[:limit], next_cursor=str(found[limit - 1].seq) if more else None)

    async def end_thread(self, thread: str) -> v.EndResult:
        queued, reason = await self._write(request_end, self._project_id, thread, self._settings)
        return v.EndResult(episode_queued=queued, reason=reason)

    async def receipt(self, event_id: str) -> v.Receipt:
        place = parse_event_id(event_id)
        rows = await self._store.read(receipts_of, self._project_id, [place], self._settings)
        return receipt_view(rows[0])

    async def list_receipts(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Receipt]:
        bounded(limit, "limit", 1, 1000)
        bounded(after_seq, "after_seq", 0, 10**15)

        def read(conn: Connection) -> list[ReceiptRow]:
            stream = get_thread(conn, self._project_id, thread)
            last = min(stream.last_seq, after_seq + limit + 1)  # one more than is shown tells whether there is more
            places = [(stream.id, seq) for seq in range(after_seq + 1, last + 1)]
            return receipts_of(conn, self._project_id, places, self._settings)

        found = await self._store.read(read)
        more = len(found) > limit
        items = [receipt_view(row) for row in found[:limit]]
        return v.Page(items=items, next_cursor=str(found[limit - 1].seq) if more else None)


def _given(m: v.MessageIn) -> Given:
    return Given(
        role=m.role,
        content=m.content,
        name=m.name,
        occurred_at=m.occurred_at,
        metadata=m.metadata,
        tokens=m.tokens,
        model=m.model,
        key=m.key,
        evidence=m.evidence,
    )
