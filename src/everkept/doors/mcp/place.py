"""Whose memory a call is about: the project that it names, else the caller's own, else the folder's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from everkept.api import views as v
from everkept.api.service import Service
from everkept.capture.identity import Checkout
from everkept.errors import NotFound, UnknownScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What the hooks of this machine have written and no store has yet. `aside`: could not be read, and is kept."""

    records: int
    aside: int


class Memories(Protocol):
    """The memory behind this door, wherever it is."""

    whole_store: bool
    """Whether the caller may know of the whole store, not only of one project."""

    async def service(self, project: str) -> Service:
        """Raises NotFound, Forbidden, Unavailable."""
        ...

    async def resolve(self, checkout: Checkout, *, create: bool) -> v.Scope:
        """The project of a folder. Raises NotFound where nobody knows it; `create` makes it by its signs."""
        ...

    async def waiting(self) -> Waiting:
        """Takes in what waits, for moments, then says what still does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a caller is."""

    checkout: Checkout | None = None
    """Its folder, where this process can see it."""
    project: str | None = None
    """The project that its key or a header names."""
    agent: str = "mcp"
    """Whom to name as the author and as who took a handoff up."""


async def scope_of(memories: Memories, place: Place, named: str | None, *, create: bool = False) -> v.Scope:
    """Raises UnknownScope, which says what to do, where there is no memory to ask."""
    project = named or place.project
    if project is not None:
        return v.Scope(project=project, found_by="named", value=project)
    if place.checkout is None:
        raise UnknownScope("this server cannot see your folder, so it does not know whose memory you mean")
    try:
        return await memories.resolve(place.checkout, create=create)
    except NotFound as error:
        raise UnknownScope(
            f"there is no memory of {place.checkout.place} yet: no session of it was captured or imported. `remember` "
            "begins it; `everkept import AGENT` takes in sessions that exist; `project` names another one",
            **error.details,
        ) from error
