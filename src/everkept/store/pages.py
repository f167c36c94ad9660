"""Pages: versions that are never lost, sections that are searched, and deletes that stay (E03)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import text

from everkept.domain.erase import ERASED_MARK
from everkept.domain.ids import ProjectId, SubjectId, row_id
from everkept.domain.pages import MAINTAINED, PageText, Section, links_of, sections_of
from everkept.domain.passage import Analysed, Traits, analyse
from everkept.errors import Conflict, NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.embeddings import around_input, forget_embeddings, own_input
from everkept.store.projects import ensure_subject
from everkept.store.search import NewPassage, delete_passages, find_passages_of, index_passages
from everkept.store.sessions import OWNER
from everkept.store.streams import wake_embedder

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    version: int
    base: int | None
    title: str
    body: str
    author: str
    reason: str | None
    created_at: int


_COLUMNS = """
select g.id, g.project_id, g.kind, g.slug, g.title, g.version, g.stream_id, g.source, g.superseded_by, g.created_at,
  g.updated_at, g.deleted_at, v.body, v.author, v.reason, v.content_hash
from pages g join page_versions v on v.page_id = g.id and v.version = g.version
  join subjects u on u.id = g.subject_id and u.erased_at is null
where g.project_id = :project and not exists (select 1 from erasures x where x.done_at is null
  and x.kind in ('stream', 'event') and x.stream_id = g.stream_id) """
_BY_SLUG = text(_COLUMNS + "and g.slug = :slug")
_BY_SOURCE = text(_COLUMNS + "and g.source = :source")
_BY_ID = text(_COLUMNS + "and g.id = :id")
_LIST = text(_COLUMNS + "and g.deleted_at is null and g.id < :before and (:kind is null or g.kind = :kind)"
             " and (:current = 0 or g.superseded_by is null) order by g.id desc limit :limit")  # fmt: skip
_VERSIONS = text("""
select version, base, title, body, author, reason, created_at from page_versions where page_id = :page
order by version desc limit :limit""")
_VERSION = text("""
select version, base, title, body, author, reason, created_at from page_versions
where page_id = :page and version = :version""")
_ADD = text("""
insert into pages(project_id, subject_id, kind, slug, title, version, stream_id, source, created_at, updated_at)
values(:project, :subject, :kind, :slug, :title, 1, :stream, :source, :now, :now) returning id""")
_MOVE = text("""
update pages set kind = :kind, title = :title, version = :version, stream_id = coalesce(:stream, stream_id),
  source = coalesce(source, :source), updated_at = :now, deleted_at = null, superseded_by = null where id = :id""")
_ADD_VERSION = text("""
insert into page_versions(page_id, version, base, title, body, author, reason, content_hash, created_at)
values(:page, :version, :base, :title, :body, :author, :reason, :hash, :now)""")
_SUPERSEDE = text("""
update pages set superseded_by = :by, updated_at = :now where project_id = :project and slug = :slug and id <> :by""")
_DELETE = text("update pages set deleted_at = :now, updated_at = :now where id = :id")
_SECTIONS = text("select id, anchor, text_hash from page_sections where page_id = :page order by ordinal")
_DROP_SECTIONS = text("delete from page_sections where id in (select value from json_each(:ids))")
_ADD_SECTION = text("""
insert into page_sections(page_id, ordinal, anchor, heading, body, text_hash)
values(:page, :ordinal, :anchor, :heading, :body, :hash) returning id""")
_ORDER = text("update page_sections set ordinal = :ordinal where id = :id and ordinal <> :ordinal")
_DROP_LINKS = text("delete from page_links where page_id = :page")
_ADD_LINK = text("insert into page_links(page_id, target) values(:page, :target) on conflict do nothing")
_NEWEST = 2**63 - 1


def _page(r: tuple[Any, ...]) -> PageRow:
    return PageRow(
        id=r[0], project=r[1], kind=r[2], slug=r[3], title=r[4], version=r[5], stream=r[6], source=r[7],
        superseded_by=r[8], created_at=r[9], updated_at=r[10], deleted_at=r[11], body=r[12], author=r[13],
        reason=r[14], content_hash=r[15],
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


_ID = re.compile(r"pag_([1-9]\d{0,17})")


def _by_id(conn: Connection, project: int, name: str) -> PageRow | None:
    given = _ID.fullmatch(name)
    row = None if given is None else conn.first(_BY_ID, {"project": project, "id": int(given[1])})
    return None if row is None else _page(row)


def list_pages(
    conn: Connection, project: int, *, kind: str | None = None, current: bool = True, before: int | None = None,
    limit: int = 50,
) -> list[PageRow]:  # fmt: skip
    """Newest first; `current` leaves out those that another page supersedes."""
    return [_page(r) for r in conn.rows(_LIST, {
        "project": project, "kind": kind, "current": int(current), "before": _NEWEST if before is None else before,
        "limit": limit})]  # fmt: skip


_MAINTAINED_PAGES = text(_COLUMNS + "and g.kind <> 'session' and g.deleted_at is null and g.superseded_by is null"
                         " order by case g.kind when 'rule' then 0 when 'slot' then 1 else 2 end, g.updated_at desc,"
                         " g.id desc limit :limit")  # fmt: skip


def maintained_pages(conn: Connection, project: int, limit: int) -> list[PageRow]:
    """What somebody keeps true, rules first and then the last written: no page of a session."""
    return [_page(r) for r in conn.rows(_MAINTAINED_PAGES, {"project": project, "limit": limit})]


def page_history(conn: Connection, page: int, limit: int = 50) -> list[VersionRow]:
    """Newest first."""
    return [_version(r) for r in conn.rows(_VERSIONS, {"page": page, "limit": limit})]


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
    if conn.first(_BLANKED, {"project": new.project, "source": new.source}) is not None:
        return None
    there = _there(conn, new)
    if there is not None:
        if there.deleted_at is not None and new.author in BY_ITSELF:
            return None
        if new.base is not None and new.base != there.version:
            raise Conflict(
                f"page {there.slug!r} is at version {there.version}, and this was written on version {new.base};"
                " read it again and write on that",
                slug=there.slug, version=there.version,
            )  # fmt: skip
        if there.deleted_at is None and there.content_hash == new.text.content_hash and there.kind == new.kind:
            _supersede(conn, new, there.id)
            return there
    page, version = _write_version(conn, new, there)
    _index(conn, new, page)
    _supersede(conn, new, page)
    record_changes(conn, new.project, [NewChange(
        kind="page.written", ref=row_id("pag", page), stream=new.stream,
        data={"version": version, "author": new.author},
    )])  # fmt: skip
    row = conn.first(_BY_ID, {"project": new.project, "id": page})
    assert row is not None
    return _page(row)


def _supersede(conn: Connection, new: NewPage, page: int) -> None:
    if new.supersedes is not None:
        conn.run(_SUPERSEDE, {"project": new.project, "slug": new.supersedes, "by": page, "now": conn.now()})


_BLANKED = text("select 1 from pages where project_id = :project and source = :source and version = 0")


def _there(conn: Connection, new: NewPage) -> PageRow | None:
    """The page of this source, whatever its slug became; else of this slug."""
    row = None if new.source is None else conn.first(_BY_SOURCE, {"project": new.project, "source": new.source})
    if row is not None:
        return _page(row)
    return find_page(conn, new.project, new.slug, deleted=True)


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
            "source": new.source, "now": now})  # fmt: skip
    conn.run(_ADD_VERSION, {
        "page": page, "version": version, "base": None if there is None else there.version, "title": new.text.title,
        "body": new.text.body, "author": new.author, "reason": new.reason, "hash": new.text.content_hash, "now": now,
    })  # fmt: skip
    return int(page), version


def delete_page(conn: Connection, project: int, slug: str) -> PageRow:
    """Take a page out of search and lists; its versions stay, and nothing brings it back by itself."""
    page = get_page(conn, project, slug)
    conn.run(_DELETE, {"id": page.id, "now": conn.now()})
    _drop_sections(conn, project, [r[0] for r in conn.rows(_SECTIONS, {"page": page.id})])
    conn.run(_DROP_LINKS, {"page": page.id})
    record_changes(conn, project, [NewChange(kind="page.deleted", ref=row_id("pag", page.id), stream=page.stream)])
    return page


# ---- sections


def _index(conn: Connection, new: NewPage, page: int) -> None:
    """Sections that stayed as they were keep their passages and vectors."""
    sections = sections_of(new.text.title, new.text.body)
    there = {(r[1], r[2]): r[0] for r in conn.rows(_SECTIONS, {"page": page})}
    wanted = {(s.anchor, s.text_hash) for s in sections}
    _drop_sections(conn, new.project, [id_ for key, id_ in there.items() if key not in wanted])
    added: list[tuple[int, Section]] = []
    for ordinal, section in enumerate(sections):
        id_ = there.get((section.anchor, section.text_hash))
        if id_ is not None:
            conn.run(_ORDER, {"id": id_, "ordinal": ordinal})
            continue
        row = conn.scalar(_ADD_SECTION, {
            "page": page, "ordinal": ordinal, "anchor": section.anchor, "heading": section.heading,
            "body": section.body, "hash": section.text_hash})  # fmt: skip
        added.append((int(row), section))
    _index_sections(conn, new, added)
    conn.run(_DROP_LINKS, {"page": page})
    conn.many(_ADD_LINK, [{"page": page, "target": slug} for slug in links_of(new.text.body)])


def _index_sections(conn: Connection, new: NewPage, added: Sequence[tuple[int, Section]]) -> None:
    if not added:
        return
    subject = SubjectId(ensure_subject(conn, new.project, OWNER))
    kept_true = int(Traits.MAINTAINED) if new.kind in MAINTAINED else 0
    index_passages(conn, [
        NewPassage(project=ProjectId(new.project), subject=subject, kind="page", ref=row, occurred_at_us=conn.now(),
                   analysed=_analysed(section_text(new.text.title, section.heading, section.body), kept_true))
        for row, section in added
    ])  # fmt: skip
    wake_embedder(conn, new.project)


def _analysed(words: str, traits: int) -> Analysed:
    found = analyse(words)
    return replace(found, traits=found.traits | traits)


def section_text(title: str, heading: str, body: str) -> str:
    """What of a section is searched: also where it stands."""
    return f"{title}\n{body}" if heading == title else f"{title}: {heading}\n{body}"


_SECTION_TEXTS = text("""
select g.title, n.heading, n.body from page_sections n join pages g on g.id = n.page_id
where n.id in (select value from json_each(:ids))""")


def _forget(conn: Connection, project: int, sections: Sequence[int]) -> None:
    """What embedders made of these sections is kept no longer than the sections."""
    texts = [section_text(*r) for r in conn.rows(_SECTION_TEXTS, {"ids": json.dumps(list(sections))})]
    forget_embeddings(conn, project, [x for t in texts for x in (own_input(t), around_input(f"{None}: {t}"))])


def _drop_sections(conn: Connection, project: int, sections: Sequence[int]) -> None:
    if sections:
        _forget(conn, project, sections)
        delete_passages(conn, ProjectId(project), find_passages_of(conn, "page", sections))
        conn.run(_DROP_SECTIONS, {"ids": json.dumps(list(sections))})


_SECTION_ROWS = text("""
select n.id, g.id, g.slug, g.kind, g.title, g.version, g.superseded_by, n.anchor, n.heading, n.body, g.updated_at,
  g.stream_id
from page_sections n join pages g on g.id = n.page_id
where g.project_id = :project and g.deleted_at is null and g.superseded_by is null
  and n.id in (select value from json_each(:ids))""")


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionRow:
    id: int
    page: int
    slug: str
    kind: str
    title: str
    version: int
    superseded_by: int | None
    anchor: str
    heading: str
    body: str
    updated_at: int
    stream: int | None


def sections_by_id(conn: Connection, project: int, ids: Sequence[int]) -> dict[int, SectionRow]:
    rows = conn.rows(_SECTION_ROWS, {"project": project, "ids": json.dumps(list(ids))})
    return {
        r[0]: SectionRow(id=r[0], page=r[1], slug=r[2], kind=r[3], title=r[4], version=r[5], superseded_by=r[6],
                         anchor=r[7], heading=r[8], body=r[9], updated_at=r[10], stream=r[11])
        for r in rows
    }  # fmt: skip


# ---- erasing


def erase_pages(conn: Connection, ids: Sequence[int], *, project: int, keep_deleted: bool) -> int:
    """Destroy pages with every version, section, link and passage; the number of passages.

    `keep_deleted`: of one that a person had deleted a row without words stays, so that it is not made again.
    """
    given = {"ids": json.dumps(list(ids)), "mark": ERASED_MARK}
    sections = [r[0] for r in conn.rows(_SECTIONS_OF, given)]
    _forget(conn, project, sections)
    gone = delete_passages(conn, ProjectId(project), find_passages_of(conn, "page", sections)) if sections else 0
    for statement in (*_ERASE, _ERASE_SUPERSEDED, *([_BLANK] if keep_deleted else []), _ERASE_ROWS):
        conn.run(statement, given)
    return gone


_SECTIONS_OF = text("select id from page_sections where page_id in (select value from json_each(:ids))")
_ERASE = tuple(
    text(f"delete from {table} where page_id in (select value from json_each(:ids))")
    for table in ("page_sections", "page_links", "page_versions")
)
_ERASE_SUPERSEDED = text("""
update pages set superseded_by = null where superseded_by in (select value from json_each(:ids))""")
_BLANK = text("""
update pages set title = '', slug = :mark || cast(id as text), version = 0
where id in (select value from json_each(:ids)) and deleted_at is not null""")
_ERASE_ROWS = text("delete from pages where id in (select value from json_each(:ids)) and version > 0")
