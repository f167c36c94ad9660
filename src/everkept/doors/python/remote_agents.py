"""What coding agents left, asked of a server: sessions, pages, handoffs, the timeline, whose memory a folder is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from everkept.api import views as v
from everkept.capture.identity import Checkout
from everkept.doors.python.asking import Asking, given, path_of, time_text


class RemoteAgentMemory(Asking):
    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        body = given(**asdict(checkout), create=create or None)
        return self._read(v.Scope, await self._wire.ask("POST", "/v1/scope", body=body, safe=True))

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        body = given(**asdict(checkout))
        return self._read(v.Scope, await self._wire.ask("POST", "/v1/scope/trust", body=body, safe=True))

    # ---- sessions

    async def list_sessions(
        self, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Session]:
        query = {"agent": agent, "limit": limit, "cursor": cursor}
        return self._read(v.Page[v.Session], await self._wire.ask("GET", "/v1/sessions", query=query))

    async def get_session(self, session_id: str) -> v.Session:
        return self._read(v.Session, await self._wire.ask("GET", path_of("sessions", session_id)))

    async def session_events(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]:
        query = {"after_seq": after_seq, "limit": limit}
        raw = await self._wire.ask("GET", path_of("sessions", session_id, "events"), query=query)
        return self._read(v.Page[v.Message], raw)

    async def end_session(self, session_id: str) -> v.EndResult:
        return self._read(v.EndResult, await self._wire.ask("POST", path_of("sessions", session_id, "end"), safe=True))

    # ---- pages

    async def list_pages(
        self, *, kind: str | None = None, superseded: bool = False, links_to: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.KnowledgePage]:  # fmt: skip
        asked = {"kind": kind, "superseded": superseded, "links_to": links_to, "limit": limit, "cursor": cursor}
        query = {name: value for name, value in asked.items() if value is not None}
        return self._read(v.Page[v.KnowledgePage], await self._wire.ask("GET", "/v1/pages", query=query))

    async def get_page(self, slug: str, *, version: int | None = None) -> v.KnowledgePage:
        raw = await self._wire.ask("GET", path_of("pages", slug), query={"version": version})
        return self._read(v.KnowledgePage, raw)

    async def page_history(self, slug: str, *, before: int | None = None, limit: int = 50) -> list[v.PageVersion]:
        query = {"before": before, "limit": limit}
        raw = await self._wire.ask("GET", path_of("pages", slug, "history"), query=query)
        return self._read(v.Page[v.PageVersion], raw).items

    async def write_page(
        self, title: str, body: str, *, kind: str = "note", slug: str | None = None, base: int | None = None,
        reason: str | None = None, supersedes: str | None = None, author: str = "hand",
    ) -> v.KnowledgePage:  # fmt: skip
        """Without `base` it may be sent again: the same text is no new version."""
        page = given(
            title=title, body=body, kind=kind, slug=slug, base=base, reason=reason, supersedes=supersedes, author=author
        )
        raw = await self._wire.ask("POST", "/v1/pages", body=page, safe=base is None)
        return self._read(v.KnowledgePage, raw)

    async def delete_page(self, slug: str) -> v.KnowledgePage:
        return self._read(v.KnowledgePage, await self._wire.ask("DELETE", path_of("pages", slug)))

    # ---- handoffs

    async def list_handoffs(
        self, *, state: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Handoff]:
        query = {"state": state, "limit": limit, "cursor": cursor}
        return self._read(v.Page[v.Handoff], await self._wire.ask("GET", "/v1/handoffs", query=query))

    async def get_handoff(self, handoff_id: str) -> v.Handoff:
        return self._read(v.Handoff, await self._wire.ask("GET", path_of("handoffs", handoff_id)))

    async def choose_handoff(self, *, worktree: str | None = None, branch: str | None = None) -> v.HandoffChoice:
        query = {"worktree": worktree, "branch": branch}
        return self._read(v.HandoffChoice, await self._wire.ask("GET", "/v1/handoffs/choice", query=query))

    async def acknowledge_handoff(self, handoff_id: str, *, by: str) -> v.Handoff:
        path = path_of("handoffs", handoff_id, "acknowledge")
        return self._read(v.Handoff, await self._wire.ask("POST", path, body={"by": by}, safe=True))

    # ---- what happened

    async def timeline(
        self, *, kinds: Sequence[str] | None = None, since: datetime | None = None, until: datetime | None = None,
        limit: int = 50, cursor: str | None = None,
    ) -> v.Page[v.TimelineItem]:  # fmt: skip
        query = {
            "kinds": None if kinds is None else list(kinds), "since": time_text(since), "until": time_text(until),
            "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return self._read(v.Page[v.TimelineItem], await self._wire.ask("GET", "/v1/timeline", query=query))
