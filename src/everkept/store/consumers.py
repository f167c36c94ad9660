"""Those who follow the outbox as an operator sees and moves them, and how one of several is the holder (G11)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from everkept.errors import Conflict, LeaseLost, NotFound
from everkept.store.changes import (
    CONSUMERS_MAX,
    acknowledge,
    ensure_consumer,
    find_head,
    lease_consumer,
    require_kept,
)
from everkept.store.connection import Connection
from everkept.store.project_names import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRow:
    """How far a consumer is. Times in microseconds since 1970."""

    project: str
    name: str
    cursor: int
    head: int
    oldest_at: int | None
    """When the oldest change was made that it has not acknowledged; None where there is none, or it is not kept."""
    kept: bool
    """Whether all that it has not acknowledged is still kept."""
    owner: str | None
    """Who holds it now."""
    lease_until: int | None
    acked_at: int | None
    created_at: int
    state: str | None
    """Of a webhook: active, paused or dead; None of any other consumer."""
    trouble: str | None
    """Why a webhook fails or waits for a hand."""
    parked: int

    @property
    def lag(self) -> int:
        return self.head - self.cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A lease on a consumer: what is acknowledged under `fence` counts until `until` (microseconds since 1970)."""

    fence: int
    until: int


_LIST = text(f"""
select {shown("p")}, c.name, c.cursor, p.change_seq,
  (select x.at from changes x where x.project_id = c.project_id and x.seq > c.cursor order by x.seq limit 1),
  c.cursor = p.change_seq or exists (
    select 1 from changes x where x.project_id = c.project_id and x.seq = c.cursor + 1),
  case when c.lease_until > :now then c.owner end, case when c.lease_until > :now then c.lease_until end, c.acked_at,
  c.created_at, w.state,
  case when w.state <> 'active' then w.reason when w.failing_since is not null then w.last_error end,
  (select count(*) from parked_changes k where k.webhook_id = w.id)
from consumers c join projects p on p.id = c.project_id and p.erased_at is null
  left join webhooks w on w.project_id = c.project_id and c.name = 'webhook:' || w.name
where (:project is null or c.project_id = :project) and (:name is null or c.name = :name)
order by c.project_id, c.name limit :limit""")
_HOLDER = text("select owner, lease_until from consumers where project_id = :project and name = :name")
_RENEW = text("""
update consumers set lease_until = :until
where project_id = :project and name = :name and fence = :fence and lease_until > :now""")
_REPLAY = text("""
update consumers set cursor = :after, handed_out = :after where project_id = :project and name = :name""")
_HANDED_OUT = text("""
select max(cursor, handed_out), :fence is null or (fence = :fence and lease_until > :now) from consumers
where project_id = :project and name = :name""")
_HAND_OUT = text("""
update consumers set handed_out = :through where project_id = :project and name = :name and handed_out < :through""")
_FENCE_OFF = text("""
update consumers set fence = fence + 1, owner = null, lease_until = null
where project_id = :project and name = :name""")
_REMOVE = text("delete from consumers where project_id = :project and name = :name returning fence")
_KEEP_FENCE = text("update projects set last_fence = max(last_fence, :fence) where id = :project")


def list_consumers(conn: Connection, project: int | None) -> list[ConsumerRow]:
    """Of one project, or of all (None); by project and name."""
    return _list(conn, project, None)


def get_consumer(conn: Connection, project: int, name: str) -> ConsumerRow:
    """Raises NotFound."""
    found = _list(conn, project, name)
    if not found:
        raise _unknown(name)
    return found[0]


def _list(conn: Connection, project: int | None, name: str | None) -> list[ConsumerRow]:
    limit = CONSUMERS_MAX + 1  # and the wiki
    rows = conn.rows(_LIST, {"project": project, "name": name, "now": conn.now(), "limit": limit})
    return [
        ConsumerRow(
            project=r[0], name=r[1], cursor=r[2], head=r[3], oldest_at=r[4], kept=bool(r[5]), owner=r[6],
            lease_until=r[7], acked_at=r[8], created_at=r[9], state=r[10], trouble=r[11], parked=r[12],
        )
        for r in rows
    ]  # fmt: skip


def hold_consumer(
    conn: Connection, project: int, name: str, owner: str, lease_s: float, fence: int | None = None
) -> Held:
    """Take the consumer, or keep it (`fence`: of the lease that is still held). A lease of 0 s gives it up.

    Raises Conflict where somebody else holds it, and LeaseLost where it is not held under this fence any more.
    """
    until = conn.now() + int(lease_s * 1e6)
    if fence is not None:
        at = {"project": project, "name": name, "fence": fence, "until": until, "now": conn.now()}
        if not conn.run(_RENEW, at):
            raise LeaseLost("this consumer is not held under this fence any more", consumer=name, fence=fence)
        return Held(fence=fence, until=until)
    taken = lease_consumer(conn, project, name, owner, lease_s)
    if taken is None:
        holder, held_until = conn.first(_HOLDER, {"project": project, "name": name}) or (None, 0)
        free_in_s = max(0.0, (held_until - conn.now()) / 1e6)
        raise Conflict(
            f"{holder} holds this consumer for another {free_in_s:.0f} s at least", consumer=name, holder=holder,
            free_in_s=free_in_s,
        )  # fmt: skip
    return Held(fence=taken, until=until)


def find_handed_out(conn: Connection, project: int, name: str) -> int:
    """How far it was given changes since it was leased, or made; 0 for one never seen."""
    row = conn.first(_HANDED_OUT, {"project": project, "name": name, "fence": None, "now": conn.now()})
    return 0 if row is None else int(row[0])


def note_handed_out(conn: Connection, project: int, name: str, through: int) -> None:
    """It is given changes up to `through`, and may acknowledge them. Raises Conflict where there are too many."""
    ensure_consumer(conn, project, name)
    conn.run(_HAND_OUT, {"project": project, "name": name, "through": through})


def acknowledge_read(conn: Connection, project: int, name: str, upto: int, fence: int | None) -> int:
    """As `acknowledge`, of what was handed out. Raises Conflict for a change that nobody was given as this consumer."""
    at = {"project": project, "name": name, "fence": fence, "now": conn.now()}
    handed_out, held = conn.first(_HANDED_OUT, at) or (0, fence is None)
    if held and handed_out < upto <= find_head(conn, project):
        raise Conflict(
            f"{name!r} was given changes up to {handed_out} and cannot have worked {upto}; read them as this consumer"
            " first, and under its lease where it has one",
            consumer=name, up_to=upto, handed_out=handed_out,
        )  # fmt: skip
    return acknowledge(conn, project, name, upto, fence)


def replay_consumer(conn: Connection, project: int, name: str, after: int) -> None:
    """Let the consumer go on after `after`, also back; whoever holds it is fenced off, and can move it no more.

    Raises NotFound and CursorExpired as reading from there does.
    """
    require_kept(conn, project, after)
    ensure_consumer(conn, project, name)
    conn.run(_REPLAY, {"project": project, "name": name, "after": after})
    fence_off(conn, project, name)


def fence_off(conn: Connection, project: int, name: str) -> None:
    """Whoever holds the consumer holds it no more: what is under way moves nothing."""
    conn.run(_FENCE_OFF, {"project": project, "name": name})


def remove_consumer(conn: Connection, project: int, name: str) -> None:
    """Whoever holds it moves no other one of this name that is made later. Raises NotFound."""
    fence = conn.scalar(_REMOVE, {"project": project, "name": name})
    if fence is None:
        raise _unknown(name)
    conn.run(_KEEP_FENCE, {"project": project, "fence": fence})


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no consumer {name!r} in this project", consumer=name)
