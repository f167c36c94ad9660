"""mem0 as a process that can be killed. Run by the interpreter of a venv that has it; it imports nothing of ours.

It imports mem0 once and prints its port; each connection gets a forked child, which opens a memory over the folder
that the first line names, says hello, and answers one line of JSON after another (wire.py). Vectors live in a local
qdrant folder and history in a file beside it; model and embedder are the provider's. It ends when its input does.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any

DIMENSIONS = 64
ALL = 10_000


class NotHere(Exception):
    """mem0 has no such verb."""


def open_memory(home: str, url: str) -> Any:
    """A `Memory` whose everything lies under `home`, with its own defaults otherwise."""
    os.environ.update(OPENAI_API_KEY="sk-no-key", OPENAI_BASE_URL=url)
    return importlib.import_module("mem0").Memory.from_config({
        "llm": {"provider": "openai", "config": {"model": "gpt-4o-mini"}},
        "embedder": {
            "provider": "openai", "config": {"model": "text-embedding-3-small", "embedding_dims": DIMENSIONS},
        },
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "collection_name": "memories", "embedding_model_dims": DIMENSIONS, "path": f"{home}/qdrant",
                "on_disk": True,
            },
        },
        "history_db_path": f"{home}/history.db",
    })  # fmt: skip


class Verbs:
    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def add(self, thread: str, messages: list[dict[str, Any]], subject: str, key: str | None) -> dict[str, Any]:
        """mem0 has no idempotency keys: a client that sends again can only send again."""
        batch = [{"role": message["role"], "content": message["content"]} for message in messages]
        made = self.memory.add(batch, user_id=subject, metadata=messages[0]["metadata"])
        return {"ids": [each["id"] for each in made["results"]], "replayed": False}

    def wait_idle(self, limit_s: float) -> bool:
        return True  # everything is done in the request

    def search(self, query: str, subject: str, limit: int, as_of: str | None) -> list[dict[str, Any]]:
        if as_of is not None:
            raise NotHere("mem0 has no search in the past")
        found = self.memory.search(query, filters={"user_id": subject}, top_k=limit)["results"]
        return [{"id": f["id"], "text": f["memory"], "kind": "fact", "when": f.get("created_at")} for f in found]

    def delete(self, subject: str | None, thread: str | None, id: str | None) -> None:
        if thread is not None:
            raise NotHere("what mem0 remembers of a user belongs to no conversation")
        if id is not None:
            self.memory.delete(id)
        else:
            self.memory.delete_all(user_id=subject)

    def list(self, subject: str, kind: str | None) -> Any:
        if kind not in (None, "fact"):
            raise NotHere(f"mem0 keeps no list of things of the kind {kind}")
        kept = self.memory.get_all(filters={"user_id": subject}, top_k=ALL)["results"]
        return sorted(
            [
                {"id": k["id"], "text": k["memory"], "kind": "fact", "state": "live", "when": k.get("created_at"),
                 "thread": k.get("run_id")}
                for k in kept
            ],
            key=lambda item: str(item["when"]),
        )  # fmt: skip

    def pass_time(self, seconds: float) -> None:
        return None  # nothing in it waits for a time

    def close(self) -> None:
        self.memory.close()


def answer(verbs: Verbs, request: dict[str, Any]) -> dict[str, Any]:
    verb = getattr(verbs, request["verb"], None)
    try:
        if verb is None:
            raise NotHere(f"mem0 has no verb for {request['verb']}")
        return {"answer": verb(**request["args"])}
    except NotHere as error:
        return {"error": "not_applicable", "text": str(error)}
    except ValueError as error:
        return {"error": "rejected", "text": str(error)}
    except Exception as error:  # noqa: BLE001  (told to the test as it was raised)
        return {"error": "failed", "text": f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-1)}"}


def live(connection: socket.socket) -> None:
    lines = connection.makefile("rwb")
    options = json.loads(lines.readline())
    os.makedirs(options["home"], exist_ok=True)
    verbs = Verbs(open_memory(options["home"], options["url"]))
    lines.write(json.dumps({"pid": os.getpid(), "version": importlib.metadata.version("mem0ai")}).encode() + b"\n")
    lines.flush()
    for line in lines:
        request = json.loads(line)
        lines.write(json.dumps({"id": request["id"], **answer(verbs, request)}).encode() + b"\n")
        lines.flush()
        if request["verb"] == "close":
            return


def main() -> None:
    """Until standard input ends."""
    with tempfile.TemporaryDirectory() as folder:  # what mem0 keeps beside every memory stays out of the user's home
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder)
        for module in ("mem0", "openai", "qdrant_client", "mem0.vector_stores.qdrant", "mem0.llms.openai"):
            importlib.import_module(module)
        serve()


def serve() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            try:
                live(connection)
            finally:
                os._exit(0)
        connection.close()


if __name__ == "__main__":
    main()
