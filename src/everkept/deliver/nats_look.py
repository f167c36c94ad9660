"""A look at NATS from outside, as doctor takes it: over a connection of its own, and nothing is made or changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from everkept.config import Nats
from everkept.deliver.nats_link import NatsLink, connected, our_errors, shown_servers
from everkept.deliver.nats_publisher import SEQ
from everkept.deliver.nats_streams import look
from everkept.domain.nats_seen import NatsSeen
from everkept.domain.nats_subjects import project_of
from everkept.errors import EverkeptError

PROJECTS_MAX: Final = 100
"""Projects of which it is looked where their changes begin in the stream."""


async def look_at_nats(settings: Nats) -> NatsSeen | None:
    """None where no server is set. What cannot be looked at is its `trouble`."""
    if settings.url is None:
        return None
    try:
        async with connected(settings) as link:
            seen = await look(link)
            return replace(seen, begins=await _begins(link)) if settings.publish else seen
    except EverkeptError as error:
        return NatsSeen(server=shown_servers(settings), trouble=error.message)


async def _begins(link: NatsLink) -> dict[str, int]:
    """{project: number of the first of its changes that stands in the stream}"""
    name, found = link.settings.changes_stream, {}
    with our_errors(link.settings):
        subjects = (await link.stream.stream_info(name, subjects_filter=">")).state.subjects or {}
        for subject in sorted(subjects)[:PROJECTS_MAX]:
            first = await link.stream.get_msg(name, seq=1, subject=subject, next=True)
            found[project_of(link.settings.prefix, subject)] = int((first.headers or {}).get(SEQ, 0))
    return found
