"""Whose memory a folder is. Asking makes nothing: a project comes into being when something is taken in for it."""

from __future__ import annotations

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.capture.identity import Checkout
from everkept.errors import NotFound
from everkept.store.aliases import find_by_signs
from everkept.store.store import Store


class Scoping(Cases):
    async def resolve_scope(self, checkout: Checkout) -> v.Scope:
        """The project of a checkout, whatever project this is. Raises NotFound where nobody knows it yet."""
        return await resolve_scope(self._store, checkout)


async def resolve_scope(store: Store, checkout: Checkout) -> v.Scope:
    """The project that the strongest known sign of the checkout names. Raises NotFound where none is known."""
    signs = checkout.signs()
    found = await store.read(find_by_signs, signs)
    if found is None:
        raise NotFound(
            f"there is no memory of {checkout.place} yet: no session of it was captured or imported; "
            "`everkept import claude-code` (or another agent) takes in the sessions that exist, and --project NAME "
            "names a project of `everkept projects`",
            looked_for=dict(signs),
        )
    return v.Scope(project=found.project.name, found_by=found.found_by, value=found.value)
