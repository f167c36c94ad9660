"""The numbers of `status` as Prometheus text, from a registry of their own that lives for one scrape."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from everkept.api import views as v

CONTENT_TYPE = CONTENT_TYPE_LATEST
METRICS: Mapping[str, str] = {
    "everkept_messages": "Messages kept.",
    "everkept_episodes": "Episodes kept.",
    "everkept_facts": "Facts kept.",
    "everkept_backlog_due": "Jobs whose time has come.",
    "everkept_backlog_armed": "Jobs that wait for their time.",
    "everkept_oldest_due_seconds": "For how long the oldest due job has waited; 0 where none is due.",
    "everkept_episode_stages": "Episodes by the state of their summary and facts.",
    "everkept_dead": "Episodes with a stage that has been given up.",
    "everkept_dead_letters": "Jobs that were given up and await a hand, 50 at most.",
    "everkept_stuck_jobs": "Jobs whose lease ended, that failed again and again, or that are due and do not begin; "
    "50 at most.",
    "everkept_refused_finishes_total": "Finishes refused because the lease was lost.",
    "everkept_asked_again_total": "Questions asked again because the reply never arrived.",
    "everkept_failures_1h": "Failures in the last hour, by stage.",
    "everkept_check_ok": "1 where a threshold of `status --check` holds.",
    "everkept_provider_circuit_closed": "1 where a provider is usable.",
    "everkept_workers": "Workers seen lately.",
    "everkept_jobs_running": "Jobs that run now.",
    "everkept_store_slow_seconds": "The longest run of each store function that took more than 20 ms, in this process.",
    "everkept_store_bytes": "Size of the store.",
    "everkept_store_free_bytes": "What is free on the disk of the store.",
    "everkept_store_failing": "1 where writes fail or the store is degraded; `everkept status` says why.",
    "everkept_consumer_lag": "Changes that a consumer has not acknowledged, by project and consumer.",
    "everkept_webhook_ok": "0 where a webhook's last try failed, or it waits for a hand; 1 otherwise.",
    "everkept_webhook_parked": "Changes that a webhook's receiver rejected.",
    "everkept_nats_connected": "1 where this process has a connection to NATS.",
    "everkept_nats_pending": "Messages of the stream of events that were not given to anybody yet.",
    "everkept_nats_unacknowledged": "Messages of it that were given and are not acknowledged.",
    "everkept_nats_redelivered": "Messages among those that were given more than once.",
    "everkept_nats_unpublished": "Changes that NATS does not have yet, of all projects.",
    "everkept_nats_unpublished_seconds": "For how long the oldest of them has waited; 0 where there is none.",
    "everkept_server_connections": "Connections of everybody to the database server; absent where the store is a file.",
    "everkept_server_connections_max": "Connections that it takes from whoever is no administrator.",
    "everkept_processes": "Processes of this program on the database, each with `everkept_process_connections_max`.",
    "everkept_process_connections_max": "Connections that one process opens to the database server at most.",
    "everkept_deadlocks_total": "Deadlocks in the database since the server began to count; there should be none.",
    "everkept_conflicts_total": "Transactions of this process that the server ended because of another one.",
    "everkept_listening": "1 where this process hears of commits of others, which shortens its polls.",
    "everkept_lane_lag_seconds": "For how long the lanes with due work have waited that wait longest, by rank.",
    "everkept_stage_seconds": "Time from opening to completion, by stage and quantile.",
}
"""Every name that `/metrics` has, and what it means."""
LANES_MAX = 5
"""Lanes whose lag is measured."""
_FAILURES = {"episode_failures": "summary", "fact_failures": "facts"}


def render(status: v.Status) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StatusCollector(status))
    return generate_latest(registry)


class _StatusCollector(Collector):
    def __init__(self, status: v.Status) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        yield from _totals(self._status)
        yield from _stages(self._status)
        yield from _checks(self._status)
        yield from _workers(self._status)
        yield from _store(self._status)
        yield from _consumers(self._status)
        yield from _nats(self._status)
        yield from _unpublished(self._status)
        yield from _server(self._status)
        yield from _lanes(self._status)


def _totals(status: v.Status) -> Iterable[Metric]:
    gauges = {
        "everkept_messages": status.messages,
        "everkept_episodes": status.episodes,
        "everkept_facts": status.facts,
        "everkept_backlog_due": status.backlog_due,
        "everkept_backlog_armed": status.backlog_armed,
        "everkept_oldest_due_seconds": status.oldest_due_s or 0.0,
        "everkept_dead_letters": len(status.given_up),
        "everkept_stuck_jobs": len(status.stuck),
    }
    for name, value in gauges.items():
        yield GaugeMetricFamily(name, METRICS[name], value=value)
    counters = {
        "everkept_refused_finishes_total": status.refused_finishes,
        "everkept_asked_again_total": status.asked_again,
    }
    for name, value in counters.items():
        yield CounterMetricFamily(name.removesuffix("_total"), METRICS[name], value=value)


def _stages(status: v.Status) -> Iterable[Metric]:
    stages = _gauge("everkept_episode_stages", "summary", "facts")
    dead = 0
    for states, count in status.stages.items():
        summary, _, facts = states.partition("/")
        stages.add_metric([summary, facts], count)
        dead += count if "dead" in (summary, facts) else 0
    yield stages
    yield GaugeMetricFamily("everkept_dead", METRICS["everkept_dead"], value=dead)
    seconds = _gauge("everkept_stage_seconds", "stage", "quantile")
    for timing in status.timings:
        for quantile, value in (("0.5", timing.p50_s), ("0.95", timing.p95_s)):
            if value is not None:
                seconds.add_metric([timing.stage, quantile], value)
    yield seconds


def _checks(status: v.Status) -> Iterable[Metric]:
    failures, checks = _gauge("everkept_failures_1h", "stage"), _gauge("everkept_check_ok", "check")
    for check in status.checks:
        checks.add_metric([check.name], float(check.ok))
        if check.name in _FAILURES:
            failures.add_metric([_FAILURES[check.name]], check.value)
    yield failures
    yield checks


def _workers(status: v.Status) -> Iterable[Metric]:
    yield GaugeMetricFamily("everkept_workers", METRICS["everkept_workers"], value=len(status.workers))
    running = sum(worker.running for worker in status.workers)
    yield GaugeMetricFamily("everkept_jobs_running", METRICS["everkept_jobs_running"], value=running)
    circuits = _gauge("everkept_provider_circuit_closed", "provider")
    for provider in status.providers:
        circuits.add_metric([provider.name], float(provider.circuit == "closed"))
    yield circuits


def _store(status: v.Status) -> Iterable[Metric]:
    yield GaugeMetricFamily(
        "everkept_store_bytes", METRICS["everkept_store_bytes"], value=status.store.get("size_bytes") or 0
    )
    failing = bool(status.store.get("failing") or status.store.get("degraded"))
    yield GaugeMetricFamily("everkept_store_failing", METRICS["everkept_store_failing"], value=float(failing))
    folder = Path(status.store.get("path") or "").parent
    if folder.is_absolute() and folder.is_dir():
        free = shutil.disk_usage(folder).free
        yield GaugeMetricFamily("everkept_store_free_bytes", METRICS["everkept_store_free_bytes"], value=free)
    yield from _slow(status)


def _consumers(status: v.Status) -> Iterable[Metric]:
    lag = _gauge("everkept_consumer_lag", "project", "consumer")
    well, parked = (_gauge(f"everkept_webhook_{name}", "project", "webhook") for name in ("ok", "parked"))
    for each in status.consumers:
        lag.add_metric([each.project, each.name], each.lag)
        if each.state is not None:
            labels = [each.project, each.name.removeprefix("webhook:")]
            well.add_metric(labels, float(each.state == "active" and each.trouble is None))
            parked.add_metric(labels, each.parked)
    yield from (lag, well, parked)


def _nats(status: v.Status) -> Iterable[Metric]:
    """Without a value where this process does not attend to NATS."""
    nats = status.nats
    names = ("connected", "pending", "unacknowledged", "redelivered")
    for name in names:
        yield _one(f"everkept_nats_{name}", None if nats is None else float(getattr(nats, name)))


def _unpublished(status: v.Status) -> Iterable[Metric]:
    """Without a value where nothing is published. Whichever process is asked, it tells of all of them."""
    behind = status.unpublished
    yield _one("everkept_nats_unpublished", None if behind is None else behind.changes)
    yield _one("everkept_nats_unpublished_seconds", None if behind is None else behind.oldest_s or 0.0)


def _server(status: v.Status) -> Iterable[Metric]:
    """Without a value where the store is a file."""
    server = status.server
    gauges = {
        "everkept_server_connections": "connections", "everkept_server_connections_max": "connections_max",
        "everkept_processes": "processes", "everkept_process_connections_max": "each_max",
    }  # fmt: skip
    for name, field in gauges.items():
        yield _one(name, None if server is None else getattr(server, field))
    yield _one("everkept_listening", None if server is None else float(server.deaf is None))
    for field in ("deadlocks", "conflicts"):
        name = f"everkept_{field}_total"
        value = None if server is None else getattr(server, field)
        yield CounterMetricFamily(name.removesuffix("_total"), METRICS[name], value=value)


def _lanes(status: v.Status) -> Iterable[Metric]:
    """By rank and not by name: there may be as many lanes as subjects."""
    lag = _gauge("everkept_lane_lag_seconds", "rank")
    for rank, lane in enumerate(status.lanes[:LANES_MAX], 1):
        lag.add_metric([str(rank)], lane["oldest_due_s"])
    yield lag


def _one(name: str, value: float | None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, METRICS[name], value=value)


def _slow(status: v.Status) -> Iterable[Metric]:
    slow = _gauge("everkept_store_slow_seconds", "function")
    for function, took_ms in status.store.get("slow_ms", {}).items():
        slow.add_metric([function], took_ms / 1000)
    yield slow


def _gauge(name: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, METRICS[name], labels=list(labels))
