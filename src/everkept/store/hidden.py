"""What an erase hides before its job has destroyed it: conditions that readers add, free while nothing is erased."""

from __future__ import annotations

from typing import Final

_OPEN: Final = "select 1 from erasures x where x.done_at is null and x.project_id = "

_PAGE_RESTS: Final = """(g.stream_id = x.stream_id or exists (
    select 1 from proposals a where a.page_id = g.id and ((x.kind = 'stream' and a.stream_id = x.stream_id)
      or exists (select 1 from proposal_quotes q where q.proposal_id = a.id and q.stream_id = x.stream_id
        and (x.kind = 'stream' or q.seq = x.seq)))))"""
"""A page `g` is of the session, or an approval wrote into it what rests on a part of it: it is hidden whole until what
must go is taken out (ADR 18)."""
SHOWN_PAGE: Final = f"""not exists (
  select 1 from erasures x where x.done_at is null and x.kind in ('stream', 'event') and {_PAGE_RESTS})"""
"""Of `pages g`. Those of a subject are hidden by the mark on its row."""
SHOWN_PASSAGE: Final = f"""not exists ({_OPEN}p.project_id and (x.kind = 'project'
  or (x.kind = 'subject' and x.subject_id = p.subject_id)
  or (x.kind = 'stream' and (x.stream_id = p.stream_id
    or (p.kind = 'fact' and exists (
      select 1 from fact_events v where v.fact_id = p.ref_id and v.stream_id = x.stream_id))
    or (p.kind = 'episode' and exists (
      select 1 from windows v where v.id = p.ref_id and v.stream_id = x.stream_id))))
  or (x.kind in ('stream', 'event') and p.kind = 'page' and exists (select 1 from page_sections v
    join pages g on g.id = v.page_id where v.id = p.ref_id and {_PAGE_RESTS}))))"""
"""Of `passages p`. An event's own passages are hidden one by one, by the erase itself."""
SHOWN_FACT: Final = f"""not exists ({_OPEN}f.project_id and (x.kind = 'project' or (x.kind = 'stream'
  and exists (select 1 from fact_events v where v.fact_id = f.id and v.stream_id = x.stream_id))
  or (x.kind = 'event' and exists (select 1 from windows v where v.id = f.window_id and v.stream_id = x.stream_id
    and v.start_seq <= x.seq and v.end_seq >= x.seq))))"""
"""Of `facts f`. Those of a subject are hidden by the mark on its row."""
SHOWN_ENTITY: Final = f"""(not exists ({_OPEN}e.project_id) or exists (
  select 1 from facts f where (f.entity_id = e.id or f.object_entity_id = e.id) and {SHOWN_FACT}))"""
"""Of `entities e`. While something is being erased, an entity shows only if a fact that is shown speaks of it."""
SHOWN_PROPOSAL: Final = f"""not exists ({_OPEN}p.project_id and (x.kind in ('project', 'subject')
  or x.stream_id = p.stream_id
  or exists (select 1 from proposal_quotes q where q.proposal_id = p.id and q.stream_id = x.stream_id)))"""
"""Of `proposals p`, by any of their evidence."""
