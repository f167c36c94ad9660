"""What a sender of webhooks reads and writes: what is next, and what came of it.

Everything that follows from one delivery is one commit, under the fence of the consumer's lease: the cursor, the tries,
what was parked. So a sender that lost its lease writes nothing, and a restart goes on with the wait it left.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.errors import CursorExpired, LeaseLost
from everkept.store.changes import acknowledge, covered, read_changes
from everkept.store.connection import Connection, Row
from everkept.store.merging import is_merged
from everkept.store.webhooks import WEBHOOKS_MAX, WebhookRow, get_webhook

PARKED_MAX: Final = 1_000
"""A receiver that has rejected so many is not sent more before somebody has looked."""
BATCH: Final = 50
"""Changes that are read at once; each is sent and acknowledged on its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is to be sent next, in order, and how far that takes the cursor."""

    webhook: WebhookRow
    changes: list[Row]
    """As `read_changes` gives them."""
    through: int
    parked: bool
    """Whether it is one that was parked and is wanted again: it moves no cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """One try that did not deliver."""

    seq: int
    status: int | None
    """None: no answer came."""
    error: str
    wait_s: float
    """Until the next try."""
    rejected: bool
    """The receiver will not have it, however often it is asked."""


_DUE = text("""
select w.project_id, w.id from webhooks w join projects p on p.id = w.project_id and p.erased_at is null
    and p.merged_into is null
  join consumers c on c.project_id = w.project_id and c.name = 'webhook:' || w.name
where w.state = 'active' and coalesce(w.next_try_at, 0) <= :now
  and w.id not in (select value from numbers(:running))
  and (c.lease_until is null or c.lease_until <= :now or c.owner = :owner)
  and (c.cursor < p.change_seq or exists (select 1 from parked_changes k where k.webhook_id = w.id and k.wanted = 1))
order by w.id limit :limit""")
_WANTED = text("select min(seq) from parked_changes where webhook_id = :id and wanted = 1")
_HELD = text("""
select 1 from consumers where project_id = :project and name = :name and fence = :fence and lease_until > :now""")
_DELIVERED = text("""
update webhooks set tries = 0, next_try_at = null, failing_since = null, last_status = :status, last_error = null,
  rejections = 0, delivered_at = :now where id = :id returning state""")
_FAILED = text("""
update webhooks set tries = tries + 1, rejections = rejections + :rejected, next_try_at = :next,
  failing_since = coalesce(failing_since, :now), last_status = :status, last_error = :error
where id = :id returning max(failing_since, coalesce(resumed_at, 0))""")
_PASSED = text("""
update webhooks set tries = 0, rejections = 0, next_try_at = null, failing_since = null, last_status = :status,
  last_error = :error where id = :id returning state""")
_DIE = text("update webhooks set state = 'dead', reason = :reason, next_try_at = null where id = :id")
_PARK = text("""
insert into parked_changes(webhook_id, seq, status, reason, tries, at) values(:id, :seq, :status, :reason, :tries, :now)
on conflict (webhook_id, seq) do update set
  status = :status, reason = :reason, tries = parked_changes.tries + :tries, wanted = 0, at = :now""")
_COUNT_PARKED = text("select count(*) from parked_changes where webhook_id = :id")
_UNPARK = text("delete from parked_changes where webhook_id = :id and seq = :seq")


def due_webhooks(conn: Connection, owner: str, running: Collection[int] = ()) -> list[tuple[int, int]]:
    """(project, webhook) of each that has something to send now, that nobody else holds and that is not `running`."""
    at = {"now": conn.now(), "owner": owner, "running": json.dumps(list(running)), "limit": WEBHOOKS_MAX}
    rows = conn.rows(_DUE, at)
    return [(row[0], row[1]) for row in rows]


def next_batch(conn: Connection, project: int, id_: int) -> Batch | None:
    """What was parked and is wanted again goes first. None: nothing is to be sent now. Raises NotFound, CursorExpired.

    A wait that is not over is kept, also over a restart. While its project is merged into another one it waits: what it
    has not heard is on its way there, and so is it.
    """
    webhook = get_webhook(conn, project, id_)
    if webhook.state != "active" or (webhook.next_try_at or 0) > conn.now() or is_merged(conn, project):
        return None
    wanted = conn.scalar(_WANTED, {"id": id_})
    if wanted is not None:
        return Batch(webhook=webhook, changes=_kept_change(conn, project, wanted), through=wanted, parked=True)
    if webhook.cursor >= webhook.head:
        return None
    rows, head = read_changes(conn, project, webhook.cursor, BATCH, webhook.only)
    through = covered(rows, after=webhook.cursor, head=head, limit=BATCH)
    return Batch(webhook=webhook, changes=rows, through=through, parked=False)


def _kept_change(conn: Connection, project: int, seq: int) -> list[Row]:
    try:
        return read_changes(conn, project, seq - 1, 1)[0]
    except CursorExpired:
        return []


def note_delivered(conn: Connection, webhook: WebhookRow, fence: int, seq: int, status: int) -> bool:
    """The receiver has it; whether to go on. Raises LeaseLost, and then nothing is written."""
    _require_held(conn, webhook, fence)
    acknowledge(conn, webhook.project, webhook.consumer, seq, fence)
    return str(conn.scalar(_DELIVERED, {"id": webhook.id, "status": status, "now": conn.now()})) == "active"


def note_covered(conn: Connection, webhook: WebhookRow, fence: int, through: int) -> None:
    """Nothing up to there is for this receiver. Raises LeaseLost."""
    acknowledge(conn, webhook.project, webhook.consumer, through, fence)


def note_failed(conn: Connection, webhook: WebhookRow, fence: int, failed: Failed, give_up_s: float) -> str | None:
    """It is tried again after the wait; after `give_up_s` without a success the webhook is dead, and this says why.

    What a hand lets go on is given all that time again.

    Raises LeaseLost.
    """
    _require_held(conn, webhook, fence)
    now = conn.now()
    row = conn.first(_FAILED, {
        "id": webhook.id, "now": now, "next": now + int(failed.wait_s * 1e6), "status": failed.status,
        "error": failed.error, "rejected": int(failed.rejected),
    })  # fmt: skip
    if row is None or now - row[0] < give_up_s * 1e6:
        return None
    reason = f"no delivery has succeeded for {give_up_s / 86_400:.3g} days; at last: {failed.error}"
    conn.run(_DIE, {"id": webhook.id, "reason": reason})
    return reason


def note_expired(conn: Connection, webhook: WebhookRow, fence: int, reason: str) -> None:
    """What it would have to be sent next is no longer kept: a hand decides where it goes on. Raises LeaseLost."""
    _require_held(conn, webhook, fence)
    conn.run(_DIE, {"id": webhook.id, "reason": reason})


def note_parked(
    conn: Connection, webhook: WebhookRow, fence: int, failed: Failed, tries: int
) -> tuple[bool, str | None]:
    """The change is set aside, and what follows is sent; (whether to go on, why the webhook is dead now).

    Raises LeaseLost.
    """
    _require_held(conn, webhook, fence)
    acknowledge(conn, webhook.project, webhook.consumer, failed.seq, fence)
    now = conn.now()
    at = {"id": webhook.id, "seq": failed.seq, "status": failed.status, "now": now}
    conn.run(_PARK, {**at, "reason": failed.error, "tries": tries})
    state = conn.scalar(_PASSED, {"id": webhook.id, "status": failed.status, "error": failed.error})
    if conn.scalar(_COUNT_PARKED, {"id": webhook.id}) < PARKED_MAX:
        return str(state) == "active", None
    reason = f"{PARKED_MAX:,} changes are parked; at last: {failed.error}"
    conn.run(_DIE, {"id": webhook.id, "reason": reason})
    return False, reason


def note_taken_back(conn: Connection, webhook: WebhookRow, fence: int, seq: int, failed: Failed | None) -> None:
    """What came of another try of a parked change: it is delivered, or parked again. Raises LeaseLost."""
    _require_held(conn, webhook, fence)
    now = conn.now()
    if failed is None:
        conn.run(_UNPARK, {"id": webhook.id, "seq": seq})
        return
    at = {"id": webhook.id, "seq": seq, "status": failed.status, "now": now}
    conn.run(_PARK, {**at, "reason": failed.error, "tries": 1})


def _require_held(conn: Connection, webhook: WebhookRow, fence: int) -> None:
    at = {"project": webhook.project, "name": webhook.consumer, "fence": fence, "now": conn.now()}
    if conn.scalar(_HELD, at) is None:
        raise LeaseLost("another process sends this webhook now; nothing was written", webhook=webhook.name)
