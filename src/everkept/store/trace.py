"""How a window or a review came to what it says: the questions asked, what they cost, and what was not taken."""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import text

from everkept.store.connection import Connection

_COLUMNS = """
select r.work, r.step, r.version, r.model, r.ask, r.asked, r.replied_at, r.tokens_in, r.tokens_out, r.usd,
  r.rejected_because, r.recipe from replies r """
_OF_WINDOW = text(f"""{_COLUMNS}
where r.project_id = (select project_id from windows where id = :window) and r.work in (
  select 'window:' || window_id || '.' || slice from slices where window_id = :window) order by r.id""")
_OF_WORK = text(f"{_COLUMNS} where r.project_id = :project and r.work = :work order by r.id")
_SLICES = text("select slice, summary_at, facts_at, rejected from slices where window_id = :window order by slice")
_BY_RULE: Final = {"step": "rule", "model": "none (deterministic extraction)"}


def trace_work(conn: Connection, project: int, work: str) -> list[dict[str, Any]]:
    """One entry for each paid question of a piece of work; none where rules alone did it."""
    return [_question(r) for r in conn.rows(_OF_WORK, {"project": project, "work": work})]


def trace_window(conn: Connection, window: int) -> list[dict[str, Any]]:
    """One entry for each paid question, then one for each slice with the drafts that were rejected."""
    steps = [_question(r) for r in conn.rows(_OF_WINDOW, {"window": window})] or [{**_BY_RULE}]
    for part, summary_at, facts_at, rejected in conn.rows(_SLICES, {"window": window}):
        steps.append({
            "step": "slice", "slice": part, "summarised": summary_at is not None, "extracted": facts_at is not None,
            "rejected": json.loads(rejected or "[]"),
        })  # fmt: skip
    return steps


def _question(r: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "step": r[1], "work": r[0], "prompt": r[2], "model": r[3], "ask": r[4], "sent": r[5],
        "answered": r[6] is not None, "tokens_in": r[7], "tokens_out": r[8], "usd": r[9], "rejected": r[10],
        "shown": json.loads(r[11]),
    }  # fmt: skip
