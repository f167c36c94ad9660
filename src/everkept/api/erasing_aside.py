"""Erasing what hooks left that no store has taken in: records that were set aside, which no row tells of (G10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everkept.api.base import Parts
from everkept.api.hook_records import told_place
from everkept.capture.agents.hook_payload import session_of
from everkept.capture.spool import SetAside, Spool
from everkept.domain.erase import EventTarget, StreamTarget, Target
from everkept.domain.ids import ProjectId
from everkept.domain.session import session_identity
from everkept.store.connection import Connection
from everkept.store.sessions import find_native_session, find_session, project_of_session


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Of the files that lie aside, those that are of what is to be erased, and those that may be of it."""

    own: tuple[SetAside, ...] = ()
    possible: tuple[SetAside, ...] = ()


async def aside_of(parts: Parts, project: ProjectId, target: Target) -> Aside:
    """Asked before the erase, which takes the names away. No hook tells of a conversation: of one there is nothing."""
    lying = await asyncio.to_thread(Spool(parts.settings.home).aside)
    return await parts.store.read(_aside_of, project, target, lying) if lying else Aside()


async def forget_aside(home: Path, aside: Aside) -> int:
    """Destroy what is of the erased; how many files. Raises OSError."""
    return await asyncio.to_thread(Spool(home).forget, aside.own)


def lying_aside(home: Path) -> int:
    """How many files lie aside. Raises OSError."""
    return len(Spool(home).aside())


def forget_all_aside(home: Path) -> int:
    """Destroy whatever lies aside, read or not; how many files. Raises OSError."""
    spool = Spool(home)
    return spool.forget(spool.aside())


def _aside_of(conn: Connection, project: int, target: Target, lying: list[SetAside]) -> Aside:
    judge = _judge(conn, project, target)
    if judge is None:
        return Aside()
    told = [(one, None if one.fields is None else judge(*_session(one.fields))) for one in lying]
    return Aside(
        own=tuple(one for one, is_of in told if is_of), possible=tuple(one for one, is_of in told if is_of is None)
    )


def _session(fields: Mapping[str, Any]) -> tuple[str, str]:
    """(agent, identity) of a record's session; no identity where it tells neither a name nor a place."""
    agent, native = session_of(fields)
    place = told_place(fields)
    within = "" if place is None else place.repository_here
    return agent, session_identity(native, within=within) if native or within else ""


_Judge = Callable[[str, str], bool | None]
"""Whether a record of this (agent, session) is of what is erased; None: nobody can tell."""


def _judge(conn: Connection, project: int, target: Target) -> _Judge | None:
    if not isinstance(target, EventTarget | StreamTarget):
        return lambda agent, native: _is_in(conn, project, agent, native)
    session = find_session(conn, project, target.stream)
    if session is None:
        return None
    of_event = isinstance(target, EventTarget)

    def is_of(agent: str, native: str) -> bool | None:
        if not native or native == session.parent:  # a record of a sub-agent names the session that started it
            return None
        if (agent, native) != (session.agent, session.native):
            return False
        return None if of_event else True

    return is_of


def _is_in(conn: Connection, project: int, agent: str, native: str) -> bool | None:
    if not native:
        return None
    if find_native_session(conn, project, native, agent) is not None:
        return True
    return None if project_of_session(conn, agent, native) is None else False
