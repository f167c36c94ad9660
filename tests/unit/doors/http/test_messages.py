from __future__ import annotations

from typing import Any

import pytest
from tests.stubs.door_client import DoorClient, error_of

from everkept.doors.http.messages import parse_append
from everkept.errors import InvalidInput, UnknownScope

PATH = "/v1/threads/chat-1/messages"
ONE = {"role": "user", "content": "I live in Lisbon", "subject": "ana"}


@pytest.fixture
def door() -> DoorClient:
    return DoorClient()


def test_a_replay_gives_the_first_receipt_and_says_so(door: DoorClient) -> None:
    first = door("POST", PATH, json=ONE, headers={"Idempotency-Key": "turn-1"})
    again = door("POST", PATH, json=ONE, headers={"Idempotency-Key": "turn-1"})
    assert (first.status_code, first.headers.get("idempotent-replayed")) == (201, None)
    assert (again.status_code, again.headers.get("idempotent-replayed")) == (200, "true")
    assert first.json()["receipts"][0]["event_id"] == again.json()["receipts"][0]["event_id"]


def test_a_key_with_another_payload_is_a_conflict(door: DoorClient) -> None:
    door("POST", PATH, json=ONE, headers={"Idempotency-Key": "turn-1"})
    other = door("POST", PATH, json={**ONE, "content": "no"}, headers={"Idempotency-Key": "turn-1"})
    assert (other.status_code, error_of(other)["code"]) == (409, "idempotency_conflict")


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é".encode(), "tab\there"])
def test_a_malformed_key_is_an_error_and_nothing_is_stored(door: DoorClient, key: Any) -> None:
    response = door("POST", PATH, json=ONE, headers={"Idempotency-Key": key})
    details = error_of(response)["details"]
    assert (response.status_code, details["field"]) == (422, "Idempotency-Key")
    assert "1 to 255 visible ASCII" in details["limit"]
    assert door.service.threads == {}


def test_two_keys_in_one_request_are_an_error(door: DoorClient) -> None:
    response = door("POST", PATH, json=ONE, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    assert response.status_code == 422


@pytest.mark.parametrize("word", ["subject", "user_id", "dataset"])
def test_synonyms_of_subject_in_both_forms(word: str) -> None:
    one = parse_append(b'{"content": "x", "%s": "ana"}' % word.encode())
    many = parse_append(b'{"messages": [{"content": "x"}], "%s": "ana"}' % word.encode())
    assert "ana" == one[0] == many[0]


def test_agent_and_app_go_into_the_metadata() -> None:
    _, one = parse_append(b'{"content": "x", "agent_id": "bot", "metadata": {"a": 1}}')
    _, many = parse_append(
        b'{"messages": [{"content": "x"}, {"content": "y", "metadata": {"app_id": "own"}}], "app_id": "w"}'
    )
    assert one[0].metadata == {"agent_id": "bot", "a": 1}
    assert [each.metadata for each in many] == [{"app_id": "w"}, {"app_id": "own"}]


def test_contradicting_words_are_an_error() -> None:
    with pytest.raises(InvalidInput, match="contradict"):
        parse_append(b'{"content": "x", "user_id": "a", "subject": "b"}')
    with pytest.raises(UnknownScope, match="contradicts"):
        parse_append(b'{"content": "x", "user_id": "a", "dataset": "b"}')


def test_a_fault_in_a_batch_names_the_item_and_the_known_fields() -> None:
    with pytest.raises(InvalidInput, match=r"messages\[1\]\.contnet.*known.*content"):
        parse_append(b'{"messages": [{"content": "x"}, {"contnet": "y"}]}')


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b'"text"', b"{", b"\xff", b'{"content": "\\ud800"}', b'{"content": 1}', b"{}",
        b'{"messages": []}', b'{"messages": {}}', b'{"content": "x", "subject": 1}',
        b'{"content": "x", "metadata": {"n": NaN}}',
        b'{"content": "x", "occurred_at": "yesterday"}', b'{"content": "x", "metadata": []}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_message_is_an_error(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_append(body)


def test_a_message_of_more_than_1_mib_names_field_and_limit(door: DoorClient) -> None:
    response = door("POST", PATH, json={**ONE, "content": "x" * (2**20 + 1)})
    details = error_of(response)["details"]
    assert (response.status_code, details["field"], details["limit"]) == (422, "messages[0].content", 2**20)


def test_pages_of_messages_follow_the_cursor(door: DoorClient) -> None:
    door("POST", PATH, json={"subject": "ana", "messages": [{"content": str(i)} for i in range(5)]})
    first = door("GET", PATH + "?limit=2").json()
    second = door("GET", f"{PATH}?limit=3&cursor={first['next_cursor']}").json()
    assert [each["content"] for each in first["items"] + second["items"]] == ["0", "1", "2", "3", "4"]
    assert second["next_cursor"] is None
