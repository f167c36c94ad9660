"""Neural embeddings that were computed or paid for, by the hash of one text, never by batch (G8)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from sqlalchemy import text

from everkept.errors import SubjectMoved
from everkept.store.connection import Connection

INPUT_CHARS_MAX = 8_000
"""What a neural embedder is given of a text: about the 2,000 tokens that servers take; a message may be far longer."""


def own_input(said: str) -> str:
    return said[:INPUT_CHARS_MAX]


def around_input(*lines: str) -> str:
    """Lines of a conversation as one text, each with its even share of the room."""
    return "\n".join(line[: INPUT_CHARS_MAX // len(lines)] for line in lines)


_FIND = text("""
select text_hash, vector from embeddings where project_id = :project and model = :model and dim = :dim
  and text_hash in (select value from words(:hashes))""")
_KEEP = text("""
insert into embeddings(project_id, model, dim, text_hash, vector, created_at)
values(:project, :model, :dim, :hash, :vector, :now) on conflict do nothing""")


def find_embeddings(conn: Connection, project: int, model: str, dim: int, hashes: Sequence[str]) -> dict[str, bytes]:
    """{hash of the text: float32 bytes} of those that are kept."""
    wanted = json.dumps(list(hashes))
    rows = conn.rows(_FIND, {"project": project, "model": model, "dim": dim, "hashes": wanted})
    return {h: bytes(v) for h, v in rows}


_FORGET_OTHERS = tuple(
    text(f"""
delete from embeddings where (project_id, model, dim, text_hash) in (
  select project_id, model, dim, text_hash from embeddings
  where project_id = :project and model {side} :model limit :limit)""")
    for side in "<>"
)


def forget_other_embeddings(conn: Connection, project: int, model: str, limit: int) -> int:
    """Delete some of what other embedders than `model` ('' = none is used) computed for the project; how many."""
    gone = 0
    for statement in _FORGET_OTHERS:  # a seek each, where `<>` would walk everything that is kept
        gone += conn.run(statement, {"project": project, "model": model, "limit": limit - gone})
    return gone


_ERASURES = text("select coalesce(max(id), 0) from erasures where project_id = :project")


def last_erasure(conn: Connection, project: int) -> int:
    """Which erase was the last one in the project: read together with the texts that are embedded."""
    return int(conn.scalar(_ERASURES, {"project": project}))


def keep_embeddings(
    conn: Connection, project: int, model: str, dim: int, vectors: Mapping[str, bytes], erasure: int
) -> None:
    """Keep what was computed or paid for. Raises SubjectMoved where something of the project was erased since."""
    if last_erasure(conn, project) != erasure:
        raise SubjectMoved("something of the project was erased while its texts were embedded; the job runs again")
    now = conn.now()
    conn.many(_KEEP, [
        {"project": project, "model": model, "dim": dim, "hash": h, "vector": v, "now": now} for h, v in vectors.items()
    ])  # fmt: skip


_EMBEDDERS = text("""
select model, dim from embeddings where project_id = :project and (model, dim) > (:model, :dim)
order by model, dim limit 1""")
_FORGET = text("""
delete from embeddings where project_id = :project and model = :model and dim = :dim and text_hash = :hash""")


def forget_embeddings(conn: Connection, project: int, inputs: Sequence[str]) -> int:
    """Delete what embedders made of these texts; how many."""
    hashes = {hashlib.blake2b(x.encode(), digest_size=16).hexdigest() for x in inputs}
    gone, model, dim = 0, "", 0
    while (found := conn.first(_EMBEDDERS, {"project": project, "model": model, "dim": dim})) is not None:
        model, dim = found
        params = {"project": project, "model": model, "dim": dim}
        gone += sum(conn.run(_FORGET, {**params, "hash": h}) for h in sorted(hashes))
    return gone
