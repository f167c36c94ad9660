from __future__ import annotations

import json
from typing import Any

import pytest
import structlog
from tests.stubs.door_client import DoorClient, error_of

ONE = {"role": "user", "content": "I live in Lisbon", "subject": "ana"}
ROUTES: list[tuple[str, str, str, Any, int]] = [
    ("append_messages", "POST", "/v1/threads/chat-2/messages", ONE, 201),
    ("list_messages", "GET", "/v1/threads/chat-1/messages?after_seq=0&limit=5", None, 200),
    ("create_thread", "POST", "/v1/threads", {"id": "new", "subject": "ana"}, 201),
    ("list_threads", "GET", "/v1/threads?subject=ana", None, 200),
    ("get_thread", "GET", "/v1/threads/chat-1", None, 200),
    ("set_thread_settings", "PATCH", "/v1/threads/chat-1", {"settings": {"memory.enabled": False}}, 200),
    ("erase_thread", "DELETE", "/v1/threads/chat-1?dry_run=true", None, 200),
    ("end_thread", "POST", "/v1/threads/chat-1/end", None, 200),
    ("get_context", "GET", "/v1/threads/chat-1/context?question=where&tokens=50", None, 200),
    ("ask_context", "POST", "/v1/threads/chat-1/context", {"question": "where"}, 200),
    ("recall", "POST", "/v1/recall", {"query": "lisbon"}, 200),
    ("recall_by_query", "GET", "/v1/recall?query=lisbon&explain=true&kinds=turn&kinds=fact", None, 200),
    ("remember", "POST", "/v1/remember", {"text": "Ana lives in Lisbon", "subject": "ana"}, 201),
    ("list_facts", "GET", "/v1/facts?subject=ana", None, 200),
    ("get_fact", "GET", "/v1/facts/fct_1", None, 200),
    ("forget_fact", "POST", "/v1/facts/fct_1/forget", None, 200),
    ("pin_fact", "PUT", "/v1/facts/fct_1/pin", {"pinned": True, "by": "ana"}, 200),
    ("correct_fact", "POST", "/v1/facts/fct_1/correct", {"object": "Porto", "by": "ana"}, 201),
    ("list_entities", "GET", "/v1/entities", None, 200),
    ("merge_entities", "POST", "/v1/entities/ent_2/merge", {"into": "ent_1", "by": "ana"}, 200),
    ("split_entity", "POST", "/v1/entities/ent_2/split", None, 200),
    ("list_subjects", "GET", "/v1/subjects", None, 200),
    ("list_episodes", "GET", "/v1/episodes?thread=chat-1", None, 200),
    ("get_episode", "GET", "/v1/episodes/epi_1", None, 200),
    ("retry_episode", "POST", "/v1/episodes/epi_1/retry?stage=facts", None, 200),
    ("get_receipt", "GET", "/v1/receipts/evt_1_1", None, 200),
    ("list_receipts", "GET", "/v1/threads/chat-1/receipts?after_seq=0&limit=5", None, 200),
    ("dead_causes", "GET", "/v1/jobs/causes", None, 200),
    ("pause_jobs", "POST", "/v1/jobs/pause", {"kind": "extract_facts", "why": "prices"}, 200),
    ("list_pauses", "GET", "/v1/jobs/pauses", None, 200),
    ("resume_jobs", "POST", "/v1/jobs/resume", {"kind": "extract_facts"}, 204),
    ("erase_event", "DELETE", "/v1/events/evt_1_1?dry_run=true", None, 200),
    ("why", "GET", "/v1/facts/fct_1/why", None, 200),
    ("resolve_scope", "POST", "/v1/scope", {"cwd": "/code/app", "remote": "git@github.com:Acme/App.git"}, 200),
    ("trust_marker", "POST", "/v1/scope/trust", {"cwd": "/code/app", "marker": "mine"}, 200),
    ("take_events", "POST", "/v1/events", {"records": [{"name": "1-1-0.json", "record": {"format": 1}}]}, 200),
    (
        "give_context",
        "POST",
        "/v1/context",
        {"agent": "codex", "session": "s", "checkout": {"cwd": "/x", "remote": "github.com/acme/app"}},
        200,
    ),
    ("list_sessions", "GET", "/v1/sessions?agent=claude-code", None, 200),
    ("get_session", "GET", "/v1/sessions/ses_1", None, 200),
    ("list_session_events", "GET", "/v1/sessions/ses_1/events?after_seq=1", None, 200),
    ("end_session", "POST", "/v1/sessions/ses_1/end", None, 200),
    ("erase_session", "DELETE", "/v1/sessions/ses_1?dry_run=true", None, 200),
    ("timeline", "GET", "/v1/timeline?kinds=session&kinds=page&since=2026-01-01T00:00:00Z", None, 200),
    ("list_pages", "GET", "/v1/pages?kind=decision&superseded=true", None, 200),
    ("write_page", "POST", "/v1/pages", {"title": "Tokens", "body": "In the keychain.", "base": 1}, 201),
    ("get_page", "GET", "/v1/pages/tokens?version=1", None, 200),
    ("page_history", "GET", "/v1/pages/tokens/history?limit=5&before=9", None, 200),
    ("pin_page", "PUT", "/v1/pages/tokens/pin", {"pinned": True}, 200),
    ("delete_page", "DELETE", "/v1/pages/tokens", None, 200),
    ("list_handoffs", "GET", "/v1/handoffs?state=open", None, 200),
    ("choose_handoff", "GET", "/v1/handoffs/choice?worktree=/code/app&branch=main", None, 200),
    ("get_handoff", "GET", "/v1/handoffs/hnd_1", None, 200),
    ("acknowledge_handoff", "POST", "/v1/handoffs/hnd_1/acknowledge", {"by": "codex/1"}, 200),
    ("create_workstream", "POST", "/v1/workstreams", {"name": "login", "place": "/code/app"}, 201),
    ("list_workstreams", "GET", "/v1/workstreams?limit=5", None, 200),
    ("get_workstream", "GET", "/v1/workstreams/login", None, 200),
    ("workstream_events", "GET", "/v1/workstreams/wst_1/events?query=build", None, 200),
    ("list_linked_sessions", "GET", "/v1/workstreams/login/sessions?launch=lch_1", None, 200),
    ("list_launches", "GET", "/v1/workstreams/login/launches?limit=5", None, 200),
    ("rename_workstream", "PUT", "/v1/workstreams/wst_1/name", {"name": "sign-in"}, 200),
    ("select_workstream", "POST", "/v1/workstreams/login/select", {"place": "/code/app"}, 200),
    ("prepare_launch", "POST", "/v1/launches", {"owner": "ana", "checkout": {"cwd": "/code"}, "agent": "codex"}, 201),
    ("get_launch", "GET", "/v1/launches/lch_1", None, 200),
    ("heartbeat_launch", "POST", "/v1/launches/lch_1/heartbeat", {"fence": 1}, 200),
    (
        "launch_events",
        "POST",
        "/v1/launches/lch_1/events",
        {
            "first": 1,
            "events": [{"kind": "prompt", "agent": "codex", "session": "c1", "key": "codex:1", "text": "Go on"}],
        },
        200,
    ),
    ("finish_launch", "POST", "/v1/launches/lch_1/finish", {"fence": 1, "exit_code": 0}, 200),
    ("cancel_launch", "POST", "/v1/launches/lch_1/cancel", {"fence": 1}, 200),
    ("accept_launch", "POST", "/v1/launches/lch_1/accept", {"native_session": "c1"}, 200),
    ("accept_offer", "POST", "/v1/offers/off_1/accept", None, 200),
    ("list_reviews", "GET", "/v1/reviews?state=reviewed&session=ses_1", None, 200),
    ("run_reviews", "POST", "/v1/reviews/run", {"since": "2026-01-01T00:00:00Z"}, 200),
    ("claim_review", "POST", "/v1/reviews/claim", {"session": "ses_1"}, 200),
    ("names_in_pages", "GET", "/v1/reviews/names", None, 200),
    ("note_looks", "POST", "/v1/reviews/looks", {"looks": [{"slug": "use-uv", "version": 1, "gone": []}]}, 200),
    ("list_proposals", "GET", "/v1/proposals?state=all&kind=rule", None, 200),
    ("proposal_report", "GET", "/v1/proposals/report", None, 200),
    ("get_proposal", "GET", "/v1/proposals/prp_1", None, 200),
    ("approve_proposal", "POST", "/v1/proposals/prp_1/approve", {"by": "ana", "rebase": True}, 200),
    ("reject_proposal", "POST", "/v1/proposals/prp_1/reject", {"reason": "we use pip"}, 200),
    ("roll_back_proposal", "POST", "/v1/proposals/prp_1/rollback", {}, 200),
    ("export_subject", "GET", "/v1/subjects/ana/export", None, 200),
    ("reprocess_subject", "POST", "/v1/subjects/ana/reprocess", {"dry_run": True}, 200),
    ("reprocess", "POST", "/v1/reprocess", None, 200),
    ("erase_subject", "DELETE", "/v1/subjects/ana?dry_run=true", None, 200),
    ("list_projects", "GET", "/v1/projects", None, 200),
    ("create_project", "POST", "/v1/projects", {"name": "second"}, 201),
    ("update_project", "PATCH", "/v1/projects/default", {"settings": {}}, 200),
    ("merge_project", "POST", "/v1/projects/second/merge", {"into": "default", "dry_run": True}, 202),
    ("move_project", "POST", "/v1/projects/default/move", {"workspace": "research"}, 200),
    ("ensure_workspace", "PUT", "/v1/workspaces/research", None, 200),
    ("ensure_project", "PUT", "/v1/workspaces/research/projects/bot", {"settings": {"window.idle_s": 9}}, 200),
    ("find_merge", "GET", "/v1/projects/default/merge", None, 200),
    ("erase_project", "DELETE", "/v1/projects/default?dry_run=true", None, 200),
    ("list_keys", "GET", "/v1/keys", None, 200),
    ("create_key", "POST", "/v1/keys", {"name": "laptop"}, 201),
    ("revoke_key", "DELETE", "/v1/keys/key_1", None, 204),
    ("list_changes", "GET", "/v1/changes?consumer=crm", None, 200),
    ("ack_changes", "POST", "/v1/changes/ack", {"consumer": "crm", "up_to": 2}, 200),
    ("stream_changes", "GET", "/v1/changes/stream?after=1&kinds=fact", None, 200),
    ("lease_consumer", "POST", "/v1/changes/lease", {"consumer": "crm", "owner": "a", "lease_s": 30}, 200),
    ("replay_changes", "POST", "/v1/changes/replay", {"consumer": "crm", "after": 1}, 200),
    ("list_consumers", "GET", "/v1/consumers", None, 200),
    ("remove_consumer", "DELETE", "/v1/consumers/mirror", None, 204),
    ("add_webhook", "POST", "/v1/webhooks", {"name": "new", "url": "https://x.example", "kinds": ["fact"]}, 201),
    ("list_webhooks", "GET", "/v1/webhooks", None, 200),
    ("get_webhook", "GET", "/v1/webhooks/whk_1", None, 200),
    ("change_webhook", "PATCH", "/v1/webhooks/whk_1", {"on_reject": "hold"}, 200),
    ("remove_webhook", "DELETE", "/v1/webhooks/whk_1", None, 204),
    ("test_webhook", "POST", "/v1/webhooks/whk_1/test", None, 200),
    ("pause_webhook", "POST", "/v1/webhooks/whk_1/pause", {"reason": "a release"}, 200),
    ("resume_webhook", "POST", "/v1/webhooks/whk_1/resume", None, 200),
    ("replay_webhook", "POST", "/v1/webhooks/whk_1/replay", {"after": 1}, 200),
    ("rotate_webhook", "POST", "/v1/webhooks/whk_1/rotate", None, 200),
    ("list_parked", "GET", "/v1/webhooks/whk_1/parked?limit=5", None, 200),
    ("retry_parked", "POST", "/v1/webhooks/whk_1/parked/retry", {"seq": 2}, 200),
    ("drop_parked", "POST", "/v1/webhooks/whk_1/parked/drop", None, 200),
    ("list_jobs", "GET", "/v1/jobs?state=dead&subject=ana", None, 200),
    ("retry_jobs", "POST", "/v1/jobs/retry-all", None, 200),
    ("get_job", "GET", "/v1/jobs/job_1", None, 200),
    ("retry_job", "POST", "/v1/jobs/job_1/retry", None, 200),
    ("discard_job", "POST", "/v1/jobs/job_1/discard", {"reason": "no use"}, 200),
    ("release_job", "POST", "/v1/jobs/job_1/release", None, 200),
    ("get_status", "GET", "/v1/status", None, 200),
    ("get_doctor", "GET", "/v1/doctor?full=true&user_id=anna", None, 200),
    ("get_usage", "GET", "/v1/usage?days=7", None, 200),
    ("get_usage_by_project", "GET", "/v1/usage/projects?days=7", None, 200),
    ("settle", "POST", "/v1/settle", {"timeout_s": 1}, 200),
    ("healthz", "GET", "/healthz", None, 200),
    ("readyz", "GET", "/readyz", None, 200),
    ("metrics", "GET", "/metrics", None, 200),
]


@pytest.fixture
def door() -> DoorClient:
    """A memory with one thread, one episode, one fact and one key."""
    door = DoorClient(tokens={"token-1": "default"})
    door.app.state.stopping.set()  # no stream goes on beyond its first page
    door.service.cursors["mirror"] = 0
    door("POST", "/v1/threads/chat-1/messages", json=ONE)
    door("POST", "/v1/threads/chat-1/end")
    door("POST", "/v1/remember", json={"text": "Ana lives in Lisbon", "subject": "ana"})
    return door


@pytest.mark.parametrize(("name", "method", "path", "body", "status"), ROUTES, ids=[route[0] for route in ROUTES])
def test_route_answers(door: DoorClient, name: str, method: str, path: str, body: Any, status: int) -> None:
    response = door(method, path, json=body)
    assert (status, True) == (response.status_code, "x-request-id" in response.headers), response.text


@pytest.mark.parametrize(("name", "method", "path", "body", "status"), ROUTES, ids=[route[0] for route in ROUTES])
def test_route_refuses_an_unknown_parameter(
    door: DoorClient, name: str, method: str, path: str, body: Any, status: int
) -> None:
    response = door(method, f"{path}{'&' if '?' in path else '?'}bogus=1", json=body)
    assert response.status_code == 422
    assert error_of(response)["details"]["field"] == "bogus"
    assert isinstance(error_of(response)["details"]["known"], list)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [(method, path, body) for _, method, path, body, _ in ROUTES if isinstance(body, dict)],
)
def test_route_refuses_an_unknown_field(door: DoorClient, method: str, path: str, body: dict[str, Any]) -> None:
    response = door(method, path, json={**body, "tenant_id": "x"})
    assert response.status_code == 422
    error = error_of(response)
    assert (error["code"], error["details"]["field"]) == ("unknown_scope", "tenant_id")
    assert set(body) <= set(error["details"]["known"])


def test_every_documented_operation_is_in_the_table(door: DoorClient) -> None:
    document = door("GET", "/openapi.json").json()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert {route[0] for route in ROUTES} == {operation["operationId"] for operation in operations}
    for operation in operations:
        assert {"404", "422", "503"} <= set(operation["responses"])
        assert operation["summary"]


def test_unknown_route_has_the_one_error_shape(door: DoorClient) -> None:
    response = door("GET", "/v1/nothing")
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


def test_unknown_method_names_those_that_exist(door: DoorClient) -> None:
    response = door("PUT", "/v1/recall")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")
    assert error_of(response)["code"] == "invalid_input"


def test_malformed_json_is_told_as_such(door: DoorClient) -> None:
    for path in ("/v1/recall", "/v1/threads/chat-1/messages"):
        response = door("POST", path, content=b'{"query": ', headers={"Content-Type": "application/json"})
        assert response.status_code == 422
        assert "not JSON" in error_of(response)["message"]


def test_a_body_that_is_not_declared_as_json_is_told_as_such(door: DoorClient) -> None:
    response = door("POST", "/v1/recall", content=b'{"query": "x"}')
    assert (response.status_code, error_of(response)["details"]["field"]) == (422, "content-type")


@pytest.mark.parametrize(
    ("path", "field", "limit"),
    [
        ("/v1/recall?query=x&limit=0", "limit", 1),
        ("/v1/recall?query=x&limit=101", "limit", 100),
        ("/v1/recall?query=x&tokens=0", "tokens", 1),
        ("/v1/recall?query=x&tokens=100001", "tokens", 100_000),
        ("/v1/threads?limit=501", "limit", 500),
        ("/v1/changes?after=-1", "after", 0),
        ("/v1/usage?days=99999999999999999999", "days", 3650),
    ],
)
def test_a_value_out_of_range_names_field_and_limit(door: DoorClient, path: str, field: str, limit: int) -> None:
    response = door("GET", path)
    details = error_of(response)["details"]
    assert (422, field, limit) == (response.status_code, details["field"], details["limit"])


def test_a_time_without_a_zone_is_refused(door: DoorClient) -> None:
    response = door("GET", "/v1/facts?as_of=2026-01-01T00:00:00")
    assert (response.status_code, error_of(response)["details"]["field"]) == (422, "as_of")


def test_an_id_of_another_kind_gives_404_with_a_hint(door: DoorClient) -> None:
    for path in ("/v1/facts/epi_1", "/v1/facts/epi_1/why"):
        response = door("GET", path)
        assert response.status_code == 404
        assert "looks like the id of an episode" in error_of(response)["message"]


def test_an_unexpected_error_leaks_nothing_and_names_the_request(door: DoorClient) -> None:
    door.service.fail_next.append(RuntimeError("password=hunter2"))
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
        response = door("GET", "/v1/status", headers={"X-Request-Id": "mine-7"})
    error = error_of(response)
    assert (response.status_code, error["code"], error["details"]["request_id"]) == (500, "internal", "mine-7")
    assert "hunter2" not in response.text
    assert [line["request_id"] for line in logged if line["event"] == "request failed"] == ["mine-7"]


def test_request_id_is_echoed_or_made(door: DoorClient) -> None:
    assert door("GET", "/healthz", headers={"X-Request-Id": "abc"}).headers["x-request-id"] == "abc"
    assert door("GET", "/healthz", headers={"X-Request-Id": "a b"}).headers["x-request-id"].startswith("req_")


def test_a_body_over_the_limit_is_413(door: DoorClient) -> None:
    small = DoorClient(EVERKEPT_SERVER__BODY_MAX_BYTES="1024")

    async def chunks() -> Any:
        yield b'{"content": "'
        yield b"x" * 2000

    for content in (b"x" * 2000, chunks()):
        for path in ("/v1/threads/t/messages", "/v1/recall"):
            response = small("POST", path, content=content, headers={"Content-Type": "application/json"})
            assert (response.status_code, error_of(response)["code"]) == (413, "invalid_input")
            if not isinstance(content, bytes):
                break


def test_an_id_may_hold_a_slash(door: DoorClient) -> None:
    assert door("POST", "/v1/threads/a%2Fb%20c/messages", json=ONE).status_code == 201
    assert door("GET", "/v1/threads/a%2Fb%20c").json()["id"] == "a/b c"
    assert door("GET", "/v1/threads/a%252Fb").status_code == 404
    assert door("GET", "/v1/threads/a%00b").status_code == 422
    assert door("GET", "/v1/threads/a%FFb").status_code == 422


def test_readyz_gives_its_reasons(door: DoorClient) -> None:
    door.application.reasons = {"database": "the disk is gone"}
    response = door("GET", "/readyz")
    assert (response.status_code, response.json()["reasons"]) == (503, {"database": "the disk is gone"})


def test_healthz_touches_nothing(door: DoorClient) -> None:
    before = len(door.service.calls)
    assert door("GET", "/healthz").json() == {"alive": True}
    assert len(door.service.calls) == before


def test_project_by_header_query_or_not_at_all(door: DoorClient) -> None:
    door("POST", "/v1/projects", json={"name": "second"})
    door("POST", "/v1/threads", json={"id": "there", "subject": "ana"}, headers={"X-Everkept-Project": "second"})
    assert door("GET", "/v1/threads/there").status_code == 404
    assert door("GET", "/v1/threads/there?project=second").status_code == 200
    assert door("POST", "/v1/threads/there/messages?project=second", json={"content": "x"}).status_code == 201
    unknown = door("GET", "/v1/status?project=third")
    assert (unknown.status_code, "second" in error_of(unknown)["message"]) == (404, True)
    both = door("GET", "/v1/status?project=default", headers={"X-Everkept-Project": "second"})
    assert (both.status_code, error_of(both)["code"]) == (422, "unknown_scope")


def test_an_unknown_folder_is_not_an_empty_answer(door: DoorClient) -> None:
    response = door("POST", "/v1/scope", json={"cwd": "/elsewhere"})
    assert (response.status_code, error_of(response)["details"]) == (404, {"looked_for": {"path": "/elsewhere"}})


def test_a_remote_may_be_written_as_git_writes_it_or_as_we_do(door: DoorClient) -> None:
    for remote in (
        "https://user:secret@github.com/acme/app",
        "ssh://git@github.com/Acme/App.git",
        "github.com/acme/app",
    ):
        found = door("POST", "/v1/scope", json={"cwd": "/code/app", "remote": remote}).json()
        assert found == {"project": "default", "found_by": "remote", "value": "github.com/acme/app"}


def test_a_projects_key_is_told_of_its_own_project_wherever_it_is_and_trusts_no_marker() -> None:
    door = DoorClient(tokens={"theirs": "second"})
    answer = door(
        "POST", "/v1/scope", json={"cwd": "/x", "remote": "github.com/acme/app"},
        headers={"Authorization": "Bearer theirs"},
    )  # fmt: skip
    assert answer.json() == {"project": "second", "found_by": "named", "value": "second"}
    body = {"cwd": "/x", "marker": "default"}
    assert door("POST", "/v1/scope/trust", json=body, headers={"Authorization": "Bearer theirs"}).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("GET", "/v1/pages?kind=poem", None, "kind"),
        ("GET", "/v1/handoffs?state=lost", None, "state"),
        ("GET", "/v1/proposals?state=lost", None, "state"),
        ("POST", "/v1/proposals/prp_1/approve", {"by": ""}, "by"),
        ("POST", "/v1/reviews/run", {"since": "yesterday"}, "since"),
        ("GET", "/v1/timeline?kinds=dream", None, "kinds[0]"),
        ("GET", "/v1/sessions?limit=0", None, "limit"),
        ("POST", "/v1/pages", {"title": "x" * 201, "body": "y"}, "title"),
        ("POST", "/v1/handoffs/hnd_1/acknowledge", {"by": ""}, "by"),
    ],
)
def test_what_agents_left_is_asked_for_in_known_words(
    door: DoorClient, method: str, path: str, body: Any, field: str
) -> None:
    response = door(method, path, json=body)
    assert (response.status_code, error_of(response)["details"]["field"]) == (422, field)


def test_a_page_written_on_an_old_version_is_a_conflict(door: DoorClient) -> None:
    response = door("POST", "/v1/pages", json={"title": "Tokens", "body": "new", "slug": "tokens", "base": 7})
    assert (response.status_code, error_of(response)["code"]) == (409, "conflict")


def test_a_stream_tells_each_change_with_its_number_and_how_far_a_filter_reached(door: DoorClient) -> None:
    sent = door("GET", "/v1/changes/stream", headers={"Last-Event-ID": "2"})
    assert sent.headers["content-type"].startswith("text/event-stream")
    retry, event, end = sent.text.split("\n\n")
    assert (retry, end) == ("retry: 2000", "")
    number, kind, data = event.split("\n")
    assert (number, kind) == ("id: 3", "event: fact.added")
    assert json.loads(data.removeprefix("data: "))["ref"] == "fct_3"
    passed_by = door("GET", "/v1/changes/stream?after=1&kinds=page")
    assert passed_by.text.split("\n\n")[1:] == ["id: 3", ""]


def test_a_stream_that_cannot_begin_is_an_error_and_no_stream(door: DoorClient) -> None:
    for value in ("x", "-1", "1" * 30, "²"):
        refused = door("GET", "/v1/changes/stream", headers={"Last-Event-ID": value.encode()})
        assert (refused.status_code, error_of(refused)["details"]["field"]) == (422, "Last-Event-ID")
    door.service.cursors["old"] = -1
    assert door("GET", "/v1/changes/stream?consumer=old").status_code == 410


def test_a_wait_for_changes_ends_when_the_server_is_told_to_stop(door: DoorClient) -> None:
    page = door("GET", "/v1/changes?after=3&wait=30").json()
    assert (page["changes"], page["next_after"]) == ([], 3)
    assert door("GET", "/v1/changes?wait=31").status_code == 422


def test_an_acknowledgement_under_a_lost_fence_is_a_conflict(door: DoorClient) -> None:
    held = door("POST", "/v1/changes/lease", json={"consumer": "crm", "owner": "a"}).json()
    assert door("POST", "/v1/changes/lease", json={"consumer": "crm", "owner": "b"}).status_code == 409
    late = door("POST", "/v1/changes/ack", json={"consumer": "crm", "up_to": 1, "fence": held["fence"] + 1})
    assert (late.status_code, error_of(late)["code"]) == (409, "lease_lost")


def test_a_webhooks_secret_is_in_the_answers_that_make_one_and_in_no_other(door: DoorClient) -> None:
    made = door("POST", "/v1/webhooks", json={"name": "new", "url": "https://x.example"})
    assert made.json()["secret"].startswith("whsec_")
    assert door("POST", "/v1/webhooks/whk_1/rotate").json()["secret"].startswith("whsec_")
    for path in ("/v1/webhooks", "/v1/webhooks/whk_1"):
        assert "whsec_" not in door("GET", path).text
