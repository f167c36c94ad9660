"""How much an erase will take, and whether anything is left of it afterwards (G10). Both only read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from everkept.domain.erase import ERASED_MARK, EventTarget, ProjectTarget, StreamTarget, SubjectTarget, Target
from everkept.store.connection import Connection
from everkept.store.handoffs import KEPT_US

Counts = dict[str, int]

_OLD_PACKETS = """launches l where l.project_id = :project and l.packet <> ''
  and l.packet_erasure < (select max(x.id) from erasures x where x.project_id = :project)"""
"""Packets that were made before the project's newest erase."""
_RECEIVERS = """launches l
  join sessions x on x.agent = l.agent and x.native_id in (l.native_id, l.resumes) and x.project_id = l.project_id
  join streams s on s.id = x.stream_id where l.project_id = :project and """
"""Launches that name a session which was to have their packet, or has it."""
_CURSORS = """workstreams w join workstream_cursors c on c.workstream_id = w.id
  join sessions x on x.agent = c.agent and x.native_id = c.native_id and x.project_id = w.project_id
  join streams s on s.id = x.stream_id where w.project_id = :project and """
_RENAMED = """merges m join objects(m.renamed) r on word_at(r.value, 0) in ('thread', 'session')
  join streams s on s.project_id = m.target_id and s.kind = word_at(r.value, 0) and s.name = word_at(r.value, 2)
  where m.target_id = :project and """
"""What merges had to call otherwise."""

# Each query counts rows that still say something. The scope's rows are named by :project, :subject, :stream and :seq.

_EVENT = {
    "messages": "events e where e.project_id = :project and e.stream_id = :stream and e.seq = :seq and {said}",
    "passages": "passages p where p.kind = 'turn' and p.stream_id = :stream and p.seq = :seq",
    "facts": """facts f where f.recorded_at <= :until and (
  f.id in (select v.fact_id from fact_events v where v.stream_id = :stream and v.seq = :seq)
  or f.window_id in (select w.id from windows w where {covers}))""",
    "episodes": "windows w where {covers} and w.summary_at <= :until and w.summary <> ''",
    "slices": """slices p where p.window_id in (select w.id from windows w where {covers})
  and (p.summary <> '' and p.summary_at <= :until or p.rejected is not null and p.facts_at <= :until)""",
    "replies": """replies r join windows w on r.work like 'window:' || cast(w.id as text) || '.%'
  where r.subject_id = (select s.subject_id from streams s where s.id = :stream) and {covers}
  and r.asked_at <= :until""",
    "pages": "pages g where g.stream_id = :stream and g.version > 0 and g.created_at <= :until and {session}",
    "handoffs": f"handoffs h where h.stream_id = :stream and h.expires_at <= :until + {KEPT_US} and {{session}}",
    "observations": "observations o where o.stream_id = :stream and o.seq = :seq",
    "quotes": "proposal_quotes q where q.stream_id = :stream and q.seq = :seq",
    "packets": _OLD_PACKETS,
}
_STREAM = {
    "threads": "streams s where s.id = :stream and s.project_id = :project and {named}",
    "messages": "events e where e.project_id = :project and e.stream_id = :stream and {said}",
    "passages": """(
  select p.id from passages p where p.kind = 'turn' and p.stream_id = :stream
  union all select p.id from passages p
  where p.kind <> 'turn' and p.subject_id = (select s.subject_id from streams s where s.id = :stream) and (
    p.stream_id = :stream
    or p.kind = 'fact' and p.ref_id in (select v.fact_id from fact_events v where v.stream_id = :stream)
    or p.kind = 'episode' and p.ref_id in (select w.id from windows w where w.stream_id = :stream))) p""",
    "facts": "facts f where f.id in (select v.fact_id from fact_events v where v.stream_id = :stream)",
    "episodes": "windows w where w.stream_id = :stream",
    "forgotten": "forgotten g join windows w on w.id = g.window_id where w.stream_id = :stream",
    "pages": "pages g where g.stream_id = :stream",
    "handoffs": "handoffs h where h.stream_id = :stream",
    "sessions": "sessions x where x.stream_id = :stream",
    "reviews": "generations g where g.stream_id = :stream",
    "observations": "observations o where o.stream_id = :stream",
    "packets": _OLD_PACKETS,
    "ledger": "workstream_ledger l where l.stream_id = :stream",
    "links": "launch_sessions l where l.stream_id = :stream",
    "names in merges": _RENAMED + "s.id = :stream",
    "receivers": _RECEIVERS + "s.id = :stream",
    "cursors": _CURSORS + "s.id = :stream",
    "proposals": """(
  select p.id from proposals p where p.stream_id = :stream
  union select q.proposal_id from proposal_quotes q where q.stream_id = :stream) p""",
    "replies": """replies r where r.subject_id = (select s.subject_id from streams s where s.id = :stream)
  and number_in(r.recipe, 'stream') = :stream""",
    "names in changes": """changes c where c.project_id = :project and c.stream_id = :stream
  and c.kind = 'messages.appended' and c.ref <> 'thr_' || cast(:stream as text)""",
}
_SUBJECT = {
    "subjects": "subjects u where u.id = :subject and u.project_id = :project and {unmarked}",
    "threads": "streams s where s.subject_id = :subject and {named}",
    "messages": "streams s join events e on e.stream_id = s.id where s.subject_id = :subject and {said}",
    "passages": "{passages} p",
    "vectors": "{passages} p join vectors v on v.passage_id = p.id",
    "facts": "facts f where f.subject_id = :subject",
    "verdicts": "verdicts v where v.subject_id = :subject",
    "episodes": "windows w where w.subject_id = :subject",
    "forgotten": "forgotten g join windows w on w.id = g.window_id where w.subject_id = :subject",
    "pages": "pages g where g.subject_id = :subject",
    "handoffs": "handoffs h join streams s on s.id = h.stream_id where s.subject_id = :subject",
    "sessions": "sessions x join streams s on s.id = x.stream_id where s.subject_id = :subject",
    "reviews": "streams s join generations g on g.stream_id = s.id where s.subject_id = :subject",
    "observations": "streams s join observations o on o.stream_id = s.id where s.subject_id = :subject",
    "proposals": """(
  select p.id from streams s join proposals p on p.stream_id = s.id where s.subject_id = :subject
  union select q.proposal_id from streams s join proposal_quotes q on q.stream_id = s.id
  where s.subject_id = :subject) p""",
    "packets": _OLD_PACKETS,
    "ledger": "workstream_ledger l join streams s on s.id = l.stream_id where s.subject_id = :subject",
    "links": "launch_sessions l join streams s on s.id = l.stream_id where s.subject_id = :subject",
    "names in merges": _RENAMED + "s.subject_id = :subject",
    "receivers": _RECEIVERS + "s.subject_id = :subject",
    "cursors": _CURSORS + "s.subject_id = :subject",
    "entities": "entities n where n.subject_id = :subject",
    "names": "entity_aliases a where a.subject_id = :subject",
    "replies": "replies r where r.subject_id = :subject",
    "jobs": "jobs j where j.kind = 'judge_conflicts' and j.key = cast(:subject as text) and j.project_id = :project",
    "names in changes": """changes c where c.project_id = :project and c.subject_id = :subject
  and c.kind = 'messages.appended' and c.ref <> 'thr_' || cast(c.stream_id as text)""",
}
_PROJECT = {
    "subjects": "subjects u where u.project_id = :project and {unmarked}",
    "threads": "streams s where s.project_id = :project and {named}",
    "messages": "streams s join events e on e.stream_id = s.id where s.project_id = :project and {said}",
    "passages": "passages p where p.project_id = :project",
    "vectors": "vectors v where v.project_id = :project",
    "embeddings": "embeddings m where m.project_id = :project",
    "facts": "facts f where f.project_id = :project",
    "episodes": "windows w where w.project_id = :project",
    "forgotten": "forgotten g join windows w on w.id = g.window_id where w.project_id = :project",
    "pages": "pages g where g.project_id = :project",
    "handoffs": "handoffs h where h.project_id = :project",
    "sessions": "sessions x where x.project_id = :project",
    "reviews": "generations g where g.project_id = :project",
    "observations": "observations o where o.project_id = :project",
    "proposals": "proposals p where p.project_id = :project",
    "offers": "offers o where o.project_id = :project",
    "workstreams": "workstreams w where w.project_id = :project",
    "launches": "launches l where l.project_id = :project",
    "links": "launch_sessions l where l.project_id = :project",
    "aliases": "project_aliases a where a.project_id = :project",
    "entities": "entities n where n.project_id = :project",
    "replies": "replies r where r.project_id = :project",
    "changes": "changes c where c.project_id = :project and c.kind <> 'memory.erased'",
    "jobs": "jobs j where j.project_id = :project and j.kind <> 'erase_scope'",
    "consumers": "consumers c where c.project_id = :project",
    "webhooks": "webhooks h where h.project_id = :project",
}
_WORDS = {
    "said": "(e.erased_at is null or e.content is not null or e.name is not null or e.metadata is not null)",
    "covers": "w.stream_id = :stream and w.start_seq <= :seq and w.end_seq >= :seq",
    "named": "substr(s.name, 1, 8) <> :mark",
    "unmarked": "substr(u.name, 1, 8) <> :mark",
    "session": "exists (select 1 from streams s where s.id = :stream and s.kind = 'session')",
    "passages": """(
  select p.id from passages p where p.kind <> 'turn' and p.subject_id = :subject
  union all select p.id from streams s join passages p on p.kind = 'turn' and p.stream_id = s.id
  where s.subject_id = :subject)""",
}
assert len(ERASED_MARK) == 8


def _counted(rest: str) -> Any:
    return text("select count(*) from " + rest.format(**_WORDS))


_QUERIES = {
    EventTarget: {k: _counted(v) for k, v in _EVENT.items()},
    StreamTarget: {k: _counted(v) for k, v in _STREAM.items()},
    SubjectTarget: {k: _counted(v) for k, v in _SUBJECT.items()},
    ProjectTarget: {k: _counted(v) for k, v in _PROJECT.items()},
}
_ERASED_AT = text("select erased_at from events where stream_id = :stream and seq = :seq and project_id = :project")


def plan_erase(conn: Connection, project: int, target: Target) -> Counts:
    """Rows by kind that the erase would destroy; kinds with none are left out."""
    return {kind: n for kind, n in _count(conn, project, target, conn.now()).items() if n}


def residue(conn: Connection, project: int, target: Target) -> Counts:
    """What is left of an erased scope, by kind; every number 0 is the proof that nothing is.

    What was derived again after an event was erased, from the rest of its window, is no residue.
    """
    until = conn.now()
    if isinstance(target, EventTarget):
        until = conn.scalar(_ERASED_AT, {"project": project, "stream": target.stream, "seq": target.seq}) or until
    return _count(conn, project, target, until)


def _count(conn: Connection, project: int, target: Target, until: int) -> Counts:
    params: dict[str, Any] = {
        "project": project, "subject": None, "stream": None, "seq": None, "until": until, "mark": ERASED_MARK
    }  # fmt: skip
    match target:
        case EventTarget(stream=stream, seq=seq):
            params |= {"stream": stream, "seq": seq}
        case StreamTarget(stream=stream):
            params |= {"stream": stream}
        case SubjectTarget(subject=subject):
            params |= {"subject": subject}
        case ProjectTarget():
            pass
    return {kind: int(conn.scalar(query, params)) for kind, query in _QUERIES[type(target)].items()}
