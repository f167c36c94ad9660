"""One delivery over HTTP: to the address that was checked, never longer than it may, and never further."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import httpx2
import pytest

from everkept.deliver.post import ANSWER_BYTES_MAX, Answer, HttpPost, retry_after_s

Handler = Callable[[httpx2.Request], httpx2.Response]


class Network:
    """What was asked of it: names that were resolved, requests that were made."""

    def __init__(self, answers: Handler, addresses: list[list[str]]) -> None:
        self._answers = answers
        self._addresses = addresses
        self.resolved: list[tuple[str, int]] = []
        self.requests: list[httpx2.Request] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append((host, port))
        return self._addresses.pop(0) if len(self._addresses) > 1 else self._addresses[0]

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        await asyncio.sleep(0)
        return self._answers(request)

    def send(self, url: str, *, times: int = 1, timeout_s: float = 5.0, allow_private: bool = False) -> list[Answer]:
        async def go() -> list[Answer]:
            post = HttpPost(
                timeout_s=timeout_s, allow_private=allow_private, resolve=self.resolve,
                transport=httpx2.MockTransport(self),
            )  # fmt: skip
            try:
                return [await post(url, {"webhook-id": "dlv_1_1"}, b"{}") for _ in range(times)]
            finally:
                await post.close()

        return asyncio.run(go())


def answered(status: int, text: str = "", **headers: str) -> httpx2.Response:
    """As it comes from the network: its body is yet to be read."""

    async def body() -> AsyncIterator[bytes]:
        yield text.encode()

    return httpx2.Response(status, headers=headers, content=body())


def ok(_request: httpx2.Request) -> httpx2.Response:
    return answered(204)


def test_the_connection_is_made_to_the_address_that_was_checked_under_the_name_that_was_given() -> None:
    network = Network(ok, [["93.184.216.34"]])
    (answer,) = network.send("https://crm.example:8443/hook?x=1")
    (request,) = network.requests
    assert answer == Answer(status=204, error=None)
    assert (request.url.host, request.url.port, request.url.raw_path) == ("93.184.216.34", 8443, b"/hook?x=1")
    assert (request.headers["host"], request.extensions["sni_hostname"]) == ("crm.example:8443", "crm.example")
    assert network.resolved == [("crm.example", 8443)]


def test_a_name_that_turns_private_between_two_deliveries_is_not_connected_to() -> None:
    """DNS rebinding: what was asked once is used once, and asked and checked again for the next."""
    network = Network(ok, [["93.184.216.34"], ["127.0.0.1"]])
    first, second = network.send("http://crm.example/hook", times=2)
    assert (first.delivered, second.delivered, second.rejected) == (True, False, False)
    assert "allow_private" in (second.error or "")
    assert [request.url.host for request in network.requests] == ["93.184.216.34"]


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]:80/", "http://169.254.169.254/latest/meta-data"])
def test_nothing_is_sent_to_this_machine_unless_that_is_allowed(url: str) -> None:
    host = httpx2.URL(url).host
    network = Network(ok, [[host]])
    (refused,) = network.send(url)
    assert (refused.status, network.requests) == (None, [])
    (allowed,) = network.send(url, allow_private=True)
    assert (allowed.delivered, [r.url.host for r in network.requests]) == (True, [host])


def test_a_redirect_is_not_followed() -> None:
    network = Network(lambda _r: answered(302, location="http://127.0.0.1/"), [["8.8.8.8"]])
    (answer,) = network.send("http://crm.example/")
    assert (answer.status, answer.delivered, answer.rejected, len(network.requests)) == (302, False, False, 1)
    assert answer.error == "it answered 302, and redirects are not followed"


def test_a_receiver_that_hangs_is_left_after_the_timeout() -> None:
    class Hanging(Network):
        async def __call__(self, request: httpx2.Request) -> httpx2.Response:
            await asyncio.Event().wait()
            return ok(request)

    (answer,) = Hanging(ok, [["8.8.8.8"]]).send("http://crm.example/", timeout_s=0.05)
    assert answer == Answer(status=None, error="no answer came within 0.05 s")


def test_a_receiver_that_answers_without_end_is_cut_off() -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 4096
            yield b"x" * 4096

    (answer,) = Network(lambda _r: httpx2.Response(200, content=endless()), [["8.8.8.8"]]).send("http://crm.example/")
    assert answer.delivered
    assert read <= ANSWER_BYTES_MAX + 2 * 4096


def test_what_the_receiver_wrote_is_kept_nowhere() -> None:
    (answer,) = Network(lambda _r: answered(400, "my secret"), [["8.8.8.8"]]).send("http://crm.example/")
    assert (answer.error, answer.rejected) == ("it answered 400", True)


def test_another_address_of_the_name_is_tried_where_the_first_is_not_reached() -> None:
    def answers(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "2606:4700::1111":
            raise httpx2.ConnectError("no route to host")
        return answered(200)

    network = Network(answers, [["2606:4700::1111", "8.8.8.8"]])
    (answer,) = network.send("http://crm.example/")
    assert (answer.delivered, len(network.requests)) == (True, 2)


def test_an_address_that_does_not_answer_leaves_time_for_the_next_one() -> None:
    def answers(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "2606:4700::1111":
            raise httpx2.ConnectTimeout("timed out")
        return answered(200)

    network = Network(answers, [["2606:4700::1111", "8.8.8.8"]])
    (answer,) = network.send("http://crm.example/", timeout_s=5.0)
    assert answer.delivered
    assert [request.extensions["timeout"]["connect"] for request in network.requests] == [2.5, 2.5]
    (silent,) = Network(answers, [["2606:4700::1111"]]).send("http://crm.example/", timeout_s=5.0)
    assert silent == Answer(status=None, error="no answer came within 5 s")


def test_what_cannot_be_reached_says_so() -> None:
    def refuse(_request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("connection refused")

    (answer,) = Network(refuse, [["8.8.8.8"]]).send("http://crm.example/")
    assert answer == Answer(status=None, error="it cannot be reached: connection refused")
    (unknown,) = Network(ok, [[]]).send("http://crm.example/")
    assert unknown.error == "it cannot be reached: crm.example has no address"


@pytest.mark.parametrize(("told", "wait_s"), [
    ("120", 120.0), (" 7 ", 7.0), ("9999999999", 86_400.0), ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
    ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0), ("", None), ("soon", None), ("-5", None), ("²", None),
    ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
])  # fmt: skip
def test_a_wait_is_told_in_seconds_or_as_a_date(told: str, wait_s: float | None) -> None:
    assert retry_after_s(told, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == wait_s
