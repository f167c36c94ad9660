"""Facts that a hand had retired, while no row of them is there: an erase took it, and its window is derived again.

The erase of a message deletes every fact of its window, because they were made with the message in view. Those that
somebody had forgotten leave a mark here, and the same statement of the same window comes back forgotten (G9, G16). A
mark is a keyed hash: it says nothing of what was forgotten, and goes with its window.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from sqlalchemy import text

from everkept.store.connection import Connection

_SECRET = text("select secret from projects where id = :project")
_RETIRED = text("""
select window_id, draft_key from facts where id in (select value from json_each(:ids))
  and retired_by_hand and window_id is not null and not (said_stream = :stream and said_seq = :seq)""")
_ADD = text("insert into forgotten(window_id, statement) values(:window, :statement) on conflict do nothing")
_OF_WINDOW = text("select statement from forgotten where window_id = :window")
_TAKE = text("delete from forgotten where window_id = :window and statement = :statement")
_DELETE = text("delete from forgotten where window_id in (select value from json_each(:windows))")


def mark_forgotten(conn: Connection, project: int, facts: Sequence[int], *, erased: tuple[int, int]) -> None:
    """Before these facts are deleted: leave a mark for each that a hand had retired.

    None for what the `erased` event itself said, (stream, seq): nobody can derive it again.
    """
    rows = conn.rows(_RETIRED, {"ids": json.dumps(list(facts)), "stream": erased[0], "seq": erased[1]})
    if not rows:
        return
    secret = bytes(conn.scalar(_SECRET, {"project": project}))
    conn.many(_ADD, [{"window": window, "statement": _statement(key, secret)} for window, key in rows])


def take_forgotten(conn: Connection, project: int, window: int, draft_keys: Sequence[str]) -> set[str]:
    """Those of a window's drafts that were forgotten before. Their marks go: the rows now say it themselves."""
    marks = {r[0] for r in conn.rows(_OF_WINDOW, {"window": window})}
    if not marks:
        return set()
    secret = bytes(conn.scalar(_SECRET, {"project": project}))
    found = {key: mark for key in draft_keys if (mark := _statement(key, secret)) in marks}
    conn.many(_TAKE, [{"window": window, "statement": mark} for mark in sorted(set(found.values()))])
    return set(found)


def delete_marks(conn: Connection, windows: Sequence[int]) -> None:
    conn.run(_DELETE, {"windows": json.dumps(list(windows))})


def _statement(draft_key: str, secret: bytes) -> str:
    return hashlib.blake2b(draft_key.encode(), key=secret[:64], digest_size=16).hexdigest()
