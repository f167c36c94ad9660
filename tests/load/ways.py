"""The two ways by which clients talk to the server: plain HTTP, and the project's own client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import httpx2

from everkept import Memory
from everkept.domain.ids import parse_row_id
from everkept.errors import EverkeptError, NotFound, Unavailable

T = TypeVar("T")
TIMEOUT_S = 30.0
Place = tuple[str, int]
"""An event's id and seq."""


class Lost(Exception):
    """No answer came, or one that says "later": it may have happened or not."""


class Gone(Exception):
    """There is no such thing."""


class Way(Protocol):
    """One project of the server. Raises Lost, Gone, and EverkeptError for what the server refuses."""

    def append(self, thread: str, subject: str, texts: Sequence[str], key: str) -> list[Place]: ...
    def receipt(self, event: str) -> str: ...
    def recall(self, query: str, subject: str) -> list[str]: ...
    def remember(self, text: str, subject: str, key: str) -> int: ...
    def messages(self, thread: str) -> list[str]: ...
    def end(self, thread: str) -> None: ...
    def erase(self, kind: str, id: str) -> None: ...
    def close(self) -> None: ...


class PlainHttp:
    def __init__(self, url: str, project: str) -> None:
        self._http = httpx2.Client(base_url=url, headers={"X-Everkept-Project": project}, timeout=TIMEOUT_S)

    def _ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        try:
            answer = self._http.request(
                method, f"/v1/{path}", json=body, headers={} if key is None else {"Idempotency-Key": key}
            )
        except httpx2.RequestError as error:
            raise Lost from error
        if answer.status_code in (502, 503, 504):
            raise Lost
        if answer.status_code == 404:
            raise Gone
        if not answer.is_success:
            told = answer.json()["error"]
            raise EverkeptError(f"{method} {path}: {answer.status_code} {told['code']}: {told['message']}")
        return answer.json()

    def append(self, thread: str, subject: str, texts: Sequence[str], key: str) -> list[Place]:
        body = {"subject": subject, "messages": [{"role": "user", "content": text} for text in texts]}
        receipts = self._ask("POST", f"threads/{thread}/messages", body, key)["receipts"]
        return [(each["event_id"], each["seq"]) for each in receipts]

    def receipt(self, event: str) -> str:
        return str(self._ask("GET", f"receipts/{event}")["state"])

    def recall(self, query: str, subject: str) -> list[str]:
        results = self._ask("POST", "recall", {"query": query, "subject": subject})["results"]
        return [result["text"] for result in results]

    def remember(self, text: str, subject: str, key: str) -> int:
        return parse_row_id("fct", self._ask("POST", "remember", {"text": text, "subject": subject}, key)["id"])

    def messages(self, thread: str) -> list[str]:
        items = self._ask("GET", f"threads/{thread}/messages?limit=100")["items"]
        return [item["content"] for item in items]

    def end(self, thread: str) -> None:
        self._ask("POST", f"threads/{thread}/end")

    def erase(self, kind: str, id: str) -> None:
        self._ask("DELETE", f"{kind}s/{id}")

    def close(self) -> None:
        self._http.close()


class OwnClient:
    def __init__(self, url: str, project: str) -> None:
        self._memory = Memory.connect(url, project=project)

    def _ask(self, what: Callable[[], T]) -> T:
        try:
            return what()
        except Unavailable as error:
            raise Lost from error
        except NotFound as error:
            raise Gone from error

    def append(self, thread: str, subject: str, texts: Sequence[str], key: str) -> list[Place]:
        def ask() -> list[Place]:
            if len(texts) == 1:
                told = [self._memory.add(texts[0], thread=thread, subject=subject, key=key)]
            else:
                handle = self._memory.thread(thread, subject=subject)
                told = handle.add_many([("user", text) for text in texts], key=key).receipts
            return [(each.event_id, each.seq) for each in told]

        return self._ask(ask)

    def receipt(self, event: str) -> str:
        return self._ask(lambda: self._memory.receipt(event).state)

    def recall(self, query: str, subject: str) -> list[str]:
        return self._ask(lambda: [result.text or "" for result in self._memory.recall(query, subject=subject).results])

    def remember(self, text: str, subject: str, key: str) -> int:
        return self._ask(lambda: parse_row_id("fct", self._memory.remember(text, subject=subject, key=key).id))

    def messages(self, thread: str) -> list[str]:
        return self._ask(lambda: [message.content or "" for message in self._memory.thread(thread).messages()])

    def end(self, thread: str) -> None:
        self._ask(lambda: self._memory.thread(thread).end())

    def erase(self, kind: str, id: str) -> None:
        named = {"thread": None, "subject": None, kind: id}
        self._ask(lambda: self._memory.erase(thread=named["thread"], subject=named["subject"]))

    def close(self) -> None:
        self._memory.close()
