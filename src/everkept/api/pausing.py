"""Stopping a kind of work or a provider for the whole store, and starting it again."""

from __future__ import annotations

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import pause_view
from everkept.capture.messages import check_name
from everkept.capture.redaction import cleaned
from everkept.derive.kinds import KINDS
from everkept.errors import InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.pauses import Paused, list_pauses, pause, resume
from everkept.store.providers import list_providers

KIND_NAMES = tuple(sorted(KINDS))


class Pausing(Cases):
    async def pause_jobs(
        self, *, kind: str | None = None, provider: str | None = None, why: str = "by hand", by: str = "hand"
    ) -> v.Pause:
        what, name = one_of(kind, provider)
        if not why.strip():
            raise InvalidInput("why is empty", field="why")
        check_name(by, "by")
        await self._whole.read(self._require_known, what, name)
        await self._whole.write(pause, what, name, cleaned(why), by)
        found = next((each for each in await self.list_pauses() if (each.what, each.name) == (what, name)), None)
        if found is None:
            raise NotFound(f"{what} {name} was started again meanwhile", name=name)
        return found

    async def resume_jobs(self, *, kind: str | None = None, provider: str | None = None) -> None:
        what, name = one_of(kind, provider)
        if not await self._whole.write(resume, what, name):
            raise NotFound(f"{what} {name} is not paused", name=name)

    async def list_pauses(self) -> list[v.Pause]:
        return [pause_view(row) for row in await self._whole.read(list_pauses)]

    def _require_known(self, conn: Connection, what: Paused, name: str) -> None:
        """Raises NotFound with those that there are."""
        known = list(KIND_NAMES) if what == "kind" else self._providers(conn)
        if name not in known:
            raise NotFound(f"there is no {what} {name!r}; there are: {', '.join(known) or 'none'}", known=known)

    def _providers(self, conn: Connection) -> list[str]:
        """Vendors of the settings, and the pools that were asked so far."""
        named = [self._settings.model or "", self._settings.embedder]
        pools = [str(row[0]) for row in list_providers(conn)]
        vendors = {name.partition(":")[0] for name in (*named, *pools) if ":" in name}
        return sorted({*vendors, *pools})


def one_of(kind: str | None, provider: str | None) -> tuple[Paused, str]:
    """What is named. Raises InvalidInput unless it is exactly one of the two."""
    if kind and not provider:
        return "kind", kind
    if provider and not kind:
        return "provider", provider
    raise InvalidInput("name either a kind or a provider", field="kind")
