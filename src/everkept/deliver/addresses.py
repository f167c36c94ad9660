"""Where a webhook may be sent: never to this machine or a private network, unless that is allowed.

A name is resolved once, every address that it has is checked, and the connection is made to an address that was
checked: a name that resolves to something else a moment later (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from everkept.errors import InvalidInput

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""(host, port) → its addresses. Raises OSError."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_PORTS: Final = {"http": 80, "https": 443}
URL_CHARS_MAX: Final = 2_000
RESOLVERS: Final = 1_000
"""Names that may hang at once; a thread is made only where all the others are at work."""


def check_url(url: str) -> SplitResult:
    """Its parts. Raises InvalidInput for what is no plain http or https address, or carries a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"this is not an address: {error}", field="url") from error
    if parts.scheme not in _PORTS or not parts.hostname or port == 0 or len(url) > URL_CHARS_MAX:
        raise InvalidInput("url is an http:// or https:// address of at most 2,000 characters", field="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("an address with a name or password in it is shown to many; use the secret", field="url")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput("url holds what must be written in percent or punycode form", field="url")
    return parts


def port_of(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


async def reachable_addresses(parts: SplitResult, *, allow_private: bool, resolve: Resolve) -> list[str]:
    """Addresses of its host, all of them allowed. Raises InvalidInput where one is not, OSError where it has none."""
    host = parts.hostname
    assert host is not None
    found = await resolve(host, port_of(parts))
    refused = [] if allow_private else [address for address in found if is_private(address)]
    if refused:
        raise InvalidInput(
            f"{host} is {refused[0]}, of this machine or a private network; webhooks.allow_private allows it",
            field="url", address=refused[0],
        )  # fmt: skip
    if not found:
        raise OSError(f"{host} has no address")
    return found


class SystemResolver:
    """Asks the system, in threads of its own: names whose servers hang hold up nothing else of this process.

    A name is asked for once at a time, however many wait for it.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], asyncio.Future[list[str]]] = {}
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="everkept-resolver")

    async def __call__(self, host: str, port: int) -> list[str]:
        asked = self._asked.get((host, port))
        if asked is None:
            asked = asyncio.get_running_loop().run_in_executor(self._threads, _resolve, host, port)
            self._asked[host, port] = asked
            asked.add_done_callback(partial(self._forget, (host, port)))
        return await asyncio.shield(asked)  # who waits no longer takes it from nobody else

    def _forget(self, name: tuple[str, int], asked: asyncio.Future[list[str]]) -> None:
        del self._asked[name]
        if not asked.cancelled():
            asked.exception()  # seen, though nobody may wait any more

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_private(address: str) -> bool:
    """Whether it is not one that everybody on the internet reaches; an IPv6 address that wraps an IPv4 one is that."""
    meant = _unwrapped(ip_address(address.partition("%")[0]))
    site_local = isinstance(meant, IPv6Address) and meant.is_site_local
    return not meant.is_global or meant.is_multicast or meant.is_reserved or meant.is_unspecified or site_local


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or address
