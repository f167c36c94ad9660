from __future__ import annotations

import asyncio
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.stubs.fake_service import FakeApplication

from everkept.api.views import Consumer, DatabaseServer, Nats, Unpublished
from everkept.doors.http.metrics import METRICS, render

MONITORING = Path(__file__).parents[4] / "monitoring"


NATS = Nats(
    server="nats.example:4222", connected=True, trouble=None, since=None, streams=[], pending=3, unacknowledged=2,
    redelivered=1,
)  # fmt: skip


SERVER = DatabaseServer(
    connections=40, connections_max=97, ours=18, processes=3, each_max=6, deadlocks=1, conflicts=2, deaf=None
)
UNPUBLISHED = Unpublished(projects=2, changes=7, oldest_s=12.5)
LANES = [{"project": "p", "subject": f"s{n}", "ready": 1, "running": 0, "oldest_due_s": 100.0 - n} for n in range(20)]


def _samples(**changed: Any) -> dict[tuple[str, str], float]:
    figures = {"nats": NATS, "server": SERVER, "unpublished": UNPUBLISHED, "lanes": LANES, **changed}
    status = asyncio.run(FakeApplication().services["default"].status()).model_copy(update=figures)
    families = text_string_to_metric_families(render(status).decode())
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_documented_metric_is_there_and_no_other() -> None:
    elsewhere = {"everkept_workers", "everkept_store_free_bytes"}  # a store in memory has no disk
    elsewhere |= {"everkept_consumer_lag", "everkept_webhook_ok", "everkept_webhook_parked"}  # and nobody follows it
    assert set(METRICS) - elsewhere <= {name for name, _ in _samples()} <= set(METRICS)


def test_the_disk_of_the_store_is_measured(tmp_path: Path) -> None:
    store = {"path": str(tmp_path / "everkept.db"), "size_bytes": 4096, "failing": "the disk is full"}
    samples = _samples(store=store)
    assert samples["everkept_store_bytes", ""] == 4096
    assert samples["everkept_store_failing", ""] == 1
    assert 0 < samples["everkept_store_free_bytes", ""] <= shutil.disk_usage(tmp_path).total


def test_nats_is_measured_where_this_process_attends_to_it() -> None:
    samples = _samples()
    assert samples["everkept_nats_connected", ""] == 1
    assert [samples[f"everkept_nats_{name}", ""] for name in ("pending", "unacknowledged", "redelivered")] == [3, 2, 1]
    down = _samples(nats=NATS.model_copy(update={"connected": False, "trouble": "connection refused"}))
    assert down["everkept_nats_connected", ""] == 0
    assert not any(name.startswith("everkept_nats") for name, _ in _samples(nats=None, unpublished=None))


def test_what_nats_lacks_is_measured_by_whoever_is_asked() -> None:
    samples = _samples(nats=None)
    assert (samples["everkept_nats_unpublished", ""], samples["everkept_nats_unpublished_seconds", ""]) == (7, 12.5)
    none = _samples(unpublished=UNPUBLISHED.model_copy(update={"changes": 0, "oldest_s": None}))
    assert none["everkept_nats_unpublished_seconds", ""] == 0


def test_a_database_server_is_measured_where_the_store_is_on_one() -> None:
    samples = _samples()
    figures = ("server_connections", "server_connections_max", "processes", "process_connections_max")
    assert [samples[f"everkept_{name}", ""] for name in figures] == [40, 97, 3, 6]
    totals = [samples[f"everkept_{name}_total", ""] for name in ("deadlocks", "conflicts")]
    assert [*totals, samples["everkept_listening", ""]] == [1, 2, 1]
    deaf = _samples(server=SERVER.model_copy(update={"deaf": "connection refused"}))
    assert deaf["everkept_listening", ""] == 0
    file = {name for name, _ in _samples(server=None)}
    assert not file & {f"everkept_{name}" for name in (*figures, "listening", "deadlocks_total", "conflicts_total")}


def test_lanes_are_measured_by_rank_however_many_tenants_wait() -> None:
    lags = {rank: value for (name, rank), value in _samples().items() if name == "everkept_lane_lag_seconds"}
    assert lags == {"1": 100, "2": 99, "3": 98, "4": 97, "5": 96}


def test_every_metric_of_the_dashboard_and_the_alerts_is_there() -> None:
    for file in ("grafana-dashboard.json", "alerts.yml"):
        named = set(re.findall(r"\beverkept_[a-z0-9_]+", (MONITORING / file).read_text()))
        assert len(named) > 5, file
        assert named <= set(METRICS), file


def test_the_alerts_name_each_thing_that_needs_somebody() -> None:
    _, *rules = (MONITORING / "alerts.yml").read_text().split("- alert: ")
    assert [rule.split()[0] for rule in rules] == [
        "EverkeptDueWorkOld", "EverkeptLaneLag", "EverkeptEpisodeFailures", "EverkeptFactFailures", "EverkeptStuck",
        "EverkeptDeadLetters", "EverkeptCircuitOpen", "EverkeptWebhookFailing", "EverkeptDiskLow",
        "EverkeptStoreFailing", "EverkeptConnectionsShort", "EverkeptDeadlocks", "EverkeptDeaf", "EverkeptNatsDown",
        "EverkeptNatsBehind",
    ]  # fmt: skip
    for rule in rules:
        assert [rule.count(f" {word}: ") for word in ("expr", "summary", "description")] == [1, 1, 1]
        assert rule.count("{severity: ") == 1


def test_each_panel_of_the_dashboard_asks_something() -> None:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    assert dashboard["uid"] == "everkept"
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 8
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_numbers_are_those_of_the_status() -> None:
    samples = _samples()
    assert samples["everkept_backlog_due", ""] == 1
    assert samples["everkept_backlog_armed", ""] == 2
    assert samples["everkept_oldest_due_seconds", ""] == 0
    assert samples["everkept_episode_stages", "dead,completed"] == 3  # facts, summary
    assert samples["everkept_dead", ""] == 3
    assert samples["everkept_dead_letters", ""] == 0
    assert samples["everkept_stuck_jobs", ""] == 0
    assert samples["everkept_store_failing", ""] == 0
    assert samples["everkept_refused_finishes_total", ""] == 5
    assert samples["everkept_failures_1h", "facts"] == 3
    assert samples["everkept_check_ok", "fact_failures"] == 0
    assert samples["everkept_provider_circuit_closed", "openai"] == 0


def test_a_webhook_that_fails_or_waits_for_a_hand_is_not_well() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    well = Consumer(
        project="default", name="webhook:crm", cursor=1, head=4, lag=3, oldest_at=at, kept=True, held_by=None,
        held_until=None, acked_at=at, created_at=at, state="active", trouble=None, parked=2,
    )  # fmt: skip
    others = (
        {"state": None, "name": "mirror"}, {"trouble": "it answered 500", "name": "webhook:ill"},
        {"state": "paused", "name": "webhook:off"},
    )  # fmt: skip
    samples = _samples(consumers=[well, *(well.model_copy(update=other) for other in others)])
    assert samples["everkept_consumer_lag", "mirror,default"] == 3
    assert [samples["everkept_webhook_ok", f"default,{name}"] for name in ("crm", "ill", "off")] == [1, 0, 0]
    assert samples["everkept_webhook_parked", "default,crm"] == 2
