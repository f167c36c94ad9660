"""`doctor --secrets`: secrets that got into the store all the same, by the rules of today; never the secrets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from everkept.capture.redaction import find_secrets, redact
from everkept.errors import NotFound
from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.copy import opened
from everkept.store.database import Database, reading
from everkept.store.diagnosis.place import schema_of
from everkept.store.diagnosis.texts import kept_texts
from everkept.store.dialect import sqlite_dialect

LISTED_MAX: Final = 1_000
"""Places that are named; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPlace:
    """One text with secrets in it."""

    project: str
    kind: str
    id: str
    rules: dict[str, int]
    """{rule: how many it found}"""
    erase: str


@dataclass(slots=True, kw_only=True)
class SecretScan:
    """What a scan of the whole store came to."""

    texts: int = 0
    places: int = 0
    """Texts with secrets in them; `found` names the first of them."""
    found: list[SecretPlace] = field(default_factory=list)


def scan_secrets(database: Database, clock: Clock) -> SecretScan:
    """Read the whole store, which others may have open; memory stays bounded.

    Raises NotFound where there is no store that this program reads, and StoreUnavailable.
    """
    path = database.path
    if path is None:
        with reading(database, clock) as conn:
            return _scan(conn)
    if not path.is_file():
        raise NotFound(f"there is no store at {path}", path=str(path))
    with opened(path) as raw:
        if (unread := schema_of(raw, path)) is not None:
            raise NotFound(unread.what, path=str(path))
        return _scan(Connection(raw, sqlite_dialect(), clock))


def _scan(conn: Connection) -> SecretScan:
    scan = SecretScan()
    for kept in kept_texts(conn):
        scan.texts += 1
        found = find_secrets(kept.text)
        if not found:
            continue
        scan.places += 1
        if len(scan.found) < LISTED_MAX:
            rules = Counter(each.rule for each in found)
            project, erase = redact(kept.project).text, redact(kept.erase).text
            scan.found.append(SecretPlace(project=project, kind=kept.kind, id=kept.id, rules=dict(rules), erase=erase))
    return scan
