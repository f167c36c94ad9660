from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families
from tests.stubs.fake_service import FakeApplication

from everkept.doors.http.metrics import METRICS, render


def _samples() -> dict[tuple[str, str], float]:
    status = asyncio.run(FakeApplication().services["default"].status())
    families = text_string_to_metric_families(render(status).decode())
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_documented_metric_is_there_and_no_other() -> None:
    assert set(METRICS) - {"everkept_workers"} <= {name for name, _ in _samples()} <= set(METRICS)


def test_numbers_are_those_of_the_status() -> None:
    samples = _samples()
    assert samples["everkept_backlog_due", ""] == 1
    assert samples["everkept_backlog_armed", ""] == 2
    assert samples["everkept_oldest_due_seconds", ""] == 0
    assert samples["everkept_episode_stages", "dead,completed"] == 3  # facts, summary
    assert samples["everkept_dead", ""] == 3
    assert samples["everkept_refused_finishes_total", ""] == 5
    assert samples["everkept_failures_1h", "facts"] == 3
    assert samples["everkept_check_ok", "fact_failures"] == 0
    assert samples["everkept_provider_circuit_closed", "openai"] == 0
