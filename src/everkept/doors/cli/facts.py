"""`remember`, `facts` and `forget`: statements that last."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import (
    COMMON,
    OWNER,
    AsOf,
    Common,
    Cursor,
    KnownAt,
    Limit,
    Subject,
    Switch,
    key_or_new,
    time_option,
)
from everkept.doors.cli.wording import count, more


async def remember(
    text: Annotated[str, Parameter(help="The fact, as a sentence.")],
    /,
    *,
    subject: Annotated[str, Parameter(help="Whose memory: a user id, a customer, `me`.")] = OWNER,
    entity: Annotated[str | None, Parameter(help="What the fact is about; the subject if missing.")] = None,
    predicate: Annotated[str | None, Parameter(help="What is stated, e.g. `lives in`.")] = None,
    object: Annotated[str | None, Parameter(help="The value, e.g. `Lisbon`.")] = None,
    since: Annotated[datetime | None, time_option("Since when it holds")] = None,
    until: Annotated[datetime | None, time_option("Until when it holds")] = None,
    confidence: Annotated[float, Parameter(help="From 0 to 1.")] = 1.0,
    pin: Annotated[bool, Switch, Parameter(help="Always part of the subject's context.")] = False,
    key: Annotated[str | None, Parameter(help="Idempotency key: the same key is accepted once.")] = None,
    common: Common = COMMON,
) -> None:
    """State a durable fact by hand."""
    async with backend.memory(common.project) as memory:
        fact = await memory.remember(
            text, subject=subject, predicate=predicate, object=object, entity=entity, valid_from=since,
            valid_until=until, confidence=confidence, pinned=pin, key=key_or_new(key),
        )  # fmt: skip
        await backend.tell_of_folder(memory, common.project)
    if common.json:
        screen.emit(fact)
    else:
        print(f"{fact.id}  {fact.text}")


async def facts(
    query: Annotated[str | None, Parameter(help="Only facts that match these words.")] = None,
    /,
    *,
    subject: Subject = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    retired: Annotated[bool, Switch, Parameter(help="Show facts that are no longer believed, too.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: Common = COMMON,
) -> None:
    """List facts with their quotes and how long they hold."""
    async with backend.memory(common.project) as memory:
        page = await memory.list_facts(
            subject=subject, query=query, as_of=as_of, known_at=known_at, include_retired=retired, limit=limit,
            cursor=cursor,
        )  # fmt: skip
        await backend.tell_of_folder(memory, common.project)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no facts" + (f" about {subject}" if subject else ""))
        return
    from everkept.doors.cli.memory_pages import fact_table

    screen.show(fact_table(page.items))
    screen.say(count(len(page.items), "fact") + more(page.next_cursor))


async def correct(
    fact: Annotated[str, Parameter(help="The fact that is wrong (fct_…).")],
    /,
    *,
    object: Annotated[str | None, Parameter(help="The right value, e.g. `Porto`.")] = None,
    text: Annotated[str | None, Parameter(help="The whole sentence.")] = None,
    since: Annotated[datetime | None, time_option("Since when it holds")] = None,
    until: Annotated[datetime | None, time_option("Until when it holds")] = None,
    key: Annotated[str | None, Parameter(help="Idempotency key: the same key is accepted once.")] = None,
    common: Common = COMMON,
) -> None:
    """Put one fact right: what is right becomes a fact of its own, and what was wrong is kept with its history."""
    async with backend.memory(common.project) as memory:
        made = await memory.correct_fact(
            fact, object=object, text=text, valid_from=since, valid_until=until, key=key_or_new(key)
        )
    screen.emit(made) if common.json else print(f"{made.id}  {made.text}")


async def pin(
    fact: Annotated[str, Parameter(help="The fact (fct_…).")],
    /,
    *,
    undo: Annotated[bool, Switch, Parameter(help="A fact like any other again.")] = False,
    common: Common = COMMON,
) -> None:
    """Keep one fact in view: only a hand changes it, and it comes first in its subject's context."""
    async with backend.memory(common.project) as memory:
        after = await memory.pin_fact(fact, pinned=not undo)
    screen.emit(after) if common.json else print(f"{after.id}  {'pinned' if after.pinned else 'not pinned'}")


async def forget(
    fact: Annotated[str, Parameter(help="The fact's id (fct_…).")],
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept with the fact.")] = "by hand",
    undo: Annotated[bool, Switch, Parameter(help="Bring it back.")] = False,
    common: Common = COMMON,
) -> None:
    """Retire one fact; the evidence stays, and `--undo` brings it back."""
    async with backend.memory(common.project) as memory:
        after = await memory.forget(fact, reason=reason, undo=undo)
    if common.json:
        screen.emit(after)
        return
    print(f"{after.id}  {'back' if undo else 'retired'}: {after.text}")
    if not undo:
        screen.say(f"`everkept forget {after.id} --undo` brings it back")
