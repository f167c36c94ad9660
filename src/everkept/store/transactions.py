"""What the writer asks of a database about transactions; everything else about them is the same SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from everkept.store.reach import Reach


class Transactions(Protocol):
    """Of one writer's connection. Each takes that connection as the driver gives it."""

    def begin(self, raw: Any, reaches: Collection[Reach]) -> None:
        """Begin one in which nobody else writes what these reach, waiting for others.

        Raises the driver's error where it cannot be.
        """
        ...

    def mark(self, raw: Any, reaches: Collection[Reach]) -> None:
        """Set the savepoint `call` for some of the calls of this transaction, which reach so far."""
        ...

    def together(self, one: Reach, other: Reach) -> bool:
        """Whether both may be written in one."""
        ...

    def share(self, raw: Any) -> None:
        """Before rows are written that all projects share: from here to the end nobody else writes such rows."""
        ...

    def overlap(self, raw: Any) -> AbstractContextManager[None]:
        """In its block a statement may be on its way while the next is made."""
        ...

    def is_open(self, raw: Any) -> bool:
        """Whether one is open: some errors end it."""
        ...

    def is_usable(self, raw: Any) -> bool:
        """Whether the connection can begin another."""
        ...

    def tell(self, raw: Any, due: Sequence[int], changed: Sequence[int]) -> None:
        """Tell other processes with the commit: of work for these moments, and of projects with new changes."""
        ...

    def committed(self) -> None:
        """One was."""
        ...

    def pause_s(self) -> float:
        """How long to leave the right to write to others, after each one."""
        ...

    def tidy(self, raw: Any, *, everything: bool = False) -> None:
        """What is to be done between two of them, if it is time; to its end with `everything`."""
        ...
