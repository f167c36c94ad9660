"""Say something over NATS JetStream, and read the changes that follow from it.

    EVERKEPT_NATS_URL=nats://127.0.0.1:4222 everkept serve   # in another terminal: it makes both streams
    python examples/nats_events.py                           # says something, shows what changed, and ends

The id makes a message that is sent again the same one, for the broker and for the memory. A change may be in its stream
more than once after a replay: its id tells (`Inbox` in `everkept` keeps ids beside your own data).
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys

import nats

EVENTS = "everkept.default.default.events"
CHANGES = "everkept.default.default.changes"


async def main(text: str) -> None:
    client = await nats.connect(os.environ.get("EVERKEPT_NATS_URL", "nats://127.0.0.1:4222"))
    try:
        stream = client.jetstream()
        body = {"thread": "chat-1", "subject": "user_42", "role": "user", "content": text}
        headers = {"Nats-Msg-Id": f"example-{hashlib.sha256(text.encode()).hexdigest()}"}
        stored = await stream.publish(EVENTS, json.dumps(body).encode(), headers=headers)
        print("known already" if stored.duplicate else f"accepted as message {stored.seq}")

        reader = await stream.pull_subscribe(CHANGES, durable="nats-events-example")
        known: set[str] = set()
        for message in await reader.fetch(100, timeout=5):
            change = json.loads(message.data)["data"]
            if change["id"] not in known:  # yours: keep it beside the effect, in one transaction
                known.add(change["id"])
                print(change["seq"], change["kind"], change["ref"])
            await message.ack()
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "I moved to Lisbon in May."))
