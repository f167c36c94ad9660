"""The schema, for both databases. A module a part; each adds its tables to `metadata`.

Times are `BIGINT` microseconds since 1970 (UTC), written and compared by one clock; JSON is text. Row numbers are never
used twice (`AUTOINCREMENT`), because public ids and caches name rows by them.
"""

from __future__ import annotations

from everkept.store.tables import agents, conversation, delivery, merges, reviews, work, workstreams
from everkept.store.tables.columns import metadata
from everkept.store.tables.full_text import FULL_TEXT_POSTGRES, FULL_TEXT_SQLITE
from everkept.store.tables.vectors import VECTORS_POSTGRES

__all__ = [
    "FULL_TEXT_POSTGRES", "FULL_TEXT_SQLITE", "VECTORS_POSTGRES", "agents", "conversation", "delivery", "merges",
    "metadata", "reviews", "work", "workstreams",
]  # fmt: skip
