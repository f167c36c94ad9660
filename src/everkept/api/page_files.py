"""Taking in instruction and memory files of coding agents as pages: again at any time, a version for each change."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from everkept.api.base import Parts
from everkept.capture.identity import Checkout
from everkept.capture.page_files import (
    FilePage,
    FoundFile,
    file_of_source,
    find_page_files,
    find_person_files,
    read_page_file,
    read_page_files,
)
from everkept.domain.pages import SLUG_CHARS_MAX, PageText, slug_of
from everkept.errors import NotFound
from everkept.store.aliases import find_by_signs
from everkept.store.connection import Connection
from everkept.store.pages import (
    NewPage,
    PageRow,
    find_page,
    maintained_pages,
    page_history,
    was_deleted,
    write_page,
)
from everkept.store.projects import DEFAULT_PROJECT, ProjectRow, ensure_project, find_project
from everkept.store.sessions import find_session
from everkept.store.wiki_pages import find_page_of_source

IMPORT: Final = "import"
HISTORY_MAX: Final = 1_000
PAGES_MAX: Final = 200
"""Of a project, whose files are looked at again at a session's start."""
Outcome = Literal["new", "changed", "unchanged", "deleted", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPage:
    """What became of one file. `deleted`: a person deleted its page, and it stays deleted."""

    project: str
    source: str
    outcome: Outcome
    slug: str | None = None
    version: int | None = None
    because: str | None = None
    """Why it was skipped, or whose version the file's text took the place of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesReport:
    pages: list[ImportedPage]

    def count(self, outcome: Outcome) -> int:
        return sum(page.outcome == outcome for page in self.pages)


async def import_pages(parts: Parts, project: str, root: Path, home: Path) -> PagesReport:
    """The files of the checkout at `root`, and what lies of it in `home`. A vanished file deletes nothing.

    Raises NotFound for an unknown project.
    """
    row = await parts.store.read(find_project, project)
    if row is None:
        raise NotFound(f"there is no project {project!r}", project=project)
    return await _take_all(parts, row, lambda: find_page_files(root, home))


async def import_person_pages(parts: Parts, home: Path) -> PagesReport:
    """The files of the person whose home it is, once for all projects: they hold everywhere, as those of `default`."""
    row = await parts.store.write(ensure_project, DEFAULT_PROJECT, secrets.token_bytes(32))
    return await _take_all(parts, row, lambda: find_person_files(home))


async def import_pages_of(parts: Parts, sessions: Collection[tuple[str, int]], home: Path) -> PagesReport:
    """The files of the checkouts in which these sessions, (project, stream) each, have worked and that are here, and
    those of the person.
    """
    places: set[tuple[str, Path]] = set()
    for name, stream in sorted(sessions):
        row = await parts.store.read(find_project, name)
        session = None if row is None else await parts.store.read(find_session, row.id, stream)
        root = None if session is None or session.worktree is None else Path(session.worktree)
        if root is not None and await asyncio.to_thread(root.is_dir):
            places.add((name, root))
    found = [await import_pages(parts, name, root, home) for name, root in sorted(places)]
    if sessions:
        found.append(await import_person_pages(parts, home))
    return PagesReport(pages=[page for report in found for page in report.pages])


async def refresh_pages(parts: Parts, checkout: Checkout, home: Path) -> PagesReport:
    """Take in anew what became of the files of pages, of the checkout's project and of the person, where a file was
    written after its page.

    Cheap enough for every start of a session: only the time of each file is looked at. New files are left to an
    import, and a page that somebody edited since stays as it is until then.
    """
    known = await parts.store.read(_pages_of_files, checkout)
    changed = await asyncio.to_thread(lambda: list(_changed_files(known, Path(checkout.place), home)))
    return PagesReport(pages=[await _take(parts, project, page) for project, page in changed])


def _pages_of_files(conn: Connection, checkout: Checkout) -> list[tuple[ProjectRow, PageRow]]:
    found = find_by_signs(conn, checkout.signs())
    own, everywhere = None if found is None else found.project, find_project(conn, DEFAULT_PROJECT)
    projects = {row.id: row for row in (own, everywhere) if row is not None}
    return [
        (row, page) for row in projects.values() for page in maintained_pages(conn, row.id, PAGES_MAX)
        if page.author == IMPORT and page.kind in ("rule", "note")
    ]  # fmt: skip


def _changed_files(
    known: Sequence[tuple[ProjectRow, PageRow]], root: Path, home: Path
) -> Iterator[tuple[ProjectRow, FilePage]]:
    for project, page in known:
        file = file_of_source(page.source or "", page.title, root, home)
        if file is None:
            continue
        try:
            written_us = file.path.stat().st_mtime_ns // 1_000
        except OSError:  # not here, or not any more: a vanished file deletes nothing
            continue
        if written_us > page.updated_at:
            yield project, read_page_file(file)


async def _take_all(parts: Parts, project: ProjectRow, find: Callable[[], Sequence[FoundFile]]) -> PagesReport:
    pages = await asyncio.to_thread(lambda: list(read_page_files(find())))
    return PagesReport(pages=[await _take(parts, project, page) for page in pages])


async def _take(parts: Parts, project: ProjectRow, page: FilePage) -> ImportedPage:
    if page.skipped_because is not None:
        return ImportedPage(project=project.name, source=page.source, outcome="skipped", because=page.skipped_because)
    return await parts.store.write(take_page, project, page)


def take_page(conn: Connection, into: ProjectRow, page: FilePage) -> ImportedPage:
    """One commit. A file that is as it was when last taken in changes nothing, whatever its page became since."""
    project, told = into.id, partial(ImportedPage, project=into.name, source=page.source)
    there = find_page_of_source(conn, project, page.source)
    text = PageText(title=page.title, body=page.body)
    if there is not None and there.deleted_at is not None:
        return told(outcome="deleted", slug=there.slug)
    if there is not None and _last_taken(conn, there) == (text.title, text.body):
        return told(outcome="unchanged", slug=there.slug, version=there.version)
    slug = _free_slug(conn, project, page) if there is None else there.slug
    row = write_page(conn, NewPage(
        project=project, kind=page.kind if there is None else there.kind, slug=slug, text=text, author=IMPORT,
        reason="first taken in from its file" if there is None else "its file changed", source=page.source,
    ))  # fmt: skip
    if row is None:  # its page was deleted and then erased
        return told(outcome="deleted")
    because = None
    if there is not None and there.author != IMPORT:
        because = f"version {there.version} by {there.author} stays in the history"
    outcome: Outcome = "new" if there is None else "changed"
    return told(outcome=outcome, slug=row.slug, version=row.version, because=because)


def _last_taken(conn: Connection, page: PageRow) -> tuple[str, str] | None:
    """(title, text) of the newest version that came from the file."""
    versions = page_history(conn, page.id, HISTORY_MAX)
    return next(((v.title, v.body) for v in versions if v.author == IMPORT), None)


def _free_slug(conn: Connection, project: int, page: FilePage) -> str:
    """Named as the file; where a page of another origin has the name, with some signs of its source."""
    slug = slug_of(page.title)
    if find_page(conn, project, slug, deleted=True) is None and not was_deleted(conn, project, slug):
        return slug
    sign = hashlib.blake2b(page.source.encode(), digest_size=4).hexdigest()
    return f"{slug[: SLUG_CHARS_MAX - 9]}-{sign}"
