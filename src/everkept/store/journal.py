"""The reply journal in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.config import Settings
from everkept.errors import OverBudget, SubjectMoved
from everkept.ports.journal import Address, Kept, Recipe
from everkept.ports.models import RawReply
from everkept.store.connection import Connection
from everkept.store.counters import count
from everkept.store.effective import effective
from everkept.store.project_names import shown
from everkept.store.store import Store

DAY_US = 86_400_000_000
# A project that is merged into another one takes its replies along, while work that began before may still be asking.
_WHERE = """
where project_id in (:project, coalesce((select merged_into from projects where id = :project), 0))
  and work = :work and step = :step and version = :version and model = :model"""
_KEPT = text("select ask, text, rejected_because from replies" + _WHERE + " and text is not null order by ask")
_BEGIN = text("""
insert into replies(project_id, subject_id, work, step, version, model, ask, request_hash, recipe, asked_at)
values(:project, :subject, :work, :step, :version, :model, :ask, :hash, :recipe, :now)
on conflict(project_id, work, step, version, model, ask) do update set
  asked = replies.asked + 1, asked_at = excluded.asked_at, request_hash = excluded.request_hash,
  recipe = excluded.recipe
returning asked""")
_SENT = text("select recipe, text from replies" + _WHERE + " and ask = :ask order by text is null limit 1")
_EPOCH = text("select epoch from subjects where id = :subject")
_COMMIT = text(
    "update replies set text = :text, tokens_in = :tokens_in, tokens_out = :tokens_out, usd = :usd, replied_at = :now"
    + _WHERE
    + " and ask = :ask and text is null"
)
_TEXT = text("select text from replies" + _WHERE + " and ask = :ask")
_JUDGE = text("update replies set rejected_because = :why" + _WHERE + " and ask = :ask")


def _params(a: Address, **more: Any) -> dict[str, Any]:
    return {"project": a.project, "work": a.work, "step": a.step, "version": a.version, "model": a.model, **more}


def kept_replies(conn: Connection, address: Address) -> list[Kept]:
    rows = conn.rows(_KEPT, _params(address))
    return [Kept(ask=ask, text=reply, rejected_because=why) for ask, reply, why in rows]


def begin_ask(conn: Connection, address: Address, ask: int, request_hash: bytes, recipe: Recipe) -> str | None:
    """Note that the question is sent; or the reply, where another run of the job was given it since this one looked:
    then nothing is to be sent. Raises SubjectMoved where something of the subject was erased since it was read.

    Sent again without a reply, it keeps what either sending showed: the reply may be to any of them, and an erase of
    anything that was in view has to find it.
    """
    _require_epoch(conn, address)
    before, reply = conn.first(_SENT, _params(address, ask=ask)) or (None, None)
    if reply is not None:
        return str(reply)
    shown = dict(recipe.shown) if before is None else shown_by_either(json.loads(before), recipe.shown)
    asked = conn.scalar(
        _BEGIN,
        _params(
            address,
            subject=address.subject,
            ask=ask,
            hash=request_hash,
            recipe=json.dumps(shown),
            now=conn.now(),
        ),
    )
    if asked > 1:
        count(conn, "asked_again")
    return None


def shown_by_either(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """One recipe for two sendings: lists of ids are joined, ranges take in both, all else is the later one's."""
    merged = {**earlier, **later}
    for name in earlier.keys() & later.keys():
        if isinstance(later[name], list):
            merged[name] = sorted({*earlier[name], *later[name]})
        elif name in ("first", "after"):
            merged[name] = min(earlier[name], later[name])
        elif name in ("last", "through"):
            merged[name] = max(earlier[name], later[name])
    return merged


def subject_epoch(conn: Connection, subject: int) -> int:
    """Raised by every erase; read together with what a question is made of."""
    found = conn.scalar(_EPOCH, {"subject": subject})
    return -1 if found is None else int(found)


def _require_epoch(conn: Connection, address: Address) -> None:
    if subject_epoch(conn, address.subject) != address.epoch:
        raise SubjectMoved(
            "something of the subject was erased since the work was read; the job runs again on what remains"
        )


def commit_reply(conn: Connection, address: Address, ask: int, reply: RawReply) -> str:
    """Checks the erasure epoch and no lease: whoever paid may keep what was paid for."""
    _require_epoch(conn, address)
    conn.run(
        _COMMIT,
        _params(
            address,
            ask=ask,
            text=reply.text,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            usd=reply.usd,
            now=conn.now(),
        ),
    )
    found = conn.scalar(_TEXT, _params(address, ask=ask))
    if found is None:
        raise SubjectMoved("the question was erased while the model answered; the reply is not kept")
    return str(found)


def judge_reply(conn: Connection, address: Address, ask: int, why: str | None) -> None:
    conn.run(_JUDGE, _params(address, ask=ask, why=why))


class StoreJournal:
    """ports.journal.Journal over the store."""

    def __init__(self, store: Store, base: Settings) -> None:
        self._store = store
        self._base = base

    def _of(self, address: Address) -> Store:
        return self._store.reaching(address.project)

    async def kept(self, address: Address) -> Sequence[Kept]:
        return await self._of(address).read(kept_replies, address)

    async def allow(self, address: Address) -> None:
        await self._of(address).read(require_budget, address.project, self._base)

    async def begin(self, address: Address, ask: int, request_hash: bytes, recipe: Recipe) -> str | None:
        return await self._of(address).write(begin_ask, address, ask, request_hash, recipe)

    async def commit(self, address: Address, ask: int, reply: RawReply) -> str:
        return await self._of(address).write(commit_reply, address, ask, reply)

    async def judge(self, address: Address, ask: int, rejected_because: str | None) -> None:
        await self._of(address).write(judge_reply, address, ask, rejected_because)


_PROJECT_SETTINGS = text("select settings from projects where id = :project")


def require_budget(conn: Connection, project: int, base: Settings) -> None:
    """Raise OverBudget, until the next midnight (UTC), where the project has spent what it may in a day."""
    models = effective(base, conn.scalar(_PROJECT_SETTINGS, {"project": project}) or "{}").models
    if models.daily_tokens_max is None and models.daily_usd_max is None:
        return
    now = conn.now()
    midnight = now - now % DAY_US
    tokens, usd = spent_since(conn, project, midnight)
    wait_s = (midnight + DAY_US - now) / 1e6
    if models.daily_tokens_max is not None and tokens >= models.daily_tokens_max:
        raise OverBudget(
            f"models.daily_tokens_max: {tokens:,} of {models.daily_tokens_max:,} tokens are spent today",
            retry_after_s=wait_s,
        )
    if models.daily_usd_max is not None and usd >= models.daily_usd_max:
        raise OverBudget(
            f"models.daily_usd_max: {usd:.2f} of {models.daily_usd_max:.2f} dollars are spent today",
            retry_after_s=wait_s,
        )


_USAGE = text(f"""
select r.day, {shown("p")}, r.step, r.model, r.calls, r.tokens_in, r.tokens_out, r.usd, r.unpriced from (
  select replied_at / 86400000000 as day, project_id, step, model, count(*) as calls, sum(tokens_in) as tokens_in,
    sum(tokens_out) as tokens_out, sum(coalesce(usd, 0)) as usd, count(*) - count(usd) as unpriced
  from replies where project_id = :project and replied_at >= :since group by 1, 2, 3, 4) as r
join projects p on p.id = r.project_id order by r.day desc, r.step, r.model""")
# The sums over all of them stand beside each, and are those of the projects that the limit leaves out, too.
_BY_PROJECT = text(f"""
select name, calls, tokens_in, tokens_out, usd, unpriced, count(*) over () as projects,
  sum(calls) over () as all_calls, sum(tokens_in) over () as all_in, sum(tokens_out) over () as all_out,
  sum(usd) over () as all_usd, sum(unpriced) over () as all_unpriced
from (
  select p.id, {shown("p")} as name, count(*) as calls, coalesce(sum(r.tokens_in), 0) as tokens_in,
    coalesce(sum(r.tokens_out), 0) as tokens_out, coalesce(sum(r.usd), 0) as usd, count(*) - count(r.usd) as unpriced
  from projects p cross join replies r where r.project_id = p.id and r.replied_at >= :since
  group by p.id) as spent
order by usd desc, tokens_in + tokens_out desc, id limit :limit""")
_SPENT = text("""
select coalesce(sum(tokens_in + tokens_out), 0), coalesce(sum(usd), 0) from replies
where project_id = :project and replied_at >= :since""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What models were asked, and what it cost."""

    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    """Of the calls that have a price."""
    unpriced: int
    """Calls whose price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentByProject:
    total: Spent
    projects: list[tuple[str, Spent]]
    """The dearest first."""
    left_out: int
    """Projects that spent, too, and are only in the total."""


def usage_rows(conn: Connection, project: int, since: int) -> list[tuple[Any, ...]]:
    """(day since 1970, project, step, model, calls, tokens in, tokens out, US dollars, calls without a price)."""
    return conn.rows(_USAGE, {"project": project, "since": since})


def usage_by_project(conn: Connection, since: int, limit: int) -> SpentByProject:
    """Of the whole store."""
    rows = conn.rows(_BY_PROJECT, {"since": since, "limit": limit})
    return SpentByProject(
        total=_spent(rows[0][7:] if rows else (0, 0, 0, 0.0, 0)),
        projects=[(name, _spent(spent)) for name, *spent in (row[:6] for row in rows)],
        left_out=int(rows[0][6]) - len(rows) if rows else 0,
    )


def _spent(row: Sequence[Any]) -> Spent:
    calls, tokens_in, tokens_out, usd, unpriced = row
    return Spent(
        calls=int(calls), tokens_in=int(tokens_in), tokens_out=int(tokens_out), usd=float(usd), unpriced=int(unpriced)
    )


def spent_since(conn: Connection, project: int, since: int) -> tuple[int, float]:
    """(tokens, US dollars) of a project's replies since then."""
    row = conn.first(_SPENT, {"project": project, "since": since})
    assert row is not None
    return int(row[0]), float(row[1])
