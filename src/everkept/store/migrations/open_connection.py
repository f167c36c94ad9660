"""An SQLAlchemy engine over a driver connection that is already inside a transaction of its own."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import StaticPool


class _Borrowed:
    """The driver connection without the right to end its transaction: whoever began it decides."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def commit(self) -> None:
        return None

    def rollback(self) -> None:
        return None

    def close(self) -> None:
        return None


def engine_over(raw: Any) -> Engine:
    """What the engine executes, `raw` executes. Its commit, rollback and close do nothing."""
    return create_engine("sqlite://", creator=lambda: _Borrowed(raw), poolclass=StaticPool)
