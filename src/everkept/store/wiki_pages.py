"""What the wiki on disk shows of a project, and how edits of its files become versions of pages (E03)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import text

from everkept.domain.ids import parse_row_id
from everkept.domain.pages import PageText
from everkept.errors import CursorExpired, NotFound
from everkept.store.changes import read_changes
from everkept.store.connection import Connection
from everkept.store.pages import NewPage, PageRow, delete_page, find_page, page_history, write_page

CONSUMER: Final = "wiki"
_OF_PAGES: Final = frozenset({"page.written", "page.deleted", "page.restored", "page.moved"})
PAGES_AT_ONCE = 500
HISTORY_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiState:
    """How far a project's outbox is, and how far its wiki has followed."""

    project: int
    name: str
    created_at: int
    head: int
    cursor: int
    erasure: int
    """Which erase was the last one in the project; 0: none."""

    @property
    def identity(self) -> str:
        """Names the project for good, also after a rename, and apart from those of other stores."""
        return f"{self.project}.{self.created_at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiPage:
    """A page as its file tells it."""

    id: int
    kind: str
    slug: str
    title: str
    body: str
    version: int
    author: str
    source: str | None
    updated_at: int
    deleted: bool
    supersedes: tuple[str, ...]
    superseded_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiBatch:
    """What is next to be projected. `through`: what the cursor may move to once that is done."""

    through: int
    head: int
    """The newest change there is."""
    pages: list[WikiPage]
    author: str | None
    """Of all versions in it; None where it has none, or those of several authors (a snapshot)."""
    snapshot: bool


_STATES = text("""
select p.id, p.name, p.created_at, p.change_seq, coalesce(c.cursor, 0),
  coalesce((select max(x.id) from erasures x where x.project_id = p.id), 0)
from projects p left join consumers c on c.project_id = p.id and c.name = :consumer
where p.erased_at is null and p.merged_into is null order by p.id""")
_ERASED = text("""
select 1 from projects p where p.id = :project and p.created_at = :created_at and (p.erased_at is not null or exists (
  select 1 from merges m join erasures x on x.project_id = p.merged_into and x.id > m.erasure
  where m.source_id = p.id))""")
_PAGES = """
select g.id, g.kind, g.slug, g.title, v.body, g.version, v.author, g.source, g.updated_at, g.deleted_at, s.slug
from pages g join page_versions v on v.page_id = g.id and v.version = g.version
  join subjects u on u.id = g.subject_id and u.erased_at is null
  left join pages s on s.id = g.superseded_by and s.deleted_at is null
where g.project_id = :project and not exists (select 1 from erasures x where x.done_at is null
  and x.kind in ('stream', 'event') and x.stream_id = g.stream_id) """
_NAMED = text(_PAGES + "and (g.id in (select value from numbers(:ids))"
              " or g.superseded_by in (select value from numbers(:ids))) order by g.id")  # fmt: skip
_LIVE = text(_PAGES + "and g.deleted_at is null and g.id > :after order by g.id limit :limit")
_SUPERSEDED = text("""
select superseded_by, slug from pages where project_id = :project and superseded_by is not null
  and deleted_at is null and version > 0 order by slug""")


def wiki_states(conn: Connection) -> list[WikiState]:
    return [
        WikiState(project=r[0], name=r[1], created_at=r[2], head=r[3], cursor=r[4], erasure=r[5])
        for r in conn.rows(_STATES, {"consumer": CONSUMER})
    ]


_HAS_PAGES = text("select 1 from pages where project_id = :project and deleted_at is null and version > 0 limit 1")


def has_pages(conn: Connection, project: int) -> bool:
    return conn.first(_HAS_PAGES, {"project": project}) is not None


def project_is_erased(conn: Connection, identity: str) -> bool:
    """Whether this store had that project and erased it; a project that it never had is somebody else's.

    The wiki of one that was merged into another is followed no more, and stays until something is erased there: it may
    hold the words of that.
    """
    project, _, created_at = identity.partition(".")
    if not (project.isdecimal() and created_at.isdecimal()):
        return False
    return conn.first(_ERASED, {"project": int(project), "created_at": int(created_at)}) is not None


def wiki_batch(conn: Connection, project: int, limit: int, also: Sequence[int], *, afresh: bool) -> WikiBatch:
    """The pages of the next changes of one author, with the pages `also`; all pages if `afresh` or too far behind.

    The pages are as they stand now, read in the same snapshot as the changes: what is told again is told the same.
    """
    state = next(s for s in wiki_states(conn) if s.project == project)
    if not afresh:
        try:
            return _following(conn, state, limit, also)
        except (CursorExpired, NotFound):  # pruned, or the store is an older copy than its wiki
            pass
    pages = _all_pages(conn, project)
    authors = {page.author for page in pages}
    return WikiBatch(
        through=state.head,
        head=state.head,
        pages=pages,
        author=authors.pop() if len(authors) == 1 else None,
        snapshot=True,
    )


def _following(conn: Connection, state: WikiState, limit: int, also: Sequence[int]) -> WikiBatch:
    changes, _ = read_changes(conn, state.project, state.cursor, limit)
    concerned = [(c[0], parse_row_id("pag", c[4])) for c in changes if c[1] in _OF_PAGES]
    found = pages_named(conn, state.project, [*also, *(page for _, page in concerned)])
    by_id = {page.id: page for page in found}
    authors = list(dict.fromkeys(by_id[page].author for page in also if page in by_id and not by_id[page].deleted))
    through, wanted = state.cursor, set(also)
    for seq, page in concerned:
        row = by_id.get(page)
        if row is not None and not row.deleted and row.author not in authors:
            if authors:
                break
            authors.append(row.author)
        through = seq
        wanted.add(page)
    else:
        through = changes[-1][0] if changes else state.cursor
    superseders = {by_id[page].slug for page in wanted if page in by_id}
    return WikiBatch(
        through=through, head=state.head, author=authors[0] if len(authors) == 1 else None, snapshot=False,
        pages=[p for p in found if p.id in wanted or p.superseded_by in superseders],
    )  # fmt: skip


def pages_named(conn: Connection, project: int, ids: Sequence[int]) -> list[WikiPage]:
    """These pages, and those that they supersede."""
    if not ids:
        return []
    superseded = _superseded(conn, project)
    return [_page(r, superseded) for r in conn.rows(_NAMED, {"project": project, "ids": json.dumps(list(ids))})]


def _all_pages(conn: Connection, project: int) -> list[WikiPage]:
    superseded = _superseded(conn, project)
    pages: list[WikiPage] = []
    after = 0
    while rows := conn.rows(_LIVE, {"project": project, "after": after, "limit": PAGES_AT_ONCE}):
        pages += [_page(r, superseded) for r in rows]
        after = rows[-1][0]
    return pages


def _superseded(conn: Connection, project: int) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for by, slug in conn.rows(_SUPERSEDED, {"project": project}):
        found.setdefault(by, []).append(slug)
    return found


def _page(r: tuple[Any, ...], superseded: Mapping[int, Sequence[str]]) -> WikiPage:
    return WikiPage(
        id=r[0], kind=r[1], slug=r[2], title=r[3], body=r[4], version=r[5], author=r[6], source=r[7], updated_at=r[8],
        deleted=r[9] is not None, superseded_by=r[10], supersedes=tuple(superseded.get(r[0], ())),
    )  # fmt: skip


_OF_SOURCE = text("select slug from pages where project_id = :project and source = :source and version > 0")


def find_page_of_source(conn: Connection, project: int, source: str) -> PageRow | None:
    """The page that came from a file, also where it was deleted; None where it was erased, or never was."""
    slug = conn.scalar(_OF_SOURCE, {"project": project, "source": source})
    return None if slug is None else find_page(conn, project, slug, deleted=True)


# ---- edits of files


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """What somebody made of a page's file. Text is redacted and within the bounds of a page."""

    project: int
    page: int | None
    """The page that the file was of; None for a file that nobody projected."""
    named: int | None
    """The page that a file which nobody projected says it is of: a copy, or one that somebody restored."""
    base: int | None
    """The version that the file had; None for a new file."""
    kind: str
    slug: str
    title: str
    body: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTaken:
    """What became of an edit. Not `taken` or `gone`: it is to be kept beside the page, for `because`."""

    state: Literal["taken", "gone", "set_aside"]
    version: int | None = None
    page: int | None = None
    because: str = ""


def take_edit(conn: Connection, edit: FileEdit) -> EditTaken:
    """An edit becomes the next version of its page, if it was made on the newest one. Twice taken, it is taken once.

    `gone`: the page was erased, and nothing of the file may stay. Nothing on disk brings a deleted page back.
    """
    page = find_page(conn, edit.project, edit.slug, deleted=True)
    if page is not None and edit.page is not None and page.id != edit.page:
        page = None
    if edit.named is not None and not _is_live(conn, edit.project, edit.named):
        because = "it says that it is of a page which this project does not have; without its `id` it is a new page"
        return EditTaken(state="set_aside", because=because)
    if page is None:
        return EditTaken(state="gone") if edit.page is not None else _written(conn, edit)
    if page.deleted_at is not None:
        return EditTaken(state="set_aside", page=page.id, because="the page was deleted, and stays deleted")
    known = _known_version(conn, page, edit)
    if known is not None:
        return EditTaken(state="taken", version=known, page=page.id)
    if edit.base is None:
        return EditTaken(state="set_aside", page=page.id, because="there is another page of this name")
    if edit.base != page.version:
        because = f"it was made on version {edit.base}, and the page is at version {page.version}"
        return EditTaken(state="set_aside", page=page.id, because=because)
    return _written(conn, edit)


def _is_live(conn: Connection, project: int, page: int) -> bool:
    return any(not p.deleted for p in pages_named(conn, project, [page]) if p.id == page)


def _written(conn: Connection, edit: FileEdit) -> EditTaken:
    row = write_page(conn, NewPage(
        project=edit.project, kind=edit.kind, slug=edit.slug, text=PageText(title=edit.title, body=edit.body),
        author=edit.author, reason="edited in the wiki", base=edit.base,
    ))  # fmt: skip
    assert row is not None, "what a person writes is always written"
    return EditTaken(state="taken", version=row.version, page=row.id)


def _known_version(conn: Connection, page: PageRow, edit: FileEdit) -> int | None:
    """The version with this very text since the edit's base: it was taken in before, or nothing was changed."""
    if page.kind != edit.kind:
        return None
    for version in page_history(conn, page.id, HISTORY_MAX):
        if version.version < (edit.base or 1):
            return None
        if version.title == edit.title and same_body(version.body, edit.body):
            return version.version
    return None


def same_body(one: str, other: str) -> bool:
    """Whether two texts differ in no more than line ends and empty lines around them, which a file does not keep."""
    return one.replace("\r\n", "\n").strip("\n") == other.replace("\r\n", "\n").strip("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneFile:
    """A file that is missing, and which version of which page it was."""

    page: int
    slug: str
    version: int


def still_there(conn: Connection, project: int, files: Sequence[GoneFile]) -> list[GoneFile]:
    """Those whose page stands as the file had it: what taking them as deletes would delete."""
    return [f for f in files if _stands(conn, project, f)]


def _stands(conn: Connection, project: int, file: GoneFile) -> bool:
    page = find_page(conn, project, file.slug)
    return page is not None and page.id == file.page and page.version == file.version


def delete_gone(conn: Connection, project: int, files: Sequence[GoneFile]) -> int:
    """Delete the pages of files that were deleted; one that has a newer version stays."""
    gone = still_there(conn, project, files)
    for file in gone:
        delete_page(conn, project, file.slug)
    return len(gone)


_VERSIONS = text("""
select g.id, g.kind, g.slug, v.title, v.body, v.version, v.author, g.source, v.created_at
from page_versions v join pages g on g.id = v.page_id
  join subjects u on u.id = g.subject_id and u.erased_at is null
where g.project_id = :project and g.deleted_at is null and (v.created_at, g.id, v.version) > (:at, :page, :version)
  and not exists (select 1 from erasures x where x.done_at is null
    and x.kind in ('stream', 'event') and x.stream_id = g.stream_id)
order by v.created_at, g.id, v.version limit :limit""")


def versions_after(conn: Connection, project: int, after: tuple[int, int, int], limit: int) -> list[WikiPage]:
    """Versions that remain of live pages, oldest first; `after`: (time, page, version) of the last one before."""
    given = {"project": project, "at": after[0], "page": after[1], "version": after[2], "limit": limit}
    return [
        WikiPage(id=r[0], kind=r[1], slug=r[2], title=r[3], body=r[4], version=r[5], author=r[6], source=r[7],
                 updated_at=r[8], deleted=False, supersedes=(), superseded_by=None)
        for r in conn.rows(_VERSIONS, given)
    ]  # fmt: skip
