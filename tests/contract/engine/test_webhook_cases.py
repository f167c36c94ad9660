"""Webhooks as an operator asks for them: by id or by name, with what was parked."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import structlog
from tests.contract.engine.test_following import following
from tests.factories import World

from everkept.api import delivery_views as d
from everkept.api.webhooks import Webhooks
from everkept.errors import InvalidInput, NotFound

ADDRESS = "https://93.184.216.34/hook"


def webhooks(world: World) -> Webhooks:
    return Webhooks(following(world)._parts, world.project)


def added(world: World, name: str) -> d.WebhookSecret:
    return world.run(webhooks(world).add_webhook(name, ADDRESS))


def test_a_webhook_is_asked_for_by_its_id_or_its_name(world: World) -> None:
    made, cases = added(world, "my/crm 1"), webhooks(world)
    ask: list[Callable[[str], Coroutine[Any, Any, Any]]] = [
        cases.get_webhook, cases.pause_webhook, cases.resume_webhook, cases.rotate_webhook, cases.list_parked,
        cases.retry_parked, cases.drop_parked, lambda which: cases.replay_webhook(which, 0),
        lambda which: cases.change_webhook(which, kinds=["fact"]),
    ]  # fmt: skip
    for each in ask:
        for which in (made.id, "my/crm 1"):
            answer = world.run(each(which))
            assert not isinstance(answer, d.Webhook) or answer.id == made.id
    world.run(cases.remove_webhook("my/crm 1"))
    for which, said in ((made.id, made.id), ("my/crm 1", "'my/crm 1'")):
        with pytest.raises(NotFound, match=f"there is no webhook {said} in this project"):
            world.run(cases.get_webhook(which))


def test_no_webhooks_name_looks_like_the_id_of_another(world: World) -> None:
    with pytest.raises(InvalidInput, match="does not look like an id"):
        added(world, "whk_7")
    assert added(world, "whk_x").name == "whk_x"


def test_a_name_is_looked_for_in_the_project_alone(world: World, make_world: Callable[..., World]) -> None:
    added(world, "crm")
    other = make_world(project="other")
    with pytest.raises(NotFound):
        other.run(webhooks(other).get_webhook("crm"))


def test_a_change_that_is_not_parked_can_be_neither_dropped_nor_sent_again(world: World) -> None:
    made, cases = added(world, "crm"), webhooks(world)
    for ask in (cases.drop_parked, cases.retry_parked):
        with pytest.raises(NotFound, match="change 7 is not parked for this webhook"):
            world.run(ask(made.id, seq=7))
        assert world.run(ask(made.id)) == 0, "all of none"


def test_the_log_tells_of_a_pause_and_of_its_end(world: World) -> None:
    made, cases = added(world, "crm"), webhooks(world)
    with structlog.testing.capture_logs() as logs:
        world.run(cases.pause_webhook(made.id, reason="they mend it"))
        world.run(cases.resume_webhook(made.id))
    assert [(each["event"], each["webhook"], each["why"]) for each in logs] == [
        ("a webhook is paused", "crm", "they mend it"), ("a webhook goes on", "crm", None)
    ]  # fmt: skip
