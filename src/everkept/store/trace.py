"""How a window came to what it says: the questions that were asked, what they cost, and what was not taken."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import text

from everkept.store.connection import Connection

_REPLIES = text("""
select r.work, r.step, r.version, r.model, r.ask, r.asked, r.replied_at, r.tokens_in, r.tokens_out, r.usd,
  r.rejected_because, r.recipe
from replies r where r.project_id = (select project_id from windows where id = :window) and r.work in (
  select 'window:' || window_id || '.' || slice from slices where window_id = :window) order by r.id""")
_SLICES = text("select slice, summary_at, facts_at, rejected from slices where window_id = :window order by slice")


def trace_window(conn: Connection, window: int) -> list[dict[str, Any]]:
    """One entry for each paid question, then one for each slice with the drafts that were rejected."""
    steps: list[dict[str, Any]] = [
        {
            "step": step,
            "work": work,
            "prompt": version,
            "model": model,
            "ask": ask,
            "sent": asked,
            "answered": at is not None,
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "usd": usd,
            "rejected": rejected,
            "shown": json.loads(recipe),
        }
        for work, step, version, model, ask, asked, at, tokens_in, tokens_out, usd, rejected, recipe in conn.rows(
            _REPLIES, {"window": window}
        )
    ]
    if not steps:
        steps.append({"step": "rule", "model": "none (deterministic extraction)"})
    for part, summary_at, facts_at, rejected in conn.rows(_SLICES, {"window": window}):
        steps.append({
            "step": "slice", "slice": part, "summarised": summary_at is not None, "extracted": facts_at is not None,
            "rejected": json.loads(rejected or "[]"),
        })  # fmt: skip
    return steps
