"""A scan of the whole store names every text that holds a secret, the rule and what erases it, and never the secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.postgres import TestedDatabase, new_database
from tests.stubs.agent_desk import Desk, a_checkout, a_desk

from everkept.api import secrets
from everkept.api.secrets import SecretScan, scan_secrets
from everkept.errors import NotFound, StoreNotSupported
from everkept.ports.clock import SystemClock
from everkept.store.diagnosis import texts
from everkept.store.sqlite_database import SqliteDatabase

TOKEN = "ghp_" + "x7Kd92LmQp4RtVw8Zs" + "Yb3NcHf6JgTa1EuOi5"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        app = a_checkout(tmp_path / "app")
        made.work("claude-code", "s1", app)
        made.page(app, "Deploying", "With make ship.")
        assert made.start("codex", "s2", app)
        yield made


def scan(desk: Desk) -> SecretScan:
    return scan_secrets(desk.app.parts.store.database, SystemClock())


def plant(desk: Desk, statement: str) -> None:
    """As an earlier version, with fewer rules, may have kept it."""
    planted = statement.replace("TOKEN", f"'use {TOKEN} here'")
    desk.app.parts.store.write_now(lambda conn: conn.raw.execute(planted))


def test_a_store_without_secrets_has_none(desk: Desk) -> None:
    found = scan(desk)
    assert (found.places, found.found) == (0, [])
    assert found.texts > 5


@pytest.mark.parametrize(
    ("statement", "kind", "id_", "erase"),
    [
        ("update events set content = TOKEN where seq = 2", "message", "evt_1_2", "everkept erase --event evt_1_2"),
        ("update page_versions set body = TOKEN where page_id = 1", "page", "pag_1@1",
         "everkept erase --session ses_1"),
        ("update page_versions set body = TOKEN where page_id = 2", "page", "pag_2@1", "write the page without it"),
        ("update windows set summary = TOKEN", "summary", "epi_1", texts.RESTS_ON),
        ("update handoffs set body = TOKEN", "handoff", "hnd_1", texts.RESTS_ON),
        ("update offers set body = TOKEN", "offer", "off_1", texts.RESTS_ON),
        ("insert into replies(project_id, work, step, version, model, ask, request_hash, asked_at, text)"
         " select 1, 'w', 's', 'v', 'm', 1, secret, 1, TOKEN from projects where id = 1",
         "reply", "reply 1", texts.RESTS_ON),
        ("""update events set metadata = '{"cwd": "' || TOKEN || '"}' where seq = 2""", "message", "evt_1_2",
         "everkept erase --event evt_1_2"),
        ("update sessions set cwd = TOKEN where stream_id = 1", "session", "ses_1", "everkept erase --session ses_1"),
        ("update sessions set agent = TOKEN where stream_id = 1", "session", "ses_1", "everkept erase --session ses_1"),
        ("update subjects set name = TOKEN where id = 1", "subject", "1",
         "everkept erase --subject use [redacted:github-pat] here"),
        ("update handoffs set acknowledged_by = TOKEN", "handoff", "hnd_1", texts.RESTS_ON),
        ("update project_aliases set value = TOKEN where kind = 'path'", "folder", "known by its path",
         "everkept erase --project"),
    ],
    ids=["message", "page of a session", "page by hand", "summary", "handoff", "offer", "reply", "metadata",
         "folder of a session", "agent", "subject", "who took a handoff up", "folder of a project"],
)  # fmt: skip
def test_a_secret_is_found_wherever_it_is_and_not_shown(
    desk: Desk, statement: str, kind: str, id_: str, erase: str
) -> None:
    plant(desk, statement)
    found = scan(desk)
    [place] = found.found
    assert (place.kind, place.id, sum(place.rules.values())) == (kind, id_, 1)
    assert place.erase.startswith(erase)
    assert TOKEN not in json.dumps(asdict(found))


def test_the_command_that_is_named_erases_it(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(desk, "update events set content = TOKEN where seq = 2")
    [place] = scan(desk).found
    assert place.erase == f"everkept erase --event evt_1_2 --project {place.project}"
    service = desk.service(tmp_path / "app")
    monkeypatch.setattr("everkept.api.erasing.WAIT_S", 0)  # the runner is stepped below
    desk.run(service.erase(event=place.id))
    desk.settle()
    assert scan(desk).places == 0


def test_no_name_or_detail_that_a_hook_tells_is_kept_with_a_secret(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / f"of-{TOKEN}")
    desk.hook(f"agent-{TOKEN}", "UserPromptSubmit", app, session_id="s3", prompt="Fix it", model=f"m {TOKEN}")
    desk.hook("claude-code", "SessionEnd", app, session_id="s3", reason=f"because {TOKEN}")
    desk.settle()
    assert {place.kind for place in scan(desk).found} <= {"folder", "project"}  # whose name says which it is
    kept = json.dumps(desk.rows("select agent, cwd, branch, model, title from sessions")
                      + desk.rows("select content, metadata from events"))  # fmt: skip
    assert "agent-[redacted:" in kept
    assert TOKEN not in kept


def test_a_reason_for_forgetting_and_a_fact_by_hand_are_looked_at(desk: Desk, tmp_path: Path) -> None:
    service = desk.service(tmp_path / "app")
    fact = desk.run(service.remember("The office is in Delft.", subject="me"))
    forgotten = desk.run(service.forget(fact.id, reason=f"it was {TOKEN}"))
    assert forgotten.retired_because == "it was [redacted:github-pat]"
    plant(desk, "update facts set retired_because = TOKEN")
    [place] = scan(desk).found
    assert (place.kind, place.id) == ("fact", fact.id)
    assert place.erase.startswith("everkept erase --subject me --project")


def test_more_than_can_be_listed_are_counted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "LISTED_MAX", 2)
    monkeypatch.setattr(texts, "ROWS_AT_ONCE", 3)
    plant(desk, "update events set content = TOKEN")
    found = scan(desk)
    assert len(found.found) == 2
    assert found.places == len(desk.rows("select 1 from events"))


@pytest.mark.only_on("sqlite", reason="a server without a store has a name of its own, below")
def test_without_a_store_there_is_nothing_to_scan(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no store"):
        scan_secrets(SqliteDatabase(tmp_path / "none.db"), SystemClock())


@pytest.mark.only_on("postgresql", reason="an empty database; a file without a store is above")
def test_a_database_without_a_store_has_nothing_to_scan() -> None:
    with pytest.raises(StoreNotSupported, match="no schema"):
        scan_secrets(TestedDatabase(new_database()), SystemClock())
