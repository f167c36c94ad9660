"""`pages`: what is known in this folder's project, version by version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, Cursor, Limit, OfFolder, Switch, command_group
from everkept.doors.cli.wording import count, lines, minute, more
from everkept.errors import InvalidInput, NotFound, Unavailable

pages = command_group("pages")
Slug = Annotated[str, Parameter(help="The name of the page, as `everkept pages` lists it.")]
Kind = Literal["session", "decision", "gotcha", "procedure", "concept", "rule", "skill", "note", "slot"]


@pages.default
async def list_pages(
    *,
    kind: Annotated[Kind | None, Parameter(help="Only pages of this kind.")] = None,
    superseded: Annotated[bool, Switch, Parameter(help="Also those that another page took the place of.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List pages of knowledge, newest first; show, write or delete one, or list its versions."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.list_pages(kind=kind, superseded=superseded, limit=limit, cursor=cursor)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no pages" + (f" of kind {kind}" if kind else ""))
        return
    from everkept.doors.cli.agent_pages import page_list

    screen.show(page_list(page.items))
    screen.say(count(len(page.items), "page") + more(page.next_cursor))


@pages.command(name="show")
async def show_page(
    slug: Slug,
    /,
    *,
    version: Annotated[int | None, Parameter(help="As it was in this version; else the newest.")] = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """Show a page: its text on stdout as it is, the rest on stderr."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.get_page(slug, version=version)
    if common.json:
        screen.emit(page)
        return
    source = f", from {page.source}" if page.source else ""
    reason = f": {page.reason}" if page.reason else ""
    screen.say(
        f"{page.title} · {page.kind} · version {page.version} of {minute(page.updated_at)} by {page.author}"
        f"{reason}{source}"
    )
    if page.superseded:
        screen.warn("another page took the place of this one")
    print(lines(page.body or "").rstrip("\n"))


@pages.command(name="history")
async def show_history(
    slug: Slug,
    /,
    *,
    before: Annotated[int | None, Parameter(help="Only versions older than this one.")] = None,
    limit: Limit = 50,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List the versions of a page, newest first."""
    async with backend.memory_here(common.project) as here:
        versions = await here.memory.page_history(slug, before=before, limit=limit)
    if common.json:
        screen.emit_list(versions)
        return
    from everkept.doors.cli.agent_pages import version_table

    screen.show(version_table(versions))


@pages.command(name="write")
async def write_page(
    title: Annotated[str, Parameter(help="What the page is called; its name is made from it.")],
    /,
    *,
    file: Annotated[Path | None, Parameter(help="Read the text (markdown) from this file instead of stdin.")] = None,
    kind: Annotated[Kind, Parameter(help="What kind of page it is.")] = "note",
    slug: Annotated[str | None, Parameter(help="Its name, instead of one made from the title.")] = None,
    base: Annotated[
        int | None, Parameter(help="The version this was written on; refused if there is a newer one.")
    ] = None,
    reason: Annotated[str | None, Parameter(help="Why it is written or changed.")] = None,
    supersedes: Annotated[str | None, Parameter(help="The name of the page that it takes the place of.")] = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """Write a page, or the next version of one, from stdin or a file. The same text again is no new version."""
    body = _text(file)
    async with backend.memory_here(common.project) as here:
        page = await here.memory.write_page(
            title, body, kind=kind, slug=slug, base=base, reason=reason, supersedes=supersedes
        )
    if common.json:
        screen.emit(page)
    else:
        print(f"{page.slug}  version {page.version}")


def _text(file: Path | None) -> str:
    """Raises NotFound for a missing file, Unavailable for one that cannot be read, InvalidInput where nobody pipes."""
    if file is None:
        if sys.stdin.isatty():
            raise InvalidInput("pipe the text of the page in, or name it: --file PAGE.md")
        return sys.stdin.read()
    try:
        return file.read_text("utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}", path=str(file)) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not text in UTF-8", path=str(file)) from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}", path=str(file)) from error


@pages.command(name="delete")
async def delete_page(slug: Slug, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Take a page out of search and lists; nothing brings it back but `pages write`. Its versions stay."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.delete_page(slug)
    if common.json:
        screen.emit(page)
    else:
        print(f"{page.slug}  deleted at version {page.version}")


@pages.command(name="pin")
async def pin_page(slug: Slug, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Keep a page from proposals: what reviews find changes it no more."""
    await _pin(slug, common, pinned=True)


@pages.command(name="unpin")
async def unpin_page(slug: Slug, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Let proposals at a page again."""
    await _pin(slug, common, pinned=False)


async def _pin(slug: str, common: OfFolder, *, pinned: bool) -> None:
    async with backend.memory_here(common.project) as here:
        page = await here.memory.pin_page(slug, pinned=pinned)
    if common.json:
        screen.emit(page)
    else:
        print(f"{page.slug}  {'pinned' if page.pinned else 'not pinned'}")
