"""One delivery to one address: a POST that never takes longer than it may, follows nothing, and reads little back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Protocol
from urllib.parse import SplitResult

import httpx2

from everkept.deliver.addresses import Resolve, SystemResolver, check_url, port_of, reachable_addresses
from everkept.errors import InvalidInput

ANSWER_BYTES_MAX: Final = 64 << 10
WAIT_MAX_S: Final = 86_400.0
"""Longest wait that a receiver may ask for."""
KEPT_S: Final = 15.0
"""How long a connection is kept for the next change."""
_ASKS_TO_WAIT: Final = frozenset({408, 409, 425, 429})
"""4xx that say `later`, and not `never`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one POST."""

    status: int | None
    """None: no answer came."""
    error: str | None
    """What it means, without anything that the receiver wrote; None: delivered."""
    retry_after_s: float | None = None

    @property
    def delivered(self) -> bool:
        return self.error is None

    @property
    def rejected(self) -> bool:
        """The receiver will not have it, however often it is asked."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in _ASKS_TO_WAIT


class Post(Protocol):
    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes, /) -> Answer:
        """Never raises for what the receiver, its name or the network does."""
        ...


class HttpPost:
    """Over the network. `transport` and `resolve` are for tests."""

    def __init__(
        self, *, timeout_s: float, allow_private: bool, resolve: Resolve | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._timeout_s = timeout_s
        self._allow_private = allow_private
        self._system = SystemResolver()
        self._resolve = resolve or self._system
        self._transport = transport
        self._trusted = httpx2.create_ssl_context()
        self._clients: dict[str, httpx2.AsyncClient] = {}
        """{host and port: a client of its own}. Connections are made to addresses, which several hosts may share: one
        that was opened for one of them, and checked against its certificate, must not carry what another is sent."""

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._send(check_url(url), url, headers, body)
        except (TimeoutError, httpx2.TimeoutException):
            return Answer(status=None, error=f"no answer came within {self._timeout_s:g} s")
        except InvalidInput as error:
            return Answer(status=None, error=error.message)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            return Answer(status=None, error=f"it cannot be reached: {str(error) or type(error).__name__}"[:300])

    async def check(self, url: str) -> None:
        """Raises InvalidInput for an address that nothing will be sent to. A name that is not known yet may be soon."""
        parts = check_url(url)
        with contextlib.suppress(OSError, UnicodeError, TimeoutError):
            async with asyncio.timeout(self._timeout_s):
                await reachable_addresses(parts, allow_private=self._allow_private, resolve=self._resolve)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._system.close()

    async def _send(self, parts: SplitResult, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        found = await reachable_addresses(parts, allow_private=self._allow_private, resolve=self._resolve)
        client = self._client(parts.netloc)
        for last, address in enumerate(found, 1 - len(found)):
            request = client.build_request(
                "POST", httpx2.URL(url).copy_with(host=address, port=port_of(parts)), content=body,
                headers={**headers, "host": parts.netloc}, extensions={"sni_hostname": parts.hostname},
                timeout=httpx2.Timeout(self._timeout_s, connect=self._timeout_s / len(found)),
            )  # fmt: skip
            try:
                return await _exchange(client, request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if not last:
                    raise
        raise OSError(f"{parts.hostname} has no address")

    def _client(self, netloc: str) -> httpx2.AsyncClient:
        client = self._clients.get(netloc)
        if client is None:
            client = self._clients[netloc] = httpx2.AsyncClient(
                timeout=self._timeout_s, trust_env=False, follow_redirects=False, transport=self._transport,
                verify=self._trusted, limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEPT_S),
            )  # fmt: skip
        return client


async def _exchange(client: httpx2.AsyncClient, request: httpx2.Request) -> Answer:
    response = await client.send(request, stream=True)
    try:
        await _read_a_little(response)
    finally:
        await response.aclose()
    return _answer(response)


async def _read_a_little(response: httpx2.Response) -> None:
    """So that the connection can be used again; one that goes on and on is closed instead."""
    read = 0
    async for chunk in response.aiter_raw():
        read += len(chunk)
        if read > ANSWER_BYTES_MAX:
            return


def _answer(response: httpx2.Response) -> Answer:
    status = response.status_code
    if response.is_success:
        return Answer(status=status, error=None)
    more = ", and redirects are not followed" if 300 <= status < 400 else ""
    wait_s = retry_after_s(response.headers.get("retry-after", ""), datetime.now(UTC))
    return Answer(status=status, error=f"it answered {status}{more}", retry_after_s=wait_s)


def retry_after_s(told: str, now: datetime) -> float | None:
    """Seconds, or the time until a date; a day at most. None where nothing that can be read is told."""
    told = told.strip()
    if told.isascii() and told.isdigit():
        return min(float(told), WAIT_MAX_S)
    try:
        until = parsedate_to_datetime(told)
    except (ValueError, OverflowError):  # a year that no date has
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), WAIT_MAX_S)
