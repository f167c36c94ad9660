"""docs/operations.md: it draws the table of transitions, its SQL gives the verdicts of status, its names exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.stubs.worked_store import WorkedStore

from everkept.api.views import Status
from everkept.config import SETTINGS
from everkept.domain.jobs import TRANSITIONS
from everkept.doors.cli.commands import PANELS
from everkept.store import status
from everkept.store.status import read_status
from everkept.store.tables import metadata

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
QUERIES = dict(re.findall(r"```sql\n-- (\w+)\n(.*?);\n```", PAGE, re.DOTALL))
NOW = "strftime('%s', 'now') * 1000000"


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[WorkedStore]:
    store = WorkedStore(tmp_path)
    yield store
    store.close()


def nothing(worked: WorkedStore) -> None:
    pass


def old_work(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.clock.advance(302)


def young_work(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.clock.advance(301)


def failed_summary(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    worked.fail(worked.take("summarise_episode"), after_s=1)
    worked.clock.advance(2)
    worked.fail(worked.take("summarise_episode"), after_s=1)


def failed_and_mended_summary(worked: WorkedStore) -> None:
    failed_summary(worked)
    worked.clock.advance(2)
    worked.summarise()


def dead_extraction(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    worked.give_up(worked.take("extract_facts"))


def old_failures(worked: WorkedStore) -> None:
    dead_extraction(worked)
    worked.fail(worked.take("summarise_episode"))
    worked.clock.advance(3601)


def put_off(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    for error_class in status.NOT_A_FAILURE:
        worked.fail(worked.take("extract_facts"), error_class=error_class, after_s=1)
        worked.clock.advance(2)


CASES: dict[Callable[[WorkedStore], None], set[str]] = {
    nothing: set(), young_work: set(), old_work: {"due_work_old"}, failed_summary: {"episode_failures"},
    failed_and_mended_summary: {"episode_failures"}, dead_extraction: {"fact_failures"}, old_failures: {"due_work_old"},
    put_off: set(),
}  # fmt: skip
"""What happened → the checks that trip."""


@pytest.mark.parametrize("happened", CASES, ids=lambda f: f.__name__)
def test_the_sql_of_the_page_gives_the_verdicts_of_status(
    worked: WorkedStore, happened: Callable[[WorkedStore], None]
) -> None:
    happened(worked)
    found = worked.store.read_now(read_status, None, worked.settings).checks
    asked = {name: worked.sql(_at(query, worked.clock.now_us()))[0] for name, query in QUERIES.items()}

    verdicts = {name: (value, bool(trips)) for name, (value, trips) in asked.items()}
    assert {c.name: (c.value, not c.ok) for c in found} == verdicts
    assert {c.name for c in found if not c.ok} == CASES[happened]


def _at(query: str, now: int) -> str:
    assert NOW in query
    return query.replace(NOW, str(now))


def test_the_drawing_is_the_table_of_transitions() -> None:
    drawn = re.findall(r"^    (\S+) --> (\S+): (\w+)$", PAGE, re.MULTILINE)

    assert [("[*]" if state == "new" else state, after, what) for (state, what), after in TRANSITIONS.items()] == drawn


def test_every_state_of_a_job_is_explained() -> None:
    for state in set(TRANSITIONS.values()):
        assert f"| `{state}` |" in PAGE


def test_every_field_of_status_is_explained() -> None:
    for field in Status.model_fields:
        assert f"| `{field}` |" in PAGE


def test_the_page_names_only_settings_that_exist() -> None:
    groups = {key.partition(".")[0] for key in SETTINGS if "." in key}
    named = {n for n in re.findall(r"`([a-z]+\.[a-z_]+)`", PAGE) if n.partition(".")[0] in groups}

    assert len(named) > 10
    assert named - SETTINGS.keys() - {"store.path", "store.failing"} == set()


def test_the_page_names_only_commands_that_exist() -> None:
    known = {command.name for commands in PANELS.values() for command in commands}

    assert set(re.findall(r"(?:`|^|\n)everkept (\w+)", PAGE)) <= known


def test_the_classes_left_out_are_those_of_status() -> None:
    for listed in re.findall(r"not in \(([^)]*)\)", PAGE):
        assert tuple(re.findall(r"'(\w+)'", listed)) == status.NOT_A_FAILURE


def test_the_columns_of_the_sql_exist() -> None:
    jobs = metadata.tables["jobs"]

    assert {"state", "due_at", "kind", "history", "finished_at"} <= set(jobs.columns.keys())
    assert all(str(text(query)) for query in QUERIES.values())
    assert len(QUERIES) == 3
