"""What coding agents left: sessions, pages and handoffs of one project."""

from __future__ import annotations

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import bounded, cursor_of, message_view, moment, read_cursor, when
from everkept.capture.redaction import cleaned
from everkept.domain.ids import parse_row_id, row_id
from everkept.domain.pages import (
    BODY_CHARS_MAX,
    PAGE_KINDS,
    SLUG_CHARS_MAX,
    TITLE_CHARS_MAX,
    PageText,
    slug_of,
)
from everkept.domain.session import own_name
from everkept.errors import InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.handoffs import (
    Choice,
    HandoffRow,
    acknowledge_handoff,
    choose_handoff,
    get_handoff,
    list_handoffs,
)
from everkept.store.pages import (
    NewPage,
    PageRow,
    VersionRow,
    delete_page,
    get_page,
    list_pages,
    page_history,
    page_version,
    write_page,
)
from everkept.store.sessions import SessionRow, end_session, find_session, list_sessions
from everkept.store.streams import list_events

HANDOFF_STATES = ("open", "acknowledged", "replaced", "expired")


class AgentMemory(Cases):
    """Sessions, pages, handoffs."""

    # ---- sessions

    async def list_sessions(
        self, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Session]:
        bounded(limit, "limit", 1, 1000)

        def read(conn: Connection) -> list[SessionRow]:
            return list_sessions(conn, self._project_id, agent=agent, before=read_cursor(cursor), limit=limit + 1)

        rows = await self._store.read(read)
        following = cursor_of(rows[limit - 1].stream) if len(rows) > limit else None
        return v.Page(items=[session_view(r) for r in rows[:limit]], next_cursor=following)

    async def get_session(self, session_id: str) -> v.Session:
        return session_view(await self._store.read(self._session, session_id))

    def _session(self, conn: Connection, session_id: str) -> SessionRow:
        row = find_session(conn, self._project_id, parse_row_id("ses", session_id))
        if row is None:
            raise NotFound(f"there is no session {session_id} in this project", id=session_id)
        return row

    async def session_events(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]:
        """Oldest first; `metadata` has the kind of each, and what came of a call."""
        bounded(limit, "limit", 1, 1000)

        def read(conn: Connection) -> list[v.Message]:
            stream = self._session(conn, session_id).stream
            return [message_view(e) for e in list_events(conn, stream, after_seq + 1, 1 << 62, limit + 1)]

        events = await self._store.read(read)
        return v.Page(items=events[:limit], next_cursor=str(events[limit - 1].seq) if len(events) > limit else None)

    async def end_session(self, session_id: str) -> v.EndResult:
        """Digest it now. It may go on afterwards; ending twice gives one digest."""

        def end(conn: Connection) -> tuple[bool, str]:
            return end_session(conn, self._session(conn, session_id))

        queued, reason = await self._write(end)
        return v.EndResult(episode_queued=queued, reason=reason)

    # ---- pages

    async def list_pages(
        self, *, kind: str | None = None, superseded: bool = False, links_to: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.KnowledgePage]:  # fmt: skip
        bounded(limit, "limit", 1, 1000)
        if kind is not None:
            _check_kind(kind)

        def read(conn: Connection) -> list[PageRow]:
            return list_pages(
                conn, self._project_id, kind=kind, current=not superseded, links_to=links_to,
                before=read_cursor(cursor), limit=limit + 1,
            )  # fmt: skip

        rows = await self._store.read(read)
        following = cursor_of(rows[limit - 1].id) if len(rows) > limit else None
        return v.Page(items=[page_view(r, body=False) for r in rows[:limit]], next_cursor=following)

    async def get_page(self, slug: str, *, version: int | None = None) -> v.KnowledgePage:
        def read(conn: Connection) -> v.KnowledgePage:
            row = get_page(conn, self._project_id, slug)
            found = page_view(row, body=True)
            if version is None:
                return found
            old = page_version(conn, row.id, version)
            return found.model_copy(update={
                "version": old.version, "title": old.title, "body": old.body, "author": old.author,
                "reason": old.reason, "updated_at": moment(old.created_at)})  # fmt: skip

        return await self._store.read(read)

    async def page_history(self, slug: str, *, before: int | None = None, limit: int = 50) -> list[v.PageVersion]:
        """Newest first, older than the version `before`."""
        bounded(limit, "limit", 1, 1000)
        if before is not None:
            bounded(before, "before", 1, 2**31 - 1)

        def read(conn: Connection) -> list[VersionRow]:
            return page_history(conn, get_page(conn, self._project_id, slug).id, limit, before)

        return [version_view(row) for row in await self._store.read(read)]

    async def write_page(
        self, title: str, body: str, *, kind: str = "note", slug: str | None = None, base: int | None = None,
        reason: str | None = None, supersedes: str | None = None, author: str = "hand",
    ) -> v.KnowledgePage:  # fmt: skip
        """A new page, or the next version of one. Raises Conflict where `base` is not its newest version."""
        _check_kind(kind)
        text = PageText(
            title=_kept_text(title, "title", TITLE_CHARS_MAX), body=_kept_text(body, "body", BODY_CHARS_MAX)
        )
        name = slug_of(text.title) if slug is None else _checked_slug(slug)
        why = None if reason is None else cleaned(reason)
        new = NewPage(project=self._project_id, kind=kind, slug=name, text=text, author=author, reason=why, base=base,
                      supersedes=supersedes)  # fmt: skip
        row = await self._write(write_page, new)
        assert row is not None, "what a person writes is always written"
        return page_view(row, body=True)

    async def delete_page(self, slug: str) -> v.KnowledgePage:
        """Take it out of search and lists for good: nothing brings it back by itself. Its versions stay."""
        return page_view(await self._write(delete_page, self._project_id, slug), body=False)

    # ---- handoffs

    async def list_handoffs(
        self, *, state: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Handoff]:
        bounded(limit, "limit", 1, 1000)
        if state is not None and state not in HANDOFF_STATES:
            raise InvalidInput(f"state is one of {', '.join(HANDOFF_STATES)}", field="state", known=HANDOFF_STATES)

        def read(conn: Connection) -> list[HandoffRow]:
            return list_handoffs(conn, self._project_id, state=state, before=read_cursor(cursor), limit=limit + 1)

        rows = await self._store.read(read)
        following = cursor_of(rows[limit - 1].id) if len(rows) > limit else None
        return v.Page(items=[handoff_view(r) for r in rows[:limit]], next_cursor=following)

    async def get_handoff(self, handoff_id: str) -> v.Handoff:
        return handoff_view(await self._store.read(get_handoff, self._project_id, parse_row_id("hnd", handoff_id)))

    async def choose_handoff(self, *, worktree: str | None = None, branch: str | None = None) -> v.HandoffChoice:
        """Which handoff a session in this place is offered, and why. Takes nothing up."""

        def read(conn: Connection) -> Choice:
            return choose_handoff(conn, self._project_id, worktree=worktree, branch=branch)

        choice = await self._store.read(read)
        return v.HandoffChoice(
            chosen=None if choice.chosen is None else handoff_view(choice.chosen),
            because=choice.because,
            others=[handoff_view(h) for h in choice.others],
        )

    async def acknowledge_handoff(self, handoff_id: str, *, by: str) -> v.Handoff:
        """Say that it was taken up. Doing so twice changes nothing."""
        _bounded_text(by, "by", 255)
        row = parse_row_id("hnd", handoff_id)
        await self._write(acknowledge_handoff, self._project_id, row, by)
        return await self.get_handoff(handoff_id)


def _check_kind(kind: str) -> None:
    if kind not in PAGE_KINDS:
        raise InvalidInput(f"kind is one of {', '.join(PAGE_KINDS)}", field="kind", known=list(PAGE_KINDS))


def _checked_slug(slug: str) -> str:
    if slug != slug_of(_bounded_text(slug, "slug", SLUG_CHARS_MAX)):
        raise InvalidInput(
            f"slug is letters, digits and hyphens, at most {SLUG_CHARS_MAX}; {slug_of(slug)!r} would do",
            field="slug", limit=SLUG_CHARS_MAX,
        )  # fmt: skip
    return slug


def _kept_text(text: str, field: str, most: int) -> str:
    """What may be kept of it. Raises InvalidInput where that is nothing."""
    kept = cleaned(_bounded_text(text, field, most))
    if not kept.strip():
        raise InvalidInput(f"{field} is private from its first word to its last: nothing of it is kept", field=field)
    return kept


def _bounded_text(text: str, field: str, most: int) -> str:
    if not text.strip() or len(text) > most:
        raise InvalidInput(f"{field} has {len(text):,} characters; 1 to {most:,} are allowed", field=field, limit=most)
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise InvalidInput(f"{field} holds a NUL character or a lone surrogate", field=field)
    return text


# ---- views


def session_view(r: SessionRow) -> v.Session:
    state = (
        "phantom" if r.phantom else "open" if r.digested_seq < r.last_seq
        else "trivial" if r.trivial_because is not None else "digested"
    )  # fmt: skip
    return v.Session(
        id=row_id("ses", r.stream), agent=r.agent, native_id=own_name(r.native),
        parent=None if r.parent is None else own_name(r.parent), title=r.title or r.page_title,
        worktree=r.worktree, branch=r.branch, model=r.model, started_at=when(r.started_at),
        last_event_at=when(r.last_event_at), events=r.last_seq, state=state, trivial_because=r.trivial_because,
        page=r.page, finished_seq=r.finished_seq,
    )  # fmt: skip


def page_view(r: PageRow, *, body: bool) -> v.KnowledgePage:
    return v.KnowledgePage(
        id=row_id("pag", r.id), slug=r.slug, kind=r.kind, title=r.title, version=r.version,
        body=r.body if body else None, author=r.author, reason=r.reason, source=r.source,
        session_id=None if r.stream is None else row_id("ses", r.stream), superseded=r.superseded_by is not None,
        pinned=r.pinned_at is not None, created_at=moment(r.created_at), updated_at=moment(r.updated_at),
    )  # fmt: skip


def version_view(r: VersionRow) -> v.PageVersion:
    return v.PageVersion(
        version=r.version, base=r.base, title=r.title, body=r.body, author=r.author, reason=r.reason,
        created_at=moment(r.created_at),
    )  # fmt: skip


def handoff_view(r: HandoffRow) -> v.Handoff:
    return v.Handoff(
        id=row_id("hnd", r.id), session_id=row_id("ses", r.stream), agent=r.agent, worktree=r.worktree,
        branch=r.branch, title=r.title, body=r.body, open_ends=[end.text for end in r.open_ends], state=r.state,
        acknowledged_by=None if r.acknowledged_by is None else own_name(r.acknowledged_by),
        left_at=moment(r.created_at), expires_at=moment(r.expires_at),
    )  # fmt: skip
