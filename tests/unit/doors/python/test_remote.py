from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from tests.stubs.door_client import DoorClient

from everkept.api.views import MessageIn
from everkept.doors.python import wire
from everkept.doors.python.remote import RemoteService
from everkept.errors import (
    EverkeptError,
    InvalidInput,
    KeyConflict,
    NotFound,
    RateLimited,
    StoreUnavailable,
    Unauthorized,
    Unavailable,
)

RESULT = {"thread": "t", "receipts": [], "replayed": False}
MESSAGE = [MessageIn(content="x")]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody sleeps in a test; how long the wire wanted to is told."""
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("everkept.doors.python.wire.asyncio.sleep", note)
    return waited


class Server:
    """Answers with what it was given, in turn, the last of it for ever; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, body = answer
        return httpx2.Response(status, json=body) if not isinstance(body, str) else httpx2.Response(status, text=body)

    def ask(self, call: Callable[[RemoteService], Any], **options: Any) -> Any:
        async def run() -> Any:
            service = RemoteService("http://127.0.0.1:7411", transport=httpx2.MockTransport(self), **options)
            try:
                return await call(service)
            finally:
                await service.close()

        return asyncio.run(run())


def _recall_with(metadata: dict[str, Any]) -> Callable[[RemoteService], Any]:
    return lambda service: service.recall("x", metadata=metadata)


def _get_thread(thread: str) -> Callable[[RemoteService], Any]:
    return lambda service: service.get_thread(thread)


def problem(code: str, status: int, **details: Any) -> tuple[int, Any]:
    return status, {"error": {"code": code, "message": f"told: {code}", "details": details}}


def test_an_append_is_sent_again_with_the_same_key(waits: list[float]) -> None:
    server = Server(httpx2.ReadError("gone"), problem("store_unavailable", 503), (201, RESULT))
    server.ask(lambda service: service.append("t", MESSAGE, subject="ana", key="k"))
    assert [each.headers["idempotency-key"] for each in server.requests] == ["k", "k", "k"]
    assert len({each.content for each in server.requests}) == 1
    assert len(waits) == 2


def test_an_append_without_any_key_is_sent_once() -> None:
    server = Server(httpx2.ReadError("gone"))
    with pytest.raises(Unavailable, match="could not look"):
        server.ask(lambda service: service.append("t", MESSAGE, subject="ana"))
    assert len(server.requests) == 1


def test_messages_with_their_own_keys_may_be_sent_again() -> None:
    server = Server(httpx2.ReadError("gone"), (201, RESULT))
    server.ask(lambda service: service.append("t", [MessageIn(content="x", key="own")], subject="ana"))
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda service: service.create_project("x"),
        lambda service: service.create_key("x"),
        lambda service: service.erase(subject="ana"),
        lambda service: service.reprocess(fresh=True),
        lambda service: service.remember("x", subject="ana"),
        lambda service: service.create_thread(None, "ana"),
        lambda service: service.retry_job("job_1"),
    ],
)
def test_what_may_not_happen_twice_is_sent_once(call: Callable[[RemoteService], Any]) -> None:
    server = Server(httpx2.ReadTimeout("late"))
    with pytest.raises(Unavailable):
        server.ask(call)
    assert len(server.requests) == 1


def test_attempts_are_limited_and_the_end_is_not_an_empty_answer(waits: list[float]) -> None:
    server = Server(httpx2.ConnectError("refused"))
    with pytest.raises(Unavailable, match=r"could not look.*refused"):
        server.ask(lambda service: service.recall("x"))
    assert (len(server.requests), len(waits)) == (wire.ATTEMPTS_MAX, wire.ATTEMPTS_MAX - 1)
    assert sum(waits) < 2


def test_a_wait_that_is_asked_for_is_kept_if_it_is_short(waits: list[float]) -> None:
    server = Server(problem("rate_limited", 429, retry_after_s=2.5), (200, {"items": []}))
    assert server.ask(lambda service: service.list_keys()) == []
    assert waits == [2.5]
    server = Server(problem("rate_limited", 429, retry_after_s=61))
    with pytest.raises(RateLimited) as caught:
        server.ask(lambda service: service.list_keys())
    assert (caught.value.retry_after_s, len(server.requests)) == (61, 1)


def test_to_be_postponed_spends_no_attempt_and_even_what_may_not_happen_twice_is_sent_again(
    waits: list[float],
) -> None:
    postponed = [problem("rate_limited", 429, retry_after_s=2)] * 8
    server = Server(*postponed, *[httpx2.ConnectError("refused")] * (wire.ATTEMPTS_MAX - 1), (200, {"items": []}))
    assert server.ask(lambda service: service.list_keys()) == []
    assert waits[:8] == [2] * 8
    assert len(server.requests) == 8 + wire.ATTEMPTS_MAX
    server = Server((429, "a proxy"), (201, RESULT))
    server.ask(lambda service: service.append("t", [MessageIn(content="x")], subject="ana"))
    assert len(server.requests) == 2


def test_to_be_postponed_for_ever_ends_after_a_minute(waits: list[float]) -> None:
    server = Server(problem("rate_limited", 429, retry_after_s=7))
    with pytest.raises(RateLimited):
        server.ask(lambda service: service.list_keys())
    assert sum(waits) == 56


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem("not_found", 404, id="fct_1"), NotFound),
        (problem("idempotency_conflict", 409), KeyConflict),
        (problem("unauthorized", 401), Unauthorized),
        (problem("store_unavailable", 503), StoreUnavailable),
        (problem("internal", 500, request_id="r"), EverkeptError),
        (problem("of_a_newer_server", 500), EverkeptError),
    ],
)
def test_errors_come_back_as_the_same_classes(answer: tuple[int, Any], kind: type[EverkeptError]) -> None:
    with pytest.raises(EverkeptError) as caught:
        Server(answer).ask(lambda service: service.status())
    told = answer[1]["error"]
    assert type(caught.value) is kind
    assert (told["message"], told["details"]) == (caught.value.message, caught.value.details)


def test_every_error_class_has_a_code_of_its_own() -> None:
    kinds = wire.classes_by_code()
    assert all(kinds[kind.code] is kind for kind in kinds.values())
    assert {"not_found", "store_full", "rate_limited", "internal"} <= set(kinds)


@pytest.mark.parametrize(
    "answer", [(200, "<html>hello</html>"), (200, {"some": "thing"}), (502, "bad gateway"), (404, "nope")]
)
def test_what_is_not_everkept_is_unavailable(answer: tuple[int, Any]) -> None:
    with pytest.raises(Unavailable, match="could not look"):
        Server(answer).ask(lambda service: service.status())


def test_key_and_project_go_along() -> None:
    server = Server((200, {"items": []}))
    server.ask(lambda service: service.list_keys(), api_key="secret", project="mine")
    headers = server.requests[0].headers
    assert (headers["authorization"], headers["x-everkept-project"]) == ("Bearer secret", "mine")


def test_what_is_no_json_is_an_input_error() -> None:
    server = Server((200, {}))
    for metadata in ({"a": float("nan")}, {"a": object()}):
        with pytest.raises(InvalidInput):
            server.ask(_recall_with(metadata))
    with pytest.raises(InvalidInput):
        server.ask(lambda service: service.append("t", [MessageIn(content="x", metadata={"a": object()})], key="k"))
    for thread in ("", "..", "\ud800"):
        with pytest.raises(InvalidInput):
            server.ask(_get_thread(thread))
    assert server.requests == []


def test_nulls_in_metadata_arrive() -> None:
    server = Server((201, RESULT))
    server.ask(lambda service: service.append("t", [MessageIn(content="x", metadata={"a": None})], key="k"))
    assert json.loads(server.requests[0].content)["messages"][0]["metadata"] == {"a": None}


def test_a_long_settle_is_asked_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server((200, {"settled": False}), (200, {"settled": False}), (200, {"settled": True}))
    assert server.ask(lambda service: service.settle(timeout_s=50))
    assert all(json.loads(each.content)["timeout_s"] <= 20 for each in server.requests)
    assert not Server((200, {"settled": False})).ask(lambda service: service.settle(timeout_s=0))


def test_a_real_door_behind_the_wire_answers() -> None:
    door = DoorClient()

    async def run() -> str:
        service = RemoteService("http://localhost:7411", transport=httpx2.ASGITransport(door.app))
        await service.append("a/b", MESSAGE, subject="ana", key="k")
        return (await service.get_thread("a/b")).subject

    assert asyncio.run(run()) == "ana"


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput):
        RemoteService("http://[::1")
