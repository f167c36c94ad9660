"""The store's status row as the view that every door shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from everkept.api import views as v
from everkept.api.base import Parts
from everkept.api.present import moment, when
from everkept.store.status import StatusRow
from everkept.store.store import Store


def status_view(row: StatusRow, store: Store, parts: Parts, version: str) -> v.Status:
    embedder = parts.tools.embedder_label
    return v.Status(
        version=version,
        store={**row.store, "degraded": store.driver.degraded or row.store.get("degraded")},
        messages=row.messages,
        episodes=row.episodes,
        facts=row.facts,
        backlog_due=row.backlog.due,
        backlog_armed=row.backlog.armed,
        oldest_due_s=row.backlog.oldest_due_s,
        stages=row.stages,
        stuck=[_item(i) for i in row.stuck],
        given_up=[_item(i) for i in row.given_up],
        timings=[v.StageTiming(**asdict(t)) for t in row.timings],
        workers=[v.Worker(**{**asdict(w), "last_seen_at": moment(w.last_seen_at)}) for w in row.workers],
        periodic=[
            v.Periodic(**_times(asdict(p), "last_start_at", "last_success_at", "next_due_at")) for p in row.periodic
        ],
        providers=[v.Provider(**_times(asdict(p), "since", "next_probe_at")) for p in row.providers],
        checks=[v.Check(**asdict(c)) for c in row.checks],
        model=parts.model_name,
        embedder=embedder,
        refused_finishes=row.refused_finishes,
        asked_again=row.asked_again,
        lanes=[asdict(lane) for lane in row.lanes],
    )


def _item(item: Any) -> v.StuckItem:
    return v.StuckItem(**{**asdict(item), "since": moment(item.since)})


def _times(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**fields, **{name: when(fields[name]) for name in names}}
