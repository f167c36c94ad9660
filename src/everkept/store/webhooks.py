"""Webhooks: consumers whose changes are sent to an address, as an operator makes, sees and moves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import text

from everkept.domain.changes import expand_kinds, webhook_consumer
from everkept.domain.ids import row_id
from everkept.errors import Conflict, NotFound
from everkept.store.changes import Only, find_head, require_kept
from everkept.store.connection import Connection, Row
from everkept.store.consumers import fence_off, remove_consumer, replay_consumer
from everkept.store.project_names import shown

WEBHOOKS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook:
    name: str
    url: str
    secret: str = field(repr=False)
    kinds: Sequence[str] | None = None
    subject: int | None = None
    on_reject: str = "park"
    after: int | None = None
    """The change that it begins after; None: with what comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """Times in microseconds since 1970."""

    id: int
    project: int
    project_name: str
    name: str
    url: str
    secret: str = field(repr=False)
    old_secret: str | None = field(repr=False)
    """While it still signs."""
    kinds: tuple[str, ...] | None
    subject: int | None
    subject_name: str | None
    on_reject: str
    state: str
    reason: str | None
    tries: int
    rejections: int
    next_try_at: int | None
    failing_since: int | None
    last_status: int | None
    last_error: str | None
    delivered_at: int | None
    created_at: int
    cursor: int
    head: int
    parked: int
    acked_at: int | None

    @property
    def consumer(self) -> str:
        return webhook_consumer(self.name)

    @property
    def only(self) -> Only:
        return Only(kinds=None if self.kinds is None else expand_kinds(self.kinds), subject=self.subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A change that the receiver rejected."""

    seq: int
    kind: str | None
    """None where the change itself is no longer kept."""
    status: int | None
    reason: str
    tries: int
    wanted: bool
    at: int


_COLUMNS = f"""
select w.id, w.project_id, {shown("p")}, w.name, w.url, w.secret,
  case when w.old_secret_until > :now then w.old_secret end,
  w.kinds, w.subject_id, u.name, w.on_reject, w.state, w.reason, w.tries, w.rejections, w.next_try_at,
  w.failing_since, w.last_status, w.last_error, w.delivered_at, w.created_at, c.cursor, p.change_seq,
  (select count(*) from parked_changes k where k.webhook_id = w.id), c.acked_at
from webhooks w join projects p on p.id = w.project_id and p.erased_at is null
  join consumers c on c.project_id = w.project_id and c.name = 'webhook:' || w.name
  left join subjects u on u.id = w.subject_id """
_LIST = text(_COLUMNS + "where (:project is null or w.project_id = :project) order by w.id limit :limit")
_GET = text(_COLUMNS + "where w.project_id = :project and w.id = :id")
_NAMED = text(_COLUMNS + "where w.project_id = :project and w.name = :name")
_ADD = text("""
insert into webhooks(project_id, name, url, secret, kinds, subject_id, on_reject, created_at)
values(:project, :name, :url, :secret, :kinds, :subject, :on_reject, :now) returning id""")
_CHANGE = text("""
update webhooks set url = :url, kinds = :kinds, subject_id = :subject, on_reject = :on_reject where id = :id""")
_PAUSE = text("update webhooks set state = 'paused', reason = :reason, next_try_at = null where id = :id")
_RESUME = text("""
update webhooks set state = 'active', reason = null, tries = 0, rejections = 0, next_try_at = null, resumed_at = :now
where id = :id""")
_ROTATE = text("""
update webhooks set old_secret = secret, old_secret_until = :until, secret = :secret where id = :id""")
_REMOVE = text("delete from webhooks where id = :id")
_UNPARK_ALL = text("delete from parked_changes where webhook_id = :id")


def add_webhook(conn: Connection, project: int, new: NewWebhook) -> int:
    """Its number. Raises Conflict where the name is taken, NotFound and CursorExpired for `after`."""
    if find_webhook(conn, project, new.name) is not None:
        raise Conflict(f"there is a webhook {new.name!r} already", name=new.name)
    after = find_head(conn, project) if new.after is None else new.after
    replay_consumer(conn, project, webhook_consumer(new.name), after)
    return int(conn.scalar(_ADD, {
        "project": project, "name": new.name, "url": new.url, "secret": new.secret, "kinds": _kinds(new.kinds),
        "subject": new.subject, "on_reject": new.on_reject, "now": conn.now(),
    }))  # fmt: skip


def list_webhooks(conn: Connection, project: int | None) -> list[WebhookRow]:
    """Of one project, or of all (None)."""
    return [_row(r) for r in conn.rows(_LIST, {"project": project, "now": conn.now(), "limit": WEBHOOKS_MAX})]


def get_webhook(conn: Connection, project: int, id_: int) -> WebhookRow:
    row = conn.first(_GET, {"project": project, "id": id_, "now": conn.now()})
    if row is None:
        raise NotFound(f"there is no webhook {row_id('whk', id_)} in this project", id=row_id("whk", id_))
    return _row(row)


def find_webhook(conn: Connection, project: int, name: str) -> WebhookRow | None:
    row = conn.first(_NAMED, {"project": project, "name": name, "now": conn.now()})
    return None if row is None else _row(row)


def _row(r: Row) -> WebhookRow:
    return WebhookRow(
        id=r[0], project=r[1], project_name=r[2], name=r[3], url=r[4], secret=r[5], old_secret=r[6],
        kinds=None if r[7] is None else tuple(json.loads(r[7])), subject=r[8], subject_name=r[9], on_reject=r[10],
        state=r[11], reason=r[12], tries=r[13], rejections=r[14], next_try_at=r[15], failing_since=r[16],
        last_status=r[17], last_error=r[18], delivered_at=r[19], created_at=r[20], cursor=r[21], head=r[22],
        parked=r[23], acked_at=r[24],
    )  # fmt: skip


def _kinds(kinds: Sequence[str] | None) -> str | None:
    return None if kinds is None else json.dumps(list(kinds))


def change_webhook(
    conn: Connection, project: int, id_: int, url: str, kinds: Sequence[str] | None, subject: int | None, on_reject: str
) -> None:
    """What is under way counts for nothing, so that all that follows goes where it is to go now. Raises NotFound."""
    webhook = get_webhook(conn, project, id_)
    fence_off(conn, project, webhook.consumer)
    conn.run(_CHANGE, {"id": id_, "url": url, "kinds": _kinds(kinds), "subject": subject, "on_reject": on_reject})
    conn.ring(project)


def pause_webhook(conn: Connection, project: int, id_: int, reason: str) -> None:
    """Nothing is sent until it is resumed; what comes meanwhile waits. Raises NotFound."""
    get_webhook(conn, project, id_)
    conn.run(_PAUSE, {"id": id_, "reason": reason})


def resume_webhook(conn: Connection, project: int, id_: int) -> None:
    """Go on at the cursor, at once, with all tries and days anew; since when it fails stays, until a delivery succeeds.

    Raises NotFound, and CursorExpired where what follows is no longer kept.
    """
    webhook = get_webhook(conn, project, id_)
    require_kept(conn, project, webhook.cursor)
    conn.run(_RESUME, {"id": id_, "now": conn.now()})
    conn.ring(project)


def replay_webhook(conn: Connection, project: int, id_: int, after: int) -> None:
    """Go on after `after`, at once: what follows is sent again. Raises NotFound, CursorExpired."""
    webhook = get_webhook(conn, project, id_)
    replay_consumer(conn, project, webhook.consumer, after)
    conn.run(_RESUME, {"id": id_, "now": conn.now()})
    conn.ring(project)


def rotate_secret(conn: Connection, project: int, id_: int, secret: str, keep_s: float) -> None:
    """The secret of before signs beside the new one for another `keep_s`. Raises NotFound."""
    get_webhook(conn, project, id_)
    conn.run(_ROTATE, {"id": id_, "secret": secret, "until": conn.now() + int(keep_s * 1e6)})


def remove_webhook(conn: Connection, project: int, id_: int) -> None:
    """Raises NotFound."""
    webhook = get_webhook(conn, project, id_)
    conn.run(_UNPARK_ALL, {"id": id_})
    conn.run(_REMOVE, {"id": id_})
    remove_consumer(conn, project, webhook.consumer)


# ---- what was parked

_PARKED = text("""
select k.seq, c.kind, k.status, k.reason, k.tries, k.wanted, k.at from parked_changes k
  left join changes c on c.project_id = :project and c.seq = k.seq
where k.webhook_id = :id and k.seq > :after order by k.seq limit :limit""")
_WANT = text("update parked_changes set wanted = 1 where webhook_id = :id and (:seq is null or seq = :seq)")
_DROP = text("delete from parked_changes where webhook_id = :id and (:seq is null or seq = :seq)")


def list_parked(conn: Connection, project: int, id_: int, after: int, limit: int) -> list[Parked]:
    """In the order of the changes. Raises NotFound."""
    get_webhook(conn, project, id_)
    rows = conn.rows(_PARKED, {"project": project, "id": id_, "after": after, "limit": limit})
    return [Parked(seq=r[0], kind=r[1], status=r[2], reason=r[3], tries=r[4], wanted=bool(r[5]), at=r[6]) for r in rows]


def retry_parked(conn: Connection, project: int, id_: int, seq: int | None) -> int:
    """Send one (None: each) again, before what waits; how many. Raises NotFound, also for one that is not parked."""
    get_webhook(conn, project, id_)
    wanted = _some_parked(conn.run(_WANT, {"id": id_, "seq": seq}), seq)
    conn.ring(project)
    return wanted


def drop_parked(conn: Connection, project: int, id_: int, seq: int | None) -> int:
    """Never mind one (None: any); how many. Raises NotFound, also for one that is not parked."""
    get_webhook(conn, project, id_)
    return _some_parked(conn.run(_DROP, {"id": id_, "seq": seq}), seq)


def _some_parked(found: int, seq: int | None) -> int:
    if seq is not None and not found:
        raise NotFound(f"change {seq} is not parked for this webhook", seq=seq)
    return found


_OF_PROJECT = text("select id from webhooks where project_id = :project")


def erase_webhooks(conn: Connection, project: int) -> int:
    """All of a project that is erased: their names and addresses are its own words."""
    rows = conn.rows(_OF_PROJECT, {"project": project})
    for (id_,) in rows:
        conn.run(_UNPARK_ALL, {"id": id_})
        conn.run(_REMOVE, {"id": id_})
    return len(rows)
