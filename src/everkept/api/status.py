"""The store's status row as the view that every door shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from everkept.api import views as v
from everkept.api.base import Parts
from everkept.api.present import moment, pause_view, when
from everkept.domain.nats_seen import NatsSeen
from everkept.store.database import Database
from everkept.store.projects import shown_name
from everkept.store.server_state import EACH_MAX, ServerRow
from everkept.store.status import StatusRow
from everkept.store.store import Store


def status_view(row: StatusRow, store: Store, parts: Parts, version: str) -> v.Status:
    embedder = parts.tools.embedder_label
    return v.Status(
        version=version,
        store={
            "path": store.database.name,
            **row.store,
            "degraded": store.database.degraded or row.store.get("degraded"),
            "failing": row.store["failing"] or store.failing(),
            "slow_ms": {name: round(1000 * took_s) for name, took_s in sorted(dict(store.writer.slow).items())},
        },
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
        pauses=[pause_view(row) for row in row.pauses],
        providers=[v.Provider(**_times(asdict(p), "since", "next_probe_at")) for p in row.providers],
        checks=[v.Check(**asdict(c)) for c in row.checks],
        model=parts.model_name,
        embedder=embedder,
        refused_finishes=row.refused_finishes,
        asked_again=row.asked_again,
        lanes=[
            {**asdict(lane), "project": shown_name(lane.project), "subject": shown_name(lane.subject)}
            for lane in row.lanes
        ],
        nats=nats_view(parts.nats.seen),
        unpublished=None if row.unpublished is None else v.Unpublished(**asdict(row.unpublished)),
        server=_server(row.server, store.database),
        reviews=[v.ReviewProgress(**_times(asdict(p), "reached_at", "woke_at")) for p in row.reviews],
    )


def confined(status: v.Status) -> v.Status:
    """What the holder of a project's key may know: nothing of the machine, the workers or what other keys did."""
    store = {name: status.store[name] for name in ("library", "journal_mode", "degraded") if name in status.store}
    return status.model_copy(update={
        "store": store, "workers": [], "nats": None, "unpublished": None, "server": None, "refused_finishes": 0,
        "asked_again": 0, "price_unknown": None,
        "periodic": [p.model_copy(update={"last_error": None, "rows_repaired": 0}) for p in status.periodic],
        "providers": [
            p.model_copy(update={"name": p.name.partition(":")[0], "reason": None, "in_flight": 0, "waiting": 0})
            for p in status.providers
        ],
    })  # fmt: skip


def _server(row: ServerRow | None, database: Database) -> v.DatabaseServer | None:
    if row is None:
        return None
    return v.DatabaseServer(**asdict(row), each_max=EACH_MAX, conflicts=database.conflicts, deaf=database.deaf)


def nats_view(seen: NatsSeen | None) -> v.Nats | None:
    if seen is None:
        return None
    return v.Nats(
        server=seen.server, connected=seen.connected, trouble=seen.trouble, since=when(seen.since),
        streams=[
            v.NatsStream(name=s.name, replicas=s.replicas, messages=s.messages, differs=list(s.differs))
            for s in seen.streams
        ],
        pending=seen.pending, unacknowledged=seen.unacknowledged, redelivered=seen.redelivered,
    )  # fmt: skip


def _item(item: Any) -> v.StuckItem:
    return v.StuckItem(**{**asdict(item), "subject": shown_name(item.subject), "since": moment(item.since)})


def _times(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**fields, **{name: when(fields[name]) for name in names}}
