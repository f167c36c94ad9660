"""Which workstream a launch continues, and with which agent, where it does not say so itself."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from everkept.api.workstreams import checked_place, checked_workstream_name, workstream_named
from everkept.capture.identity import Checkout
from everkept.capture.messages import check_key, check_name
from everkept.capture.redaction import cleaned
from everkept.domain.session import session_identity
from everkept.errors import InvalidInput
from everkept.store.connection import Connection
from everkept.store.launches import last_launch
from everkept.store.workstreams import (
    WorkstreamRow,
    ensure_workstream,
    last_launched_in,
    select_workstream,
    selected_in,
)

NAME_CHARS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A launch as it is asked for, checked."""

    owner: str
    checkout: Checkout
    workstream: str | None
    agent: str | None
    available: tuple[str, ...]
    native: str | None
    """The session to be resumed, as its events are kept."""
    key: str
    """Of a caller that has none: one that nobody repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    workstream: WorkstreamRow
    agent: str
    because: str


def checked_wish(
    *, owner: str, checkout: Checkout, workstream: str | None, agent: str | None, available: Sequence[str],
    native_session: str | None, key: str | None,
) -> Wish:  # fmt: skip
    """Raises InvalidInput."""
    if agent is None and not available:
        raise InvalidInput("name an agent, or those that are available here", field="agent")
    checked_place(checkout.place)
    native = None if native_session is None else check_name(native_session, "native_session")
    return Wish(
        owner=cleaned(check_name(owner, "owner")),
        checkout=checkout,
        workstream=workstream,
        agent=None if agent is None else cleaned(check_name(agent, "agent")),
        available=tuple(cleaned(check_name(each, "available")) for each in available),
        native=None if native is None else session_identity(native, within=checkout.repository_here),
        key=secrets.token_hex(16) if key is None else check_key(key),
    )


def choose(conn: Connection, project: int, wish: Wish) -> Choice:
    """Choosing again, by the same wish, chooses the same. Raises NotFound for a workstream that is named and is not."""
    row, because = _workstream(conn, project, wish)
    agent, why = _agent(conn, project, row, wish)
    return Choice(workstream=row, agent=agent, because=f"{because}; {why}")


def _workstream(conn: Connection, project: int, wish: Wish) -> tuple[WorkstreamRow, str]:
    place = wish.checkout.place
    if wish.workstream is not None:
        return workstream_named(conn, project, wish.workstream), "the workstream was asked for"
    selected = selected_in(conn, project, place)
    if selected is not None:
        return selected, "the workstream is selected in this worktree"
    last = last_launched_in(conn, project, place)
    if last is not None:
        return last, "the workstream of the last launch in this worktree"
    row = ensure_workstream(conn, project, _name_for(wish.checkout))
    select_workstream(conn, project, row.id, place)
    return row, "no workstream was selected in this worktree: it is called after folder and branch"


def _name_for(checkout: Checkout) -> str:
    folder = PurePath(checkout.place.replace("\\", "/")).name or "work"
    name = f"{folder}/{checkout.branch}" if checkout.branch else folder
    return checked_workstream_name(name[:NAME_CHARS_MAX])


def _agent(conn: Connection, project: int, row: WorkstreamRow, wish: Wish) -> tuple[str, str]:
    if wish.agent is not None:
        return wish.agent, "the agent was named"
    last = last_launch(conn, project, row.id)
    if last is not None and last.agent in wish.available:
        return last.agent, f"{last.agent} ran last here, and is available"
    return wish.available[0], f"{wish.available[0]} is the first that is available"
