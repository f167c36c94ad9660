"""Where OpenCode keeps its sessions: folders of JSON files up to 1.1, one SQLite database since. Both as pieces."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from everkept.capture.agents.records import Record, load, text_in

_MAGIC: Final = b"SQLite format 3\x00"
_TABLES: Final = ("session", "message", "part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One file or row: its text, and what the place where it lies says of it (ids, times)."""

    raw: str
    known: Record = field(default_factory=dict)

    def completed(self, record: Record) -> Record:
        """The record with what its place knows where it does not say so itself."""
        return record | {name: value for name, value in self.known.items() if not record.get(name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    message: Piece
    parts: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    session: Piece
    messages: Iterator[StoredMessage]


def is_sqlite(path: Path) -> bool:
    """Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def is_database(path: Path) -> bool:
    """Whether a file is SQLite with OpenCode's tables."""
    try:
        if not is_sqlite(path):
            return False
        with closing(_opened(path)) as db:
            return set(_TABLES) <= _tables(db)
    except (OSError, sqlite3.Error):
        return False


# Folders: session/<project>/<id>.json, message/<session>/<id>.json, part/<message>/<id>.json.


def session_files(storage: Path) -> list[Path]:
    """Of one storage folder; older ones keep them in `session/info`."""
    return sorted(storage.glob("session/*/*.json"))


def session_in_files(path: Path) -> StoredSession:
    """The session of one file of `session_files`. Raises OSError where that file cannot be read."""
    raw = path.read_bytes().decode("utf-8", errors="replace")
    session = _id_in(raw) or path.stem
    above = path.absolute().parents
    storage = next((folder for folder in above if folder.name == "storage"), above[min(2, len(above) - 1)])
    known = {"id": path.stem, "projectID": path.parent.name}
    folders = (storage / "message" / session, storage / "session" / "message" / session)
    in_place = path.absolute().parent.parent.name == "session"
    if in_place or any(folder.is_dir() for folder in folders):
        messages = _messages_in_files(storage, session, folders)
    else:
        messages = _messages_in_one_folder(path.parent, session)
    return StoredSession(session=Piece(raw=raw, known=known), messages=messages)


def _messages_in_files(storage: Path, session: str, folders: Iterable[Path]) -> Iterator[StoredMessage]:
    read = [(file, raw) for folder in folders for file, raw in _texts_of(folder)]
    for file, raw in sorted(read, key=lambda pair: (_created(pair[1]), pair[0].name)):
        names = dict.fromkeys((_id_in(raw) or file.stem, file.stem))
        known = {"id": file.stem, "sessionID": session}
        parts = [
            Piece(raw=text, known={"id": part.stem, "sessionID": session, "messageID": name})
            for name in names
            for folder in (storage / "part" / name, storage / "session" / "part" / session / name)
            for part, text in _texts_of(folder)
        ]
        yield StoredMessage(message=Piece(raw=raw, known=known), parts=tuple(parts))


def _messages_in_one_folder(folder: Path, session: str) -> Iterator[StoredMessage]:
    """Of files that somebody put together in one place: told by their content, parts without an owner by their name."""
    files = [(file, raw, peek(raw)) for file, raw in _texts_of(folder)]
    messages = [one for one in files if text_in(one[2], "sessionID") == session and text_in(one[2], "role")]
    parts = [one for one in files if text_in(one[2], "type") and "role" not in one[2]]
    for file, raw, message in sorted(messages, key=lambda one: (_created(one[1]), one[0].name)):
        own = text_in(message, "id") or file.stem
        known = {"sessionID": session, "messageID": own}
        yield StoredMessage(
            message=Piece(raw=raw, known={"id": file.stem}),
            parts=tuple(
                Piece(raw=text, known={"id": part.stem, **known})
                for part, text, record in parts
                if (text_in(record, "messageID") or (own if own in part.stem else "")) == own
            ),
        )


def _texts_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """The JSON files of a folder by name; one that vanished or cannot be read stands with an empty text."""
    try:
        files = sorted(folder.glob("*.json"))
    except (OSError, ValueError):  # a name from a record may be anything, with a NUL too
        return
    for file in files:
        try:
            yield file, file.read_bytes().decode("utf-8", errors="replace")
        except OSError:
            yield file, ""


def _id_in(raw: str) -> str:
    """The id that a record gives itself, where it is fit to be the name of a folder."""
    found = text_in(peek(raw), "id")
    return found if len(found) < 200 and not {"/", "\\", "\0"} & set(found) and found not in (".", "..") else ""


def _created(raw: str) -> float:
    """When a message was made; one that cannot be read comes last."""
    time = peek(raw).get("time")
    created = time.get("created") if isinstance(time, dict) else None
    return float(created) if isinstance(created, int | float) and abs(created) < 1e18 else float("inf")


def peek(raw: str) -> Record:
    """The record in a text, an empty one where there is none."""
    try:
        return load(raw) or {}
    except RecursionError:
        return {}


# The database: session, message and part, the latter two with their JSON in `data`.


def sessions_in_database(path: Path) -> Iterator[StoredSession]:
    """Every session, oldest first, read in one snapshot. Raises OSError or sqlite3.Error."""
    with closing(_opened(path)) as db:
        db.execute("BEGIN")
        for row in _rows(db, "SELECT * FROM session ORDER BY time_created, id"):
            record = {
                "id": row.get("id"),
                "projectID": row.get("project_id"),
                "parentID": row.get("parent_id"),
                "directory": row.get("directory"),
                "title": row.get("title"),
                "version": row.get("version"),
                "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
            }
            piece = Piece(raw=json.dumps(record, ensure_ascii=False, default=str))
            yield StoredSession(session=piece, messages=_messages_in_database(db, row.get("id")))


def _messages_in_database(db: sqlite3.Connection, session: Any) -> Iterator[StoredMessage]:
    parts: dict[Any, list[Piece]] = {}
    for row in _rows(db, "SELECT * FROM part WHERE session_id = ? ORDER BY message_id, id", session):
        known = {"id": row.get("id"), "messageID": row.get("message_id"), "time": {"start": row.get("time_created")}}
        parts.setdefault(row.get("message_id"), []).append(Piece(raw=_text(row.get("data")), known=known))
    for row in _rows(db, "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id", session):
        known = {"id": row.get("id"), "sessionID": session, "time": {"created": row.get("time_created")}}
        own = parts.pop(row.get("id"), [])
        yield StoredMessage(message=Piece(raw=_text(row.get("data")), known=known), parts=tuple(own))
    for lost in parts.values():
        yield StoredMessage(message=Piece(raw="", known={"sessionID": session}), parts=tuple(lost))


def _opened(path: Path) -> sqlite3.Connection:
    """For reading only, also where its folder cannot be written. Raises OSError where it cannot be opened."""
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        try:
            db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True, isolation_level=None)
            db.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
            _tables(db)
        except sqlite3.OperationalError as cause:
            fault = cause
        else:
            return db
    raise OSError(f"cannot open {path}: {fault}")


def _tables(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _rows(db: sqlite3.Connection, query: str, *values: Any) -> Iterator[Record]:
    found = db.execute(query, values)
    names = [column[0] for column in found.description]
    for row in found:
        yield dict(zip(names, row, strict=True))


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return value if isinstance(value, str) else "" if value is None else str(value)
