from __future__ import annotations

import pytest
from tests.stubs.door_client import DoorClient, error_of

from everkept.doors.http.hosts import HostRules


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7411", "localhost", "LOCALHOST:1", "[::1]:7411", "127.0.0.9", "a.localhost"]
)
def test_loopback_hosts_are_allowed(host: str) -> None:
    HostRules.of("127.0.0.1", ()).check(host, None)


@pytest.mark.parametrize(
    "host",
    [
        "evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "evil.com:7411", "10.0.0.1", "", "localhost:x",
        "a@localhost", "localhost/evil.com", "127.0.0.1#x", "[::1", "localhost:99999",
    ],
)  # fmt: skip
def test_foreign_hosts_are_refused(host: str) -> None:
    door = DoorClient()
    response = door("GET", "/healthz", headers={"Host": host})
    assert (response.status_code, error_of(response)["code"]) == (403, "forbidden")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/status", "/nothing"])
def test_every_route_is_behind_the_host_check(path: str) -> None:
    assert DoorClient()("GET", path, headers={"Host": "evil.com"}).status_code == 403


def test_allowed_hosts_and_addresses_where_others_may_reach_it() -> None:
    rules = HostRules.of("0.0.0.0", ("memory.example.com",))
    assert rules.allows("memory.example.com:443")
    assert rules.allows("192.168.1.5:7411")
    assert not rules.allows("evil.com")


@pytest.mark.parametrize(
    "origin", ["http://evil.com", "null", "http://127.0.0.1:3000", "file://", "http://127.0.0.1:7411@evil.com"]
)
def test_foreign_origins_are_refused(origin: str) -> None:
    response = DoorClient()("POST", "/v1/threads/t/messages", json={"content": "x"}, headers={"Origin": origin})
    assert response.status_code == 403


def test_the_own_origin_is_fine() -> None:
    assert DoorClient()("GET", "/healthz", headers={"Origin": "http://127.0.0.1:7411"}).status_code == 200


def test_loopback_needs_no_key_but_one_that_is_sent_must_be_valid() -> None:
    door = DoorClient(tokens={"good": "default"})
    assert door("GET", "/v1/status").status_code == 200
    assert door("GET", "/v1/status", headers={"Authorization": "Bearer good"}).status_code == 200
    for wrong in ("Bearer bad", "Bearer", "Basic good", "good", "Bearer é".encode()):
        response = door("GET", "/v1/status", headers={"Authorization": wrong})
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        assert error_of(response)["code"] == "unauthorized"


def test_any_other_bind_needs_a_key_but_for_the_probes() -> None:
    door = DoorClient(tokens={"good": "default"}, EVERKEPT_BIND="0.0.0.0:7411", url="http://10.0.0.7:7411")
    for path in ("/v1/status", "/metrics", "/openapi.json", "/v1/threads", "/nothing"):
        assert door("GET", path).status_code == 401
    assert door("POST", "/v1/threads/t/messages", json={"content": "x"}).status_code == 401
    assert door("GET", "/healthz").status_code == 200
    assert door("GET", "/readyz").status_code == 200
    assert door("GET", "/v1/status", headers={"Authorization": "Bearer good"}).status_code == 200


def test_a_key_is_confined_to_its_project() -> None:
    door = DoorClient(tokens={"good": "mine"}, EVERKEPT_BIND="0.0.0.0:7411", url="http://10.0.0.7:7411")
    key = {"Authorization": "Bearer good"}
    door("POST", "/v1/threads", json={"id": "t", "subject": "ana"}, headers=key)
    assert list(door.application.services["mine"].threads) == ["t"]
    assert door("GET", "/v1/status?project=default", headers=key).status_code == 403
    assert door("POST", "/v1/threads/t/messages?project=default", json={"content": "x"}, headers=key).status_code == 403
    assert [each["name"] for each in door("GET", "/v1/projects", headers=key).json()["items"]] == ["mine"]
    assert door("POST", "/v1/projects", json={"name": "x"}, headers=key).status_code == 403
    assert door("DELETE", "/v1/projects/default", headers=key).status_code == 403
    assert door("PATCH", "/v1/projects/default", json={"name": "x"}, headers=key).status_code == 403
    assert door("POST", "/v1/keys", json={"name": "x", "project": "default"}, headers=key).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/keys", None), ("POST", "/v1/keys", {"name": "x"}), ("DELETE", "/v1/keys/key_1", None),
        ("GET", "/metrics", None), ("GET", "/v1/usage/projects", None), ("PATCH", "/v1/projects/mine", {"name": "x"}),
        ("PATCH", "/v1/projects/mine", {"settings": {}}),
    ],
)  # fmt: skip
def test_what_only_the_operator_may_do(method: str, path: str, body: dict[str, str] | None) -> None:
    door = DoorClient(tokens={"good": "mine", "other": "default"})
    assert door(method, path, json=body, headers={"Authorization": "Bearer good"}).status_code == 403
    assert door.application.tokens == {"good": "mine", "other": "default"}


def test_status_is_that_of_the_key_s_project() -> None:
    door = DoorClient(tokens={"good": "mine"})
    door("GET", "/v1/status", headers={"Authorization": "Bearer good"})
    door("GET", "/v1/status")
    assert door.application.services["mine"].calls[-1] == ("status", {"project_only": True})
    assert door.service.calls[-1] == ("status", {"project_only": False})


def test_allowed_hosts_on_loopback_need_a_key() -> None:
    door = DoorClient(tokens={"good": "default"}, EVERKEPT_SERVER__ALLOWED_HOSTS="memory.example.com")
    assert door("GET", "/v1/threads").status_code == 401
    assert door("GET", "/v1/threads", headers={"Authorization": "Bearer good"}).status_code == 200


def test_the_admin_key_opens_every_project() -> None:
    door = DoorClient(
        tokens={"good": "mine"}, EVERKEPT_BIND="0.0.0.0:7411", EVERKEPT_ADMIN_KEY="the-operators-own-key",
        url="http://10.0.0.7:7411",
    )  # fmt: skip
    response = door("GET", "/v1/status?project=mine", headers={"Authorization": "Bearer the-operators-own-key"})
    assert response.status_code == 200


def test_a_browser_gives_its_key_in_a_cookie_also_beside_malformed_ones_of_others() -> None:
    door = DoorClient(tokens={"good": "default"}, EVERKEPT_BIND="0.0.0.0:7411", url="http://10.0.0.7:7411")
    for cookie in ("everkept_key=good", "a/b:[c]=1; everkept_key=good", "=; x; everkept_key=good"):
        assert door("GET", "/v1/status", headers={"Cookie": cookie}).status_code == 200, cookie
    assert door("GET", "/v1/status", headers={"Cookie": "everkept_key=bad"}).status_code == 401
    shown = door("GET", "/", headers={"Cookie": "everkept_key=bad", "Accept": "text/html"})
    assert (shown.status_code, shown.headers["location"]) == (303, "/login?failed=1")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert door("POST", "/login", content=b"key=\xff", headers=form).status_code == 422
    assert door("POST", "/login", content="key=é".encode(), headers=form).headers["location"] == "/login?failed=1"
