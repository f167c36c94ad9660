"""The real server, through HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.stubs.real_server import WAIT_S, serving


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with (
        serving(tmp_path_factory.mktemp("home")) as (_, url),
        httpx2.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client,
    ):
        yield client


def say(client: httpx2.Client, thread: str, *contents: str, **more: Any) -> list[dict[str, Any]]:
    body = {"subject": "ana", "messages": [{"role": "user", "content": each} for each in contents], **more}
    response = client.post(f"/v1/threads/{thread}/messages", json=body)
    assert response.status_code == 201, response.text
    receipts: list[dict[str, Any]] = response.json()["receipts"]
    return receipts


def settle(client: httpx2.Client) -> None:
    for _ in range(6):
        if client.post("/v1/settle", json={"timeout_s": 20}).json()["settled"]:
            return
    raise AssertionError(client.get("/v1/status").json())


def test_a_conversation_is_remembered(client: httpx2.Client) -> None:
    receipt = say(client, "story", "I live in Lisbon.", "My sister Ines is a nurse.")[0]
    assert receipt["state"] == "searchable"
    found = client.post("/v1/recall", json={"query": "where does she live Lisbon", "user_id": "ana"}).json()
    assert "I live in Lisbon." in [each["text"] for each in found["results"]]  # before any model has run
    assert client.post("/v1/threads/story/end").json()["episode_queued"]
    settle(client)
    after = client.get(f"/v1/receipts/{receipt['event_id']}").json()
    assert (after["state"], after["summary"], after["facts"]) == ("remembered", "completed", "completed")
    episode = client.get(f"/v1/episodes/{after['episode_id']}").json()
    assert (episode["start_seq"], episode["end_seq"]) == (1, 2)
    why = client.get(f"/v1/episodes/{after['episode_id']}/why").json()
    assert receipt["event_id"] in [each["event_id"] for each in why["events"]]
    context = client.get("/v1/threads/story/context", params={"question": "Where does Ana live?", "tokens": 400}).json()
    assert "Lisbon" in context["text"]


def test_replays_and_conflicts(client: httpx2.Client) -> None:
    def send(content: str) -> httpx2.Response:
        body = {"content": content, "subject": "ana"}
        return client.post("/v1/threads/replay/messages", json=body, headers={"Idempotency-Key": "turn-1"})

    first, again, other = send("x y z"), send("x y z"), send("other")
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.headers["idempotent-replayed"] == "true"
    assert first.json()["receipts"][0]["event_id"] == again.json()["receipts"][0]["event_id"]
    assert other.json()["error"]["code"] == "idempotency_conflict"
    assert client.get("/v1/threads/replay").json()["messages"] == 1


def test_a_batch_with_a_fault_stores_nothing(client: httpx2.Client) -> None:
    body = {"subject": "ana", "messages": [{"content": "good"}, {"content": " "}, {"content": "also good"}]}
    response = client.post("/v1/threads/batch/messages", json=body)
    assert response.status_code == 422
    assert response.json()["error"]["details"]["field"] == "messages[1].content"
    assert client.get("/v1/threads/batch").status_code == 404


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("", "messages[0].content"), ("nul \x00", "messages[0].content"),
        ("x" * (2**20 + 1), "messages[0].content"), ("é" * 2**19 + "x", "messages[0].content"),
    ],
    ids=["empty", "nul", "long", "long in bytes"],
)  # fmt: skip
def test_a_message_that_cannot_be_kept_is_refused(client: httpx2.Client, content: str, field: str) -> None:
    response = client.post("/v1/threads/refused/messages", json={"content": content, "subject": "ana"})
    assert (response.status_code, response.json()["error"]["details"]["field"]) == (422, field)


def test_five_megabytes_are_refused_with_the_limit(client: httpx2.Client) -> None:
    response = client.post("/v1/threads/refused/messages", json={"content": "x" * 5 * 2**20, "subject": "ana"})
    assert (response.status_code, response.json()["error"]["details"]["limit"]) == (422, 2**20)


def test_a_thread_of_another_subject_is_a_conflict(client: httpx2.Client) -> None:
    client.post("/v1/threads", json={"id": "owned", "subject": "ana"})
    response = client.post("/v1/threads", json={"thread_id": "owned", "user_id": "bob"})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "subject_conflict")


def test_facts_are_stated_traced_retired_and_brought_back(client: httpx2.Client) -> None:
    body = {"text": "Bob drives a tram", "subject": "bob", "entity": "Bob", "predicate": "drives", "object": "a tram"}
    fact = client.post("/v1/remember", json=body, headers={"Idempotency-Key": "bob-1"}).json()
    again = client.post("/v1/remember", json=body, headers={"Idempotency-Key": "bob-1"}).json()
    assert fact["id"] == again["id"]
    assert [fact["id"]] == [each["id"] for each in client.get("/v1/facts?subject=bob").json()["items"]]
    assert "Bob" in [each["name"] for each in client.get("/v1/entities?subject=bob").json()["items"]]
    assert client.get(f"/v1/facts/{fact['id']}/why").json()["kind"] == "fact"
    assert not client.post(f"/v1/facts/{fact['id']}/forget", json={"reason": "he stopped"}).json()["live"]
    assert client.get("/v1/facts?subject=bob").json()["items"] == []
    assert client.post(f"/v1/facts/{fact['id']}/forget", json={"undo": True}).json()["live"]


def test_lists_page_to_the_end(client: httpx2.Client) -> None:
    say(client, "pages", *(f"line {i}" for i in range(7)))
    seen, cursor = [], None
    while True:
        query = {"limit": 3, **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/threads/pages/messages", params=query).json()
        seen += [each["content"] for each in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"line {i}" for i in range(7)]
    names: list[str] = []
    while True:
        query = {"limit": 2, "subject": "ana", **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/threads", params=query).json()
        names += [each["id"] for each in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert "pages" in names
    assert len(names) == len(set(names))


def test_changes_are_given_until_they_are_acknowledged(client: httpx2.Client) -> None:
    say(client, "changed", "something new")
    client.post("/v1/remember", json={"text": "something changed", "subject": "ana"})
    page = client.get("/v1/changes?consumer=crm").json()
    assert page["changes"]
    assert client.get("/v1/changes?consumer=crm").json()["changes"] == page["changes"]
    told = client.post("/v1/changes/ack", json={"consumer": "crm", "up_to": page["next_after"]}).json()
    assert told["cursor"] == page["next_after"]
    back = client.post("/v1/changes/ack", json={"consumer": "crm", "up_to": 0}).json()
    assert back["cursor"] == page["next_after"]


def test_erasing_says_first_what_it_would_do(client: httpx2.Client) -> None:
    event = say(client, "gone", "a zebra at the door", subject="zoe")[0]["event_id"]
    plan = client.delete("/v1/threads/gone?dry_run=true").json()
    assert (plan["dry_run"], client.get("/v1/threads/gone").status_code) == (True, 200)
    done = client.delete("/v1/threads/gone").json()
    assert (done["dry_run"], done["residue"]) == (False, 0)
    assert "zebra" not in client.get(f"/v1/events/{event}/why").text
    assert client.post("/v1/recall", json={"query": "door", "subject": "zoe"}).json()["results"] == []


def test_export_and_reprocess_of_a_subject(client: httpx2.Client) -> None:
    say(client, "exported", "kept in full", subject="eva")
    told = client.get("/v1/subjects/eva/export").json()
    assert told["threads"][0]["messages"][0]["content"] == "kept in full"
    plan = client.post("/v1/subjects/eva/reprocess", json={"dry_run": True}).json()
    assert (plan["dry_run"], plan["scheduled"]) == (True, 0)


def test_projects_are_apart_and_keys_are_confined(client: httpx2.Client) -> None:
    assert client.post("/v1/projects", json={"name": "apart"}).status_code == 201
    token = client.post("/v1/keys?project=apart", json={"name": "laptop"}).json()["token"]
    key = {"Authorization": f"Bearer {token}"}
    response = client.post("/v1/threads/t/messages", json={"content": "a secret walrus", "subject": "ana"}, headers=key)
    assert response.status_code == 201
    assert client.get("/v1/threads/t").status_code == 404
    assert client.get("/v1/threads/t", headers={"X-Everkept-Project": "apart"}).status_code == 200
    assert "walrus" not in client.post("/v1/recall", json={"query": "a secret"}).text
    assert client.get("/v1/threads?project=default", headers=key).status_code == 403
    assert client.get("/v1/keys", headers=key).status_code == 403
    keys = client.get("/v1/keys").json()["items"]
    assert [each["name"] for each in keys] == ["laptop"]
    assert client.delete(f"/v1/keys/{keys[0]['id']}").status_code == 204
    assert client.get("/v1/threads/t", headers=key).status_code == 401


def test_settings_of_a_thread(client: httpx2.Client) -> None:
    say(client, "tuned", "hello there")
    path = "/v1/threads/tuned"
    assert client.patch(path, json={"settings": {"window.idle_s": 600}}).json()["settings"] == {"window.idle_s": 600}
    wrong = client.patch(path, json={"settings": {"window.idle": 600}})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "config_invalid")


def test_status_metrics_and_probes(client: httpx2.Client) -> None:
    status = client.get("/v1/status").json()
    assert status["messages"] > 0
    assert client.get("/v1/usage").json()["items"] == []
    assert f"everkept_refused_finishes_total {float(status['refused_finishes'])}" in client.get("/metrics").text
    assert client.get("/healthz").json() == {"alive": True}
    assert client.get("/readyz").json() == {"ready": True, "reasons": {}}
    assert isinstance(client.get("/v1/jobs?state=dead").json()["items"], list)


def test_strangers_are_kept_out(client: httpx2.Client) -> None:
    assert client.get("/healthz", headers={"Host": "evil.com"}).status_code == 403
    assert client.get("/v1/status", headers={"Origin": "http://evil.com"}).status_code == 403
    assert client.get("/v1/status", headers={"Authorization": "Bearer wrong"}).status_code == 401


@pytest.mark.parametrize(
    "query", ['"', "AND", "NEAR(", "a-b/c'd", "*", "🦊", "x" * 20_000, "col:on", "\x00", "日本語", "(", "^"]
)  # fmt: skip
def test_any_query_is_answered_or_refused_by_name(client: httpx2.Client, query: str) -> None:
    response = client.post("/v1/recall", json={"query": query})
    assert response.status_code in (200, 422)
    if response.status_code == 422:
        assert response.json()["error"]["details"]["field"] == "query"


def test_what_was_accepted_outlives_kill_9(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, url):
        response = httpx2.post(f"{url}/v1/threads/t/messages", json={"content": "kept", "subject": "ana"})
        process.kill()
        process.wait(WAIT_S)
    assert response.status_code == 201
    with serving(tmp_path) as (_, url):
        assert [each["content"] for each in httpx2.get(f"{url}/v1/threads/t/messages").json()["items"]] == ["kept"]


def test_sixteen_clients_at_once(client: httpx2.Client) -> None:
    failures: list[str] = []

    def work(number: int) -> None:
        for i in range(10):  # a connection each: the client opens as many as are in use at once
            body = {"content": f"{number} {i}", "subject": "crowd"}
            response = client.post(
                "/v1/threads/crowd/messages", json=body, headers={"Idempotency-Key": f"{number}-{i}"}
            )
            if response.status_code != 201:
                failures.append(response.text)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert client.get("/v1/threads/crowd").json()["messages"] == 160
