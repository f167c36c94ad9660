"""What a coding agent is given at its start and with a prompt, in its own project's scope; nothing is consumed by it.

The offer is noted before it is given. It is acknowledged by what the session does afterwards (store/offers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from everkept.api import views as v
from everkept.api.base import Parts
from everkept.api.context_ask import ContextAsk
from everkept.api.page_files import IMPORT
from everkept.api.recalling import Recalling
from everkept.api.scoping import scope_view
from everkept.capture.identity import Checkout
from everkept.capture.own_files import loads_itself
from everkept.derive.digest_session import title_of
from everkept.domain.context import (
    PROMPT_CHARS_MAX,
    PROMPT_TOKENS_MAX,
    Block,
    Part,
    compose,
)
from everkept.domain.digest import digest_session, to_handoff, trivial
from everkept.domain.ids import row_id
from everkept.domain.scope import sign_in_words
from everkept.errors import InvalidInput, NotFound
from everkept.store.aliases import Found, find_by_signs
from everkept.store.connection import Connection
from everkept.store.digests import events_of_session
from everkept.store.erase import newest_erasure
from everkept.store.handoffs import HandoffRow, choose_handoff
from everkept.store.launches import LaunchRow, project_of_launch
from everkept.store.merging import is_merged
from everkept.store.offers import (
    OfferRow,
    Receiver,
    current_epoch,
    epoch_to_begin,
    make_offer,
    note_shown,
    offers_to,
    project_of_offer,
)
from everkept.store.packets import packet_item, packet_part, packet_to_give
from everkept.store.pages import PageRow, maintained_pages
from everkept.store.projects import DEFAULT_PROJECT, find_project
from everkept.store.sessions import SessionRow, find_native_session, project_of_session, undigested_sessions

PAGES_LISTED = 60
UNDIGESTED = 4
"""Sessions that did not end yet, of which the newest that did something is told of."""
ROW_CHARS = 700
PROMPT_RESULTS = 6
_ORDER = {"rule": 0, "slot": 1, "decision": 3, "gotcha": 4, "procedure": 5, "concept": 6, "note": 7}
"""The handoff stands at 2: after what always holds, before what may help."""


class Contexts:
    """Of the project that a session or its folder is in; with `project`, of that one whatever they say.

    `confined`: who asks may know of no other project, not even what holds in all of them (G15).
    """

    def __init__(self, parts: Parts, *, project: str | None = None, confined: bool = False) -> None:
        self._parts = parts
        self._store = parts.store
        self._project = project
        self._confined = confined

    async def give(self, ask: ContextAsk) -> v.AgentContext:
        """With a prompt, or at a start. Without a scope where nobody knows the place."""
        return await (self.start(ask) if ask.prompt is None else self.prompt(ask))

    async def start(self, ask: ContextAsk) -> v.AgentContext:
        """At a session's start, clear or compaction."""
        look = await self._store.read(self._look_at_start, ask)
        if look is None:
            return _nothing("no memory of this folder yet")
        return await self._offer(
            look.found, look.read.receiver, look.parts, look.handoff, look.because, erasure=look.erasure,
            launch=look.read.launch,
        )  # fmt: skip

    def _look_at_start(self, conn: Connection, ask: ContextAsk) -> _Look | None:
        """All of it at once: where a machine is busy, each hop to another thread costs as much as all of the reading.

        None where nobody knows the place.
        """
        found = self._found(conn, ask)
        if found is None:
            return None
        read = _read_start(conn, found.project.id, ask, new_epoch=ask.source in ("clear", "compact"))
        read = replace(read, general=()) if self._confined else read
        handoff, because, parts = _start_parts(read)
        return _Look(
            found=found, erasure=newest_erasure(conn), read=read, parts=parts, handoff=handoff, because=because
        )  # fmt: skip

    async def pack(self, checkout: Checkout) -> v.AgentContext:
        """What a start in this place would be told, offered to nobody."""
        look = await self._store.read(self._look_at_start, ContextAsk(agent="", session="", checkout=checkout))
        if look is None:
            return _nothing("no memory of this folder yet")
        return _given(look.found, compose(look.parts, scope=_scope_words(look.found)), None, look.because)

    async def prompt(self, ask: ContextAsk) -> v.AgentContext:
        """With a prompt: what bears on it and was not shown to this session since its last clear or compaction.

        A session that was given nothing at its start, because nobody answered in time, is given that first.
        """
        look = await self._store.read(self._look_at_prompt, ask)
        if look is None:
            return _nothing("no memory of this folder yet")
        found, erasure, receiver, shown = look
        if ask.prompt is None or not ask.prompt.strip():
            return _nothing("the prompt is empty", found)
        if not shown and (started := await self.start(ask)).text:
            return started
        service = Recalling(self._parts, found.project)
        try:
            answer = await service.recall(ask.prompt[:2_000], kinds=("page", "fact"), limit=20)
        except InvalidInput:  # a prompt without a single word to look for
            return _nothing("the prompt has no words to look for", found)
        news = [r for r in answer.results if not {r.id, _shown_id(r)} & shown]
        best = {r.id: r for r in reversed(news)}  # one section of a page, so that no log takes all the room
        parts = [
            Part(id=_shown_id(r), heading=_result_heading(r), text=r.text[:ROW_CHARS], least=80)
            for r in news
            if best[r.id] is r
        ][:PROMPT_RESULTS]
        return await self._offer(
            found, receiver, parts, None, "bears on the prompt", erasure=erasure, tokens=PROMPT_TOKENS_MAX,
            chars=PROMPT_CHARS_MAX,
        )  # fmt: skip

    async def shown(self, offer: int) -> None:
        """The agent's hook has printed it, wherever its session had gone meanwhile: the offer knows its project."""
        project = await self._store.read(project_of_offer, offer)
        if self._confined and self._project is not None:
            own = await self._store.read(find_project, self._project)
            project = project if own is not None and own.id == project else None
        if project is not None:
            await self._store.write(note_shown, project, offer)

    def _look_at_prompt(self, conn: Connection, ask: ContextAsk) -> tuple[Found, int, Receiver, frozenset[str]] | None:
        """(where, the newest erasure, who asks, what was shown to it); None where nobody knows the place."""
        found = self._found(conn, ask)
        return None if found is None else (found, newest_erasure(conn), *_shown(conn, found.project.id, ask))

    def _found(self, conn: Connection, ask: ContextAsk) -> Found | None:
        """Raises NotFound where there is no project of the name that was given."""
        if self._project is None:
            return _scope_of(conn, ask)
        row = find_project(conn, self._project)
        if row is None:
            raise NotFound(f"there is no project {self._project!r}", project=self._project)
        return Found(project=row, found_by="named", value=row.name)

    async def _offer(
        self, found: Found, receiver: Receiver, parts: Sequence[Part], handoff: int | None, because: str, *,
        erasure: int, launch: LaunchRow | None = None, **limits: Any,
    ) -> v.AgentContext:  # fmt: skip
        scope = _scope_words(found)
        block = compose(parts, scope=scope, **limits)
        if not block.text:
            return _nothing("nothing to tell" if not parts else because, found)
        offer = await self._store.write(_make_offer, found.project.id, receiver, handoff, launch, block, erasure)
        if offer is None:
            return _nothing("something was erased or merged meanwhile; the next prompt is answered", found)
        marked = compose(parts, scope=scope, offer=row_id("off", offer.id), **limits)
        return _given(found, marked, row_id("off", offer.id), because)


def _scope_of(conn: Connection, ask: ContextAsk) -> Found | None:
    """Where the session is already, whatever folder it has gone to meanwhile, else its launch; else what the checkout
    says."""
    by_signs = find_by_signs(conn, ask.checkout.signs())
    name = project_of_session(conn, ask.agent, ask.identity) if ask.identity else None
    if name is None and ask.launch is not None:
        name = project_of_launch(conn, ask.launch)
    project = None if name is None else find_project(conn, name)
    if project is None or (by_signs is not None and by_signs.project.id == project.id):
        return by_signs
    return Found(project=project, found_by="session", value=project.name)


def _scope_words(found: Found) -> str:
    by = "" if found.found_by == "named" else f", found by {sign_in_words(found.found_by)}"
    return f"project {found.project.name}{by}"


def _given(found: Found, block: Block, offer: str | None, because: str) -> v.AgentContext:
    return v.AgentContext(
        text=block.text, tokens=block.tokens, offer=offer, scope=scope_view(found), because=because
    )  # fmt: skip


def _nothing(because: str, found: Found | None = None) -> v.AgentContext:
    scope = None if found is None else scope_view(found)
    return v.AgentContext(text="", tokens=0, offer=None, scope=scope, because=because)


def _make_offer(
    conn: Connection, project: int, receiver: Receiver, handoff: int | None, launch: LaunchRow | None, block: Block,
    erasure: int,
) -> OfferRow | None:  # fmt: skip
    """None where something was erased since the block was read: it may tell of it (G10); or the project was merged."""
    if newest_erasure(conn) != erasure or is_merged(conn, project):
        return None
    shown_handoff = handoff if handoff is not None and row_id("hnd", handoff) in block.shown else None
    shown_launch = launch.id if launch is not None and packet_item(launch) in block.shown else None
    return make_offer(
        conn, project, receiver, handoff=shown_handoff, items=block.shown, body=block.text, launch=shown_launch
    )


# ---- the start


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    receiver: Receiver
    shown: frozenset[str]
    pages: Sequence[PageRow]
    general: Sequence[PageRow]
    """Rules and slots that hold in every project."""
    handoff: HandoffRow | None
    because: str
    others: Sequence[HandoffRow]
    undigested: Sequence[tuple[SessionRow, Any]]
    launch: LaunchRow | None
    """Whose packet is to be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one snapshot says of a start."""

    found: Found
    erasure: int
    """The newest of this moment."""
    read: _Start
    parts: Sequence[Part]
    handoff: int | None
    because: str


def _read_start(conn: Connection, project: int, ask: ContextAsk, *, new_epoch: bool) -> _Start:
    epoch = (epoch_to_begin if new_epoch else current_epoch)(conn, project, ask.agent, ask.identity)
    receiver = Receiver(agent=ask.agent, native=ask.identity, epoch=epoch)
    # After a clear or a compaction a session needs to be told what it did itself.
    mine = None if new_epoch else find_native_session(conn, project, ask.identity, ask.agent)
    place = ask.checkout.place
    choice = choose_handoff(
        conn, project, worktree=place, branch=ask.checkout.branch, for_stream=None if mine is None else mine.stream
    )
    undigested = [
        s for s in undigested_sessions(conn, project, place, UNDIGESTED) if mine is None or s.stream != mine.stream
    ]
    everywhere = find_project(conn, DEFAULT_PROJECT)
    return _Start(
        receiver=receiver,
        shown=frozenset(i for o in offers_to(conn, project, receiver) for i in o.items) if ask.source == "resume"
        else frozenset(),
        pages=maintained_pages(conn, project, PAGES_LISTED),
        general=[] if everywhere is None or everywhere.id == project else
        [p for p in maintained_pages(conn, everywhere.id, PAGES_LISTED) if p.kind in ("rule", "slot")],
        handoff=choice.chosen,
        because=choice.because,
        others=choice.others,
        undigested=[(s, events_of_session(conn, s)) for s in undigested],
        launch=None if ask.launch is None else packet_to_give(conn, project, ask.launch, again=new_epoch),
    )  # fmt: skip


def _start_parts(read: _Start) -> tuple[int | None, str, list[Part]]:
    """(the handoff in it, why that one, everything that may be shown, heaviest first). Pure."""
    weighed: list[tuple[int, Part]] = [] if read.launch is None else [(-1, packet_part(read.launch))]
    for page in [*read.general, *read.pages]:
        if page.author == IMPORT and loads_itself(read.receiver.agent, page.source):
            continue
        where = "" if page in read.pages else " (everywhere)"
        part = Part(id=f"{row_id('pag', page.id)}@{page.version}", text=page.body,
                    heading=f"{page.kind.capitalize()}: {page.title}{where}")  # fmt: skip
        weighed.append((_ORDER.get(page.kind, 8), part))
    handoff, because = read.handoff, read.because
    provisional = _provisional(read)
    if provisional is not None:
        weighed.append((2, provisional))
        handoff, because = None, "the last session here has not ended, as far as is known"
    elif handoff is not None:
        place = "" if read.because == "left in this worktree" else f" ({read.because})"
        weighed.append((2, Part(id=row_id("hnd", handoff.id), text=handoff.body,
                                heading=f"Where the last session left off{place}: {handoff.title}")))  # fmt: skip
    if read.others:
        lines = "\n".join(f"- {h.title} ({h.agent}, {h.branch or h.worktree or 'elsewhere'}): "
                          f"everkept handoffs show {row_id('hnd', h.id)}" for h in read.others[:5])  # fmt: skip
        weighed.append((9, Part(id="others", text=lines, heading="Other sessions left off, too", least=40)))
    weighed.sort(key=lambda one: one[0])
    parts = [part for _, part in weighed if part.id not in read.shown]
    return None if handoff is None else handoff.id, because, parts


def _provisional(read: _Start) -> Part | None:
    """What a killed or still open session of this worktree has done so far, as its handoff would tell it."""
    for session, events in read.undigested:
        newer = read.handoff is None or (session.last_event_at or 0) >= read.handoff.created_at
        digest = digest_session(events)
        if newer and trivial(digest) is None:
            return Part(id=f"{row_id('ses', session.stream)}@{session.last_seq}", text=to_handoff(digest).text,
                        heading=f"Where the last session stands: {title_of(session, digest)}")  # fmt: skip
    return None


# ---- a prompt


def _shown(conn: Connection, project: int, ask: ContextAsk) -> tuple[Receiver, frozenset[str]]:
    epoch = current_epoch(conn, project, ask.agent, ask.identity)
    receiver = Receiver(agent=ask.agent, native=ask.identity, epoch=epoch)
    given = [offer for offer in offers_to(conn, project, receiver) if offer.state != "offered"]
    return receiver, frozenset(item.partition("@")[0] for offer in given for item in offer.items)


def _shown_id(result: v.RecallResult) -> str:
    """Of a section of a page with its anchor: another section of it may be shown later."""
    return result.id if result.page is None else f"{result.id}#{result.page.partition('#')[2]}"


def _result_heading(result: v.RecallResult) -> str:
    return f"{result.speaker or result.kind} ({result.page or result.id})"
