"""The two streams and the durable consumer: made where they are missing, and never altered where they are there."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from everkept.config import Nats
from everkept.deliver.nats_link import NatsLink, our_errors
from everkept.domain.nats_seen import NatsSeen, StreamSeen
from everkept.domain.nats_subjects import Direction, all_subjects

if TYPE_CHECKING:
    from nats.js.api import ConsumerConfig, StreamConfig, StreamInfo

UNLIMITED: Final = -1


def stream_name(settings: Nats, direction: Direction) -> str:
    return settings.events_stream if direction == "events" else settings.changes_stream


def directions(settings: Nats) -> list[Direction]:
    """What this installation uses."""
    wanted: list[tuple[Direction, bool]] = [("events", settings.take), ("changes", settings.publish)]
    return [direction for direction, used in wanted if used]


def stream_config(settings: Nats, direction: Direction) -> StreamConfig:
    """As a stream is made. Nothing but its age takes a message away: what was refused can be read again until then."""
    from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

    return StreamConfig(
        name=stream_name(settings, direction), subjects=[all_subjects(settings.prefix, direction)],
        description=f"Everkept's {direction}", retention=RetentionPolicy.LIMITS, storage=StorageType.FILE,
        discard=DiscardPolicy.NEW, num_replicas=settings.replicas, max_age=settings.age_max_s,
        duplicate_window=min(settings.duplicates_s, settings.age_max_s),
    )  # fmt: skip


def consumer_config(settings: Nats) -> ConsumerConfig:
    """As the durable consumer is made. The server never gives up on a message: that would drop it in silence."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    return ConsumerConfig(
        durable_name=settings.durable, description="Everkept takes events", ack_policy=AckPolicy.EXPLICIT,
        deliver_policy=DeliverPolicy.ALL, filter_subject=all_subjects(settings.prefix, "events"),
        ack_wait=settings.ack_wait_s, max_deliver=UNLIMITED, max_ack_pending=settings.in_flight_max,
    )  # fmt: skip


async def ensure_streams(link: NatsLink) -> None:
    """Make what is missing. Raises Unavailable."""
    from nats.js.errors import NotFoundError

    settings = link.settings
    with our_errors(settings):
        for direction in directions(settings):
            try:
                await link.stream.stream_info(stream_name(settings, direction))
            except NotFoundError:
                await link.stream.add_stream(stream_config(settings, direction))
        if settings.take:
            try:
                await link.stream.consumer_info(settings.events_stream, settings.durable)
            except NotFoundError:
                await link.stream.add_consumer(settings.events_stream, consumer_config(settings))


async def look(link: NatsLink) -> NatsSeen:
    """Raises Unavailable, also where a stream is missing."""
    settings, pending, unacknowledged, redelivered = link.settings, 0, 0, 0
    with our_errors(settings):
        infos = [(d, await link.stream.stream_info(stream_name(settings, d))) for d in directions(settings)]
        if settings.take:
            taken = await link.stream.consumer_info(settings.events_stream, settings.durable)
            pending, unacknowledged, redelivered = (
                int(n or 0) for n in (taken.num_pending, taken.num_ack_pending, taken.num_redelivered)
            )
    return NatsSeen(
        server=link.server, streams=tuple(_seen(settings, direction, info) for direction, info in infos),
        pending=pending, unacknowledged=unacknowledged, redelivered=redelivered,
    )  # fmt: skip


def _seen(settings: Nats, direction: Direction, info: StreamInfo) -> StreamSeen:
    return StreamSeen(
        name=stream_name(settings, direction), made_at=made_at(info), replicas=info.config.num_replicas or 1,
        messages=info.state.messages, differs=tuple(differences(settings, direction, info.config)),
    )  # fmt: skip


def made_at(info: StreamInfo) -> int:
    """Microseconds since 1970: a stream that was made again under its name is another one."""
    made = info.created
    assert isinstance(made, datetime)
    return int(made.timestamp()) * 1_000_000 + made.microsecond


def differences(settings: Nats, direction: Direction, config: StreamConfig) -> list[str]:
    """What voids the promises in a stream that somebody set up, in words."""
    from nats.js.api import PersistMode, RetentionPolicy, StorageType

    found = {
        "it is kept in memory": config.storage != StorageType.FILE,
        "messages go when they were acknowledged": config.retention != RetentionPolicy.LIMITS,
        "it acknowledges nothing": config.no_ack,
        "it has a limit of messages or bytes": any((n or 0) > 0 for n in (
            config.max_msgs, config.max_bytes, config.max_msgs_per_subject,
        )),
        "it writes after it has acknowledged": config.persist_mode == PersistMode.ASYNC,
        f"its subjects lack {all_subjects(settings.prefix, direction)}":
            all_subjects(settings.prefix, direction) not in (config.subjects or ()),
    }  # fmt: skip
    return [words for words, holds in found.items() if holds]
