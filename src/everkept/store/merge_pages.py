"""Pages move with their sessions or by themselves. What is called alike is kept twice, and says so.

A page whose slug is taken gets one of its own. Where both say the same, came from the same file, or are slots of one
name, one of them supersedes the other, visibly: the target's where it goes on being written, else the newer.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.domain.pages import SLUG_CHARS_MAX, slug_of
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection, Row
from everkept.store.merge_part import Part, Renamed

PAGES_PER_CHUNK: Final = 15

_COLUMNS = """
select g.id, g.kind, g.slug, g.source, g.updated_at, g.deleted_at, g.superseded_by, v.content_hash
from pages g left join page_versions v on v.page_id = g.id and v.version = g.version """
_OF_STREAM = text(_COLUMNS + "where g.stream_id = :stream and g.project_id = :source order by g.id")
_LEFT = text(_COLUMNS + "where g.project_id = :source order by g.id limit :limit")
_OF_SLUG = text(_COLUMNS + "where g.project_id = :target and g.slug = :slug")
_OF_FILE = text(_COLUMNS + "where g.project_id = :target and g.source = :file")
_MOVE = text("""
update pages set project_id = :target, subject_id = coalesce(
  (select u.merged_into from subjects u where u.id = pages.subject_id), subject_id), slug = :slug, source = :file
where id = :page""")
_SUPERSEDE = text("update pages set superseded_by = :by, updated_at = :now where id = :page and superseded_by is null")
# Proposals name their page by its slug, and move later.
_PROPOSALS = text("update proposals set slug = :new where project_id = :source and slug = :slug")


def move_pages(conn: Connection, part: Part, *, stream: int | None = None) -> tuple[int, list[Renamed]]:
    """All pages of a session, or the next of those that are of none: how many, and what they had to be called."""
    given = {**part.params, "stream": stream, "limit": PAGES_PER_CHUNK}
    rows = conn.rows(_LEFT if stream is None else _OF_STREAM, given)
    return len(rows), [renamed for row in rows if (renamed := _move(conn, part, row)) is not None]


def _move(conn: Connection, part: Part, row: Row) -> Renamed | None:
    page, kind, slug, file, updated_at, deleted_at, superseded_by, content = row
    there = conn.first(_OF_SLUG, {**part.params, "slug": slug})
    same_file = None if file is None else conn.first(_OF_FILE, {**part.params, "file": file})
    new = slug if there is None else _free_slug(conn, part, slug, page)
    conn.run(_MOVE, {**part.params, "page": page, "slug": new, "file": file if same_file is None else None})
    if new != slug:
        conn.run(_PROPOSALS, {**part.params, "slug": slug, "new": new})
    other = same_file or there
    if other is not None and deleted_at is None and other[5] is None and superseded_by is None and other[6] is None:
        alike = other[7] is not None and other[7] == content
        if same_file is not None or alike:
            _supersede(conn, page, other[0])
        elif kind == other[1] == "slot":
            _supersede(conn, *((page, other[0]) if other[4] >= updated_at else (other[0], page)))
    both = [] if other is None else [other[0]]
    record_changes(conn, part.target, [NewChange(kind="page.moved", ref=row_id("pag", p)) for p in (*both, page)])
    return None if new == slug else ("page", slug, new)


def _free_slug(conn: Connection, part: Part, slug: str, page: int) -> str:
    ending = f"-{slug_of(part.source_name)[: SLUG_CHARS_MAX // 2]}"
    new = f"{slug[: SLUG_CHARS_MAX - len(ending)]}{ending}"
    if conn.first(_OF_SLUG, {**part.params, "slug": new}) is None:
        return new
    return f"{slug[: SLUG_CHARS_MAX // 2]}-{page}"


def _supersede(conn: Connection, page: int, by: int) -> None:
    conn.run(_SUPERSEDE, {"page": page, "by": by, "now": conn.now()})
