"""`add`, `recall` and `why`: what was said, what is found, and where it comes from."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from everkept.domain.ids import traceable_kind
from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import (
    COMMON,
    DEFAULT_PROJECT,
    OF_FOLDER,
    OWNER,
    AsOf,
    Common,
    KnownAt,
    Limit,
    OfFolder,
    Subject,
    Switch,
    Thread,
    key_or_new,
    time_option,
)
from everkept.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from everkept.api import views as v
    from everkept.api.service import Service


async def add(
    text: Annotated[str | None, Parameter(help="What was said; read from stdin if missing.")] = None,
    /,
    *,
    subject: Subject = None,
    thread: Thread = None,
    role: Annotated[str, Parameter(help="Who said it: user, assistant, system or tool.")] = "user",
    name: Annotated[str | None, Parameter(help="The speaker's name.")] = None,
    at: Annotated[datetime | None, time_option("When it was said; now if missing")] = None,
    key: Annotated[str | None, Parameter(help="Idempotency key: the same key is accepted once.")] = None,
    wait: Annotated[bool, Switch, Parameter(help="End the thread and wait until it is remembered.")] = False,
    common: Common = COMMON,
) -> int:
    """Append what was said to a thread.

    Without `--thread` it goes to the thread `cli-SUBJECT`; `--subject` is `me` there. A thread that does not exist
    yet needs `--subject`.
    """
    from everkept.api.views import MessageIn

    content = _text(text)
    if thread is None:
        subject = OWNER if subject is None else subject
        thread = f"cli-{subject}"
    message = MessageIn(role=role, content=content, name=name, occurred_at=at)
    async with backend.memory(common.project, worker=wait) as memory:
        try:
            result = await memory.append(thread, [message], subject=subject, key=key_or_new(key))
        except NotFound as error:
            hint = "add --subject to create it, e.g. --subject me"
            raise NotFound(f"{error.message.rstrip('.')}; {hint}", **error.details) from error
        remembered = await _wait_for(memory, result) if wait else True
        if wait:
            receipts = [await memory.receipt(receipt.event_id) for receipt in result.receipts]
            result = result.model_copy(update={"receipts": receipts})
    if common.json:
        screen.emit(result)
    else:
        _show_receipts(result)
    return 0 if remembered else 1


async def _wait_for(memory: Service, result: v.AppendResult) -> bool:
    await memory.end_thread(result.thread)
    return await memory.settle(timeout_s=30.0)


def _text(text: str | None) -> str:
    """The argument, or what is piped in. Raises InvalidInput where there is neither."""
    if text is not None:
        return text
    piped = "" if sys.stdin.isatty() else sys.stdin.read().rstrip("\n")
    if not piped:
        raise InvalidInput('nothing to add; give the text, e.g. everkept add "I moved to Lisbon"')
    return piped


def _show_receipts(result: v.AppendResult) -> None:
    for receipt in result.receipts:
        again = " (accepted before)" if receipt.outcome == "replayed" else ""
        reason = f": {receipt.reason}" if receipt.reason else ""
        print(f"{receipt.event_id}  {receipt.state}{again}{reason}")


async def recall(
    query: Annotated[str, Parameter(help="What to look for, in your own words.")],
    /,
    *,
    subject: Subject = None,
    thread: Thread = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    tokens: Annotated[int | None, Parameter(help="Print one block for a prompt, at most so many tokens.")] = None,
    limit: Limit = 10,
    explain: Annotated[bool, Switch, Parameter(help="Show how each score came about.")] = False,
    held_back: Annotated[bool, Switch, Parameter(help="Show what matched and was left out, and why.")] = False,
    full: Annotated[bool, Switch, Parameter(help="Show all of a long text, not only the lines that match.")] = False,
    common: Common = COMMON,
) -> None:
    """Search what was said, stated and summarised."""
    async with backend.memory(common.project) as memory:
        answer = await memory.recall(
            query, subject=subject, thread=thread, limit=limit, tokens=tokens, as_of=as_of, known_at=known_at,
            explain=explain, held_back=held_back,
        )  # fmt: skip
        await backend.tell_of_folder(memory, common.project)
    if common.json:
        screen.emit(answer)
        return
    if answer.note:
        screen.say(f"note: {answer.note}")
    if not answer.results:
        screen.say(answer.text or "nothing found" + (f" in the memory of {subject}" if subject else ""))
    from everkept.doors.cli.memory_pages import held_back_list, result_list

    if tokens is not None and answer.results:
        print(answer.text)
    elif answer.results:
        screen.show(result_list(answer.results, None if full else query))
    if answer.held_back:
        screen.show(held_back_list(answer.held_back))
    elif held_back:
        screen.say("nothing was held back")


async def _why(any_id: str, project: str | None) -> v.Why:
    """Ids are unique in the whole store: what the default project does not have, that of the folder may."""
    of_agents = traceable_kind(any_id) in ("ses", "pag", "hnd", "prp")
    if project is None and of_agents:
        async with backend.memory_here(None) as here:
            return await here.memory.why(any_id)
    async with backend.memory(project or DEFAULT_PROJECT) as memory:
        try:
            return await memory.why(any_id)
        except NotFound:
            scope = await backend.scope_here(memory) if project is None else None
            if scope is None:
                raise
    async with backend.memory_here(None) as here:
        return await here.memory.why(any_id)


async def why(
    any_id: Annotated[
        str,
        Parameter(help="Of a message, fact, episode, session, page, handoff or proposal; a page's slug will do, too."),
    ],
    /,
    *,
    common: OfFolder = OF_FOLDER,
) -> None:
    """Show where something comes from: events, sessions and versions behind it, and what came of it."""
    answer = await _why(any_id, common.project)
    if common.json:
        screen.emit(answer)
        return
    from everkept.doors.cli.memory_pages import why_page

    screen.show(*why_page(answer))
