"""How a client of the storm talks to the servers: plain HTTP to any of them, the next one where one does not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import httpx2

from everkept.domain.ids import parse_row_id
from everkept.errors import Conflict, EverkeptError

TIMEOUT_S = 30.0
Place: TypeAlias = tuple[str, int]
"""An event's id and seq."""


class Lost(Exception):
    """No answer came, or one that says "later": it may have happened or not."""


class Gone(Exception):
    """There is no such thing."""


class Way(Protocol):
    """One project. Raises Lost, Gone, and EverkeptError for what is refused."""

    def append(self, thread: str, subject: str, texts: Sequence[str], key: str) -> list[Place]: ...
    def receipt(self, event: str) -> str: ...
    def recall(self, query: str, subject: str) -> list[str]: ...
    def remember(self, text: str, subject: str, key: str) -> int: ...
    def messages(self, thread: str) -> list[str]: ...
    def end(self, thread: str) -> None: ...
    def erase(self, kind: str, id: str) -> None: ...
    def close(self) -> None: ...


MakeWay: TypeAlias = Callable[[Sequence[str], str], Way]
"""f(the servers' URLs, the project)."""


class PlainHttp:
    def __init__(self, urls: Sequence[str], project: str) -> None:
        self._urls = list(urls)
        self._http = httpx2.Client(headers={"X-Everkept-Project": project}, timeout=TIMEOUT_S)

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Raises Lost, Gone, Conflict, EverkeptError."""
        headers = {} if key is None else {"Idempotency-Key": key}
        try:
            answer = self._http.request(method, f"{self._urls[0]}/v1/{path}", json=body, headers=headers)
        except httpx2.RequestError as error:
            self._urls.append(self._urls.pop(0))
            raise Lost from error
        if answer.status_code in (502, 503, 504):
            self._urls.append(self._urls.pop(0))
            raise Lost
        if answer.status_code == 404:
            raise Gone
        if not answer.is_success:
            told = answer.json()["error"]
            words = f"{method} {path}: {answer.status_code} {told['code']}: {told['message']}"
            raise Conflict(words) if answer.status_code == 409 else EverkeptError(words)
        return answer.json() if answer.content else None

    def append(self, thread: str, subject: str, texts: Sequence[str], key: str) -> list[Place]:
        body = {"subject": subject, "messages": [{"role": "user", "content": text} for text in texts]}
        receipts = self.ask("POST", f"threads/{thread}/messages", body, key)["receipts"]
        return [(each["event_id"], each["seq"]) for each in receipts]

    def receipt(self, event: str) -> str:
        return str(self.ask("GET", f"receipts/{event}")["state"])

    def recall(self, query: str, subject: str) -> list[str]:
        results = self.ask("POST", "recall", {"query": query, "subject": subject})["results"]
        return [result["text"] for result in results]

    def remember(self, text: str, subject: str, key: str) -> int:
        return parse_row_id("fct", self.ask("POST", "remember", {"text": text, "subject": subject}, key)["id"])

    def messages(self, thread: str) -> list[str]:
        items = self.ask("GET", f"threads/{thread}/messages?limit=100")["items"]
        return [item["content"] for item in items]

    def end(self, thread: str) -> None:
        self.ask("POST", f"threads/{thread}/end")

    def erase(self, kind: str, id: str) -> None:
        self.ask("DELETE", f"{kind}s/{id}")

    def close(self) -> None:
        self._http.close()
