"""A look at NATS from outside, as doctor takes it: over a connection of its own, and nothing is made or changed."""

from __future__ import annotations

from dataclasses import replace

from everkept.config import Nats
from everkept.deliver.nats_link import NatsLink, connected, our_errors, shown_servers
from everkept.deliver.nats_streams import look
from everkept.domain.nats_seen import NatsSeen
from everkept.domain.nats_subjects import all_subjects, project_of
from everkept.errors import EverkeptError


async def look_at_nats(settings: Nats) -> NatsSeen | None:
    """None where no server is set. What cannot be looked at is its `trouble`."""
    if settings.url is None:
        return None
    try:
        async with connected(settings) as link:
            seen = await look(link)
            return replace(seen, published=await _published(link)) if settings.publish else seen
    except EverkeptError as error:
        return NatsSeen(server=shown_servers(settings), trouble=error.message)


async def _published(link: NatsLink) -> dict[str, int]:
    """{project: messages}"""
    settings = link.settings
    with our_errors(settings):
        info = await link.stream.stream_info(
            settings.changes_stream, subjects_filter=all_subjects(settings.prefix, "changes")
        )
    counted = ((project_of(settings.prefix, subject), count) for subject, count in (info.state.subjects or {}).items())
    return {project: count for project, count in counted if project is not None}
