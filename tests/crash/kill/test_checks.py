"""The tester, tested: a store that is right has no violation, and each way of being wrong is named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from everkept.prove import checks
from everkept.prove.checks import check, check_drained
from everkept.prove.grounds import DATABASE
from everkept.prove.record import Record, read_record
from everkept.prove.scenarios import SCENARIOS
from everkept.prove.stage import RECORD, Cast, Stage
from everkept.prove.torture import silence
from everkept.store.sqlite import choose_driver, open_file


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which everything has happened, drained, and its record."""
    folder = tmp_path_factory.mktemp("worked")
    with silence():
        stage = Stage(folder, Cast())
        SCENARIOS["erase-thread"].prepare(stage)
        stage.erase("thread", "walk")
        stage.end("chat")
        stage.drain()
        stage.close()
    return folder


@pytest.fixture
def folder(worked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(worked, tmp_path / "copy"))


def damage(folder: Path, *statements: str) -> None:
    raw = choose_driver().module.connect(str(folder / DATABASE), isolation_level=None)
    for statement in statements:
        raw.execute(statement)
    raw.close()


def found(folder: Path) -> set[str]:
    return {v.guarantee for v in check_drained(folder / DATABASE, folder / RECORD)}


def test_check_finds_nothing_where_all_is_right(worked: Path) -> None:
    assert check(worked / DATABASE, worked / RECORD) == []
    assert check_drained(worked / DATABASE, worked / RECORD) == []


CHAT = "(select id from streams where name = 'chat')"
DAMAGES = {
    "a message is gone": ("G1", "delete from events where seq = 1 and erased_at is null"),
    "a message was changed": ("G1", f"update events set content = 'other' where stream_id = {CHAT} and seq = 1"),
    "a message is there twice": (
        "G2",
        f"update events set content = (select content from events where stream_id = {CHAT} and seq = 1)"
        f" where stream_id = {CHAT} and seq = 2",
    ),
    "the counter of a stream is wrong": ("G1", f"update streams set last_seq = last_seq + 1 where id = {CHAT}"),
    "a timer is gone": (
        "G3",
        f"update streams set covered_seq = 0 where id = {CHAT}; delete from jobs where kind = 'open_window'",
    ),
    "a summary is gone, and its job done": (
        "G3",
        "update slices set summary_at = null; update windows set summary_at = null",
    ),
    "facts are gone from their window": ("G6", "update windows set facts_at = null where id = 1"),
    "a passage is gone": ("G4", "delete from vectors; delete from passages where kind = 'turn' and seq = 1"),
    "a full-text row is gone": ("G4", "delete from passage_text where rowid = 1"),
    "a full-text row lies in another scope": ("G15", "update passage_text set scope = 'p9 s9 kturn' where rowid = 1"),
    "a window is gone": ("G5", f"update streams set covered_seq = covered_seq - 1 where id = {CHAT}"),
    "a slice is gone": ("G5", "delete from slices where window_id = 1"),
    "a job is leased": (
        "G7",
        "update jobs set state = 'leased', owner = 'w', lease_until = 1, crashes = 1"
        " where id = (select min(id) from jobs)",
    ),
    "a job still waits": ("G3", "update jobs set state = 'waiting' where id = (select min(id) from jobs)"),
    "a lane counts a job that there is not": ("G13", "update lanes set running = 1 where id = 1"),
    "a project counts other jobs than its lanes": ("G13", "update lane_groups set ready_model = ready_model + 1"),
    "a fact is there twice": (
        "G6",
        "create temp table again as select * from facts where window_id is not null limit 1;"
        "update again set id = 9999, draft_key = 'other';"
        "insert into facts select * from again",
    ),
    "a fact is retired by hand alone": ("G6", "update facts set retired_by_hand = 1 where id = 1"),
    "a fact is retired by hand and not announced": (
        "G11",
        "update facts set retired_by_hand = 1, live = 0, retired_at = 1, retired_because = 'by hand'"
        " where 'fct_' || id not in (select ref from changes where kind = 'fact.changed')",
    ),
    "a fact is unsettled without a conflict": ("G6", "update facts set unsettled = 1 where id = 1"),
    "a fact by hand is gone": (
        "G1",
        "delete from passages where kind = 'fact' and ref_id in (select id from facts where window_id is null);"
        "delete from facts where window_id is null",
    ),
    "an erased message is back": (
        "G10",
        "update events set content = 'I like walking along the river Douro.' where erased_at is not null",
    ),
    "the tombstone of an erase is gone": ("G10", "delete from erasures"),
    "something is noted as forgotten for no reason": (
        "G10",
        "insert into forgotten select id, 'x', true, false from windows where start_seq > 1",
    ),
    "an erased text stands in a summary": (
        "G10",
        "update windows set summary = summary || 'I like walking along the river Douro.' where id = 1",
    ),
    "a change is gone": ("G11", "delete from changes where seq = 3"),
    "a window is announced twice": ("G11", "update changes set kind = 'episode.opened', ref = 'epi_1' where seq = 1"),
    "a cursor moved back": ("G11", "update consumers set cursor = 1"),
    "a cursor moved on by itself": ("G11", "update consumers set cursor = 3"),
    "a cursor is beyond the end": ("G11", "update consumers set cursor = 9999"),
    "the full-text index is damaged": ("G1", "update passage_text_data set block = x'00' where id = 1"),
    "a row refers to nothing": ("G1", "update facts set entity_id = 9999 where id = 1"),
}  # fmt: skip


@pytest.mark.parametrize(("guarantee", "sql"), DAMAGES.values(), ids=[name.replace(" ", "-") for name in DAMAGES])
def test_check_names_what_is_wrong(folder: Path, guarantee: str, sql: str) -> None:
    damage(folder, "pragma foreign_keys = off", *sql.split(";"))
    assert guarantee in found(folder)


def test_check_finds_a_damaged_full_text_index_with_an_older_sqlite(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own check did not look at it before 3.45, and FTS5's wants to write."""
    monkeypatch.setattr(checks, "CHECKS_TEXT", (99, 0, 0))
    assert found(folder) == set()
    damage(folder, "delete from passage_text_content where id = 1")
    assert "G1" in found(folder)


@pytest.mark.parametrize("at", [0, 4096], ids=["header", "page"])
def test_check_names_a_file_that_cannot_be_read(folder: Path, at: int) -> None:
    file = folder / DATABASE
    with file.open("r+b") as pages:
        pages.seek(at)
        pages.write(b"\xa5" * (file.stat().st_size - at))
    assert {(v.guarantee, v.what) for v in check(file, folder / RECORD)} >= {("G1", "the file is damaged")}


def test_check_raises_what_is_not_the_files_fault(folder: Path) -> None:
    damage(folder, "alter table lanes rename to streets")
    with pytest.raises(choose_driver().module.OperationalError, match="no such table"):
        check(folder / DATABASE)


def test_check_waits_for_no_writer(folder: Path) -> None:
    """A server is writing: the store is looked at all the same, and the server is not kept waiting."""
    writer = open_file(choose_driver(), folder / DATABASE)
    writer.execute("begin immediate")
    writer.execute("update projects set name = 'unsaid'")
    assert check(folder / DATABASE, folder / RECORD) == []
    writer.execute("commit")
    writer.close()


def test_check_finds_a_paid_reply_that_is_not_kept(folder: Path) -> None:
    record = Record(folder / "paid.jsonl")
    for _ in range(50):
        record.told(record.asked("question", step="facts"), reply="{}")
    assert [v.guarantee for v in check(folder / DATABASE, record)] == ["G8"]
    assert check(folder / DATABASE, record, deaths=50) == []
    record.close()


# ---- the record


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    made = Record(tmp_path / "record.jsonl")
    yield made
    made.close()


def append(record: Record, thread: str, *texts: str, key: str | None = None) -> str:
    messages = [{"key": None if key is None else f"{key}-{n}", "content": t} for n, t in enumerate(texts)]
    return record.asked("append", project="default", thread=thread, subject="ana", messages=messages)


def test_record_reads_back_what_was_asked_told_and_refused(record: Record) -> None:
    told, refused, open_ = append(record, "a", "one"), append(record, "b", "two"), append(record, "c", "three")
    record.told(told, seqs=[1])
    record.refused(refused, "key_conflict")
    asked = {a.id: a for a in record.read().asked}
    assert (asked[told].told, asked[told].told_line) == ({"seqs": [1]}, 3)
    assert asked[refused].refused == "key_conflict"
    assert (asked[open_].told, asked[open_].refused) == (None, None)
    assert [a.id for a in record.read().of("append")] == [told, open_]


def test_record_leaves_out_a_line_that_was_cut(record: Record) -> None:
    append(record, "a", "one")
    with record.path.open("ab") as file:
        file.write(b'{"asked": "cut')
    assert len(read_record(record.path).asked) == 1


def test_record_refuses_fields_that_are_not_the_verbs(record: Record) -> None:
    with pytest.raises(ValueError, match="append has the fields"):
        record.asked("append", project="default")


def test_check_lets_an_asking_without_an_answer_be_there_or_not(folder: Path, record: Record) -> None:
    append(record, "chat", "I live in Lisbon and I like tea.")
    append(record, "chat", "This was never stored.")
    assert check(folder / DATABASE, record) == []


def test_check_finds_what_was_told_and_is_not_there(folder: Path, record: Record) -> None:
    record.told(append(record, "chat", "This was never stored."), seqs=[9])
    assert {v.guarantee for v in check(folder / DATABASE, record)} == {"G1"}


def test_check_finds_half_a_batch(folder: Path, record: Record) -> None:
    append(record, "chat", "I live in Lisbon and I like tea.", "This was never stored.")
    assert [v.what for v in check(folder / DATABASE, record)] == ["1 of a batch of 2 are there"]


def test_check_finds_a_refused_message_that_is_there(folder: Path, record: Record) -> None:
    record.told(append(record, "chat", "This lies in no window yet."), seqs=[4])
    refused = append(record, "chat", "I now live in Porto, which is north.")
    record.refused(refused, "key_conflict")
    assert [v.guarantee for v in check(folder / DATABASE, record)] == ["G2"]
