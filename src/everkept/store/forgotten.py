"""Facts that a hand had retired or pinned, while no row of them is there: an erase took it, and its window is derived
again.

The erase of a message deletes every fact of its window, because they were made with the message in view. Those that
somebody had forgotten or pinned leave a mark here, and the same statement of the same window comes back so (G9, G16). A
mark is a keyed hash: it says nothing of what was forgotten, and goes with its window.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.projects import all_secrets

_RETIRED = text("""
select window_id, draft_key, retired_by_hand, pinned from facts where id in (select value from numbers(:ids))
  and (retired_by_hand or pinned) and window_id is not null and not (said_stream = :stream and said_seq = :seq)""")
_ADD = text("""
insert into forgotten(window_id, statement, retired, pinned) values(:window, :statement, :retired, :pinned)
on conflict do nothing""")
_OF_WINDOW = text("select statement, retired, pinned from forgotten where window_id = :window")
_TAKE = text("delete from forgotten where window_id = :window and statement = :statement")
_DELETE = text("delete from forgotten where window_id in (select value from numbers(:windows))")


def mark_forgotten(conn: Connection, project: int, facts: Sequence[int], *, erased: tuple[int, int]) -> None:
    """Before these facts are deleted: leave a mark for each that a hand had retired or pinned.

    None for what the `erased` event itself said, (stream, seq): nobody can derive it again.
    """
    rows = conn.rows(_RETIRED, {"ids": json.dumps(list(facts)), "stream": erased[0], "seq": erased[1]})
    if not rows:
        return
    secret = all_secrets(conn, project)[0]
    conn.many(_ADD, [
        {"window": window, "statement": _statement(key, secret), "retired": retired, "pinned": pinned}
        for window, key, retired, pinned in rows
    ])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """What a hand had decided about a statement."""

    retired: bool = False
    pinned: bool = False


def take_forgotten(conn: Connection, project: int, window: int, draft_keys: Sequence[str]) -> dict[str, Mark]:
    """Of those drafts of a window that have one. Their marks go: the rows now say it themselves."""
    marks = {r[0]: Mark(bool(r[1]), bool(r[2])) for r in conn.rows(_OF_WINDOW, {"window": window})}
    if not marks:
        return {}
    secrets = all_secrets(conn, project)
    found = {key: mark for key in draft_keys for s in secrets if (mark := _statement(key, s)) in marks}
    conn.many(_TAKE, [{"window": window, "statement": mark} for mark in sorted(set(found.values()))])
    return {key: marks[mark] for key, mark in found.items()}


def delete_marks(conn: Connection, windows: Sequence[int]) -> None:
    conn.run(_DELETE, {"windows": json.dumps(list(windows))})


def _statement(draft_key: str, secret: bytes) -> str:
    return hashlib.blake2b(draft_key.encode(), key=secret[:64], digest_size=16).hexdigest()
