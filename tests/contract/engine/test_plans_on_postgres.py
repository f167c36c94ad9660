"""PostgreSQL finds what a worker's round and a recall ask for through its indexes, however much there is.

Here with 23,000 jobs of 10,000 projects; `python -m tests.bench.postgres_plans` asks the same of 1,100,000.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest
from tests.bench.postgres_plans import Plan, everything, explain, load
from tests.postgres import new_database

from everkept.ports.clock import SystemClock
from everkept.store.jobs import promote_due
from everkept.store.postgres import PostgresDatabase
from everkept.store.reach import Across

pytestmark = pytest.mark.only_on("postgresql", reason="SQLite's plans are looked at where its statements are")


@pytest.fixture(scope="module")
def url() -> str:
    made = new_database()
    PostgresDatabase(made).prepare(SystemClock())
    load(made, done=20_000, waiting=3_000, passages=20_000)
    return made


@pytest.fixture(scope="module")
def plans(url: str) -> list[Plan]:
    return explain(url, SystemClock(), everything, small=True)


def faults(plans: Sequence[Plan]) -> list[str]:
    return [f"{plan.function} {plan.fault}: {plan.sql}" for plan in plans if plan.fault]


def test_every_statement_of_a_round_and_of_a_recall_reads_few_pages_and_walks_through_no_large_table(
    plans: list[Plan],
) -> None:
    assert {plan.function for plan in plans} >= {
        "promote_due", "claim", "renew_leases", "expire_leases", "finish", "find_postings", "document_frequencies",
        "load_hits", "shown_passages", "load_terms",
    }  # fmt: skip
    assert faults(plans) == []


def test_a_common_word_is_read_in_the_project_that_asks_alone(url: str) -> None:
    """Of 20,000 passages with it, the project has one or two."""
    asked = "explain (analyze, format json) select passage_id from passage_index where lexemes @@ %s::tsquery"
    with psycopg.connect(url) as raw:
        row = raw.execute(asked, ("('i:p2') & ('s:common' | 'p:common' | 'd:common')",)).fetchone()
    assert row is not None
    scan = row[0][0]["Plan"]
    assert scan["Node Type"] == "Bitmap Heap Scan"
    assert scan["Rows Removed by Index Recheck"] == 0
    assert scan["Actual Rows"] in (1, 2)


def test_a_lost_index_is_seen(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("drop index ix_jobs_due")
    lost = explain(url, SystemClock(), lambda run: run(Across.QUEUE, promote_due, 200), small=True)
    assert any("walks through jobs" in fault for fault in faults(lost))
