"""Taking in what hooks, launches and other senders of other machines tell. Nothing that they name is looked at here.

A sender may send anything again: records and events are known by their natural keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from everkept.api import views as v
from everkept.api.base import Parts
from everkept.api.contexts import Contexts
from everkept.api.hook_records import told_from_afar
from everkept.api.intake import Intake
from everkept.capture.identity import Checkout
from everkept.domain.ids import event_id, parse_row_id
from everkept.domain.session import AgentEvent
from everkept.errors import InvalidInput
from everkept.hook.hook_script import FORMAT
from everkept.store.sessions import EventOutcome


class Ingest:
    """For one caller. `project`: what it names; `confined`: the only one that it may touch, wherever a session is."""

    def __init__(self, parts: Parts, *, project: str | None, confined: bool) -> None:
        self._store = parts.store
        self._contexts = Contexts(parts, project=project, confined=confined)
        self._intake = Intake(parts, only=project if confined else None)
        self._project = project

    async def record(self, name: str, fields: Mapping[str, Any]) -> list[v.SessionTaken]:
        """One record of a hook; `name` is its delivery key. Raises InvalidInput, NotFound, RateLimited."""
        if not isinstance(fields.get("format"), int):
            raise InvalidInput("this is not a record of a hook: it has no format", field="format")
        if fields["format"] > FORMAT:
            raise InvalidInput(
                f"the record's format {fields['format']} is newer than this server, which knows {FORMAT}",
                field="format", limit=FORMAT,
            )  # fmt: skip
        told = await asyncio.to_thread(told_from_afar, name, fields)
        if told.offer is not None:
            await self._contexts.shown(parse_row_id("off", told.offer))
            return []
        return await self.events(told.events, checkout=told.checkout)

    async def events(
        self, events: Sequence[AgentEvent], *, checkout: Checkout | None = None,
        origin: Literal["hook", "import"] = "hook", ended: bool = False, titles: Mapping[str, str] | None = None,
    ) -> list[v.SessionTaken]:  # fmt: skip
        """Events in the order in which they happened, of any number of sessions; what became of those of each.

        `ended`: nothing more will come of these sessions, as far as anybody knows.
        """
        answers = []
        for (agent, session), some in groupby(events, key=lambda e: (e.agent, e.session)):
            mine = list(some)
            taken = await self._intake.take(
                mine, checkout=checkout, project=self._project, origin=origin, ended=ended,
                titles=dict(titles or {}),
            )  # fmt: skip
            (where,) = taken.projects.items()
            answers.append(v.SessionTaken(
                agent=agent, session=session, stored=taken.stored, revised=taken.revised, known=taken.known,
                project=where[0], found_by=where[1],
                events=[_event(event.key, outcome) for event, outcome in zip(mine, taken.outcomes, strict=True)],
            ))  # fmt: skip
        return answers


def _event(key: str, outcome: EventOutcome) -> v.EventTaken:
    if outcome.what == "erased" or outcome.stream is None or outcome.seq is None:
        return v.EventTaken(key=key, outcome="ignored", reason="it was erased, and stays out", event_id=None)
    place = event_id(outcome.stream, outcome.seq)
    return v.EventTaken(key=key, outcome=outcome.what, reason=None, event_id=place)
