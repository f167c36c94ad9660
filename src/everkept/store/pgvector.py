"""What is needed of pgvector, PostgreSQL's extension for vectors."""

from __future__ import annotations

from typing import Any, Final

from everkept.errors import StoreNotSupported

OLDEST: Final = (0, 8)
"""The first whose search of a graph goes on until enough is found that passes the filter."""
_FIND: Final = "select coalesce(installed_version, default_version) from pg_available_extensions where name = 'vector'"


def require_pgvector(raw: Any) -> None:
    """Raises StoreNotSupported where the server does not have it, or has an older one."""
    needed = ".".join(map(str, OLDEST))
    row = raw.execute(_FIND).fetchone()
    if row is None:
        raise StoreNotSupported(
            f"the server does not have pgvector: install its package (postgresql-NN-pgvector, {needed} or newer)",
            needed=needed,
        )
    version = tuple(int(part) for part in str(row[0]).split(".")[:2])
    if version < OLDEST:
        raise StoreNotSupported(
            f"pgvector {row[0]} is too old: {needed} is needed; install it, then `alter extension vector update`",
            found=str(row[0]), needed=needed,
        )  # fmt: skip
