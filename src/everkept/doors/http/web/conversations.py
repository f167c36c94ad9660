"""Threads and sessions: what was said, where each message is, and the windows that cover it."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from everkept.api import views as v
from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route

MESSAGES_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A message with its receipt, and the episode that begins with it or covers it."""

    message: v.Message
    receipt: v.Receipt | None
    episode: v.Episode | None
    begins: bool


async def threads(visit: Visit) -> Response:
    found = await visit.service.list_threads(
        subject=visit.asked("subject"), limit=PAGE_ITEMS, cursor=visit.asked("cursor")
    )
    return visit.show("threads.html", threads=found, subject=visit.asked("subject"))


async def thread(visit: Visit) -> Response:
    """From the oldest, or after `after`; a page of messages with a receipt each."""
    name, after = visit.at("thread"), max(0, int(visit.asked("after") or 0)) if _is_number(visit.asked("after")) else 0
    found = await visit.service.get_thread(name)
    messages = await visit.service.list_messages(name, after_seq=after, limit=MESSAGES_SHOWN)
    receipts = await visit.service.list_receipts(name, after_seq=after, limit=MESSAGES_SHOWN)
    of = {receipt.seq: receipt for receipt in receipts.items}
    episodes = await _episodes_of(visit, receipts.items)
    lines = [_line(message, of.get(message.seq), episodes) for message in messages.items]
    return visit.show("thread.html", thread=found, lines=lines, after=after, shown=MESSAGES_SHOWN)


def _is_number(text: str | None) -> bool:
    return text is not None and text.isdecimal() and len(text) < 16


async def _episodes_of(visit: Visit, receipts: list[v.Receipt]) -> dict[str, v.Episode]:
    names = dict.fromkeys(receipt.episode_id for receipt in receipts if receipt.episode_id is not None)
    return {name: await visit.service.get_episode(name) for name in names}


def _line(message: v.Message, receipt: v.Receipt | None, episodes: dict[str, v.Episode]) -> Line:
    covers = None if receipt is None else episodes.get(receipt.episode_id or "")
    return Line(
        message=message, receipt=None if message.content is None else receipt, episode=covers,
        begins=covers is not None and covers.start_seq == message.seq,
    )  # fmt: skip


async def end_thread(visit: Visit) -> Response:
    await visit.service.end_thread(visit.at("thread"))
    return visit.go(f"/threads/{visit.segment('thread')}", done="ended")


async def sessions(visit: Visit) -> Response:
    found = await visit.service.list_sessions(
        agent=visit.asked("agent"), limit=PAGE_ITEMS, cursor=visit.asked("cursor")
    )
    return visit.show("sessions.html", sessions=found, agent=visit.asked("agent"))


async def session(visit: Visit) -> Response:
    name = visit.at("session")
    after = int(visit.asked("after") or 0) if _is_number(visit.asked("after")) else 0
    found = await visit.service.get_session(name)
    events = await visit.service.session_events(name, after_seq=after, limit=MESSAGES_SHOWN)
    page = None if found.page is None else await visit.service.get_page(found.page)
    return visit.show("session.html", session=found, events=events, page=page, after=after, shown=MESSAGES_SHOWN)


async def end_session(visit: Visit) -> Response:
    await visit.service.end_session(visit.at("session"))
    return visit.go(f"/sessions/{visit.segment('session')}", done="ended")


async def handoffs(visit: Visit) -> Response:
    found = await visit.service.list_handoffs(
        state=visit.asked("state"), limit=PAGE_ITEMS, cursor=visit.asked("cursor")
    )
    return visit.show("handoffs.html", handoffs=found, state=visit.asked("state"))


async def take_up(visit: Visit) -> Response:
    await visit.service.acknowledge_handoff(visit.at("handoff"), by="hand")
    return visit.go("/handoffs", done="acknowledged")


ROUTES = [
    route("/threads", threads),
    route("/threads/{thread:id}", thread),
    route("/threads/{thread:id}/end", end_thread, "POST"),
    route("/sessions", sessions),
    route("/sessions/{session:id}", session),
    route("/sessions/{session:id}/end", end_session, "POST"),
    route("/handoffs", handoffs),
    route("/handoffs/{handoff:id}/acknowledge", take_up, "POST"),
]
