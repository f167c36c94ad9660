"""A large store, written quickly: what the pages of the site are timed over.

Messages go in through `append_events`. What the worker would have made of them (episodes, facts, jobs, replies) and the
sessions, handoffs and pages of agents are written as rows, in the shape in which it leaves them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.corpus import make_texts
from tests.bench.store_append import make_project, open_store, prepare

from everkept.config import load
from everkept.store.connection import Connection
from everkept.store.store import Store
from everkept.store.streams import append_events

TURNS = 50
"""Messages of a thread; those after the last whole window wait for their timer."""
LONG = 1_000
"""Messages of the first thread."""
WINDOW = 12
SUBJECTS = 40
LARGE = "user_0"
"""Every fourth thread is this subject's."""
PREDICATES = ("lives in", "works at", "likes", "drinks", "owns", "plays")
DAY_US = 86_400_000_000


def fill(home: Path, *, events: int, jobs_wanted: int) -> None:
    """A home with `events` messages and events of sessions, and `jobs_wanted` jobs beside the timers of threads."""
    home.mkdir(parents=True, exist_ok=True)
    store = open_store(home / "everkept.db")
    try:
        _say(store, home, make_texts(events - events // 5))
        for write in (_write_windows, _write_facts, _write_replies, _write_pages):
            store.write_now(write)
        store.write_now(_write_sessions, events // 5)
        store.write_now(_write_jobs, jobs_wanted)
    finally:
        store.close()


def _say(store: Store, home: Path, texts: Sequence[str]) -> None:
    settings, project = load({}, home), make_project(store)
    start = n = 0
    while start < len(texts):
        turns, subject = TURNS if n else LONG, LARGE if n % 4 == 0 else f"user_{n % SUBJECTS}"
        for batch in prepare(texts[start : start + turns], project, settings, thread=f"thread-{n}", subject=subject):
            store.write_now(append_events, batch)
        start, n = start + turns, n + 1
    store.write_now(lambda conn: conn.raw.execute("update passages set embedded = 'all'"))


def _add(conn: Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Rows that all have the same columns."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        sql = f"insert into {table}({', '.join(rows[0])}) values({places})"
        conn.raw.executemany(sql, [tuple(row.values()) for row in rows])


def _write_windows(conn: Connection) -> None:
    now = conn.now()
    rows = []
    for stream, project, subject, last in conn.raw.execute("select id, project_id, subject_id, last_seq from streams"):
        for end in range(WINDOW, last + 1, WINDOW):
            at = now - (stream * 7 + end) % 2880 * 60_000_000
            rows.append({
                "project_id": project, "subject_id": subject, "stream_id": stream, "start_seq": end - WINDOW + 1,
                "end_seq": end, "prev_end": end - WINDOW or None, "opened_at": at, "opened_because": "idle",
                "summary": f"They talked about thread {stream} up to message {end}. " * 4,
                "learnings": "[]", "summary_at": at + 2_000_000, "facts_at": at + 3_000_000,
            })  # fmt: skip
    _add(conn, "windows", rows)
    conn.raw.execute("update streams set covered_seq = last_seq / ? * ?", (WINDOW, WINDOW))


def _write_facts(conn: Connection) -> None:
    """Two of each window: what is newer closes what is older where one value holds at a time."""
    now = conn.now()
    subjects = [row[0] for row in conn.raw.execute("select id from subjects where project_id = 1")]
    _add(conn, "entities", [
        {"project_id": 1, "subject_id": subject, "name": f"Person {n}", "norm": f"person {n}", "type": "person",
         "created_at": now} for subject in subjects for n in range(20)
    ])  # fmt: skip
    known: dict[int, list[int]] = {}
    for entity, subject in conn.raw.execute("select id, subject_id from entities order by id"):
        known.setdefault(subject, []).append(entity)
    rows: list[dict[str, Any]] = []
    evidence: list[dict[str, Any]] = []
    read = conn.raw.execute("select id, subject_id, stream_id, end_seq, opened_at from windows order by id").fetchall()
    first = conn.allocate("facts", 2 * len(read))
    for window, subject, stream, end, at in read:
        for place in range(2):
            n = window * 2 + place
            predicate, live = PREDICATES[n % len(PREDICATES)], n % 3 != 0
            rows.append({
                "id": first + len(rows), "project_id": 1, "subject_id": subject, "entity_id": known[subject][n % 20],
                "window_id": window,
                "draft_key": f"{window}.0.1.{place}", "predicate": predicate, "predicate_norm": predicate,
                "object": f"thing {n}", "object_norm": f"thing {n}", "text": f"Person {n % 20} {predicate} thing {n}.",
                "quote": f"thing {n}", "confidence": 0.9, "single_valued": None, "closes": False, "correction": False,
                "said_at": at, "said_stream": stream, "said_seq": end, "said_index": place, "recorded_at": at,
                "retired_at": None if live else at, "retired_because": None if live else "superseded", "live": live,
                "valid_from": at,
            })  # fmt: skip
            evidence.append({"fact_id": rows[-1]["id"], "stream_id": stream, "seq": end})
    _add(conn, "facts", rows)
    _add(conn, "fact_events", evidence)


def _write_sessions(conn: Connection, events: int) -> None:
    """Sessions of fifty events, each with its handoff."""
    now, count = conn.now(), max(1, events // TURNS)
    subject, lane = conn.raw.execute("select subject_id, lane_id from streams order by id limit 1").fetchone()
    first = conn.allocate("streams", count)
    made = range(first, first + count)
    _add(conn, "streams", [
        {"id": n, "project_id": 1, "subject_id": subject, "lane_id": lane, "kind": "session",
         "name": f"claude-code:session-{n}", "last_seq": TURNS, "last_recorded_at": now, "created_at": now}
        for n in made
    ])  # fmt: skip
    _add(conn, "sessions", [
        {"stream_id": n, "project_id": 1, "agent": "claude-code", "native_id": f"session-{n}", "origin": "import",
         "title": f"Mend part {n}", "cwd": "/code", "branch": "main", "genuine": 9, "started_at": now - n,
         "last_event_at": now} for n in made
    ])  # fmt: skip
    conn.raw.executemany(
        "insert into events(stream_id, seq, project_id, role, content, occurred_at, recorded_at, evidence, tokens,"
        " metadata) values(?, ?, 1, ?, ?, ?, ?, 1, 20, '{}')",
        [(n, seq, "assistant" if seq % 2 else "user", f"Look at part {seq} of {n}. " * 6, now, now)
         for n in made for seq in range(1, TURNS + 1)],
    )  # fmt: skip
    _add(conn, "handoffs", [
        {"project_id": 1, "stream_id": n, "worktree": "/code", "branch": "main", "title": f"Part {n}",
         "body": "The tests pass. " * 20, "open_ends": "[]", "state": "open" if n % 5 == 0 else "expired",
         "created_at": now - n, "expires_at": now + DAY_US} for n in made
    ])  # fmt: skip


def _write_replies(conn: Connection) -> None:
    now = conn.now()
    _add(conn, "replies", [
        {"project_id": 1, "subject_id": 1, "work": f"epi_{n}", "step": ("summary", "facts", "fold")[n % 3],
         "version": "1", "model": f"model-{n % 2}", "ask": 1, "request_hash": b"", "asked_at": now - n * 60_000_000,
         "text": "{}", "tokens_in": 900, "tokens_out": 80, "usd": 0.001, "replied_at": now - n * 60_000_000}
        for n in range(20_000)
    ])  # fmt: skip


def _write_pages(conn: Connection) -> None:
    """A thousand, each linking to three others; every tenth was written ten times."""
    now, count = conn.now(), 1_000
    subject = conn.raw.execute("select min(id) from subjects").fetchone()[0]
    first = conn.allocate("pages", count)
    kinds = ("note", "decision", "gotcha", "procedure", "concept")
    _add(conn, "pages", [
        {"id": first + n, "project_id": 1, "subject_id": subject, "kind": kinds[n % 5], "slug": f"page-{n}",
         "title": f"Page {n}", "version": _versions(n), "created_at": now, "updated_at": now - n}
        for n in range(count)
    ])  # fmt: skip
    _add(conn, "page_versions", [
        {"page_id": first + n, "version": version, "base": version - 1 or None, "title": f"Page {n}",
         "body": _body(n, count), "author": "hand", "content_hash": f"{n}.{version}", "created_at": now}
        for n in range(count) for version in range(1, _versions(n) + 1)
    ])  # fmt: skip
    _add(conn, "page_links", [
        {"page_id": first + n, "target": f"page-{target}"} for n in range(count) for target in _targets(n, count)
    ])  # fmt: skip


def _versions(page: int) -> int:
    return 10 if page % 10 == 0 else 1


def _targets(page: int, count: int) -> set[int]:
    return {0, (page * 7 + 1) % count, (page * 3 + 2) % count}


def _body(page: int, count: int) -> str:
    links = " ".join(f"[[page-{n}]]" for n in sorted(_targets(page, count)))
    return f"# Page {page}\n\n{'What is known of it. ' * 60}\n\nSee {links}.\n"


def _write_jobs(conn: Connection, wanted: int) -> None:
    lanes = [row[0] for row in conn.raw.execute("select id from lanes")]
    found = conn.raw.execute("select id from windows order by id").fetchall()
    work = [(kind, f"{window}.0") for (window,) in found for kind in ("summarise_episode", "extract_facts")]
    _add(conn, "jobs", list(_jobs(conn.now(), lanes, work[:wanted])))
    conn.raw.execute(
        "update lanes set ready_model = (select count(*) from jobs j where j.state = 'ready' and j.lane_id = lanes.id)"
    )
    conn.raw.execute("update lane_groups set ready_model = (select sum(ready_model) from lanes)")


def _jobs(now: int, lanes: Sequence[int], work: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Of twenty jobs one is dead, one waits after a failure, two are ready, the others are done."""
    for n, (kind, key) in enumerate(work):
        state = {0: "dead", 1: "waiting", 2: "ready", 3: "ready"}.get(n % 20, "done")
        failed = state in ("dead", "waiting")
        at = now - n * 1_000_000
        past = f'[{{"at": {at}, "class": "timeout", "error": "it took too long"}}]' if failed else "[]"
        yield {
            "project_id": 1, "kind": kind, "key": key, "lane_id": lanes[n % len(lanes)], "uses": "model",
            "args": "{}", "state": state, "due_at": at, "attempts": 3 if failed else 1,
            "error": "it took too long" if failed else None, "error_class": f"cause-{n % 7}" if failed else None,
            "history": past, "created_at": at - 5_000_000, "finished_at": at if state in ("dead", "done") else None,
        }  # fmt: skip
