"""Where webhooks may be sent."""

from __future__ import annotations

import asyncio

import pytest

from everkept.deliver.addresses import check_url, is_private, reachable_addresses
from everkept.errors import InvalidInput


@pytest.mark.parametrize("address", [
    "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
])  # fmt: skip
def test_addresses_of_this_machine_and_of_private_networks_are_private(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_addresses_that_everybody_reaches_are_not(address: str) -> None:
    assert not is_private(address)


@pytest.mark.parametrize("url", [
    "ftp://x.example", "file:///etc/passwd", "//x.example", "https://", "x.example", "https://user:pw@x.example/",
    "https://user@x.example/", "http://x.example:0/", "http://x.example:99999/", "http://[::1", "https://x.example/ä",
    "https://x.example/a b", "https://x.example/\n", f"https://x.example/{'a' * 2000}",
])  # fmt: skip
def test_what_is_no_plain_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        check_url(url)


def test_one_private_address_among_several_refuses_the_name() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["8.8.8.8", "10.0.0.1"]

    async def reach(*, allow_private: bool) -> list[str]:
        parts = check_url("https://x.example:8443/hook")
        return await reachable_addresses(parts, allow_private=allow_private, resolve=resolve)

    with pytest.raises(InvalidInput, match=r"x\.example is 10\.0\.0\.1"):
        asyncio.run(reach(allow_private=False))
    assert asyncio.run(reach(allow_private=True)) == ["8.8.8.8", "10.0.0.1"]
