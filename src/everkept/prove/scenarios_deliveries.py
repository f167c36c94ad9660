"""Scenarios of deliveries: consumers that are held and moved, and webhooks that are sent, fail, park and are erased."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everkept.deliver.post import Answer
from everkept.deliver.webhooks import REJECTIONS_MAX, WebhookSender
from everkept.domain.changes import NATS_CONSUMER, webhook_consumer
from everkept.domain.signatures import ID, secret_of
from everkept.prove.scenario import Scenario
from everkept.prove.scenarios_agents import do
from everkept.prove.stage import DAY_S, Stage
from everkept.store.changes import acknowledge
from everkept.store.consumers import hold_consumer, remove_consumer, replay_consumer
from everkept.store.projects import DEFAULT_PROJECT
from everkept.store.relays import next_changes, settle_relay, take_relay
from everkept.store.webhooks import (
    NewWebhook,
    add_webhook,
    change_webhook,
    drop_parked,
    pause_webhook,
    remove_webhook,
    replay_webhook,
    resume_webhook,
    retry_parked,
    rotate_secret,
)

HOOK: Final = "crm"
URL: Final = "https://crm.example/hook"
SECRET: Final = secret_of(bytes(range(32)))
_STATE: Final = "select state from webhooks"
_PARKED: Final = "select count(*) from parked_changes"
_PASSED_AND_PARKED: Final = """
select min((select cursor from consumers where name = 'webhook:crm'), 1) || ' ' || count(*) from parked_changes"""
"""Of the first change: it is passed by in the commit that parks it."""
_OK: Final = Answer(status=200, error=None)
_REJECTED: Final = Answer(status=422, error="it answered 422")
_DOWN: Final = Answer(status=None, error="it cannot be reached: connection refused")


class _Receiver:
    """Writes down what reached it before it answers: the cursor is never beyond that."""

    def __init__(self, stage: Stage, *answers: Answer) -> None:
        self._stage = stage
        self._answers = list(answers)

    async def __call__(self, _url: str, headers: Mapping[str, str], _body: bytes) -> Answer:
        seq = int(headers[ID].rpartition("_")[2])
        consumer = webhook_consumer(HOOK)
        self._stage.record.asked("ack", project=DEFAULT_PROJECT, consumer=consumer, upto=seq)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def _send(s: Stage, *answers: Answer, tries: int = 1) -> None:
    """By a new process each time, as soon as the wait is over."""
    id_ = int(s.value("select min(id) from webhooks"))
    receiver = _Receiver(s, *answers)
    for nth in range(tries):
        due_us = int(s.value("select coalesce(next_try_at, 0) from webhooks where id = ?", id_))
        s.clock.advance(max(0.0, (due_us - s.clock.now_us()) / 1e6) + 0.001)
        sender = WebhookSender(s.store, receiver, s.settings.webhooks, s.clock, owner=f"process {nth}")
        s.run(sender.work(s.project_id(), id_))


def _hooked(s: Stage) -> None:
    """Three changes, none of them sent."""
    for n in range(3):
        s.add("chat", f"I have {n} cats.", key=f"cats-{n}")
    s.write(add_webhook, s.project_id(), NewWebhook(name=HOOK, url=URL, secret=SECRET, after=0))


def _sent(s: Stage) -> None:
    """One try fails, then all of it goes; afterwards the cursor is where the receiver's answers left it."""
    s.write(change_webhook, s.project_id(), 1, URL, ["messages"], None, "hold")
    _send(s, _DOWN, _OK, tries=2)


def _parked(s: Stage) -> None:
    """The first is rejected until it is parked; then it is dropped, and what comes next is taken back by a retry."""
    _send(s, _REJECTED, tries=REJECTIONS_MAX - 1)
    do(s, "park", lambda: _send(s, _REJECTED, _OK), sql=_PASSED_AND_PARKED, after="1 1")
    project = s.project_id()
    s.write(retry_parked, project, 1, None)
    _send(s, _REJECTED)
    s.write(retry_parked, project, 1, None)
    do(s, "take back", lambda: _send(s, _OK), sql=_PASSED_AND_PARKED, after="1 0")


def _one_parked(s: Stage) -> None:
    _hooked(s)
    _send(s, *[_REJECTED] * REJECTIONS_MAX, _OK, tries=REJECTIONS_MAX)


def _by_hand(s: Stage) -> None:
    project = s.project_id()
    do(s, "pause", lambda: s.write(pause_webhook, project, 1, "a release"), sql=_STATE, after="paused")
    do(s, "resume", lambda: s.write(resume_webhook, project, 1), sql=_STATE, after="active")
    new, old = secret_of(b"\x07" * 32), "select old_secret is not null from webhooks"
    do(s, "rotate", lambda: s.write(rotate_secret, project, 1, new, DAY_S), sql=old, after=1)
    do(s, "drop", lambda: s.write(drop_parked, project, 1, None), sql=_PARKED, after=0)


def _remove(s: Stage) -> None:
    gone = "select count(*) from webhooks"
    do(s, "remove", lambda: s.write(remove_webhook, s.project_id(), 1), sql=gone, after=0)


def _replayed(s: Stage) -> None:
    cursor = "select cursor from consumers where name = 'webhook:crm'"
    do(s, "replay", lambda: s.write(replay_webhook, s.project_id(), 1, 1), sql=cursor, after=1)


def _dead(s: Stage) -> None:
    """Nothing succeeds for days."""
    _send(s, _DOWN)
    s.clock.advance(4 * DAY_S)
    _send(s, _DOWN)


def _held(s: Stage) -> None:
    """Taken, kept, acknowledged under the fence, and moved back."""
    project = s.project_id()
    held = s.write(hold_consumer, project, "mirror", "here", 60.0)
    s.write(hold_consumer, project, "mirror", "here", 60.0, held.fence)
    s.write(acknowledge, project, "mirror", 2, held.fence)
    at = "select cursor from consumers where name = 'mirror'"
    do(s, "replay", lambda: s.write(replay_consumer, project, "mirror", 1), sql=at, after=1)


def _followed(s: Stage) -> None:
    _hooked(s)
    s.write(acknowledge, s.project_id(), "mirror", 1)


def _forget(s: Stage) -> None:
    gone = "select count(*) from consumers where name = 'mirror'"
    do(s, "remove", lambda: s.write(remove_consumer, s.project_id(), "mirror"), sql=gone, after=0)


def _relayed(s: Stage) -> None:
    """Leased, given to the server, which has it before the cursor moves; then the next one's turn."""
    project = s.project_id()
    for owner in ("one", "another"):
        fence = s.write(take_relay, project, NATS_CONSUMER, owner, 30.0)
        changes = s.read(next_changes, project, NATS_CONSUMER)
        upto = int(changes[-1][0]) if changes else None
        if upto is not None:
            s.record.asked("ack", project=DEFAULT_PROJECT, consumer=NATS_CONSUMER, upto=upto)
        s.write(settle_relay, project, NATS_CONSUMER, owner, fence, upto)


def _other_project(s: Stage) -> None:
    s.run(s.service().create_project("work"))
    s.add("chat", "I live in Lisbon.", key="chat", project="work")
    project = s.project_id("work")
    id_ = s.write(add_webhook, project, NewWebhook(name=HOOK, url=URL, secret=SECRET))
    s.write(lambda conn: conn.raw.execute(
        "insert into parked_changes(webhook_id, seq, reason, tries, at) values(?, 1, 'it answered 422', 5, 0)", (id_,)
    ))  # fmt: skip


def _erase_project(s: Stage) -> None:
    s.erase("project", project="work")
    s.drain()


def _add(s: Stage) -> None:
    new = NewWebhook(name=HOOK, url=URL, secret=SECRET)
    do(s, "add", lambda: s.write(add_webhook, s.project_id(), new), sql="select count(*) from webhooks", after=1)


DELIVERY_SCENARIOS: Final = (
    Scenario(name="consumer-held", prepare=_hooked, act=_held),
    Scenario(name="consumer-removed", prepare=_followed, act=_forget),
    Scenario(name="changes-relayed", prepare=_hooked, act=_relayed),
    Scenario(name="webhook-added", act=_add),
    Scenario(name="webhook-sent", prepare=_hooked, act=_sent),
    Scenario(name="webhook-parked", prepare=_hooked, act=_parked),
    Scenario(name="webhook-dead", prepare=_hooked, act=_dead),
    Scenario(name="webhook-by-hand", prepare=_one_parked, act=_by_hand),
    Scenario(name="webhook-removed", prepare=_one_parked, act=_remove),
    Scenario(name="webhook-replayed", prepare=_one_parked, act=_replayed),
    Scenario(name="erase-project-with-webhook", prepare=_other_project, act=_erase_project),
)
