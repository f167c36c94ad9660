"""`threads` and `episodes`: conversations, and the stretches of them that were summarised."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import COMMON, Common, Cursor, Limit, Subject, Thread, command_group
from everkept.doors.cli.wording import count, more
from everkept.errors import InvalidInput

threads = command_group("threads")
ThreadId = Annotated[str, Parameter(help="The id of the conversation.")]


@threads.default
async def list_threads(
    *, subject: Subject = None, limit: Limit = 50, cursor: Cursor = None, common: Common = COMMON
) -> None:
    """List conversations, and how much of each is remembered; show, end or set one."""
    async with backend.memory(common.project) as memory:
        page = await memory.list_threads(subject=subject, limit=limit, cursor=cursor)
        await backend.tell_of_folder(memory, common.project)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no threads" + (f" of {subject}" if subject else ""))
        return
    from everkept.doors.cli.history_pages import thread_table

    screen.show(thread_table(page.items))
    screen.say(count(len(page.items), "thread") + more(page.next_cursor))


@threads.command(name="show")
async def show_thread(
    thread: ThreadId,
    /,
    *,
    after: Annotated[int, Parameter(help="Only messages after this place in the thread.")] = 0,
    limit: Limit = 100,
    common: Common = COMMON,
) -> None:
    """Show the messages of a conversation, oldest first."""
    async with backend.memory(common.project) as memory:
        page = await memory.list_messages(thread, after_seq=after, limit=limit)
    if common.json:
        screen.emit(page)
        return
    from everkept.doors.cli.memory_pages import message_list

    screen.show(message_list(page.items))
    if page.next_cursor and page.items:
        screen.say(f"more with --after {page.items[-1].seq}")


@threads.command(name="end")
async def end_thread(thread: ThreadId, /, *, common: Common = COMMON) -> None:
    """Open the next episode now instead of after a quiet while; the thread stays writable."""
    async with backend.memory(common.project) as memory:
        result = await memory.end_thread(thread)
    if common.json:
        screen.emit(result)
    else:
        print(f"{thread}  {'episode queued' if result.episode_queued else 'nothing to do'}: {result.reason}")


@threads.command(name="set")
async def set_thread(
    thread: ThreadId,
    settings: Annotated[list[str], Parameter(help="`window.idle_s=60`, `memory.enabled=false`, …; none: all unset.")],
    /,
    *,
    common: Common = COMMON,
) -> None:
    """Replace a conversation's own settings; all others come from the project."""
    async with backend.memory(common.project) as memory:
        after = await memory.set_thread_settings(thread, parse_settings(settings))
    if common.json:
        screen.emit(after)
    else:
        print(f"{after.id}  {', '.join(f'{key}={value}' for key, value in after.settings.items()) or 'no settings'}")


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """`["window.idle_s=60"]` → `{"window.idle_s": 60}`; a value is JSON, or else text. Raises InvalidInput."""
    import json

    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InvalidInput(f"{pair!r} is not KEY=VALUE, e.g. window.idle_s=60")
        try:
            settings[key] = json.loads(value)
        except json.JSONDecodeError:
            settings[key] = value
    return settings


async def episodes(
    query: Annotated[str | None, Parameter(help="Only episodes that match these words.")] = None,
    /,
    *,
    subject: Subject = None,
    thread: Thread = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: Common = COMMON,
) -> None:
    """List episodes: summaries of stretches of conversation, with what was learned."""
    async with backend.memory(common.project) as memory:
        page = await memory.list_episodes(thread=thread, subject=subject, query=query, limit=limit, cursor=cursor)
        await backend.tell_of_folder(memory, common.project)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no episodes yet" if query is None else "no episode matches")
        return
    from everkept.doors.cli.history_pages import episode_list

    screen.show(episode_list(page.items))
    screen.say(count(len(page.items), "episode") + more(page.next_cursor))
