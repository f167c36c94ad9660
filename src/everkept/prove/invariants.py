"""What must hold of a store's file at every instant, and once it has drained: a query each, of the rows that break it.

Plain SQL over the file, and nothing of `everkept.store`: what these queries believe was written down a second time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Invariant:
    guarantee: str
    what: str
    """What is wrong where the query gives a row."""
    query: str
    """Its rows say where; none is right."""


_LIVE_STREAM = """streams s join subjects u on u.id = s.subject_id join projects p on p.id = s.project_id
  and s.erased_at is null and u.erased_at is null and p.erased_at is null"""
_OFF = """coalesce(0 in (
  json_extract(p.settings, '$."memory.enabled"'), json_extract(s.settings, '$."memory.enabled"')), 0)"""
_NO_IDLE = """coalesce('null' in (
  json_type(p.settings, '$."window.idle_s"'), json_type(s.settings, '$."window.idle_s"')), 0)"""
_MERGING = "exists (select 1 from merges m where m.done_at is null and {project} in (m.source_id, m.target_id))"
"""Rows of the project are on their way, each stretch in a transaction of its own."""
_WHOLE_OUTBOX = """((select min(c.seq) from changes c where c.project_id = {project}) = 1 and not exists (
  select 1 from merges m join projects o on o.id = m.source_id where m.target_id = {project}
    and (m.done_at is null or coalesce(json_extract(m.moved, '$.changes'), 0) <> o.change_seq)))"""
"""Nothing of a project's outbox was pruned or destroyed yet, nor of those that went into it."""


def _stage(column: str, kind: str, states: str) -> str:
    """Windows with a slice that lacks this effect and has no job in these states."""
    return f"""
select w.id, l.slice from windows w join slices l on l.window_id = w.id join {_LIVE_STREAM} and s.id = w.stream_id
where w.skipped_because is null and w.{column} is null and l.{column} is null and not exists (
  select 1 from jobs j where j.kind = case when s.kind = 'session' then 'digest_session' else '{kind}' end
    and j.key = w.id || '.' || l.slice and j.state in ({states}))"""


def _once(kind: str, table: str, prefix: str) -> str:
    """Rows of a table that the outbox does not name exactly once."""
    return f"""
select t.id, t.project_id from {table} t left join (
  select project_id, ref, count(*) as times from changes where kind = '{kind}' group by 1, 2) c
  on c.project_id = t.project_id and c.ref = '{prefix}_' || t.id
where {_WHOLE_OUTBOX.format(project="t.project_id")} and coalesce(c.times, 0) <> 1"""


def _lane_counts() -> str:
    ready = " or ".join(
        f"l.ready_{use} <> (select count(*) from jobs j"
        f" where j.lane_id = l.id and j.state = 'ready' and j.uses = '{use}')"
        for use in ("local", "model", "embedder")
    )
    return f"""
select l.id from lanes l
where l.running <> (select count(*) from jobs j where j.lane_id = l.id and j.state = 'leased') or {ready}"""


def _group_counts() -> str:
    differs = " or ".join(
        f"g.{column} <> (select coalesce(sum(l.{column}), 0) from lanes l where l.group_id = g.id)"
        for column in ("running", "ready_local", "ready_model", "ready_embedder")
    )
    return f"select g.id, g.project_id from lane_groups g where {differs}"


ALWAYS: Final = (
    # ---- G1, G2: the log of a stream
    Invariant("G1", "a stream's events have a gap, or its counter is not the last one", """
select s.id, s.last_seq from streams s left join events e on e.stream_id = s.id group by s.id
having s.last_seq <> count(e.seq) or s.last_seq <> coalesce(max(e.seq), 0)"""),
    Invariant("G2", "two events share an idempotency key", """
select project_id, key_hash from events where key_hash is not null group by 1, 2 having count(*) > 1"""),
    Invariant("G2", "two threads of a project share a name", """
select project_id, name from streams where erased_at is null group by project_id, kind, name having count(*) > 1"""),
    Invariant("G2", "two projects share a name", """
select name from projects group by workspace_id, name having count(*) > 1"""),
    # ---- G3: whatever waits has something that will wake it
    Invariant("G3", "messages wait in no window, and no timer is armed for them", f"""
select s.id, s.covered_seq, s.last_seq from {_LIVE_STREAM}
where s.covered_seq < s.last_seq and not {_OFF} and (s.end_through > s.covered_seq or not {_NO_IDLE})
  and exists (select 1 from events e where e.stream_id = s.id and e.seq > s.covered_seq and e.evidence <> 2)
  and not exists (select 1 from jobs j where j.kind = 'open_window' and j.key = cast(s.id as text)
    and j.state in ('waiting', 'ready', 'leased', 'dead'))"""),
    Invariant("G3", "a window lacks its summary, and no job will write it",
              _stage("summary_at", "summarise_episode", "'waiting', 'ready', 'leased', 'dead', 'discarded'")),
    Invariant("G3", "a window lacks its facts, and no job will write them",
              _stage("facts_at", "extract_facts", "'waiting', 'ready', 'leased', 'dead', 'discarded'")),
    Invariant("G3", "an open conflict has no job that will judge it", """
select v.subject_id from verdicts v join subjects u on u.id = v.subject_id join projects p on p.id = u.project_id
where v.verdict is null and u.erased_at is null and p.erased_at is null and not exists (select 1 from jobs j
  where j.kind = 'judge_conflicts' and j.key = cast(v.subject_id as text)
  and j.state in ('waiting', 'ready', 'leased', 'dead', 'discarded'))
  and not exists (select 1 from erasures x where x.subject_id = v.subject_id and x.done_at is null)"""),
    Invariant("G3", "a passage waits for its vectors, and no job will make them", """
select distinct a.project_id from passages a join projects p on p.id = a.project_id and p.erased_at is null
where a.embedded is null and a.hidden = 0 and not exists (
  select 1 from erasures x where x.done_at is null and x.project_id = a.project_id
  and (x.kind = 'project' or x.subject_id = a.subject_id or x.stream_id = a.stream_id)) and not exists (
  select 1 from jobs j where j.kind = 'embed_passages' and j.key = cast(a.project_id as text)
  and j.state in ('waiting', 'ready', 'leased', 'dead', 'discarded'))"""),
    Invariant("G3", "a summary is not in the rolling summary, and no job will fold it in", f"""
select s.id from {_LIVE_STREAM} and exists (
  select 1 from windows w where w.stream_id = s.id and w.end_seq > s.summary_through and w.summary_at is not null
    and w.summary <> '' and not exists (select 1 from windows b where b.stream_id = s.id and b.end_seq < w.end_seq
      and b.end_seq > s.summary_through and b.summary_at is null and b.skipped_because is null))
where not exists (select 1 from jobs j where j.kind = 'fold_summary' and j.key = cast(s.id as text)
  and j.state in ('waiting', 'ready', 'leased', 'dead', 'discarded'))
  and not exists (select 1 from erasures x where x.kind = 'event' and x.stream_id = s.id and x.done_at is null)"""),
    # ---- G4: found as soon as accepted
    Invariant("G4", "an event that was not erased is not exactly one passage", """
select e.stream_id, e.seq from events e where e.erased_at is null and 1 <> (
  select count(*) from passages p where p.kind = 'turn' and p.stream_id = e.stream_id and p.seq = e.seq)"""),
    Invariant("G4", "a passage has no full-text row", """
select p.id from passages p where not exists (select 1 from passage_text_content d where d.id = p.id)"""),
    Invariant("G4", "a full-text row belongs to no passage", """
select d.id from passage_text_content d where not exists (select 1 from passages p where p.id = d.id)"""),
    Invariant("G15", "a full-text row is in another scope than its passage", """
select p.id from passages p join passage_text_content f on f.id = p.id
where f.c0 <> 'p' || p.project_id || ' s' || p.subject_id || coalesce(' t' || p.stream_id, '') || ' k' || p.kind
  and f.c0 not in (
    select 'p' || o.id || ' s' || u.id || coalesce(' t' || p.stream_id, '') || ' k' || p.kind
    from projects o, subjects u
    where p.project_id in (o.id, o.merged_into) and p.subject_id in (u.id, u.merged_into))"""),
    Invariant("G4", "a fact is not exactly one passage", """
select f.id from facts f where 1 <> (select count(*) from passages p where p.kind = 'fact' and p.ref_id = f.id)"""),
    Invariant("G6", "a summary has more than one passage, or none", """
select w.id from windows w where w.summary_at is not null and w.summary <> '' and 1 <> (
  select count(*) from passages p where p.kind = 'episode' and p.ref_id = w.id)"""),
    # ---- G5: windows tile the stream
    Invariant("G5", "a window does not begin where the one before it ends", """
select w.id, w.start_seq from windows w where w.start_seq <> 1 + coalesce((
  select max(b.end_seq) from windows b where b.stream_id = w.stream_id and b.end_seq < w.end_seq), 0)"""),
    Invariant("G5", "a stream says that other events are covered than its windows cover", f"""
select s.id, s.covered_seq from {_LIVE_STREAM} and s.covered_seq <> coalesce((
  select max(w.end_seq) from windows w where w.stream_id = s.id), 0)"""),
    Invariant("G5", "a stream counts other tokens as waiting than its events have", f"""
select s.id, s.pending_tokens from {_LIVE_STREAM} and s.pending_tokens <> coalesce((
  select sum(e.tokens) from events e where e.stream_id = s.id and e.seq > s.covered_seq), 0)"""),
    Invariant("G5", "a window covers what was never said", """
select w.id from windows w join streams s on s.id = w.stream_id where w.end_seq > s.last_seq"""),
    Invariant("G5", "a window has not the slices that it says", """
select w.id from windows w left join slices l on l.window_id = w.id group by w.id
having count(l.slice) <> w.slices or min(l.slice) <> 0 or max(l.slice) <> w.slices - 1"""),
    Invariant("G5", "a window that is not the last of its thread is not archived", """
select w.id from windows w where w.archived = 0 and exists (
  select 1 from windows n where n.stream_id = w.stream_id and n.end_seq > w.end_seq)"""),
    # ---- G6: effect and completion are one
    Invariant("G6", "a window is done, but a slice of it is not", """
select w.id from windows w join slices l on l.window_id = w.id
where (w.summary_at is not null and l.summary_at is null) or (w.facts_at is not null and l.facts_at is null)"""),
    Invariant("G6", "all slices are done, but their window is not", """
select w.id from windows w join slices l on l.window_id = w.id group by w.id
having (w.summary_at is null and count(l.summary_at) = w.slices)
  or (w.facts_at is null and count(l.facts_at) = w.slices)"""),
    Invariant("G6", "a job is done and its effect is not there", f"""
select j.id, j.kind, j.key from jobs j join slices l on j.key = l.window_id || '.' || l.slice
  join windows w on w.id = l.window_id join {_LIVE_STREAM} and s.id = w.stream_id
where j.state = 'done' and ((j.kind in ('summarise_episode', 'digest_session') and l.summary_at is null)
  or (j.kind = 'extract_facts' and l.facts_at is null)) and w.skipped_because is null"""),
    Invariant("G6", "an effect is there and its job was never finished", """
select j.id, j.kind, j.key from jobs j join slices l on j.key = l.window_id || '.' || l.slice
where j.state = 'leased' and j.generation = 1 and ((j.kind = 'summarise_episode' and l.summary_at is not null)
  or (j.kind = 'extract_facts' and l.facts_at is not null))"""),
    Invariant("G6", "the same statement of the same window is there twice", """
select f.window_id, min(f.id), max(f.id) from facts f join windows w on w.id = f.window_id and w.slices = 1
group by f.window_id, f.entity_id, f.predicate_norm, f.object_norm, f.closes, f.correction, f.valid_from, f.valid_until,
  f.said_seq having count(*) > 1"""),
    Invariant("G6", "facts were written and their slice is not done", """
select distinct f.window_id from facts f join windows w on w.id = f.window_id and w.slices = 1
where w.facts_at is null and not exists (select 1 from jobs j where j.kind = 'extract_facts'
  and j.key = w.id || '.0' and j.generation > 1)
  and not exists (select 1 from erasures x where x.project_id = f.project_id)"""),
    Invariant("G6", "a fact was retired or brought back by hand, and its state does not say so", """
select id from facts where (retired_by_hand and (retired_at is null or live))
  or (retired_because is null) <> (retired_at is null)"""),
    Invariant("G6", "a fact is unsettled, and no conflict of it is open", """
select f.id from facts f where f.unsettled and not exists (
  select 1 from verdicts v where v.verdict is null and f.id in (v.earlier_fact, v.later_fact))"""),
    # ---- G8: the journal
    Invariant("G8", "a question has more than one committed reply", """
select project_id, work, step, version, model, ask from replies where text is not null
group by 1, 2, 3, 4, 5, 6 having count(*) > 1"""),
    Invariant("G8", "a committed reply has no time or cost", """
select id from replies where text is not null and (replied_at is null or tokens_in is null or tokens_out is null)"""),
    Invariant("G8", "an effect was made from a reply that is not in the journal", """
select r.id, r.work, r.step from replies r join slices l on r.work = 'window:' || l.window_id || '.' || l.slice
  join windows w on w.id = l.window_id
where r.text is null and ((r.step = 'summary' and l.summary_at is not null and l.summary <> '')
  or (r.step = 'facts' and exists (select 1 from facts f where f.window_id = l.window_id and w.slices = 1)))
  and not exists (select 1 from replies o where o.work = r.work and o.step = r.step and o.text is not null)"""),
    # ---- G10: what is erased stays erased
    Invariant("G10", "an erased event still says something", """
select stream_id, seq from events where erased_at is not null and (content is not null or name is not null
  or metadata is not null or payload_hash is not null or role <> '')"""),
    Invariant("G10", "an erased event can still be found", """
select e.stream_id, e.seq from events e join passages p on p.kind = 'turn' and p.stream_id = e.stream_id
  and p.seq = e.seq where e.erased_at is not null"""),
    Invariant("G10", "an open erase has no job that will do it", """
select x.id, x.kind from erasures x where x.done_at is null and not exists (
  select 1 from jobs j where j.kind = 'erase_scope' and j.key = cast(x.id as text)
  and j.state in ('waiting', 'ready', 'leased', 'dead'))"""),
    Invariant("G10", "an erased scope keeps its name", """
select 'subject', u.id from erasures x join subjects u on u.id = x.subject_id
where x.kind = 'subject' and (u.erased_at is null or u.epoch = 0)
union all select 'thread', s.id from erasures x join streams s on s.id = x.stream_id
where x.kind = 'stream' and s.erased_at is null
union all select 'project', p.id from erasures x join projects p on p.id = x.project_id
where x.kind = 'project' and p.erased_at is null"""),
    Invariant("G10", "a scope is erased and no tombstone says so", """
select 'subject', u.id from subjects u join projects p on p.id = u.project_id
where u.erased_at is not null and p.erased_at is null and not exists (
  select 1 from erasures x where x.kind = 'subject' and x.subject_id = u.id)
union all select 'thread', s.id from streams s join subjects u on u.id = s.subject_id
where s.erased_at is not null and u.erased_at is null and not exists (
  select 1 from erasures x where x.kind = 'stream' and x.stream_id = s.id)
union all select 'project', p.id from projects p where p.erased_at is not null and not exists (
  select 1 from erasures x where x.kind = 'project' and x.project_id = coalesce(p.merged_into, p.id))
union all select 'event', e.stream_id from events e join streams s on s.id = e.stream_id
  join subjects u on u.id = s.subject_id where e.erased_at is not null and s.erased_at is null and u.erased_at is null
  and not exists (select 1 from erasures x where x.kind = 'event' and x.stream_id = e.stream_id and x.seq = e.seq)"""),
    Invariant("G10", "a finished erase left something behind", """
select x.id, 'residue' from erasures x where x.done_at is not null and x.residue <> 0
union all select x.id, 'facts' from erasures x join facts f on f.subject_id = x.subject_id
where x.done_at is not null and x.kind = 'subject'
union all select x.id, 'windows' from erasures x join windows w on w.stream_id = x.stream_id
where x.done_at is not null and x.kind = 'stream'
union all select x.id, 'passages' from erasures x join passages p on p.stream_id = x.stream_id
where x.done_at is not null and x.kind = 'stream'
union all select x.id, 'replies' from erasures x join replies r on r.subject_id = x.subject_id
where x.done_at is not null and x.kind = 'subject'
union all select x.id, 'messages' from erasures x join streams s on s.project_id = x.project_id
  and (x.kind = 'project' or (x.kind = 'subject' and s.subject_id = x.subject_id)
    or (x.kind = 'stream' and s.id = x.stream_id)) join events e on e.stream_id = s.id and e.erased_at is null
where x.done_at is not null"""),
    Invariant("G10", "something is noted as forgotten of a window from which nothing was erased", """
select g.window_id from forgotten g left join windows w on w.id = g.window_id where not exists (
  select 1 from events e where e.stream_id = w.stream_id and e.seq between w.start_seq and w.end_seq
    and e.erased_at is not null)"""),
    Invariant("G10", "a fact rests on an event that is not there", """
select f.id from facts f join fact_events v on v.fact_id = f.id left join events e on e.stream_id = v.stream_id
  and e.seq = v.seq where e.seq is null"""),
    Invariant("G10", "a fact names no event that it rests on", """
select f.id from facts f where f.said_stream is not null
  and not exists (select 1 from fact_events v where v.fact_id = f.id)"""),
    # ---- G11: the outbox and its followers
    Invariant("G11", "the sequence of changes has a hole", """
select project_id, min(seq), max(seq) from changes group by project_id having count(*) <> max(seq) - min(seq) + 1"""),
    Invariant("G11", "the newest change is not the project's counter", """
select p.id, p.change_seq from projects p where p.change_seq <> coalesce((
  select max(c.seq) from changes c where c.project_id = p.id), p.change_seq)"""),
    Invariant("G11", "a cursor is beyond the newest change", """
select c.project_id, c.name, c.cursor from consumers c join projects p on p.id = c.project_id
where c.cursor > p.change_seq"""),
    Invariant("G11", "a window is not announced exactly once", _once("episode.opened", "windows", "epi")),
    Invariant("G11", "a fact is not announced exactly once", _once("fact.added", "facts", "fct")),
    Invariant("G11", "a fact was retired by hand, and nobody was told", f"""
select f.id, f.project_id from facts f where f.retired_by_hand
and {_WHOLE_OUTBOX.format(project="f.project_id")} and not exists (select 1 from changes c
  where c.project_id = f.project_id and c.kind = 'fact.changed' and c.ref = 'fct_' || f.id)"""),
    Invariant("G11", "messages are not announced exactly once", f"""
select s.id, s.last_seq from {_LIVE_STREAM} left join (select stream_id,
    sum(json_extract(data, '$.last_seq') - json_extract(data, '$.first_seq') + 1) as messages
  from changes where kind in ('messages.appended', 'session.appended') group by 1) c on c.stream_id = s.id
where {_WHOLE_OUTBOX.format(project="s.project_id")} and s.last_seq <> coalesce(c.messages, 0)"""),
    Invariant("G11", "a summary is announced before it is there, or not at all", f"""
select w.id from windows w join {_LIVE_STREAM} and s.id = w.stream_id left join (
  select distinct project_id, ref from changes where kind = 'episode.summarised') c
  on c.project_id = w.project_id and c.ref = 'epi_' || w.id
where w.skipped_because is null and s.kind = 'thread' and {_WHOLE_OUTBOX.format(project="w.project_id")}
  and not exists (select 1 from erasures x where x.project_id = w.project_id)
  and (w.summary_at is null) <> (c.ref is null)"""),
    # ---- sessions, pages, handoffs
    Invariant("G2", "a natural key names an event that is not there", """
select k.project_id, k.stream_id, k.seq from natural_keys k left join events e
  on e.stream_id = k.stream_id and e.seq = k.seq where e.seq is null and k.heard > 0"""),  # a session's mark names none
    Invariant("G6", "a session was digested further than it goes", """
select x.stream_id, x.digested_seq from sessions x join streams s on s.id = x.stream_id
where x.digested_seq > s.last_seq"""),
    Invariant("G6", "a digest has a number, and its session no page, or the other way round", """
select x.stream_id from sessions x where (x.finished_seq is null) <> (not exists (
  select 1 from pages g where g.stream_id = x.stream_id and g.kind = 'session'))
  and not exists (select 1 from erasures r where r.project_id = x.project_id)"""),
    Invariant("G12", "the numbers of digests are not those of the project's counter", """
select p.id, p.finished_seq from projects p where p.finished_seq < coalesce((
  select max(x.finished_seq) from sessions x where x.project_id = p.id), 0)"""),
    Invariant("G12", "the generations of a project have a hole, or are not as many as its counter says", """
select p.id, p.finished_seq from projects p where p.erased_at is null and p.merged_into is null and p.finished_seq <> (
  select count(*) from generations g where g.project_id = p.id and g.seq between 1 and p.finished_seq)"""),
    Invariant("G12", "a watermark stands before what has passed, or beyond the last generation", """
select w.project_id, w.watermark from review_states w join projects p on p.id = w.project_id and p.merged_into is null
where w.watermark > p.finished_seq or exists (
  select 1 from generations g where g.project_id = w.project_id and g.seq = w.watermark + 1
    and g.passed_at is not null)"""),
    Invariant("G12", "a generation counts as reviewed without a completed review, or the other way round", """
select g.project_id, g.seq, g.state from generations g left join reviews r
  on r.project_id = g.project_id and r.stream_id = g.stream_id and r.generation = g.seq
where (g.state = 'reviewed' and r.completed_at is null)
  or (r.completed_at is not null and g.state not in ('reviewed', 'skipped'))"""),
    Invariant("G12", "a review is under way that no job carries", """
select g.project_id, g.seq from generations g where g.state = 'reviewing' and (
  not exists (select 1 from jobs j where j.kind = 'review_session' and j.key = g.project_id || '.' || g.seq
    and j.state in ('waiting', 'ready', 'leased'))
  or not exists (select 1 from reviews r where r.project_id = g.project_id and r.stream_id = g.stream_id
    and r.generation = g.seq))"""),
    Invariant("G12", "what a review observed stands for another project's session", """
select o.stream_id, o.seq from observations o join streams s on s.id = o.stream_id
where s.project_id <> o.project_id"""),
    Invariant("G6", "a page has not the version that it says", """
select g.id, g.version from pages g where g.version > 0 and g.version <> (
  select count(*) from page_versions v where v.page_id = g.id)"""),
    Invariant("G4", "a section of a page is not exactly one passage", """
select n.id from page_sections n where 1 <> (
  select count(*) from passages p where p.kind = 'page' and p.ref_id = n.id)"""),
    Invariant("G4", "a passage is of a section that is not there", """
select p.id from passages p left join page_sections n on n.id = p.ref_id where p.kind = 'page' and n.id is null"""),
    Invariant("G11", "two handoffs of one worktree are open", """
select project_id, worktree from handoffs where state = 'open' and worktree is not null group by 1, 2
having count(*) > 1"""),
    Invariant("G11", "a page's versions are not announced exactly once each", f"""
select g.id, g.project_id from pages g left join (
  select project_id, ref, count(*) as times from changes where kind = 'page.written' group by 1, 2) c
  on c.project_id = g.project_id and c.ref = 'pag_' || g.id
where {_WHOLE_OUTBOX.format(project="g.project_id")} and g.version > 0 and coalesce(c.times, 0) <> g.version"""),
    # ---- workstreams
    Invariant("G11", "a workstream's ledger does not tell of each event of a linked session exactly once", f"""
select l.workstream_id, l.stream_id from (
  select distinct workstream_id, stream_id, project_id from launch_sessions where stream_id is not null) l
  join {_LIVE_STREAM} and s.id = l.stream_id
where not {_MERGING.format(project="l.project_id")} and s.last_seq <> (
  select coalesce(sum(w.last_seq - w.first_seq + 1), 0) from workstream_ledger w
  where w.workstream_id = l.workstream_id and w.stream_id = l.stream_id)"""),
    Invariant("G11", "a session was told further than its workstream's ledger goes", """
select c.workstream_id, c.agent, c.native_id from workstream_cursors c join workstreams w on w.id = c.workstream_id
where not exists (select 1 from erasures x where x.project_id = w.project_id) and c.delivered > (
  select coalesce(max(l.seq), 0) from workstream_ledger l where l.workstream_id = c.workstream_id)"""),
    Invariant("G11", "a session's first packet was accepted, and what is in it is not told yet", """
select l.id, l.agent, l.packet_through from launches l
where l.accepted_at is not null and l.packet_from = 0 and coalesce(l.native_id, l.resumes) is not null
  and not exists (select 1 from erasures x where x.project_id = l.project_id) and l.packet_through > (
    select coalesce(max(c.delivered), 0) from workstream_cursors c where c.workstream_id = l.workstream_id
    and c.agent = l.agent and c.native_id in (l.native_id, l.resumes))"""),
    Invariant("G11", "an offer was taken up, and the packet or the handoff in it was not", """
select o.id from offers o left join launches l on l.id = o.launch_id left join handoffs h on h.id = o.handoff_id
where o.state = 'acknowledged' and ((l.id is not null and l.accepted_at is null) or h.state = 'open')"""),
    Invariant("G11", "the end of a launch told how far its transcript was read, and no session has that", """
select l.id from launches l where l.source_cursor is not null
  and not exists (select 1 from erasures x where x.project_id = l.project_id)
  and not exists (select 1 from workstream_cursors c where c.workstream_id = l.workstream_id and c.agent = l.agent
    and c.source_cursor is not null)"""),
    Invariant("G6", "two launches of one workstream are live, or one has a fence that was never given out", """
select l.workstream_id from launches l join workstreams w on w.id = l.workstream_id
group by l.workstream_id having sum(l.state in ('prepared', 'running')) > 1 or max(l.fence) > max(w.fence)
  or count(distinct l.fence) < count(*)"""),
    # ---- G7, G13: jobs and whose turn it is
    Invariant("G7", "a leased job was not booked as a possible crash", """
select id, kind from jobs where state = 'leased' and crashes < 1"""),
    Invariant("G7", "a finished job still has a lease, or a dead one has no error", """
select id, kind, state from jobs where (state <> 'leased' and (owner is not null or lease_until is not null))
  or (state = 'dead' and (error is null or finished_at is null))"""),
    Invariant("G9", "two jobs of one serial key are leased", """
select serial_key from jobs where state = 'leased' and serial_key is not null group by 1 having count(*) > 1"""),
    Invariant("G13", "a lane counts other jobs than it has", _lane_counts()),
    Invariant("G13", "a project counts other jobs than its lanes", _group_counts()),
    # ---- what was approved is in its page
    Invariant("G6", "a proposal is approved, and its page has no such version; or it awaits, and has one", """
select p.id, p.state from proposals p where p.state = 'approved' and p.action <> 'retire' and not exists (
  select 1 from page_versions v where v.page_id = p.page_id and v.version = p.version)
  and not exists (select 1 from erasures x where x.project_id = p.project_id)
union all select p.id, p.state from proposals p where p.state in ('staged', 'conflict') and p.page_id is not null"""),
    # ---- G15: everything lies in one scope
    Invariant("G15", "a row lies in another project or subject than what it belongs to", f"""
select 'event', e.stream_id from events e join streams s on s.id = e.stream_id where e.project_id <> s.project_id
  and not {_MERGING.format(project="s.project_id")}
union all select 'window', w.id from windows w join streams s on s.id = w.stream_id
  where (w.project_id <> s.project_id or w.subject_id <> s.subject_id)
  and not {_MERGING.format(project="s.project_id")}
union all select 'passage', p.id from passages p join streams s on s.id = p.stream_id
  where (p.project_id <> s.project_id or p.subject_id <> s.subject_id)
  and not {_MERGING.format(project="s.project_id")}
union all select 'fact', f.id from facts f join subjects u on u.id = f.subject_id where f.project_id <> u.project_id
  and not {_MERGING.format(project="u.project_id")}
union all select 'entity', n.id from facts f join entities n on n.id = f.entity_id where n.subject_id <> f.subject_id
  and not {_MERGING.format(project="f.project_id")}
union all select 'stream', s.id from streams s join subjects u on u.id = s.subject_id where s.project_id <> u.project_id
  and not {_MERGING.format(project="u.project_id")}
union all select 'vector', v.passage_id from vectors v join passages p on p.id = v.passage_id
  where v.project_id <> p.project_id or v.subject_id <> p.subject_id"""),
    Invariant("G12", "a merge has ended, and something names its source", """
select m.id, m.source_id from merges m where m.done_at is not null and (
  exists (select 1 from streams s where s.project_id = m.source_id)
  or exists (select 1 from facts f where f.project_id = m.source_id)
  or exists (select 1 from pages g where g.project_id = m.source_id)
  or exists (select 1 from passages p where p.project_id = m.source_id)
  or exists (select 1 from generations g where g.project_id = m.source_id)
  or exists (select 1 from consumers c where c.project_id = m.source_id)
  or exists (select 1 from jobs j where j.project_id = m.source_id))"""),
)  # fmt: skip

DRAINED: Final = (
    Invariant("G12", "a session is neither reviewed nor visibly passed by after the drain", """
select g.project_id, g.seq, g.state from generations g join projects p on p.id = g.project_id
where g.passed_at is null and p.erased_at is null
  and coalesce(json_extract(p.settings, '$."review.scheduler.enabled"'), 1) = 1"""),
    Invariant("G7", "a job is still leased after the drain", "select id, kind, key from jobs where state = 'leased'"),
    Invariant("G3", "a job still waits after the drain", """
select id, kind, key, coalesce(error, '') from jobs where state in ('waiting', 'ready')"""),
    Invariant("G3", "a message lies in no window after the drain", f"""
select s.id, s.covered_seq, s.last_seq from {_LIVE_STREAM}
where s.covered_seq < s.last_seq and not {_OFF} and (s.end_through > s.covered_seq or not {_NO_IDLE})
  and not exists (select 1 from jobs j
    where j.kind = 'open_window' and j.key = cast(s.id as text) and j.state = 'dead')"""),
    Invariant("G3", "a window was neither summarised nor visibly failed",
              _stage("summary_at", "summarise_episode", "'dead', 'discarded'")),
    Invariant("G3", "a window has neither its facts nor a visible failure",
              _stage("facts_at", "extract_facts", "'dead', 'discarded'")),
    Invariant("G3", "a conflict is neither judged nor visibly failed", """
select v.subject_id from verdicts v where v.verdict is null and not exists (select 1 from jobs j
  where j.kind = 'judge_conflicts' and j.key = cast(v.subject_id as text) and j.state in ('dead', 'discarded'))"""),
    Invariant("G3", "a passage has no vectors after the drain", """
select p.id from passages p where p.embedded is null and p.hidden = 0 and not exists (select 1 from jobs j
  where j.kind = 'embed_passages' and j.key = cast(p.project_id as text) and j.state in ('dead', 'discarded'))"""),
    Invariant("G12", "a merge has not ended after the drain", """
select m.id from merges m where m.done_at is null and not exists (select 1 from jobs j
  where j.kind = 'merge_projects' and j.key = cast(m.id as text) and j.state = 'dead')"""),
    Invariant("G10", "an erase has not ended after the drain", """
select x.id, x.kind from erasures x where x.done_at is null and not exists (select 1 from jobs j
  where j.kind = 'erase_scope' and j.key = cast(x.id as text) and j.state = 'dead')"""),
)  # fmt: skip
