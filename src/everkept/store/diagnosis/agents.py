"""Causes that lie between coding agents and the store: hooks, their spool, redaction, and whose folder this is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from sqlalchemy import text

from everkept.store.aliases import find_by_signs
from everkept.store.connection import Connection
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import AgentsAround, Look, WiredAgent

WAITS_US: Final = 15 * 60 * 1_000_000
"""A record that is older than this should have been taken in: the worker that its hook starts stays so long."""
UNHEARD_US: Final = 60 * 60 * 1_000_000
"""Work that is so much newer than the last sign of its agent's hooks was done without them."""
ASIDE: Final = "spool/aside"

_HEARD = text("""
select x.agent, max(coalesce(x.last_event_at, 0)) from sessions x where x.origin = 'hook' group by 1""")


def hooks_broken(look: Look, _now: int) -> list[Finding]:
    return [
        Finding(cause="hooks_broken", what=f"{agent.name}: {'; '.join(agent.problems)}", since=None,
                evidence={"problems": len(agent.problems)}, mend=f"everkept install {agent.name}")
        for agent in _wired(look) if agent.problems
    ]  # fmt: skip


def hooks_untrusted(look: Look, _now: int) -> list[Finding]:
    return [
        Finding(cause="hooks_untrusted", what=f"{agent.name} passes by the hook at {', '.join(agent.untrusted)}",
                since=None, evidence={"events": len(agent.untrusted)},
                mend=f"start {agent.name}, look at `/hooks` there, and trust them")
        for agent in _wired(look) if agent.untrusted
    ]  # fmt: skip


def hooks_silent(conn: Connection, look: Look) -> list[Finding]:
    """An agent that is wired works on, as its transcripts show, and its hooks are not heard."""
    heard = heard_agents(conn)
    waiting = look.agents is not None and look.agents.waiting > 0
    return [
        _silent(agent, heard.get(agent.name)) for agent in _wired(look)
        if not waiting and not agent.untrusted and not agent.problems
        and agent.used_at is not None and agent.used_at > heard.get(agent.name, 0) + UNHEARD_US
    ]  # fmt: skip


def _silent(agent: WiredAgent, heard: int | None) -> Finding:
    last = "were never heard" if heard is None else "are not heard any more"
    return Finding(
        cause="hooks_silent", what=f"{agent.name} is at work, and its hooks {last}", since=heard,
        evidence={"last_used_us": agent.used_at, "last_heard_us": heard},
        mend=f"restart {agent.name}; `everkept import {agent.name}` takes in what was missed",
    )  # fmt: skip


def heard_agents(conn: Connection) -> dict[str, int]:
    """{agent: when its hooks were heard last}, microseconds since 1970."""
    return {str(agent): int(at) for agent, at in conn.rows(_HEARD)}


def spool_waiting(look: Look, now: int) -> list[Finding]:
    around = look.agents
    if around is None or around.oldest_at is None or around.oldest_at > now - WAITS_US:
        return []
    return [Finding(
        cause="spool_waiting", what=f"{around.waiting:,} records of hooks wait to be taken in", since=around.oldest_at,
        evidence={"records": around.waiting}, mend="everkept worker --until-idle",
    )]  # fmt: skip


def records_aside(look: Look, _now: int) -> list[Finding]:
    if look.agents is None or not look.agents.aside:
        return []
    folder = look.settings.home / ASIDE
    return [Finding(
        cause="records_aside", what=f"{look.agents.aside:,} records of hooks lie in {folder}", since=None,
        evidence={"records": look.agents.aside},
        mend=f"read the `.reason` beside each in {folder}; move a record to {folder.parent / 'new'} to try it again, or"
        " delete it",
    )]  # fmt: skip


def rules_unusable(look: Look, _now: int) -> list[Finding]:
    if look.agents is None or not look.agents.unusable:
        return []
    rules = look.agents.unusable
    return [Finding(
        cause="rules_unusable", what=f"{len(rules)} rules do not run here: {', '.join(rules[:8])}", since=None,
        evidence={"rules": len(rules)}, mend="pip install google-re2", chosen=True,
    )]  # fmt: skip


def folder_scope(conn: Connection, look: Look) -> list[Finding]:
    """Whose memory the folder is where doctor was asked. It says nothing where no agent is wired on this machine."""
    around = look.agents
    if around is None or not around.wired:
        return []
    marker = next((value for kind, value in around.signs if kind == "marker"), None)
    found = find_by_signs(conn, around.signs)
    if marker is not None and (found is None or found.found_by != "marker"):
        return [_untrusted_marker(around, marker.partition(" in ")[0], found.project.name if found else None)]
    return [_unknown(around)] if found is None and len(around.signs) > 1 else []


def _untrusted_marker(around: AgentsAround, named: str, used: str | None) -> Finding:
    instead = f"; project {used} is used" if used else ""
    return Finding(
        cause="marker_untrusted", what=f"{around.place}/.everkept.toml names the project {named}, which nobody"
        f" trusted{instead}", since=None, evidence={"marker": named, "used": used},
        mend=f"everkept projects trust, if {named} is to be this folder's project; else take `project` out of"
        f" {around.place}/.everkept.toml",
    )  # fmt: skip


def _unknown(around: AgentsAround) -> Finding:
    return Finding(
        cause="folder_unknown", what=f"no session of {around.place} was captured or imported yet", since=None,
        evidence=dict(around.signs[:1]), mend="work in it with a wired agent, or: everkept import", chosen=True,
    )  # fmt: skip


def _wired(look: Look) -> Iterator[WiredAgent]:
    yield from () if look.agents is None else look.agents.wired


_LOCAL: Final[tuple[Callable[[Look, int], list[Finding]], ...]] = (
    hooks_broken, hooks_untrusted, spool_waiting, records_aside, rules_unusable,
)  # fmt: skip


def beside_the_store(look: Look, now: int) -> list[Finding]:
    """What can be said without the store."""
    return [finding for check in _LOCAL for finding in check(look, now)]


def around_the_store(conn: Connection, look: Look) -> list[Finding]:
    """Everything; nothing where nobody looked at coding agents."""
    return [*beside_the_store(look, conn.now()), *hooks_silent(conn, look), *folder_scope(conn, look)]
