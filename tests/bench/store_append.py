"""The store alone: `append_events`, 100 messages a commit, beside plain SQLite with the same full-text columns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.corpus import make_texts
from tests.bench.report import Figure, Goal

from everkept.capture.messages import Given, check_messages
from everkept.config import Settings, load
from everkept.store.projects import ProjectRow, ensure_project
from everkept.store.sqlite import choose_driver, open_file
from everkept.store.store import Store
from everkept.store.streams import Append, append_events

BATCH = 100
_PLAIN = """
create table messages(id integer primary key, thread text not null, seq integer not null, role text not null,
  content text not null, at integer not null, key text unique);
create virtual table words using fts5(scope, speaker, own, said, before, after,
  tokenize = "unicode61 remove_diacritics 0 tokenchars '_-./:@&+#'");
"""


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    rounds, commits = (3, 5) if quick else (9, 10)
    store = open_store(home / "store.db")
    gc.collect()
    gc.freeze()  # as the server does
    try:
        settings, project = load({}, home), make_project(store)
        plain = _open_plain(home / "plain.db")
        mine, peer, checking = [], [], []
        for round_ in range(rounds + 1):
            start = time.process_time()
            batches = prepare(make_texts(BATCH * commits, seed=round_), project, settings, thread=f"t{round_}")
            checking.append(BATCH * commits / (time.process_time() - start))
            mine.append(_rate(batches, lambda batch: store.write_now(append_events, batch)))
            peer.append(_rate(batches, lambda batch: _insert(plain, batch)))
        plain.close()
    finally:
        gc.unfreeze()
        store.close()
    ours, theirs = median(mine[1:]), median(peer[1:])
    yield Figure(
        name=f"set-wise, {BATCH} a commit",
        value=ours,
        unit="messages/s",
        peer="plain SQLite, same FTS columns",
        peer_value=theirs,
        goal=Goal(of="ratio", sense="least", bound=0.5),
    )
    yield Figure(
        name="checked and analysed (processor time)",
        value=median(checking[1:]),
        unit="messages/s",
        peer="plain SQLite, same FTS columns",
        peer_value=theirs,
    )


def open_store(file: Path) -> Store:
    store = Store(file)
    store.open()
    return store


def make_project(store: Store, name: str = "default") -> ProjectRow:
    return store.write_now(ensure_project, name, bytes(32))


def prepare(
    texts: Sequence[str], project: ProjectRow, settings: Settings, *, thread: str, subject: str = "ana"
) -> list[Append]:
    """Batches for one thread, checked and analysed as the doors' requests are."""
    found = []
    for start in range(0, len(texts), BATCH):
        given = [
            Given(role="assistant" if i % 2 else "user", content=t) for i, t in enumerate(texts[start : start + BATCH])
        ]
        messages = check_messages(
            given, thread=thread, key=f"{thread}-{start}", secret=project.secret, now_us=time.time_ns() // 1000
        )
        found.append(Append(project=project.id, thread=thread, subject=subject, messages=messages, base=settings))
    return found


def _rate(batches: Sequence[Append], write: Callable[[Append], object]) -> float:
    start = time.perf_counter()
    for batch in batches:
        write(batch)
    return sum(len(batch.messages) for batch in batches) / (time.perf_counter() - start)


def _open_plain(file: Path) -> Any:
    raw = open_file(choose_driver(), file)
    raw.execute("pragma wal_autocheckpoint = 1000")  # SQLite's default; Everkept's writer has its own
    raw.executescript(_PLAIN)
    return raw


def _insert(raw: Any, batch: Append) -> None:
    """One row a message and its full-text row: what somebody would write who wants no more than that."""
    rows = [(batch.thread, i, m.role, m.content, m.occurred_at_us, m.key_hash) for i, m in enumerate(batch.messages)]
    said = [m.analysed for m in batch.messages]
    before = ["", *[f"{a.speaker} {a.own}" for a in said[:-1]]]
    raw.execute("begin immediate")
    first = raw.execute("select coalesce(max(id), 0) + 1 from messages").fetchone()[0]
    raw.executemany("insert into messages(thread, seq, role, content, at, key) values(?, ?, ?, ?, ?, ?)", rows)
    raw.executemany(
        "insert into words(rowid, scope, speaker, own, said, before, after) values(?, ?, ?, ?, ?, ?, '')",
        [(first + i, f"t{batch.thread}", a.speaker, a.own, a.said, before[i]) for i, a in enumerate(said)],
    )
    raw.execute("commit")
