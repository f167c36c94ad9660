"""Neural embeddings that were computed or paid for, by the hash of one text, never by batch (G8)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import text

from everkept.store.connection import Connection

_FIND = text("""
select text_hash, vector from embeddings where project_id = :project and model = :model and dim = :dim
  and hex(text_hash) in (select value from json_each(:hashes))""")
_KEEP = text("""
insert into embeddings(project_id, model, dim, text_hash, vector, created_at)
values(:project, :model, :dim, :hash, :vector, :now) on conflict do nothing""")


def find_embeddings(conn: Connection, project: int, model: str, dim: int, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """{hash of the text: float32 bytes} of those that are kept."""
    wanted = json.dumps([h.hex().upper() for h in hashes])
    rows = conn.rows(_FIND, {"project": project, "model": model, "dim": dim, "hashes": wanted})
    return {bytes(h): bytes(v) for h, v in rows}


def keep_embeddings(conn: Connection, project: int, model: str, dim: int, vectors: Mapping[bytes, bytes]) -> None:
    now = conn.now()
    conn.many(_KEEP, [
        {"project": project, "model": model, "dim": dim, "hash": h, "vector": v, "now": now} for h, v in vectors.items()
    ])  # fmt: skip
