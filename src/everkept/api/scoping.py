"""Whose memory a folder is. Asking makes nothing: a project comes into being when something is taken in for it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.capture.identity import MARKER, Checkout, name_for
from everkept.errors import InvalidInput, NotFound
from everkept.store.aliases import Found, find_by_signs, resolve, trust
from everkept.store.connection import Connection
from everkept.store.store import Store


class Scoping(Cases):
    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        """The project of a checkout, whatever project this is; `create` makes it where nobody knows it yet.

        Raises NotFound where nobody knows it and it is not to be made: only who is about to write asks for that.
        """
        return await resolve_scope(self._whole, checkout, create=create)

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        """From now on the project that the checkout's marker file names is its project, here and in its other clones.

        Raises InvalidInput where no marker file names one, and NotFound where there is no project of that name.
        """
        return await trust_marker(self._whole, checkout)


async def resolve_scope(store: Store, checkout: Checkout, *, create: bool = False) -> v.Scope:
    signs = checkout.signs()
    found = await store.read(find_by_signs, signs)
    if found is None and create:
        found = await store.write(resolve, signs, name_for(signs), secrets.token_bytes(32))
    if found is None:
        raise NotFound(
            f"there is no memory of {checkout.place} yet: no session of it was captured or imported; "
            "`everkept import claude-code` (or another agent) takes in the sessions that exist, and --project NAME "
            "names a project of `everkept projects`",
            looked_for=dict(signs),
        )
    return scope_view(found)


async def trust_marker(store: Store, checkout: Checkout) -> v.Scope:
    """With and without its first commit, which not all who ask will know."""
    if checkout.marker is None:
        raise InvalidInput(
            f'no {MARKER} of {checkout.place} names a project; the line `project = "NAME"` in it does', field="marker"
        )
    tellings = [checkout, replace(checkout, root=None)]
    values = [value for told in tellings for kind, value in told.signs() if kind == "marker"]
    await store.write(_trust_all, values, checkout.marker)
    return v.Scope(project=checkout.marker, found_by="marker", value=values[0])


def _trust_all(conn: Connection, values: Sequence[str], project: str) -> None:
    for value in dict.fromkeys(values):
        trust(conn, "marker", value, project)


def scope_view(found: Found) -> v.Scope:
    return v.Scope.model_validate({"project": found.project.name, "found_by": found.found_by, "value": found.value})
