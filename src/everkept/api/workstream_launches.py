"""Launches: an agent is started within a workstream under a lease, told what is new, and heard to its end.

What is asked of the store is one commit each (docs/adr/0020-workstreams.md). The packet is read and put into words
before the commit that leases the workstream; whatever is taken in meanwhile lies behind its end.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.api.base import Cases
from everkept.api.ingesting import Ingest
from everkept.api.present import bounded
from everkept.api.workstream_choice import Choice, Wish, checked_wish, choose
from everkept.api.workstream_launch_views import launch_view, lease_view, offer_view, packet_view
from everkept.capture.agents.keeping import fit
from everkept.capture.identity import Checkout
from everkept.capture.messages import check_key, key_hash
from everkept.domain.ids import parse_row_id, row_id
from everkept.domain.packet import PacketEvent, compose_packet
from everkept.domain.session import AgentEvent, session_identity
from everkept.errors import InvalidInput, PacketGone
from everkept.store.connection import Connection
from everkept.store.launch_ends import SESSIONS_AT_ONCE, Finish, Finished, end_sessions, finish_launch
from everkept.store.launch_events import note_delivery, note_events, require_same_delivery, require_same_numbers
from everkept.store.launch_sessions import find_cursor
from everkept.store.launches import (
    LaunchRow,
    NewLaunch,
    NewPacket,
    cancel_launch,
    find_launch_by_key,
    get_launch,
    heartbeat_launch,
    take_again,
)
from everkept.store.offers import accept_offer
from everkept.store.packets import (
    Material,
    accept_packet,
    is_gone,
    material_between,
    packet_bytes,
    prepare_with_packet,
    read_material,
    replace_packet,
)

EVENTS_MAX = 1_000
"""In one batch."""
NUMBER_MAX = 1 << 53
CURSOR_CHARS_MAX = 2_000


class Launches(Cases):
    # ---- the lease

    async def prepare_launch(
        self, owner: str, *, checkout: Checkout, workstream: str | None = None, agent: str | None = None,
        available: Sequence[str] = (), native_session: str | None = None, tokens: int | None = None,
        key: str | None = None,
    ) -> w.Launch:  # fmt: skip
        """Lease a workstream for 90 s, with what is new in it to `native_session` (None: a new session) as a packet.

        Raises Conflict (with `holder` and `lease_until`) while another launch holds it, KeyConflict, NotFound.
        """
        wish = checked_wish(
            owner=owner, checkout=checkout, workstream=workstream, agent=agent, available=available,
            native_session=native_session, key=key,
        )  # fmt: skip
        most = self._project_settings.workstreams.packet_tokens if tokens is None else tokens
        bounded(most, "tokens", 300, 1_700)
        hashes = self._hashes(f"{wish.owner}\x1f{wish.key}")
        asked = _digest([workstream, agent, wish.native])
        for hashed in hashes:
            earlier = await self._store.read(find_launch_by_key, self._project_id, hashed)
            if earlier is not None:
                return await self._again(earlier.id, asked, most)
        return await self._prepare(wish, hashes[0], asked, most)

    async def _again(self, launch: int, asked: str, tokens: int) -> w.Launch:
        row = await self._write(take_again, self._project_id, launch, asked)
        return await self._shown(row, tokens)

    async def _prepare(self, wish: Wish, hashed: str, asked: str, tokens: int) -> w.Launch:
        choice = await self._write(choose, self._project_id, wish)
        while True:
            material = await self._store.read(
                read_material, self._project_id, choice.workstream.id, choice.agent, wish.native
            )
            packet = await self._packet(choice.workstream.name, material, tokens)
            new = self._new_launch(wish, choice, hashed, asked, packet)
            row = await self._write(_prepare_once, new)
            if row is not None:
                return await self._shown(row, tokens)

    def _new_launch(self, wish: Wish, choice: Choice, hashed: str, asked: str, packet: NewPacket) -> NewLaunch:
        checkout = wish.checkout
        return NewLaunch(
            project=self._project_id, workstream=choice.workstream.id, key_hash=hashed, request_hash=asked,
            agent=choice.agent, owner=wish.owner, directory=fit(checkout.cwd) or "", worktree=fit(checkout.place) or "",
            branch=fit(checkout.branch), fingerprint=json.dumps(asdict(checkout)), chosen_because=choice.because,
            resumes=wish.native, packet=packet,
        )  # fmt: skip

    async def _packet(self, name: str, material: Material, tokens: int) -> NewPacket:
        events = [
            PacketEvent(agent=e.agent, kind=e.kind, text=e.content, occurred_at_us=e.occurred_at)
            for e in material.newest
        ]
        told = await asyncio.to_thread(
            lambda: compose_packet(name, events, material.by_agent, tokens=tokens, continued=material.start > 0)
        )
        return NewPacket(
            text=told.text, start=material.start, through=material.through, shown=told.shown, counted=told.counted,
            erasure=material.erasure,
        )  # fmt: skip

    async def _shown(self, row: LaunchRow, tokens: int | None = None) -> w.Launch:
        """With its packet; with a successor of it where something in it was erased."""

        def read(conn: Connection) -> tuple[str, str | None]:
            _, source = find_cursor(conn, row.workstream, row.agent, row.native or row.resumes)
            return packet_bytes(conn, row), source

        try:
            told, source = await self._store.read(read)
        except PacketGone:
            return await self._shown(await self._successor(row, tokens))
        return launch_view(row, self._parts.clock.now_us(), told, source)

    async def _successor(self, row: LaunchRow, tokens: int | None = None) -> LaunchRow:
        """Another packet over the same range, made of what remains."""
        most = self._project_settings.workstreams.packet_tokens if tokens is None else tokens
        while True:
            material = await self._store.read(
                material_between, self._project_id, row.workstream, row.receiver, row.packet_from, row.packet_through
            )
            packet = await self._packet(row.workstream_name, material, most)
            made = await self._write(replace_packet, self._project_id, row.id, packet)
            if made is not None:
                return made

    async def get_launch(self, launch_id: str) -> w.Launch:
        def read(conn: Connection) -> w.Launch:
            row = get_launch(conn, self._project_id, parse_row_id("lch", launch_id))
            told = None if is_gone(conn, row) else packet_bytes(conn, row)
            return launch_view(row, conn.now(), told)

        return await self._store.read(read)

    async def heartbeat_launch(self, launch_id: str, *, fence: int) -> w.LaunchLease:
        """Every 30 s. Raises LeaseLost once the lease has ended: prepare again with the same key."""
        row = await self._write(heartbeat_launch, self._project_id, parse_row_id("lch", launch_id), fence)
        return lease_view(row, self._parts.clock.now_us())

    async def cancel_launch(self, launch_id: str, *, fence: int) -> w.Launch:
        """The agent was never started. Raises LeaseLost, Conflict where it was finished."""
        row = await self._write(cancel_launch, self._project_id, parse_row_id("lch", launch_id), fence)
        return launch_view(row, self._parts.clock.now_us())

    # ---- what it tells

    async def launch_events(
        self, launch_id: str, events: Sequence[AgentEvent], *, first: int, delivery_key: str | None = None
    ) -> w.LaunchTaken:
        """Take in events numbered from `first` on. Raises KeyConflict, Conflict where a number was another event's."""
        row = await self._store.read(get_launch, self._project_id, parse_row_id("lch", launch_id))
        delivery = [] if delivery_key is None else self._hashes(_told(check_key(delivery_key, "delivery_key")))
        _check_batch(events, first)
        keys = [self._hashes(_told(event.key)) for event in events]
        payloads = [_digest([first, *of_secret]) for of_secret in zip(*keys, strict=True)]
        deliveries = list(zip(delivery, payloads, strict=False))

        def require(conn: Connection) -> None:
            for hashed, payload in deliveries:
                require_same_delivery(conn, row.id, hashed, payload)
            require_same_numbers(conn, row.id, keys, first)

        def note(conn: Connection) -> int:
            require(conn)
            for hashed, payload in deliveries[:1]:
                note_delivery(conn, row.id, hashed, payload)
            return note_events(conn, get_launch(conn, self._project_id, row.id), [key[0] for key in keys], first)

        await self._store.read(require)
        sessions = await self._take(row, events)
        return w.LaunchTaken(acknowledged=await self._write(note), sessions=sessions)

    async def finish_launch(
        self, launch_id: str, *, fence: int, native_session: str | None = None, events: Sequence[AgentEvent] = (),
        first: int | None = None, source_cursor: str | None = None, exit_code: int | None = None,
    ) -> w.LaunchFinish:  # fmt: skip
        """The agent has ended; events that are not here yet are taken in first. Raises NotFound, Conflict."""
        if source_cursor is not None and len(source_cursor) > CURSOR_CHARS_MAX:
            raise InvalidInput(f"source_cursor has more than {CURSOR_CHARS_MAX} characters", field="source_cursor")
        sessions: list[v.SessionTaken] = []
        if events and first is not None:
            sessions = (await self.launch_events(launch_id, events, first=first)).sessions
        row = await self._store.read(get_launch, self._project_id, parse_row_id("lch", launch_id))
        if events and first is None:
            _check_batch(events, 1)
            sessions = await self._take(row, events)
        finish = Finish(
            launch=row.id, fence=fence, native=_identity(row, native_session), source_cursor=source_cursor,
            exit_code=exit_code,
        )  # fmt: skip
        done: Finished = await self._write(finish_launch, self._project_id, finish)
        if done.launch.state == "finished" and fence == done.launch.fence:
            while await self._write(end_sessions, self._project_id, row.id) == SESSIONS_AT_ONCE:
                continue
        shown = launch_view(done.launch, self._parts.clock.now_us())
        return w.LaunchFinish(launch=shown, cursor=done.cursor, because=done.because, sessions=sessions)

    async def _take(self, row: LaunchRow, events: Sequence[AgentEvent]) -> list[v.SessionTaken]:
        """Through the one way in, into this project, linked to the launch."""
        ingest = Ingest(self._parts, project=self._project.name, confined=True)
        return await ingest.events(
            [replace(event, launch=row_id("lch", row.id)) for event in events], checkout=_checkout(row)
        )

    def _hashes(self, key: str) -> list[str]:
        """As it is stored now, and as it was in each project that was merged into this one."""
        return [key_hash(key, secret) for secret in (self._project.secret, *self._project.former_secrets)]

    # ---- what it was told

    async def accept_launch(
        self, launch_id: str, *, fence: int | None = None, native_session: str | None = None
    ) -> w.Launch:
        """Its session has the packet. Raises LeaseLost once somebody has taken over, PacketGone with a successor."""
        launch = parse_row_id("lch", launch_id)

        def accept(conn: Connection) -> LaunchRow:
            identity = _identity(get_launch(conn, self._project_id, launch), native_session)
            return accept_packet(conn, self._project_id, launch, fence, identity)

        row = await self._or_successor(accept, launch)
        return launch_view(row, self._parts.clock.now_us())

    async def accept_offer(self, offer_id: str) -> w.Offer:
        """Take up what was given to a session: the launch's packet and the handoff in it, both or neither."""
        offer = await self._write(accept_offer, self._project_id, parse_row_id("off", offer_id))
        return offer_view(offer)

    async def _or_successor(self, accept: Callable[[Connection], LaunchRow], launch: int) -> LaunchRow:
        try:
            return await self._write(accept)
        except PacketGone as gone:
            row = await self._successor(await self._store.read(get_launch, self._project_id, launch))
            told = await self._store.read(packet_bytes, row)
            offer = None if row.offer is None else row_id("off", row.offer)
            successor = {**packet_view(row, told).model_dump(), "offer": offer}
            raise PacketGone(gone.message, launch=row_id("lch", launch), successor=successor) from gone


def _prepare_once(conn: Connection, new: NewLaunch) -> LaunchRow | None:
    """Its first commit; another with the same key may have come before."""
    earlier = find_launch_by_key(conn, new.project, new.key_hash)
    if earlier is not None:
        return take_again(conn, new.project, earlier.id, new.request_hash)
    return prepare_with_packet(conn, new)


def _told(key: str) -> str:
    """A key of what a launch told: it means nothing as the key of a launch."""
    return f"launch\x1f{key}"


def _check_batch(events: Sequence[AgentEvent], first: int) -> None:
    bounded(len(events), "events", 1, EVENTS_MAX)
    bounded(first, "first", 1, NUMBER_MAX)


def _checkout(row: LaunchRow) -> Checkout:
    return Checkout(**json.loads(row.fingerprint))


def _identity(row: LaunchRow, native: str | None) -> str | None:
    """The session as its events are kept."""
    return None if native is None else session_identity(native, within=_checkout(row).repository_here)


def _digest(parts: Sequence[str | int | None]) -> str:
    return hashlib.blake2b(json.dumps(list(parts)).encode(errors="replace"), digest_size=16).hexdigest()
