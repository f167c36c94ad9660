"""What the pages of an operator need to have something to show: told over HTTP to a server over the filled store.

A line of work of two agents, pages that link to each other, somebody who follows the changes, a receiver of webhooks
that rejects some of them; and apart from that trouble: a model that refused, and work that a hand has paused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
from tests.acceptance.test_weather import GOOD, SAID
from tests.stubs.llm_server import Fail, LlmServer, Reply
from tests.stubs.real_server import serving

WAIT_S = 60
SENDING = {"EVERKEPT_WEBHOOKS__ALLOW_PRIVATE": "true", "EVERKEPT_WEBHOOKS__BACKOFF_FIRST_S": "0.05"}
"""What a server is started with that is to send webhooks to `receiver`."""
REJECTED_MAX = 2
"""So many versions of pages the receiver will not have."""
WORKSTREAM = "shopping list"
CHECKOUT = {
    "cwd": "/home/marta/code/recipes", "top": "/home/marta/code/recipes", "branch": "shopping-list",
    "remote": "git@github.com:marta/recipes.git",
}  # fmt: skip
PAGES = (
    ("Recipes are plain files", "decision", "Each recipe is one markdown file, read when the [[Shopping list]] is made."
     " Amounts are written as [[Units]] says.\n\nA database was tried first, and nobody could mend it by hand."),
    ("Shopping list", "concept", "Made of all [[Recipes are plain files|recipes]] of a week, sorted by [[Shelves]]."),
    ("Shelves", "note", "In the order in which one walks through the shop: [[Shopping list]] keeps to it."),
    ("Units", "gotcha", "A cup is 240 ml, and a stick of butter 113 g. See [[Recipes are plain files]]."),
)  # fmt: skip
"""(title, kind, body)."""


def tell(url: str, receiver_url: str) -> None:
    """Everything but trouble."""
    _follow(url)
    _ask(url, "webhooks", {"name": "audit", "url": receiver_url})
    for title, kind, body in PAGES:
        _ask(url, "pages", {"title": title, "kind": kind, "body": body})
    _work_in_turn(url)
    _until(lambda: len(_items(url, "webhooks/whk_2/parked")) == REJECTED_MAX)


def _follow(url: str) -> None:
    page = httpx2.get(f"{url}/v1/changes?consumer=search-index&limit=60", timeout=WAIT_S).raise_for_status().json()
    _ask(url, "changes/ack", {"consumer": "search-index", "up_to": page["next_after"]})


def _work_in_turn(url: str) -> None:
    """One agent begins, the other goes on with it, and the first one takes it up again and is still at it."""
    _ask(url, "workstreams", {"name": WORKSTREAM, "place": CHECKOUT["top"]})
    first = _launch(url, "claude-code", "lst-1")
    _tell(url, first, ("prompt", "Make a shopping list of the recipes of a week"), ("said", "It is in src/list.ts"))
    _end(url, first, exit_code=0)
    second = _launch(url, "codex", "lst-2")
    _tell(url, second, ("prompt", "Sort it by shelf"), ("said", "Sorted. Units of the same thing are not added up yet"))
    _end(url, second, exit_code=1)
    third = _launch(url, "claude-code", "lst-3")
    _tell(url, third, ("prompt", "Add up what occurs twice, also where the units differ"))


def keep_held(url: str) -> None:
    """The launch that is still at it holds its lease, which ends after 90 s."""
    live = httpx2.get(f"{url}/v1/workstreams/{WORKSTREAM}", timeout=WAIT_S).raise_for_status().json()["live"]
    _ask(url, f"launches/{live['id']}/heartbeat", {"fence": live["fence"]})


def launch_session(url: str, name: str, told: str) -> None:
    """One launch in the workstream `name`, by an owner, in a folder and on a branch that are called so, too."""
    where = {"checkout": {"cwd": f"/{name}", "top": f"/{name}", "branch": name}, "owner": name, "workstream": name}
    launch = _launch(url, name, f"session {name}", **where)
    _tell(url, launch, ("prompt", told), ("said", told))
    _end(url, launch, exit_code=0)
    linked = httpx2.get(f"{url}/v1/workstreams/{launch['workstream_id']}", timeout=WAIT_S).raise_for_status().json()
    _ask(url, f"sessions/{linked['sessions'][0]['session_id']}/end", {})


def _launch(url: str, agent: str, session: str, **more: Any) -> dict[str, Any]:
    body = {"owner": "marta@laptop", "checkout": CHECKOUT, "agent": agent, "native_session": session, **more}
    launch = _ask(url, "launches", body, headers={"Idempotency-Key": session.encode().hex()})
    _ask(url, f"launches/{launch['id']}/heartbeat", {"fence": launch["fence"]})
    if launch["packet"]["text"]:
        _ask(url, f"launches/{launch['id']}/accept", {"fence": launch["fence"], "native_session": session})
    return launch


def _tell(url: str, launch: Mapping[str, Any], *said: tuple[str, str]) -> None:
    events = [
        {"kind": kind, "agent": launch["agent"], "session": launch["native_id"], "key": f"{launch['id']}:{n}",
         "text": text, "cwd": CHECKOUT["cwd"], "branch": CHECKOUT["branch"], "launch": launch["id"]}
        for n, (kind, text) in enumerate(said)
    ]  # fmt: skip
    _ask(url, f"launches/{launch['id']}/events", {"first": 1, "events": events})


def _end(url: str, launch: Mapping[str, Any], *, exit_code: int) -> None:
    body = {"fence": launch["fence"], "native_session": launch["native_id"], "exit_code": exit_code}
    _ask(url, f"launches/{launch['id']}/finish", body)


# ---- trouble


def make_trouble(home: Path, refusal: str = "this model does not exist", why: str = "The prices doubled") -> None:
    """A model is asked once with success, and then refuses; and somebody pauses a kind of work."""
    script: dict[str, list[Reply]] = {step: list(replies) for step, replies in GOOD.items()}
    with LlmServer(script) as llm:
        asking = {
            "OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": llm.url, "EVERKEPT_MODEL": "openai:gpt-5-mini",
            "EVERKEPT_WORK__TICK_S": "0.1",
        }  # fmt: skip
        with serving(home, **asking) as (_, url):
            _talk(url, "ana-first")
            _until(lambda: bool(_items(url, "usage")))
            settle(url)
            llm.script = [Fail(status=400, message=refusal)]
            _talk(url, "ana-second")
            _until(lambda: len(_items(url, "jobs?state=dead")) >= 2)
            _ask(url, "jobs/pause", {"kind": "judge_conflicts", "why": why, "by": "marta"})


def _talk(url: str, thread: str) -> None:
    _ask(url, f"threads/{thread}/messages", {"content": SAID, "subject": "ana"})
    _ask(url, f"threads/{thread}/end", {})


def settle(url: str, project: str = "default") -> None:
    """Until everything that was said is remembered; what is not, in time, is a fault."""
    body = {"timeout_s": WAIT_S}
    settled = httpx2.post(f"{url}/v1/settle", json=body, params={"project": project}, timeout=2 * WAIT_S)
    assert settled.json() == {"settled": True}


# ---- the receiver


@contextmanager
def receiver() -> Iterator[str]:
    """The address of a receiver of webhooks that rejects the first versions of pages, however often."""
    server = _Server(("127.0.0.1", 0), _Receiver)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/audit"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.rejected: set[int] = set()

    def rejects(self, told: Mapping[str, Any]) -> bool:
        if told["type"] == "page.written" and len(self.rejected) < REJECTED_MAX:
            self.rejected.add(told["data"]["seq"])
        return told["data"].get("seq") in self.rejected


class _Receiver(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(422 if self.server.rejects(told) else 204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """What it was asked is of no interest."""


# ---- asking


def _ask(url: str, path: str, body: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    answer = httpx2.post(f"{url}/v1/{path}", json=body, timeout=WAIT_S, **more)
    assert answer.is_success, f"{path}: {answer.status_code} {answer.text}"
    found: dict[str, Any] = answer.json()
    return found


def _items(url: str, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx2.get(f"{url}/v1/{path}", timeout=WAIT_S).raise_for_status().json()["items"]
    return found


def _until(holds: Any) -> None:
    until = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
