"""A real server over a store with the demo's conversation, sessions of agents and hostile text; and a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.stubs.real_server import serving
from tests.web.browser import browser, there_is_one
from tests.web.filling import fill
from tests.web.telling import SENDING, launch_session, make_trouble, receiver, settle, tell

HOSTILE = (
    "<script>window.hurt = 1</script>", "<img src=x onerror=\"window.hurt = 1\">", "\"><svg onload=window.hurt=1>",
    "[click](javascript:window.hurt=1)", "</textarea><script>window.hurt=1</script>", "{{ 7 * 191 }}",
    "<iframe srcdoc=\"<script>parent.hurt=1</script>\"></iframe>", "'-window.hurt-'",
    "<a href=\"data:text/html,x\">x</a>",
    "<style>body { display: none }</style>", "javascript:window.hurt=1", "&lt;script&gt;", "<!--", "]]>",
)  # fmt: skip
ALL = " ".join(HOSTILE)
WAIT_S = 60
PATIENCE_MS = 60_000
"""What a test waits for comes at once, or on a busy machine after a while; only what never comes is a fault."""
expect.set_options(timeout=PATIENCE_MS)


class Client:
    """One connection a request, and time enough."""

    def get(self, url: str, **more: Any) -> httpx2.Response:
        return httpx2.get(url, **{"timeout": WAIT_S, **more})

    def post(self, url: str, **more: Any) -> httpx2.Response:
        return httpx2.post(url, **{"timeout": WAIT_S, **more})


CLIENT = Client()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a store that every test of a page looks at."""
    home, folder = tmp_path_factory.mktemp("web") / "home", tmp_path_factory.mktemp("transcripts")
    fill(home, folder)
    make_trouble(home, refusal=ALL, why=ALL)
    return home


@pytest.fixture(scope="session")
def site(filled: Path) -> Iterator[str]:
    """The address of `everkept serve` over the filled store."""
    with receiver() as receiver_url, serving(filled, **SENDING) as (_, url):
        tell(url, receiver_url)
        _say_hostile(url)
        yield url


def _say_hostile(url: str) -> None:
    """Each text as everything that a page shows."""
    for n, text in enumerate(HOSTILE):
        _post(url, f"threads/hostile-{n}/messages", content=text, subject=text, role="user", name=text[:60])
        _post(url, "pages", title=text, body=f"# {text}\n\n{text}\n\n[[{text}]]", kind="note", slug=f"hostile-{n}")
        _post(url, "remember", text=text, subject=text, entity=text, predicate=text, object=text)
        _post(url, "remember", text=f"{text}!", subject=text, entity=f"{text}!", predicate=text, object=text)
        _post(url, "workstreams", name=text, place=f"/{text}")
        launch_session(url, text, f"{text}\n{ALL}")
    _post(url, "webhooks", name="hostile", url="https://hostile.invalid/?q=<script>window.hurt=1</script>")
    settle(url)


def _post(url: str, path: str, /, **body: Any) -> None:
    answer = CLIENT.post(f"{url}/v1/{path}", json=body)
    assert answer.is_success, f"{path}: {answer.text}"


@pytest.fixture(scope="module")  # while it is open, its thread counts as one in which an event loop runs
def chromium() -> Iterator[Browser]:
    if not there_is_one():
        pytest.skip("there is no Chromium; `python -m tests.web.browser` says how to get one")
    with browser() as found:
        yield found


class Tab:
    """A page of the browser that keeps what its console said."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.said.append(f"uncaught: {error}"))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.said.append(f"{kind}: {text}")

    def go(self, address: str) -> int:
        answer: Any = self.page.goto(address, wait_until="load")
        return int(answer.status)


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield Tab(context.new_page())
    context.close()
