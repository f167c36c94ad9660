"""`read`: one thing whole, in parts that a model can take in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from everkept.api import views as v
from everkept.api.service import Service
from everkept.domain.ids import traceable_kind
from everkept.domain.pages import sections_of
from everkept.errors import NotFound

EVENT_CHARS: Final = 2_000
"""Of one event of a session; `read` with its id gives the rest."""
EVENTS_AT_ONCE: Final = 100
PAGES_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of something. Offsets count characters; of a session, events."""

    id: str
    kind: str
    title: str
    items: list[dict[str, Any]]
    """What is shown of it, in lines."""
    offset: int
    total: int
    next_offset: int | None
    about: dict[str, Any]


async def read(service: Service, name: str, *, offset: int, limit: int) -> Part:
    """Raises NotFound, which names the kinds that there are."""
    kind = traceable_kind(name.partition("#")[0])
    if kind == "ses":
        return await _session(service, name, offset, limit)
    return _part(await _WHOLE[kind](service, name), offset, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    id: str
    kind: str
    title: str
    text: str
    about: dict[str, Any]
    begin: int = 0
    """Where to start if nobody says."""


def _part(whole: _Whole, offset: int, limit: int) -> Part:
    start = min(offset or whole.begin, len(whole.text))
    end = min(start + limit, len(whole.text))
    return Part(
        id=whole.id, kind=whole.kind, title=whole.title, offset=start, total=len(whole.text),
        next_offset=end if end < len(whole.text) else None, about=whole.about,
        items=[{"id": whole.id, "title": whole.title, "text": whole.text[start:end]}],
    )  # fmt: skip


async def _session(service: Service, name: str, offset: int, limit: int) -> Part:
    session = await service.get_session(name)
    events = await service.session_events(name, after_seq=offset, limit=EVENTS_AT_ONCE)
    shown: list[dict[str, Any]] = []
    room = limit
    for event in events.items:
        text = _shortened(event.content or "(erased)")
        if shown and len(text) > room:
            break
        room -= len(text)
        kind = event.metadata.get("kind")
        shown.append({"id": event.event_id, "at": event.occurred_at.isoformat(), "kind": kind, "text": text})
    last = offset + len(shown)
    return Part(
        id=session.id, kind="session", title=session.title or f"{session.agent} session", items=shown, offset=offset,
        total=session.events, next_offset=last if last < session.events and shown else None,
        about=session.model_dump(mode="json", exclude_none=True),
    )  # fmt: skip


def _shortened(text: str) -> str:
    return text if len(text) <= EVENT_CHARS else f"{text[:EVENT_CHARS]} … ({len(text) - EVENT_CHARS:,} characters more)"


async def _page(service: Service, name: str) -> _Whole:
    page = await service.get_page(await slug_meant(service, name))
    anchor = name.partition("#")[2]
    body = page.body or ""
    section = next((s for s in sections_of(page.title, body) if anchor and s.anchor == anchor), None)
    return _Whole(
        id=page.slug, kind=f"{page.kind} page", title=page.title, text=body,
        about=page.model_dump(mode="json", exclude={"body"}, exclude_none=True),
        begin=0 if section is None else max(0, body.find(section.body)),
    )  # fmt: skip


async def slug_meant(service: Service, name: str) -> str:
    """The page that a slug, a slug with the anchor of a section, or an id names. Raises NotFound for an unknown id."""
    slug = name.partition("#")[0]
    return await _slug_of(service, slug) if slug.startswith("pag_") else slug


async def _slug_of(service: Service, page_id: str) -> str:
    cursor: str | None = None
    while True:
        found = await service.list_pages(superseded=True, limit=PAGES_AT_ONCE, cursor=cursor)
        for page in found.items:
            if page.id == page_id:
                return page.slug
        if (cursor := found.next_cursor) is None:
            raise NotFound(f"there is no page {page_id} in this project", id=page_id)


async def _handoff(service: Service, name: str) -> _Whole:
    handoff = await service.get_handoff(name)
    return _Whole(
        id=handoff.id, kind="handoff", title=handoff.title, text=handoff.body,
        about=handoff.model_dump(mode="json", exclude={"body"}, exclude_none=True),
    )  # fmt: skip


async def _episode(service: Service, name: str) -> _Whole:
    episode = await service.get_episode(name)
    text = "\n".join([episode.summary or "(not summarised)", *(f"- {learning}" for learning in episode.learnings)])
    return _Whole(
        id=episode.id, kind="episode", title=f"episode of thread {episode.thread}", text=text,
        about=episode.model_dump(mode="json", include={"thread", "subject", "start_seq", "end_seq", "opened_at"}),
    )  # fmt: skip


async def _fact(service: Service, name: str) -> _Whole:
    fact = await service.get_fact(name)
    text = fact.text if not fact.quote else f"{fact.text}\nquote: {fact.quote}"
    return _Whole(id=fact.id, kind="fact", title=f"fact about {fact.entity}", text=text, about=fact_about(fact))


def fact_about(fact: v.Fact) -> dict[str, Any]:
    said = {"subject", "live", "said_at", "valid_from", "valid_until", "retired_because", "superseded_by",
            "duplicate_of", "unsettled", "event_ids"}  # fmt: skip
    return fact.model_dump(mode="json", include=said, exclude_none=True)


async def _event(service: Service, name: str) -> _Whole:
    why = await service.why(name)
    event = next((each for each in why.events if each.event_id == name), None)
    if event is None or event.content is None:
        raise NotFound(f"{name} was erased", id=name)
    return _Whole(
        id=name, kind="event", title=f"{event.name or event.role}, {event.occurred_at.isoformat()}",
        text=event.content, about={"role": event.role, "occurred_at": event.occurred_at.isoformat()},
    )  # fmt: skip


async def _proposal(service: Service, name: str) -> _Whole:
    found = await service.get_proposal(name)
    return _Whole(
        id=found.id, kind="proposal", title=found.title, text=found.difference or found.body or found.why,
        about=found.model_dump(mode="json", exclude={"body", "difference"}, exclude_none=True),
    )  # fmt: skip


_WHOLE: Final[dict[str, Callable[[Service, str], Awaitable[_Whole]]]] = {
    "pag": _page, "hnd": _handoff, "epi": _episode, "fct": _fact, "evt": _event, "prp": _proposal,
}  # fmt: skip
