"""What models were asked and what it cost: of one project by day, stage and model, and of all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from everkept.api import views as v
from everkept.doors.http.web.slices import slice_of
from everkept.doors.http.web.visit import Visit, route

DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    calls: int
    tokens: int
    usd: float
    """Of the calls whose price is known."""
    unpriced: int
    """Calls whose price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    day: str
    share: float
    """Of the longest."""
    spent: Spent


def summed(rows: Sequence[v.UsageRow | v.StoreUsage]) -> Spent:
    return Spent(
        calls=sum(row.calls for row in rows), tokens=sum(row.tokens_in + row.tokens_out for row in rows),
        usd=sum(row.usd for row in rows), unpriced=sum(row.unpriced for row in rows),
    )  # fmt: skip


async def spent_lately(visit: Visit) -> Spent:
    """By all projects, for whoever may see all of them; else by this one."""
    if visit.caller.is_operator:
        return summed([await visit.service.usage_by_project(days=DAYS)])
    return summed(await visit.service.usage(days=DAYS))


async def usage(visit: Visit) -> Response:
    rows = await visit.service.usage(days=DAYS)
    whole = await visit.service.usage_by_project(days=DAYS) if visit.caller.is_operator else None
    return visit.show(
        "usage.html", rows=slice_of(rows, "rows", visit.asked("rows")), bars=bars(rows), days=DAYS, whole=whole,
        projects=None if whole is None else slice_of(whole.projects, "projects", visit.asked("projects")),
    )  # fmt: skip


def bars(rows: Sequence[v.UsageRow]) -> list[Bar]:
    """Of each day its money; its tokens, where not everything has a price."""
    by_day: dict[str, list[v.UsageRow]] = defaultdict(list)
    for row in rows:
        by_day[row.day].append(row)
    spent = {day: summed(of_day) for day, of_day in sorted(by_day.items())}
    priced = any(each.usd for each in spent.values()) and not any(each.unpriced for each in spent.values())
    drawn = {day: each.usd if priced else each.tokens for day, each in spent.items()}
    most = max(drawn.values(), default=0) or 1
    return [Bar(day=day, share=drawn[day] / most, spent=each) for day, each in spent.items()]


ROUTES = [route("/usage", usage)]
