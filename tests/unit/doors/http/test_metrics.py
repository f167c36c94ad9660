from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.stubs.fake_service import FakeApplication

from everkept.doors.http.metrics import METRICS, render

MONITORING = Path(__file__).parents[4] / "monitoring"


def _samples(**changed: Any) -> dict[tuple[str, str], float]:
    status = asyncio.run(FakeApplication().services["default"].status()).model_copy(update=changed)
    families = text_string_to_metric_families(render(status).decode())
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_documented_metric_is_there_and_no_other() -> None:
    elsewhere = {"everkept_workers", "everkept_store_free_bytes"}  # a store in memory has no disk
    assert set(METRICS) - elsewhere <= {name for name, _ in _samples()} <= set(METRICS)


def test_the_disk_of_the_store_is_measured(tmp_path: Path) -> None:
    store = {"path": str(tmp_path / "everkept.db"), "size_bytes": 4096, "failing": "the disk is full"}
    samples = _samples(store=store)
    assert samples["everkept_store_bytes", ""] == 4096
    assert samples["everkept_store_failing", ""] == 1
    assert 0 < samples["everkept_store_free_bytes", ""] <= shutil.disk_usage(tmp_path).total


def test_every_metric_of_the_dashboard_and_the_alerts_is_there() -> None:
    for file in ("grafana-dashboard.json", "alerts.yml"):
        named = set(re.findall(r"\beverkept_[a-z0-9_]+", (MONITORING / file).read_text()))
        assert len(named) > 5, file
        assert named <= set(METRICS), file


def test_the_alerts_name_each_thing_that_needs_somebody() -> None:
    _, *rules = (MONITORING / "alerts.yml").read_text().split("- alert: ")
    assert [rule.split()[0] for rule in rules] == [
        "EverkeptDueWorkOld", "EverkeptEpisodeFailures", "EverkeptFactFailures", "EverkeptStuck", "EverkeptDeadLetters",
        "EverkeptCircuitOpen", "EverkeptDiskLow", "EverkeptStoreFailing",
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
