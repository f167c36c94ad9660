"""`POST /v1/context`: who asks is passed on as it is, and the text comes back in the shape that was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.stubs.door_client import DoorClient, error_of

from everkept.api.context_ask import ContextAsk
from everkept.capture.identity import Checkout

PLACE = {"cwd": "/code/app/src", "top": "/code/app", "remote": "git@github.com:Acme/App.git", "branch": "main"}
ASK = {"agent": "claude-code", "session": "s-1", "checkout": PLACE}


@pytest.fixture
def door() -> DoorClient:
    return DoorClient(tokens={"theirs": "second"})


def test_who_asks_is_passed_on_and_the_answer_says_whose_memory_it_is(door: DoorClient) -> None:
    given = door("POST", "/v1/context", json={**ASK, "source": "clear"}).json()
    assert given == {
        "text": "what claude-code needs", "tokens": 5, "offer": None, "because": "asked",
        "scope": {"project": "default", "found_by": "remote", "value": "github.com/acme/app"},
    }  # fmt: skip
    ((project, confined, contexts),) = door.application.asked_contexts
    assert (project, confined) == (None, False)
    place = Checkout(cwd="/code/app/src", top="/code/app", remote="github.com/acme/app", branch="main")
    assert contexts.asks == [ContextAsk(agent="claude-code", session="s-1", checkout=place, source="clear")]


def test_a_prompt_that_is_empty_is_still_a_prompt(door: DoorClient) -> None:
    door("POST", "/v1/context", json={**ASK, "prompt": ""})
    assert door.application.asked_contexts[0][2].asks[0].prompt == ""


@pytest.mark.parametrize(
    ("agent", "event", "shaped"),
    [
        ("claude-code", "SessionStart", {"hookSpecificOutput": {"hookEventName": "SessionStart",
                                                                "additionalContext": "what claude-code needs"}}),
        ("cursor", "sessionStart", {"additional_context": "what cursor needs"}),
    ],
)  # fmt: skip
def test_the_text_comes_in_the_agents_own_shape(door: DoorClient, agent: str, event: str, shaped: Any) -> None:
    body = {**ASK, "agent": agent, "event": event, "shape": "agent"}
    assert json.loads(door("POST", "/v1/context", json=body).json()["text"]) == shaped


def test_a_shape_without_the_event_it_is_for_is_refused(door: DoorClient) -> None:
    response = door("POST", "/v1/context", json={**ASK, "shape": "agent"})
    assert response.status_code == 422
    assert "needs 'event'" in error_of(response)["message"]


def test_a_folder_that_nobody_knows_is_not_an_empty_answer(door: DoorClient) -> None:
    response = door("POST", "/v1/context", json={**ASK, "checkout": {"cwd": "/elsewhere"}})
    assert (response.status_code, error_of(response)["details"]) == (404, {"looked_for": {"path": "/elsewhere"}})


def test_a_projects_key_asks_of_its_own_project_only_and_a_named_one_must_exist(door: DoorClient) -> None:
    key = {"Authorization": "Bearer theirs"}
    assert door("POST", "/v1/context", json=ASK, headers=key).status_code == 200
    assert door("POST", "/v1/context?project=default", json=ASK, headers=key).status_code == 403
    assert door("POST", "/v1/context?project=second", json=ASK).status_code == 200
    assert door("POST", "/v1/context?project=nowhere", json=ASK).status_code == 404
    assert [asked[:2] for asked in door.application.asked_contexts] == [("second", True), ("second", False)]
