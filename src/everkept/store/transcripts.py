"""Which transcript files were read: an unchanged one is passed by. A file that vanishes deletes nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sqlalchemy import text

from everkept.store.connection import Connection

_FIND = text("select size, mtime_ns, inode, end_hash from transcripts where path = :path")
_NOTE = text("""
insert into transcripts(path, agent, size, mtime_ns, inode, end_hash, read_at)
values(:path, :agent, :size, :mtime_ns, :inode, :end_hash, :now)
on conflict(path) do update set agent = excluded.agent, size = excluded.size, mtime_ns = excluded.mtime_ns,
  inode = excluded.inode, end_hash = excluded.end_hash, read_at = excluded.read_at""")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """A file as it was when it was opened to be read: what is written to it later is read the next time."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    end: bytes = b""
    """Its last bytes; none of a folder."""

    @property
    def end_hash(self) -> str:
        """Of the end, with the file's name: it tells nobody who has not both what was said there."""
        return _hashed(self.path, self.end)


def is_unchanged(conn: Connection, state: FileState) -> bool:
    row = conn.first(_FIND, {"path": _hashed(state.path)})
    return row is not None and tuple(row) == (state.size, state.mtime_ns, state.inode, state.end_hash)


def note_read(conn: Connection, state: FileState, agent: str) -> None:
    conn.run(_NOTE, {
        "path": _hashed(state.path), "agent": agent, "size": state.size, "mtime_ns": state.mtime_ns,
        "inode": state.inode, "end_hash": state.end_hash, "now": conn.now()})  # fmt: skip


def _hashed(path: str, end: bytes = b"") -> str:
    """The table belongs to no project, so it must not tell the folders of one that is erased."""
    return hashlib.blake2b(path.encode(errors="surrogateescape") + end, digest_size=16).hexdigest()
