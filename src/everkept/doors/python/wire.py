"""Requests to an Everkept server: which are sent again, and how its errors come back as ours."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from everkept.api.pacing import PATIENCE_S
from everkept.errors import EverkeptError, InvalidInput, RateLimited, Unavailable

ATTEMPTS_MAX = 4
WAIT_FIRST_S = 0.1
WAIT_MAX_S = 5.0
"""Longest wait between two attempts; a server that asks for more gets its error passed on."""
READ_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 5.0
_PASSING = frozenset({429, 502, 503, 504})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Wire:
    """One connection pool. `transport` is for tests."""

    def __init__(
        self, url: str, headers: Mapping[str, str], transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self.url = url.rstrip("/")
        try:
            # A proxy of the environment is for the way out, not for this machine.
            local = urlsplit(self.url).hostname in _LOOPBACK
            self._client = httpx2.AsyncClient(
                base_url=self.url, headers=dict(headers), transport=transport, trust_env=not local
            )
        except (ValueError, httpx2.InvalidURL) as error:
            raise InvalidInput(f"{url!r} is not the address of a server: {error}", field="url") from error

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
        safe: bool = False,
        timeout_s: float = READ_TIMEOUT_S,
    ) -> bytes:
        """The body of a success. A GET, a request with a key and one that is `safe` are sent again, a few times.

        Where the server asks to wait (429), any is sent again after that, within `timeout_s`: nothing was done, nor
        lost, and no attempt is spent.

        Raises the class of the server's error, Unavailable where it could not be asked, and InvalidInput for what is
        no JSON.
        """  # fmt: skip
        request = self._build(method, path, query, body, key, timeout_s)
        attempts_max = ATTEMPTS_MAX if safe or key is not None or method == "GET" else 1
        failures, postponements, patience_s = 0, 0, min(PATIENCE_S, timeout_s)
        while True:
            try:
                return await self._send(request)
            except _Passing as passing:
                if passing.postponed:
                    postponements += 1
                    wait_s = _wait_s(postponements, passing.error)
                    gives_up = wait_s > patience_s
                    patience_s -= wait_s
                else:
                    failures += 1
                    wait_s = _wait_s(failures, passing.error)
                    gives_up = failures == attempts_max or wait_s > WAIT_MAX_S
                if gives_up:
                    raise passing.error from passing.__cause__
            await asyncio.sleep(wait_s)

    async def close(self) -> None:
        await self._client.aclose()

    def _build(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Any, key: str | None, timeout_s: float
    ) -> httpx2.Request:
        headers = {} if key is None else {"Idempotency-Key": key}
        timeout = httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
        try:
            return self._client.build_request(
                method, path, params=_parameters(query), json=body, headers=headers, timeout=timeout
            )
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"this cannot be sent as JSON: {error}") from error

    async def _send(self, request: httpx2.Request) -> bytes:
        """Raises _Passing where a later attempt may do better."""
        try:
            response = await self._client.send(request)
        except httpx2.TimeoutException as error:
            raise _Passing(Unavailable(f"could not look: {self.url} did not answer in time", url=self.url)) from error
        except httpx2.RequestError as error:
            reason = str(error) or type(error).__name__
            raise _Passing(Unavailable(f"could not look: {self.url}: {reason}", url=self.url)) from error
        if response.is_success:
            return response.content
        wrong = _error_of(response, self.url)
        if response.status_code in _PASSING:
            raise _Passing(wrong, postponed=response.status_code == 429)
        raise wrong


class _Passing(Exception):
    """An error that may pass by itself. `postponed`: the server asked to wait, and did nothing."""

    def __init__(self, error: EverkeptError, *, postponed: bool = False) -> None:
        super().__init__(error)
        self.error = error
        self.postponed = postponed


def classes_by_code() -> dict[str, type[EverkeptError]]:
    """Every error class, by its stable code."""
    return {kind.code: kind for kind in _descendants(EverkeptError)}


def _descendants(kind: type[EverkeptError]) -> Iterator[type[EverkeptError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _descendants(child)


def _error_of(response: httpx2.Response, url: str) -> EverkeptError:
    try:
        told = response.json()["error"]
        code, message, details = str(told["code"]), str(told["message"]), dict(told["details"])
    except (ValueError, KeyError, TypeError):
        status = response.status_code
        wrong = Unavailable(f"could not look: {url} answered {status}, not as Everkept does", url=url, status=status)
        wrong.details |= _asked_to_wait(response)
        return wrong
    error = classes_by_code().get(code, EverkeptError)(message)
    error.details = _asked_to_wait(response) | details
    if isinstance(error, RateLimited):
        error.retry_after_s = details.get("retry_after_s")
    return error


def _asked_to_wait(response: httpx2.Response) -> dict[str, float]:
    """`retry_after_s` where the answer says so in seconds."""
    told = response.headers.get("retry-after", "")
    return {"retry_after_s": float(told)} if told.isdecimal() else {}


def _wait_s(attempt: int, error: EverkeptError) -> float:
    """Twice as long each time, up to half of it at random; what the server asks for comes first."""
    asked = error.details.get("retry_after_s")
    if asked is not None:
        return float(asked)
    return WAIT_FIRST_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)


def _parameters(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Without what is not set, and as text."""
    return {name: _text(value) for name, value in (query or {}).items() if value is not None}


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return value
