"""A pair of servers on one database that are replaced one after the other while people talk to them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from tests.stubs.real_server import WAIT_S, serving

CITIES = ("Lisbon", "Porto", "Berlin", "Vienna", "Madrid", "Oslo", "Prague", "Rome", "Athens", "Dublin", "Bern", "Riga")
PAUSE_S = 1.0
"""Between what one teller says and the next thing: it is about what fails, not about how much there is."""


class Pair:
    """Two servers, each of any version. A request goes to one of them; one that is being stopped is still asked."""

    def __init__(self, folder: Path, database: str) -> None:
        self._folder = folder
        self._environment = {"EVERKEPT_DATABASE_URL": database}
        self._running: dict[str, ExitStack] = {}
        self._homes = itertools.count()
        self.leaving: frozenset[str] = frozenset()
        """Those that were told to stop: what is sent there may fail, and is sent once more to the other."""

    @property
    def urls(self) -> list[str]:
        return list(self._running)

    def start(self, version: Path | None = None) -> str:
        """The URL of one more server, of the version in the folder, else of the one that is installed."""
        more = {} if version is None else {"PYTHONPATH": str(version)}
        stack = ExitStack()
        home = self._folder / f"server-{next(self._homes)}"
        _, url = stack.enter_context(serving(home, **self._environment, **more))
        self._running[url] = stack
        return url

    def stop(self, url: str) -> None:
        """SIGTERM; it ends by itself."""
        self.leaving |= {url}
        stack = self._running[url]
        stack.close()
        del self._running[url]

    def replace(self, url: str, version: Path | None = None) -> str:
        self.stop(url)
        return self.start(version)

    def close(self) -> None:
        for url in self.urls:
            self.stop(url)


@contextmanager
def pair(folder: Path, database: str) -> Iterator[Pair]:
    made = Pair(folder, database)
    try:
        yield made
    finally:
        made.close()


class Tellers:
    """People who each tell where they live in a thread of their own, one after the other, as long as it goes on."""

    def __init__(self, servers: Pair, count: int = 2) -> None:
        self._servers = servers
        self._numbers = itertools.count()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._tell, args=(n,)) for n in range(count)]
        self.acknowledged: dict[str, str] = {}
        """{subject: the id of the event} of what was said to be kept."""
        self.faults: list[str] = []

    def __enter__(self) -> Tellers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Until so many more were acknowledged than there are now."""
        until, ends = len(self.acknowledged) + more, time.monotonic() + WAIT_S
        while len(self.acknowledged) < until:
            assert time.monotonic() < ends, f"only {len(self.acknowledged)} of {until}: {self.faults}"
            assert self.faults == []
            time.sleep(0.05)

    def _tell(self, teller: int) -> None:
        with httpx2.Client(timeout=WAIT_S, trust_env=False) as client:
            while not self._stopped.is_set():
                number = next(self._numbers)
                subject = f"person-{number}"
                body = {"subject": subject, "messages": [{"role": "user", "content": said_by(number)}]}
                told = self._ask(client, teller + number, f"/v1/threads/{subject}/messages", body, key=f"said-{number}")
                if told is not None:
                    self.acknowledged[subject] = told["receipts"][0]["event_id"]
                    self._ask(client, teller + number, f"/v1/threads/{subject}/end", {})
                time.sleep(PAUSE_S)

    def _ask(self, client: httpx2.Client, turn: int, path: str, body: dict[str, Any], *, key: str | None = None) -> Any:
        """The answer; None where there was none, which is a fault unless the server was leaving."""
        urls = self._servers.urls
        first = urls[turn % len(urls)]
        answer = _post(client, first + path, body, key)
        if isinstance(answer, str) and first in self._servers.leaving:
            others = [url for url in self._servers.urls if url != first]
            answer = _post(client, others[0] + path, body, key)
        if isinstance(answer, str):
            self.faults.append(f"{path}: {answer}")
            return None
        return answer


def said_by(number: int) -> str:
    return f"I live in {CITIES[number % len(CITIES)]}."


def _post(client: httpx2.Client, url: str, body: dict[str, Any], key: str | None) -> Any:
    """The JSON, or as a text why there is none."""
    try:
        answer = client.post(url, json=body, headers={} if key is None else {"Idempotency-Key": key})
    except httpx2.TransportError as error:
        return repr(error)
    return answer.json() if answer.is_success else f"{answer.status_code} {answer.text}"


class Alternating(httpx2.BaseTransport):
    """One request to each server in turn, whichever the client means."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._meant = urlsplit(urls[0]).netloc
        self._turns = itertools.cycle([httpx2.URL(url) for url in urls])
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        to = next(self._turns)
        request.url = request.url.copy_with(host=to.host, port=to.port)
        if request.headers.get("host") == self._meant:
            request.headers["host"] = f"{to.host}:{to.port}"
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


@contextmanager
def talking_to_both(servers: Pair, project: str | None = None) -> Iterator[httpx2.Client]:
    """A client whose requests go to one and the other, in `project`, which is made."""
    urls = servers.urls
    with httpx2.Client(base_url=urls[0], transport=Alternating(urls), timeout=WAIT_S) as client:
        if project is not None:
            made = client.post("/v1/projects", json={"name": project})
            assert made.is_success, made.text
            client.headers["X-Everkept-Project"] = project
        yield client
