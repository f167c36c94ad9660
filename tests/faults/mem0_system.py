"""mem0 (open source) as a system of the bench. It lives in a venv of its own: see docs/fault-bench.md."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.faults.provider import Provider, embedded, read_statement, say
from tests.faults.wire import WiredSystem, connect, fork_server
from tests.stubs.llm_server import Asked, Json, Reply

REQUIREMENTS = ("mem0ai==2.2.1", "qdrant-client==1.20.0")
NOT_FAIR = {
    "test_f": "it searches by vectors, and those of the bench's provider tell nothing of how well it finds",
    "test_g01": "a local qdrant folder is made for one process",
    "test_g02": "it keeps what the model extracts, and the bench's provider knows a few sentences only",
    "test_c04": "it works in the request: the caller is told of the failure, and asks again (see A04)",
    "test_c05_twenty": "it works in the request: the caller is told of the failure, and asks again (see A04)",
    "test_c05_a_spent": "it works in the request: the caller is told of the failure, and asks again (see A04)",
    "test_c07": "it does nothing in the background",
    "test_c12": "it works in the request: the caller is told of the failure, and asks again (see A04)",
    "test_d05_text_that": "what its metadata may hold is not said",
    "test_d08": "it keeps what the model extracts, and the bench's provider knows a few sentences only",
}
"""Cases (by how their names begin) whose result would be that of our stubs and not of mem0, and why."""
_SCRIPT = Path(__file__).with_name("mem0_process.py")
_NEW = re.compile(r"## New Messages\n(.*?)\n## Observation Date", re.DOTALL)
_KNOWN = re.compile(r"## Existing Memories\n(.*?)\n## New Messages", re.DOTALL)


class Mem0System(WiredSystem):
    """One process over a folder, with a local qdrant; `add` extracts, as it does by default."""

    name = "mem0"

    def __init__(self, home: Path, provider: Provider) -> None:
        super().__init__()
        self._home = home
        self._provider = provider

    def open(self) -> None:
        python = Path(os.environ["FAULT_BENCH_VENV"]) / "bin" / "python"
        port = fork_server(str(python), str(_SCRIPT))
        self._wire = connect(port, {"home": str(self._home), "url": self._provider.url})
        self.version = self._wire.hello["version"]


def open_peer(home: Path, provider: Provider) -> Mem0System:
    return Mem0System(home, provider)


def mind(asked: Asked) -> Reply:
    """What each new message states, but for what is known already; or vectors."""
    if asked.path.endswith("/embeddings"):
        data = [
            {"object": "embedding", "index": n, "embedding": embedded(t)} for n, t in enumerate(asked.body["input"])
        ]
        return Json(
            value={"object": "list", "data": data, "model": "stub", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        )
    text = str(asked.body["messages"][-1]["content"])
    new, known = _NEW.search(text), _KNOWN.search(text)
    said = [statement for line in (new[1] if new else "").splitlines() if (statement := read_statement(line))]
    fresh = [s.text for s in said if known is None or s.text not in known[1]]
    return say({"memory": [{"id": str(n), "text": text, "attributed_to": "user"} for n, text in enumerate(fresh)]})
