"""Which Host and Origin may speak to this server: the guard against DNS rebinding and against foreign web pages."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from everkept.errors import Forbidden


def is_loopback(host: str) -> bool:
    """`localhost`, a name under it, or a loopback address (no brackets)."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """`bind` is the host listened on; any IP literal is fine where that is not loopback: rebinding needs a name."""

    bind: str
    allowed: frozenset[str]

    @classmethod
    def of(cls, bind: str, allowed: Sequence[str]) -> HostRules:
        return cls(bind=bind.lower(), allowed=frozenset(name.lower().rstrip(".") for name in allowed))

    @property
    def loopback(self) -> bool:
        return is_loopback(self.bind)

    @property
    def key_needed(self) -> bool:
        """Others reach the server: directly, or under a name that a proxy in front of it publishes."""
        return not self.loopback or bool(self.allowed)

    def check(self, host: str | None, origin: str | None) -> None:
        """Both as sent (`host:port`, `http://host:port`). Raises Forbidden."""
        if host is None or not self.allows(host):
            raise Forbidden(
                f"the Host {host!r} is not allowed here; add it to server.allowed_hosts if it is yours", host=host
            )
        if origin is not None and _origin_host(origin) != host.lower():
            raise Forbidden(
                f"the Origin {origin!r} is not this server; web pages of others may not call it", origin=origin
            )

    @lru_cache(maxsize=256)  # noqa: B019 - one set of rules lives as long as the process
    def allows(self, host: str) -> bool:
        name = _name(host)
        if name is None:
            return False
        if is_loopback(name) or name == self.bind or name in self.allowed or host.lower() in self.allowed:
            return True
        return not self.loopback and _address(name) is not None


def _name(host: str) -> str | None:
    """The name in `name:port` or `[address]:port`; None where it is neither."""
    try:
        parts = urlsplit(f"//{host}")
        name, _port = parts.hostname, parts.port
    except ValueError:
        return None
    plain = parts.netloc == host and "@" not in host
    return name.rstrip(".") if name and plain else None


def _origin_host(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
