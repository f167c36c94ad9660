"""Taking a parsed file in, with keys that make a second run add nothing; then waiting for its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from everkept.doors.cli.screen import Bar
from everkept.doors.cli.wording import count

if TYPE_CHECKING:
    from everkept.api import views as v
    from everkept.api.service import Service
    from everkept.capture.importers import ParsedImport, ParsedMessage, ParsedThread

BATCH = 100
"""Messages in one append."""
LOOK_S = 0.5
STALLED_S = 60.0
"""Waiting ends when nothing has moved for so long."""
FINAL = frozenset({"completed", "skipped", "dead"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    report: v.ImportReport
    threads: tuple[str, ...]
    event_ids: dict[int, str]
    """Line of the file → the event it became."""


async def take_in(memory: Service, parsed: ParsedImport, bar: Bar) -> Intake:
    """Append every message and open each thread's window.

    Raises KeyConflict, SubjectConflict, InvalidInput, StoreFull; batches before the refused one stay.
    """
    from everkept.api.views import ImportReport

    total = sum(len(thread.messages) for thread in parsed.threads)
    event_ids: dict[int, str] = {}
    stored = done = 0
    for thread in parsed.threads:
        for batch in _batches(thread):
            result = await memory.append(thread.id, [_message(one) for one in batch], subject=thread.subject)
            stored += sum(receipt.outcome == "stored" for receipt in result.receipts)
            event_ids.update((one.line, receipt.event_id) for one, receipt in zip(batch, result.receipts, strict=True))
            done += len(batch)
            bar.at(done, total, f"{done:,} of {count(total, 'message')}")
        if thread.messages:
            await memory.end_thread(thread.id)
    report = ImportReport(
        path=parsed.path, threads=len(parsed.threads), lines=parsed.lines, stored=stored, replayed=done - stored,
        passed_by=parsed.passed_by, unreadable=parsed.unreadable,
    )  # fmt: skip
    return Intake(report=report, threads=tuple(thread.id for thread in parsed.threads), event_ids=event_ids)


def _batches(thread: ParsedThread) -> Sequence[list[ParsedMessage]]:
    messages = iter(thread.messages)
    return list(iter(lambda: list(islice(messages, BATCH)), []))


def _message(parsed: ParsedMessage) -> v.MessageIn:
    from everkept.api.views import MessageIn

    return MessageIn(
        role=parsed.role, content=parsed.content, name=parsed.name, occurred_at=parsed.occurred_at,
        metadata=parsed.metadata or None, key=parsed.key, evidence=parsed.evidence,
    )  # fmt: skip


async def settle(memory: Service, before: v.Status, threads: int, bar: Bar, *, stalled_s: float = STALLED_S) -> bool:
    """Wait until every receipt is final. False once nothing has moved for `stalled_s`.

    `before` is the status from before the import: workers may have begun while it ran.
    """
    loop = asyncio.get_running_loop()
    moved_at, last = loop.time(), (-1, -1)
    while True:
        settled = await memory.settle(timeout_s=LOOK_S)
        now = await memory.status()
        done = _finished(now) - _finished(before)
        total = max(now.episodes - _finished(before), threads, 1)
        bar.at(
            total if settled else min(done, total - 1), total, f"{count(done, 'episode')}, {count(now.facts, 'fact')}"
        )
        if settled:
            return True
        if last != (done, now.backlog_due):
            moved_at, last = loop.time(), (done, now.backlog_due)
        elif loop.time() - moved_at > stalled_s:
            return False


def _finished(status: v.Status) -> int:
    return sum(number for key, number in status.stages.items() if FINAL.issuperset(key.split("/")))


async def remembered(memory: Service, threads: Sequence[str]) -> int:
    """How many messages of the threads lie in an episode whose summary and facts are both done."""
    total = 0
    for thread in threads:
        cursor: str | None = None
        while True:
            page = await memory.list_episodes(thread=thread, limit=100, cursor=cursor)
            total += sum(_length(episode) for episode in page.items if _is_remembered(episode))
            cursor = page.next_cursor
            if cursor is None:
                break
    return total


def _length(episode: v.Episode) -> int:
    return episode.end_seq - episode.start_seq + 1


def _is_remembered(episode: v.Episode) -> bool:
    return all(stage.state == "completed" for stage in episode.stages.values())
