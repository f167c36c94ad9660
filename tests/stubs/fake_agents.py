"""What coding agents left, in dictionaries: one session, one page, one handoff of a project that a folder has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from everkept.api import views as v
from everkept.capture.identity import Checkout
from everkept.domain.ids import parse_row_id
from everkept.domain.pages import slug_of
from everkept.errors import Conflict, InvalidInput, NotFound

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REMOTE = "github.com/acme/app"


def a_session(**changes: Any) -> v.Session:
    fields = {
        "id": "ses_1", "agent": "claude-code", "native_id": "0a1b", "parent": None, "title": "Fix the login test",
        "worktree": "/code/app", "branch": "main", "model": "opus", "started_at": AT, "last_event_at": AT, "events": 42,
        "state": "digested", "trivial_because": None, "page": "2026-01-02-fix-the-login-test-1", "finished_seq": 1,
    }  # fmt: skip
    return v.Session(**{**fields, **changes})


def a_page(**changes: Any) -> v.KnowledgePage:
    fields = {
        "id": "pag_1", "slug": "tokens", "kind": "decision", "title": "Tokens", "version": 1,
        "body": "# Tokens\n\nThey live in the keychain.", "author": "hand", "reason": None, "source": None,
        "session_id": None, "superseded": False, "created_at": AT, "updated_at": AT,
    }  # fmt: skip
    return v.KnowledgePage(**{**fields, **changes})


def a_handoff(**changes: Any) -> v.Handoff:
    fields = {
        "id": "hnd_1", "session_id": "ses_1", "agent": "claude-code", "worktree": "/code/app", "branch": "main",
        "title": "Fix the login test", "body": "The login test passes.", "open_ends": ["update the docs"],
        "state": "open", "acknowledged_by": None, "left_at": AT, "expires_at": AT,
    }  # fmt: skip
    return v.Handoff(**{**fields, **changes})


def an_event(**changes: Any) -> v.Message:
    fields = {
        "event_id": "evt_1_1", "seq": 1, "role": "user", "name": None, "content": "Fix the login test",
        "occurred_at": AT, "recorded_at": AT, "metadata": {"kind": "prompt"}, "tokens": 4, "model": None,
        "evidence": True,
    }  # fmt: skip
    return v.Message(**{**fields, **changes})


class FakeAgentMemory:
    def __init__(self) -> None:
        self.sessions = {"ses_1": a_session()}
        self.pages = {"tokens": [a_page()]}
        self.handoffs = {"hnd_1": a_handoff()}

    def _called(self, name: str, **given: Any) -> None:
        raise NotImplementedError

    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        self._called("resolve_scope", checkout=checkout, create=create)
        return scope_of(checkout)

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        self._called("trust_marker", checkout=checkout)
        return trusted_scope_of(checkout)

    # ---- sessions

    def known_session(self, session_id: str) -> v.Session:
        parse_row_id("ses", session_id)
        if session_id not in self.sessions:
            raise NotFound(f"there is no session {session_id}", id=session_id)
        return self.sessions[session_id]

    async def list_sessions(
        self, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Session]:
        self._called("list_sessions", agent=agent, limit=limit, cursor=cursor)
        return v.Page(items=[one for one in self.sessions.values() if agent in (None, one.agent)])

    async def get_session(self, session_id: str) -> v.Session:
        self._called("get_session", session_id=session_id)
        return self.known_session(session_id)

    async def session_events(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]:
        self._called("session_events", session_id=session_id, after_seq=after_seq, limit=limit)
        self.known_session(session_id)
        events = [an_event(), an_event(seq=2, event_id="evt_1_2", role="assistant")]
        found = [one for one in events if one.seq > after_seq][:limit]
        return v.Page(items=found, next_cursor="1" if found and found[-1].seq == 1 else None)

    async def end_session(self, session_id: str) -> v.EndResult:
        self._called("end_session", session_id=session_id)
        self.known_session(session_id)
        return v.EndResult(episode_queued=True, reason="42 events await their digest")

    # ---- pages

    async def list_pages(
        self, *, kind: str | None = None, superseded: bool = False, links_to: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.KnowledgePage]:  # fmt: skip
        self._called("list_pages", kind=kind, superseded=superseded, limit=limit, cursor=cursor)
        newest = [versions[-1] for versions in self.pages.values()]
        return v.Page(items=[one.model_copy(update={"body": None}) for one in newest if kind in (None, one.kind)])

    async def get_page(self, slug: str, *, version: int | None = None) -> v.KnowledgePage:
        self._called("get_page", slug=slug, version=version)
        versions = self._versions(slug)
        if version is not None and not 0 < version <= len(versions):
            raise NotFound(f"the page has no version {version}", version=version)
        return versions[(version or 0) - 1]

    def _versions(self, slug: str) -> list[v.KnowledgePage]:
        if slug not in self.pages:
            raise NotFound(f"there is no page {slug!r} in this project", slug=slug)
        return self.pages[slug]

    async def page_history(self, slug: str, *, before: int | None = None, limit: int = 50) -> list[v.PageVersion]:
        self._called("page_history", slug=slug, before=before, limit=limit)
        return [
            v.PageVersion(
                version=one.version, base=one.version - 1 or None, title=one.title, body=str(one.body),
                author=one.author, reason=one.reason, created_at=AT,
            )
            for one in reversed(self._versions(slug)) if before is None or one.version < before
        ][:limit]  # fmt: skip

    async def write_page(
        self, title: str, body: str, *, kind: str = "note", slug: str | None = None, base: int | None = None,
        reason: str | None = None, supersedes: str | None = None, author: str = "hand",
    ) -> v.KnowledgePage:  # fmt: skip
        self._called(
            "write_page", title=title, body=body, kind=kind, slug=slug, base=base, reason=reason, supersedes=supersedes,
            author=author,
        )  # fmt: skip
        name = slug or slug_of(title)
        versions = self.pages.setdefault(name, [])
        if base is not None and base != len(versions):
            raise Conflict(f"page {name!r} is at version {len(versions)}", slug=name)
        written = {"slug": name, "title": title, "body": body, "kind": kind, "author": author, "reason": reason}
        versions.append(a_page(**written, version=len(versions) + 1))
        return versions[-1]

    async def delete_page(self, slug: str) -> v.KnowledgePage:
        self._called("delete_page", slug=slug)
        gone = self._versions(slug)[-1]
        del self.pages[slug]
        return gone

    # ---- handoffs

    async def list_handoffs(
        self, *, state: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Handoff]:
        self._called("list_handoffs", state=state, limit=limit, cursor=cursor)
        return v.Page(items=[one for one in self.handoffs.values() if state in (None, one.state)])

    async def get_handoff(self, handoff_id: str) -> v.Handoff:
        self._called("get_handoff", handoff_id=handoff_id)
        parse_row_id("hnd", handoff_id)
        if handoff_id not in self.handoffs:
            raise NotFound(f"there is no handoff {handoff_id} in this project", id=handoff_id)
        return self.handoffs[handoff_id]

    async def choose_handoff(self, *, worktree: str | None = None, branch: str | None = None) -> v.HandoffChoice:
        self._called("choose_handoff", worktree=worktree, branch=branch)
        opened = [one for one in self.handoffs.values() if one.state == "open"]
        if not opened:
            return v.HandoffChoice(chosen=None, because="no handoff is open", others=[])
        return v.HandoffChoice(chosen=opened[0], because="the newest of this project", others=opened[1:])

    async def acknowledge_handoff(self, handoff_id: str, *, by: str) -> v.Handoff:
        taken = await self.get_handoff(handoff_id)
        self._called("acknowledge_handoff", handoff_id=handoff_id, by=by)
        self.handoffs[handoff_id] = taken.model_copy(update={"state": "acknowledged", "acknowledged_by": by})
        return self.handoffs[handoff_id]

    async def timeline(
        self, *, kinds: Sequence[str] | None = None, since: datetime | None = None, until: datetime | None = None,
        limit: int = 50, cursor: str | None = None,
    ) -> v.Page[v.TimelineItem]:  # fmt: skip
        self._called("timeline", kinds=kinds, since=since, until=until, limit=limit, cursor=cursor)
        item = v.TimelineItem(at=AT, kind="session", id="ses_1", title="Fix the login test", detail="claude-code")
        return v.Page(items=[item] if kinds is None or "session" in kinds else [])


def trusted_scope_of(checkout: Checkout) -> v.Scope:
    """Raises InvalidInput where no marker names a project."""
    if checkout.marker is None:
        raise InvalidInput("no .everkept.toml names a project", field="marker")
    return v.Scope(project=checkout.marker, found_by="marker", value=f"{checkout.marker} in {checkout.place}")


def scope_of(checkout: Checkout) -> v.Scope:
    """One remote is known. Raises NotFound for everything else."""
    if checkout.remote != REMOTE:
        raise NotFound(f"there is no memory of {checkout.place} yet", looked_for=dict(checkout.signs()))
    return v.Scope(project="default", found_by="remote", value=REMOTE)
