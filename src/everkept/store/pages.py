"""Pages: versions that are never lost, what supersedes what, and deletes that stay (E03)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text

from everkept.domain.erase import ERASED_MARK
from everkept.domain.ids import row_id
from everkept.domain.pages import PageText, links_of, without_lines
from everkept.errors import Conflict, NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.hidden import SHOWN_PAGE
from everkept.store.merging import forget_renamed
from everkept.store.page_sections import drop_sections, index_page, sections_of_page
from everkept.store.projects import all_secrets, ensure_subject
from everkept.store.sessions import OWNER

BY_ITSELF: Final = frozenset({"digest", "distiller", "import"})
"""Authors that write without being asked: what a person deleted they do not bring back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A version to be written. `base` is the version that its author saw; None: whatever is there is replaced."""

    project: int
    kind: str
    slug: str
    text: PageText
    author: str
    reason: str | None = None
    base: int | None = None
    stream: int | None = None
    source: str | None = None
    supersedes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    id: int
    project: int
    kind: str
    slug: str
    title: str
    version: int
    stream: int | None
    source: str | None
    superseded_by: int | None
    created_at: int
    updated_at: int
    deleted_at: int | None
    body: str
    author: str
    reason: str | None
    content_hash: str
    pinned_at: int | None
    """No proposal changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    version: int
    base: int | None
    title: str
    body: str
    author: str
    reason: str | None
    created_at: int


_ANY = """
select g.id, g.project_id, g.kind, g.slug, g.title, g.version, g.stream_id, g.source, g.superseded_by, g.created_at,
  g.updated_at, g.deleted_at, v.body, v.author, v.reason, v.content_hash, g.pinned_at
from pages g join page_versions v on v.page_id = g.id and v.version = g.version
  join subjects u on u.id = g.subject_id and u.erased_at is null
where g.project_id = :project """
_COLUMNS = f"{_ANY} and {SHOWN_PAGE} "
_ALSO_HIDDEN = text(_ANY + "and g.id = :id")
_IS_HIDDEN = text("select 1 from pages where project_id = :project and slug = :slug and version > 0")
_BY_SLUG = text(_COLUMNS + "and g.slug = :slug")
_BY_SOURCE = text(_COLUMNS + "and g.source = :source")
_BY_ID = text(_COLUMNS + "and g.id = :id")
_LIST = text(_COLUMNS + "and g.deleted_at is null and g.id < :before and (:kind is null or g.kind = :kind)"
             " and (:current = 0 or g.superseded_by is null) order by g.id desc limit :limit")  # fmt: skip
_LINKING = text(_COLUMNS + "and g.deleted_at is null and g.id < :before and (:kind is null or g.kind = :kind)"
                " and (:current = 0 or g.superseded_by is null)"
                " and g.id in (select l.page_id from page_links l where l.target = :target)"
                " order by g.id desc limit :limit")  # fmt: skip
_VERSIONS = text("""
select version, base, title, body, author, reason, created_at from page_versions where page_id = :page
  and version < :before order by version desc limit :limit""")
_VERSION = text("""
select version, base, title, body, author, reason, created_at from page_versions
where page_id = :page and version = :version""")
_ADD = text("""
insert into pages(project_id, subject_id, kind, slug, title, version, stream_id, source, created_at, updated_at)
values(:project, :subject, :kind, :slug, :title, 1, :stream, :source, :now, :now) returning id""")
_MOVE = text("""
update pages set kind = :kind, title = :title, version = :version, stream_id = coalesce(:stream, stream_id),
  source = coalesce(source, :source), updated_at = :now, deleted_at = null,
  superseded_by = case when :by_itself then superseded_by end where id = :id""")
_ADD_VERSION = text("""
insert into page_versions(page_id, version, base, title, body, author, reason, content_hash, created_at)
values(:page, :version, :base, :title, :body, :author, :reason, :hash, :now)""")
_SUPERSEDE = text("""
update pages set superseded_by = :by, updated_at = :now where project_id = :project and slug = :slug and id <> :by
  and exists (select 1 from pages g where g.id = :by and g.superseded_by is null)""")
_DELETE = text("update pages set deleted_at = :now, updated_at = :now where id = :id")
_PASS_ON = text("""
update pages set superseded_by = (select g.superseded_by from pages g where g.id = :id), updated_at = :now
where superseded_by = :id returning id, stream_id""")
_DROP_LINKS = text("delete from page_links where page_id = :page")
_ADD_LINK = text("insert into page_links(page_id, target) values(:page, :target) on conflict do nothing")
_NEWEST = 2**63 - 1


def _page(r: tuple[Any, ...]) -> PageRow:
    return PageRow(
        id=r[0], project=r[1], kind=r[2], slug=r[3], title=r[4], version=r[5], stream=r[6], source=r[7],
        superseded_by=r[8], created_at=r[9], updated_at=r[10], deleted_at=r[11], body=r[12], author=r[13],
        reason=r[14], content_hash=r[15], pinned_at=r[16],
    )  # fmt: skip


def find_page(conn: Connection, project: int, slug: str, *, deleted: bool = False) -> PageRow | None:
    row = conn.first(_BY_SLUG, {"project": project, "slug": slug})
    found = None if row is None else _page(row)
    return found if found is None or deleted or found.deleted_at is None else None


def get_page(conn: Connection, project: int, slug: str) -> PageRow:
    """By its slug, or by its id as recall cites it. Raises NotFound."""
    found = find_page(conn, project, slug, deleted=True) or _by_id(conn, project, slug)
    if found is None:
        raise NotFound(f"there is no page {slug!r} in this project", slug=slug)
    if found.deleted_at is not None:
        raise NotFound(f"the page {slug!r} was deleted; its versions are kept until it is erased", slug=slug)
    return found


def page_by_id(conn: Connection, project: int, page: int) -> PageRow | None:
    """Also one that was deleted."""
    row = conn.first(_BY_ID, {"project": project, "id": page})
    return None if row is None else _page(row)


_ID = re.compile(r"pag_([1-9]\d{0,17})")


def _by_id(conn: Connection, project: int, name: str) -> PageRow | None:
    given = _ID.fullmatch(name)
    return None if given is None else page_by_id(conn, project, int(given[1]))


def list_pages(
    conn: Connection, project: int, *, kind: str | None = None, current: bool = True, links_to: str | None = None,
    before: int | None = None, limit: int = 50,
) -> list[PageRow]:  # fmt: skip
    """Newest first. `current`: none that another page supersedes; `links_to`: only those that name this slug."""
    return [_page(r) for r in conn.rows(_LIST if links_to is None else _LINKING, {
        "target": links_to,
        "project": project, "kind": kind, "current": int(current), "before": _NEWEST if before is None else before,
        "limit": limit})]  # fmt: skip


_STANDING_PAGES = text(_COLUMNS + "and g.kind in ('rule', 'slot') and g.deleted_at is null and g.superseded_by is null"
                       " order by g.kind, g.updated_at desc, g.id desc limit :limit")  # fmt: skip
_OTHER_MAINTAINED_PAGES = text(_COLUMNS + "and g.kind <> 'session' and g.deleted_at is null and g.superseded_by is null"
                               " and g.kind not in ('rule', 'slot')"
                               " order by g.updated_at desc, g.id desc limit :limit")  # fmt: skip


def maintained_pages(conn: Connection, project: int, limit: int) -> list[PageRow]:
    """What somebody keeps true, rules first, then slots, then the last written: no page of a session.

    By two indexes, so that a session's start reads these few however many there are.
    """
    first = conn.rows(_STANDING_PAGES, {"project": project, "limit": limit})
    others = conn.rows(_OTHER_MAINTAINED_PAGES, {"project": project, "limit": limit - len(first)})
    return [_page(r) for r in (*first, *others)]


def page_history(conn: Connection, page: int, limit: int = 50, before: int | None = None) -> list[VersionRow]:
    """Newest first, older than the version `before`."""
    asked = {"page": page, "before": 2**31 if before is None else before, "limit": limit}
    return [_version(r) for r in conn.rows(_VERSIONS, asked)]


def page_version(conn: Connection, page: int, version: int) -> VersionRow:
    row = conn.first(_VERSION, {"page": page, "version": version})
    if row is None:
        raise NotFound(f"the page has no version {version}", version=version)
    return _version(row)


def _version(r: tuple[Any, ...]) -> VersionRow:
    return VersionRow(version=r[0], base=r[1], title=r[2], body=r[3], author=r[4], reason=r[5], created_at=r[6])


def write_page(conn: Connection, new: NewPage) -> PageRow | None:
    """The page as it stands afterwards; None where a person deleted it and its author writes by itself.

    The same text again is no new version. Raises Conflict where `base` is not the newest version any more.
    """
    there = _there(conn, new)
    if new.author in BY_ITSELF and _stays_deleted(conn, new, there):
        return None
    if there is not None:
        if new.base is not None and new.base != there.version:
            raise Conflict(
                f"page {there.slug!r} is at version {there.version}, and this was written on version {new.base};"
                " read it again and write on that",
                slug=there.slug, version=there.version,
            )  # fmt: skip
        if _says_the_same(there, new):
            _supersede(conn, new, there.id)
            return there
    if there is not None and (there.title, there.kind) != (new.text.title, new.kind):  # each passage names them
        drop_sections(conn, new.project, sections_of_page(conn, there.id))
    page, version = _write_version(conn, new, there)
    index_page(conn, new.project, page, new.kind, new.text)
    _link(conn, page, new.text.body)
    _supersede(conn, new, page)
    record_changes(conn, new.project, [NewChange(
        kind="page.written", ref=row_id("pag", page), stream=new.stream,
        data={"version": version, "author": new.author},
    )])  # fmt: skip
    row = conn.first(_BY_ID, {"project": new.project, "id": page})
    assert row is not None
    return _page(row)


def _says_the_same(there: PageRow, new: NewPage) -> bool:
    """Nothing is to be written. A superseded page is current again when a person writes it, whatever it says."""
    if there.deleted_at is not None or (there.superseded_by is not None and new.author not in BY_ITSELF):
        return False
    return there.content_hash == new.text.content_hash and there.kind == new.kind


def _supersede(conn: Connection, new: NewPage, page: int) -> None:
    """Only what is current itself takes another's place, so that no two pages ever hide each other."""
    if new.supersedes is not None:
        conn.run(_SUPERSEDE, {"project": new.project, "slug": new.supersedes, "by": page, "now": conn.now()})


_BLANKED = text("select 1 from pages where project_id = :project and source = :source and version = 0")
_ENTOMBED = text("select 1 from pages where project_id = :project and slug in (select value from words(:tombs))")


def _stays_deleted(conn: Connection, new: NewPage, there: PageRow | None) -> bool:
    """Whether a person deleted this page, also where an erase then took its words (E03)."""
    if conn.first(_BLANKED, {"project": new.project, "source": new.source}) is not None:
        return True
    return was_deleted(conn, new.project, new.slug) if there is None else there.deleted_at is not None


def was_deleted(conn: Connection, project: int, slug: str) -> bool:
    """Whether a page of this slug was deleted by a person, and then lost its words to an erase."""
    return conn.first(_ENTOMBED, {"project": project, "tombs": json.dumps(_tombs(conn, project, slug))}) is not None


def _tombs(conn: Connection, project: int, slug: str) -> list[str]:
    """What stands for the slug of such a page: as it is written today, then as projects that were merged into this one
    wrote it. Keyed, so that it tells no word of it."""
    return [
        ERASED_MARK + hashlib.blake2b(slug.encode(), key=secret[:64], digest_size=16).hexdigest()
        for secret in all_secrets(conn, project)
    ]


def _there(conn: Connection, new: NewPage) -> PageRow | None:
    """The page of this source, whatever its slug became; else of this slug. Raises Conflict while it is erased."""
    row = None if new.source is None else conn.first(_BY_SOURCE, {"project": new.project, "source": new.source})
    if row is not None:
        return _page(row)
    found = find_page(conn, new.project, new.slug, deleted=True)
    if found is None and conn.first(_IS_HIDDEN, {"project": new.project, "slug": new.slug}) is not None:
        raise Conflict(f"page {new.slug!r} is being erased, or a part of it; write it again in a minute", slug=new.slug)
    return found


def _write_version(conn: Connection, new: NewPage, there: PageRow | None) -> tuple[int, int]:
    now = conn.now()
    if there is None:
        subject = ensure_subject(conn, new.project, OWNER)
        page, version = conn.scalar(_ADD, {
            "project": new.project, "subject": subject, "kind": new.kind, "slug": new.slug, "title": new.text.title,
            "stream": new.stream, "source": new.source, "now": now}), 1  # fmt: skip
    else:
        page, version = there.id, there.version + 1
        conn.run(_MOVE, {
            "id": page, "kind": new.kind, "title": new.text.title, "version": version, "stream": new.stream,
            "source": new.source, "by_itself": new.author in BY_ITSELF, "now": now})  # fmt: skip
    conn.run(_ADD_VERSION, {
        "page": page, "version": version, "base": None if there is None else there.version, "title": new.text.title,
        "body": new.text.body, "author": new.author, "reason": new.reason, "hash": new.text.content_hash, "now": now,
    })  # fmt: skip
    return int(page), version


def _link(conn: Connection, page: int, body: str) -> None:
    conn.run(_DROP_LINKS, {"page": page})
    conn.many(_ADD_LINK, [{"page": page, "target": slug} for slug in links_of(body)])


def delete_page(conn: Connection, project: int, slug: str) -> PageRow:
    """Take a page out of search and lists; its versions stay, and nothing brings it back by itself.

    What it had superseded is current again, or superseded by what took its own place.
    """
    page = get_page(conn, project, slug)
    conn.run(_DELETE, {"id": page.id, "now": conn.now()})
    drop_sections(conn, project, sections_of_page(conn, page.id))
    conn.run(_DROP_LINKS, {"page": page.id})
    record_changes(conn, project, [
        NewChange(kind="page.deleted", ref=row_id("pag", page.id), stream=page.stream),
        *(NewChange(kind="page.restored", ref=row_id("pag", older), stream=stream)
          for older, stream in _pass_on(conn, page.id)),
    ])  # fmt: skip
    return page


_PIN = text("update pages set pinned_at = case when :pinned then coalesce(pinned_at, :now) end where id = :id")


def pin_page(conn: Connection, project: int, slug: str, *, pinned: bool) -> PageRow:
    """Keep a page from proposals, or let them at it again. Raises NotFound."""
    page = get_page(conn, project, slug)
    conn.run(_PIN, {"id": page.id, "pinned": pinned, "now": conn.now()})
    return get_page(conn, project, page.slug)


def _pass_on(conn: Connection, page: int) -> list[tuple[int, int | None]]:
    """Let what superseded a page supersede what it had superseded, if there is such a page: (page, stream) of each."""
    return [(r[0], r[1]) for r in conn.rows(_PASS_ON, {"id": page, "now": conn.now()})]


# ---- erasing


def erase_pages(conn: Connection, ids: Sequence[int], *, project: int, keep_deleted: bool) -> int:
    """Destroy pages with every version, section, link and passage; the number of passages.

    `keep_deleted`: of one that a person had deleted a row without words stays, so that it is not made again.
    """
    gone = sum(_destroy_words(conn, project, page) for page in ids)
    for page in ids:
        forget_renamed(conn, project, [("page", slug) for (slug,) in conn.rows(_SLUG_OF, {"id": page})])
        _pass_on(conn, page)
        deleted = conn.first(_DELETED, {"id": page}) if keep_deleted else None
        if deleted is None:
            conn.run(_ERASE_ROW, {"id": page})
        else:
            _entomb(conn, project, page, deleted[0])
    return gone


def take_out_lines(conn: Connection, project: int, page: int, added: str) -> bool:
    """Rewrite every version without the lines of `added`, as an erase needs it; whether any had one of them."""
    newest = conn.first(_ALSO_HIDDEN, {"project": project, "id": page})
    if newest is None:
        return False
    touched = False
    for version, title, body in conn.rows(_ALL_TEXTS, {"page": page}):
        text_now = PageText(title=title, body=without_lines(body, added))
        if text_now.body != body:
            touched = True
            conn.run(_REWRITE, {
                "page": page, "version": version, "body": text_now.body, "hash": text_now.content_hash})  # fmt: skip
    row = _page(newest)
    if touched and row.deleted_at is None:
        body = without_lines(row.body, added)
        index_page(conn, project, page, row.kind, PageText(title=row.title, body=body))
        _link(conn, page, body)
    return touched


_ALL_TEXTS = text("select version, title, body from page_versions where page_id = :page order by version")
_REWRITE = text("""
update page_versions set body = :body, content_hash = :hash where page_id = :page and version = :version""")


def _destroy_words(conn: Connection, project: int, page: int) -> int:
    gone = drop_sections(conn, project, sections_of_page(conn, page))
    for statement in (_DROP_LINKS, _DROP_VERSIONS):
        conn.run(statement, {"page": page})
    return gone


def _entomb(conn: Connection, project: int, page: int, slug: str) -> None:
    """One row for a slug is enough; any further one is known by its source alone."""
    tomb = f"{ERASED_MARK}{page}" if was_deleted(conn, project, slug) else _tombs(conn, project, slug)[0]
    conn.run(_ENTOMB, {"id": page, "tomb": tomb})


_DROP_VERSIONS = text("delete from page_versions where page_id = :page")
_DELETED = text("select slug from pages where id = :id and deleted_at is not null")
_ENTOMB = text("update pages set title = '', slug = :tomb, version = 0, superseded_by = null where id = :id")
_SLUG_OF = text("select slug from pages where id = :id")
_ERASE_ROW = text("delete from pages where id = :id and version > 0")
