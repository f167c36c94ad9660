"""Causes that lie with those who follow the changes: webhooks that fail or wait for a hand, consumers left behind."""

from __future__ import annotations

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.store.connection import Connection
from everkept.store.consumers import list_consumers
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.diagnosis.work import _cut, _in
from everkept.store.webhooks import list_webhooks

FAILING_US = 60_000_000
"""A receiver that has failed for less may only be restarting, and needs nobody."""
_PARKED_SINCE = text("select min(at) from parked_changes where webhook_id = :id")


def webhooks(conn: Connection, _look: Look) -> list[Finding]:
    found = []
    for hook in list_webhooks(conn, None):
        id_, at = row_id("whk", hook.id), _in(hook.project_name)
        evidence: dict[str, int | float | str | None] = {"webhook": id_, "waiting": hook.head - hook.cursor}
        if hook.state == "dead":
            found.append(Finding(
                cause="webhook_dead", what=f"{hook.name}: {_cut(hook.reason)}", since=hook.failing_since,
                evidence=evidence, mend=f"everkept webhooks test {id_}{at}, then: everkept webhooks resume {id_}{at}",
            ))  # fmt: skip
        elif hook.failing_since is not None and hook.failing_since < conn.now() - FAILING_US:
            found.append(Finding(
                cause="webhook_failing", what=f"{hook.name}: {_cut(hook.last_error)}", since=hook.failing_since,
                evidence={**evidence, "tries": hook.tries}, mend=f"everkept webhooks test {id_}{at}",
            ))  # fmt: skip
        if hook.parked:
            found.append(Finding(
                cause="webhook_rejected",
                what=f"{hook.name} rejected {hook.parked:,} change{'' if hook.parked == 1 else 's'}",
                since=conn.scalar(_PARKED_SINCE, {"id": hook.id}), evidence={"webhook": id_, "parked": hook.parked},
                mend=f"everkept webhooks show {id_}{at}, then: everkept webhooks retry {id_}{at} (or drop)",
            ))  # fmt: skip
    return found


def consumers_left_behind(conn: Connection, _look: Look) -> list[Finding]:
    """A dead webhook says so itself."""
    return [
        Finding(
            cause="consumer_behind", what=f"{each.name} of project {each.project} is at change {each.cursor:,}",
            since=each.acked_at, evidence={"consumer": each.name, "lag": each.lag},
            mend=f"take a snapshot, then: everkept consumers replay {each.name} --after {each.head}{_in(each.project)}",
        )
        for each in list_consumers(conn, None) if not each.kept and each.state is None and each.name != "wiki"
    ]  # fmt: skip
