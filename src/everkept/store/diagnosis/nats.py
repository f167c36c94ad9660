"""Causes that lie with NATS: it cannot be reached, or its streams do not keep what they are asked to keep."""

from __future__ import annotations

from everkept.domain.changes import NATS_CONSUMER
from everkept.store.changes import find_oldest
from everkept.store.connection import Connection
from everkept.store.consumers import list_consumers
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.diagnosis.work import _cut, _in
from everkept.store.projects import get_project


def streams(_conn: Connection, look: Look) -> list[Finding]:
    seen = look.nats
    if seen is None:
        return []
    if seen.trouble is not None:
        return [Finding(
            cause="nats_unreachable", what=_cut(seen.trouble), since=seen.since, evidence={"server": seen.server},
            mend="start it, or correct it: everkept config nats.url",
        )]  # fmt: skip
    found = [
        Finding(
            cause="nats_stream_differs", what=f"{stream.name}: {'; '.join(stream.differs)}", since=None,
            evidence={"stream": stream.name, "messages": stream.messages},
            mend=f"nats stream edit {stream.name}, or another name in nats.events_stream and nats.changes_stream",
        )
        for stream in seen.streams if stream.differs
    ]  # fmt: skip
    single = [stream.name for stream in seen.streams if stream.replicas == 1]
    if single:
        found.append(Finding(
            cause="nats_one_replica", what=f"{' and '.join(single)}: one replica", since=None, chosen=True,
            evidence={"pending": seen.pending, "redelivered": seen.redelivered},
            mend="nats stream edit NAME --replicas 3 in a cluster; with one server: sync_interval: always",
        ))  # fmt: skip
    return found


def changes_missing(conn: Connection, look: Look) -> list[Finding]:
    """The stream was made anew after changes of a project had been published, and does not have them."""
    seen = look.nats
    if seen is None or seen.published is None:
        return []
    made_at = max((s.made_at for s in seen.streams if s.name == look.settings.nats.changes_stream), default=0)
    found = []
    for each in list_consumers(conn, None):
        if each.name != NATS_CONSUMER or each.created_at >= made_at:
            continue
        oldest = find_oldest(conn, get_project(conn, each.project).id)
        missing = each.cursor - oldest + 1 - seen.published.get(each.project, 0)
        if missing > 0:
            found.append(Finding(
                cause="nats_stream_lost", what=f"it lacks {missing:,} changes of project {each.project}",
                since=made_at, evidence={"oldest_kept": oldest, "cursor": each.cursor, "missing": missing},
                mend=f"everkept consumers replay {NATS_CONSUMER} --after {oldest - 1}{_in(each.project)}",
            ))  # fmt: skip
    return found
