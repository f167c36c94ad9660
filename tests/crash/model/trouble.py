"""What can go wrong under the store: the process dies at any statement or point, the disk is full, a call fails."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.factories import connect_unsynced

from everkept.store.sqlite import choose_driver

DRIVER_ERROR = choose_driver().module.OperationalError
_CONTROL = ("begin", "commit", "rollback", "savepoint", "release", "pragma", "vacuum")


class Killed(BaseException):
    """The process is gone: nothing of ours runs after this."""


class Trouble:
    """Strikes once, at the n-th statement of the write connection or when a named point is reached."""

    def __init__(self) -> None:
        self.tally: Counter[str] = Counter()
        self.calm()

    def calm(self) -> None:
        self._kind: str | None = None
        self._left = 0
        self._point: str | None = None
        self.struck: str | None = None

    def arm(self, kind: str, statements: int) -> None:
        """`kind`: "kill", or "full": the database rolls the whole transaction back and the statement fails."""
        self._kind, self._left, self._point, self.struck = kind, statements, None, None

    def arm_point(self, kind: str, point: str) -> None:
        """`kind`: "kill", or "fail": an error is raised there."""
        self._kind, self._left, self._point, self.struck = kind, 0, point, None

    @property
    def armed(self) -> bool:
        return self._kind is not None

    def reach(self, point: str) -> None:
        if self._kind is None or self._point != point:
            return
        kind, self._kind, self._point = self._kind, None, None
        self.struck = f"{kind} at {point}"
        self.tally[f"trouble.{kind}_at_point"] += 1
        if kind == "kill":
            raise Killed(point)
        raise RuntimeError(f"failed at {point}")

    def statement(self, sql: str, raw: Any) -> None:
        if self._kind is None or self._point is not None:
            return
        self._left -= 1
        if self._left > 0:
            return
        kind, self._kind = self._kind, None
        control = sql.lstrip().lower().startswith(_CONTROL)
        self.struck = f"{kind} at {'control' if control else 'statement'}: {sql[:60]}"
        self.tally[f"trouble.{kind}"] += 1
        if kind == "kill":
            raise Killed(sql[:60])
        if raw.in_transaction:
            raw.execute("rollback")
            self.tally["trouble.full_rolled_back"] += 1
        raise DRIVER_ERROR("database or disk is full")

    @property
    def spared_control(self) -> bool:
        """The disk was full inside a store function, not at BEGIN or COMMIT: each call of the group runs again."""
        return self.struck is not None and self.struck.startswith("full at statement")


class TroubledConnection:
    """A driver's connection for writing, whose statements are counted."""

    def __init__(self, raw: Any, trouble: Trouble) -> None:
        self._raw = raw
        self._trouble = trouble

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, sql: str, *args: Any) -> Any:
        self._trouble.statement(sql, self._raw)
        return self._raw.execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> Any:
        self._trouble.statement(sql, self._raw)
        return self._raw.executemany(sql, *args)


class Connections:
    """Every connection that the process has open, so that a kill can take all of them."""

    def __init__(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._open: list[Any] = []

    def connect(self, path: Path, read_only: bool) -> Any:
        raw = connect_unsynced(path, read_only)
        self._open.append(raw)
        return raw if read_only else TroubledConnection(raw, self._trouble)

    def drop(self) -> None:
        """As a kill does: a transaction that is open is gone."""
        for raw in self._open:
            raw.close()
        self._open.clear()
