"""Sections of pages: what of a page's newest version is searched, a passage each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import text

from everkept.domain.ids import ProjectId, SubjectId
from everkept.domain.pages import MAINTAINED, PageText, Section, sections_of
from everkept.domain.passage import Analysed, Traits, analyse
from everkept.store.connection import Connection
from everkept.store.embeddings import around_input, forget_embeddings, own_input
from everkept.store.projects import ensure_subject
from everkept.store.search import NewPassage, delete_passages, find_passages_of, index_passages
from everkept.store.sessions import OWNER
from everkept.store.streams import wake_embedder

_SECTIONS = text("""
select id, anchor, text_hash from page_sections where page_id = :page order by ordinal limit :limit""")
_DROP_SECTIONS = text("delete from page_sections where id in (select value from numbers(:ids))")
_ADD_SECTION = text("""
insert into page_sections(page_id, ordinal, anchor, heading, body, text_hash)
values(:page, :ordinal, :anchor, :heading, :body, :hash) returning id""")
_ORDER = text("update page_sections set ordinal = :ordinal where id = :id and ordinal <> :ordinal")
_SECTION_TEXTS = text("""
select g.title, n.heading, n.body from page_sections n join pages g on g.id = n.page_id
where n.id in (select value from numbers(:ids))""")
_SECTION_ROWS = text("""
select n.id, g.id, g.slug, g.kind, g.title, g.version, g.superseded_by, n.anchor, n.heading, n.body, g.updated_at,
  g.stream_id
from page_sections n join pages g on g.id = n.page_id
where g.project_id = :project and g.deleted_at is null and g.superseded_by is null
  and n.id in (select value from numbers(:ids))""")
_ALL = 1 << 31


def index_page(conn: Connection, project: int, page: int, kind: str, page_text: PageText) -> None:
    """Sections that stayed as they were keep their passages and vectors."""
    sections = sections_of(page_text.title, page_text.body)
    there = {(r[1], r[2]): r[0] for r in conn.rows(_SECTIONS, {"page": page, "limit": _ALL})}
    wanted = {(s.anchor, s.text_hash) for s in sections}
    drop_sections(conn, project, [id_ for key, id_ in there.items() if key not in wanted])
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
    _index_sections(conn, project, kind, page_text.title, added)


def _index_sections(
    conn: Connection, project: int, kind: str, title: str, added: Sequence[tuple[int, Section]]
) -> None:
    if not added:
        return
    subject = SubjectId(ensure_subject(conn, project, OWNER))
    kept_true = int(Traits.MAINTAINED) if kind in MAINTAINED else 0
    index_passages(conn, [
        NewPassage(project=ProjectId(project), subject=subject, kind="page", ref=row, occurred_at_us=conn.now(),
                   analysed=_analysed(section_text(title, section.heading, section.body), kept_true))
        for row, section in added
    ])  # fmt: skip
    wake_embedder(conn, project)


def _analysed(words: str, traits: int) -> Analysed:
    found = analyse(words)
    return replace(found, traits=found.traits | traits)


def section_text(title: str, heading: str, body: str) -> str:
    """What of a section is searched: also where it stands."""
    return f"{title}\n{body}" if heading == title else f"{title}: {heading}\n{body}"


def sections_of_page(conn: Connection, page: int, limit: int = _ALL) -> list[int]:
    """Ids of its sections, in their order."""
    return [r[0] for r in conn.rows(_SECTIONS, {"page": page, "limit": limit})]


def drop_sections(conn: Connection, project: int, sections: Sequence[int]) -> int:
    """With their passages, and what embedders made of them; the number of passages."""
    if not sections:
        return 0
    ids = {"ids": json.dumps(list(sections))}
    texts = [section_text(*r) for r in conn.rows(_SECTION_TEXTS, ids)]
    forget_embeddings(conn, project, [x for t in texts for x in (own_input(t), around_input(f"{None}: {t}"))])
    gone = delete_passages(conn, ProjectId(project), find_passages_of(conn, "page", sections))
    conn.run(_DROP_SECTIONS, ids)
    return gone


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
    """Of pages that are current."""
    rows = conn.rows(_SECTION_ROWS, {"project": project, "ids": json.dumps(list(ids))})
    return {
        r[0]: SectionRow(id=r[0], page=r[1], slug=r[2], kind=r[3], title=r[4], version=r[5], superseded_by=r[6],
                         anchor=r[7], heading=r[8], body=r[9], updated_at=r[10], stream=r[11])
        for r in rows
    }  # fmt: skip
