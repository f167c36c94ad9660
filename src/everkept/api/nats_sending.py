"""What hooks left, published as events instead of being sent to the server; what agents should know is asked of it.

A record goes from the spool once the stream has it: from there on JetStream keeps it until the server has committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from everkept.api import views as v
from everkept.api.remote_desk import Server
from everkept.config import Nats
from everkept.deliver.nats_link import connected, our_errors
from everkept.deliver.nats_publisher import MESSAGE_ID
from everkept.domain.nats_subjects import subject_of
from everkept.errors import ConfigInvalid, InvalidInput


class NatsSending:
    """`api.remote_desk.Server`. Raises ConfigInvalid where no server of NATS is set."""

    def __init__(self, settings: Nats, server: Server) -> None:
        if settings.url is None:
            raise ConfigInvalid("nats.drain is on, and nats.url is not set", key="nats.url")
        self._settings = settings
        self._server = server
        self._subject = subject_of(settings.prefix, None, "events")

    async def take_events(self, body: Mapping[str, Any]) -> v.Ingested:
        """What becomes of them is seen where they are taken in. Raises Unavailable, and InvalidInput for too much."""
        from nats.errors import MaxPayloadError

        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {MESSAGE_ID: sha256(data).hexdigest()}
        async with connected(self._settings) as link:
            with our_errors(self._settings):
                try:
                    await link.stream.publish(self._subject, data, stream=self._settings.events_stream, headers=headers)
                except MaxPayloadError as error:
                    raise InvalidInput(
                        f"it has {len(data):,} bytes, more than the server of NATS takes: raise its max_payload"
                    ) from error
        records = body.get("records")
        if records is None:
            return v.Ingested(records=None, taken=[])
        told = [v.RecordTaken(name=one["name"], taken=[], refused=None, postponed=None) for one in records]
        return v.Ingested(records=told, taken=None)

    async def give_context(self, body: Mapping[str, Any], *, within_s: float) -> v.AgentContext:
        return await self._server.give_context(body, within_s=within_s)
