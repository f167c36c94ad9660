"""What an erase hides before its job has destroyed it: conditions that readers add, free while nothing is erased."""

from __future__ import annotations

from typing import Final

_OPEN: Final = "select 1 from erasures x where x.done_at is null and x.project_id = "

SHOWN_PASSAGE: Final = f"""not exists ({_OPEN}p.project_id and (x.kind = 'project'
  or (x.kind = 'subject' and x.subject_id = p.subject_id)
  or (x.kind = 'stream' and (x.stream_id = p.stream_id
    or (p.kind = 'fact' and exists (
      select 1 from fact_events v where v.fact_id = p.ref_id and v.stream_id = x.stream_id))
    or (p.kind = 'episode' and exists (
      select 1 from windows v where v.id = p.ref_id and v.stream_id = x.stream_id))))
  or (x.kind in ('stream', 'event') and p.kind = 'page' and exists (select 1 from page_sections v
    join pages g on g.id = v.page_id where v.id = p.ref_id and g.stream_id = x.stream_id))))"""
"""Of `passages p`. An event's own passages are hidden one by one, by the erase itself."""
SHOWN_FACT: Final = f"""not exists ({_OPEN}f.project_id and (x.kind = 'project' or (x.kind = 'stream'
  and exists (select 1 from fact_events v where v.fact_id = f.id and v.stream_id = x.stream_id))
  or (x.kind = 'event' and exists (select 1 from windows v where v.id = f.window_id and v.stream_id = x.stream_id
    and v.start_seq <= x.seq and v.end_seq >= x.seq))))"""
"""Of `facts f`. Those of a subject are hidden by the mark on its row."""
SHOWN_ENTITY: Final = f"""(not exists ({_OPEN}e.project_id) or exists (
  select 1 from facts f where (f.entity_id = e.id or f.object_entity_id = e.id) and {SHOWN_FACT}))"""
"""Of `entities e`. While something is being erased, an entity shows only if a fact that is shown speaks of it."""
