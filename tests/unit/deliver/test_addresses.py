"""Where webhooks may be sent."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from everkept.deliver import addresses
from everkept.deliver.addresses import SystemResolver, check_url, is_private, reachable_addresses
from everkept.errors import InvalidInput


@pytest.mark.parametrize("address", [
    "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1",
    "fec0::1",
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


class Names:
    """Names that hang until they are let go, and others that are known at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        monkeypatch.setattr(addresses, "_resolve", self._resolve)

    def _resolve(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        if host.startswith("hang"):
            self.go_on.wait(30.0)
            raise OSError("no answer")
        return ["8.8.8.8"]

    def beside(self, hanging: list[str], *, wait_s: float = 10.0) -> tuple[list[str], list[BaseException | list[str]]]:
        """What is found for another name while these hang, and what came of them."""

        async def go() -> tuple[list[str], list[BaseException | list[str]]]:
            resolver = SystemResolver()
            waiting = [asyncio.create_task(resolver(host, 443)) for host in hanging]
            try:
                await asyncio.sleep(0)
                found = await asyncio.wait_for(resolver("good.example", 443), wait_s)
            finally:
                self.go_on.set()
                ended = await asyncio.gather(*waiting, return_exceptions=True)
                resolver.close()
            return found, ended

        return asyncio.run(go())


def test_a_name_is_found_beside_many_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    found, ended = Names(monkeypatch).beside([f"hang{n}.example" for n in range(100)])
    assert found == ["8.8.8.8"]
    assert {type(each) for each in ended} == {OSError}


def test_a_name_that_hangs_is_asked_for_once_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch)
    _, ended = names.beside(["hang.example"] * 50)
    assert names.asked == ["hang.example", "good.example"]
    assert {type(each) for each in ended} == {OSError}


def test_who_stops_waiting_for_a_name_takes_it_from_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(_host: str, _port: int) -> list[str]:
        time.sleep(0.05)
        return ["8.8.8.8"]

    monkeypatch.setattr(addresses, "_resolve", slowly)

    async def go() -> tuple[list[str], list[str]]:
        resolver = SystemResolver()
        first, second = (asyncio.create_task(resolver("slow.example", 443)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        found = await second
        again = await resolver("slow.example", 443)
        resolver.close()
        return found, again

    assert asyncio.run(go()) == (["8.8.8.8"], ["8.8.8.8"])
