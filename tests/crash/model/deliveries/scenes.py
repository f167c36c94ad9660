"""The known hard cases of delivery, played with the machine's own rules: what chance reaches too rarely for a smoke.

The machine checks them as it checks any other run; a scene only says who does what, in which order.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.crash.model.deliveries.machine import Deliveries
from tests.crash.model.deliveries.receiver import BUSY_S, REJECTIONS_MAX


def take(model: Deliveries, owner: str, name: str = "mirror", project: str = "default", *, keep: bool = False) -> None:
    model.take(project=project, name=name, owner=owner, keep=keep)
    model.safe()


def say(model: Deliveries, project: str = "default", *, subject: str = "ana", n: int = 0, size: int = 1) -> None:
    model.say(project=project, subject=subject, n=n, size=size)
    model.safe()


def send(model: Deliveries, mood: str = "well", *, owner: str = "a", calls: int | None = None, pick: int = 0) -> None:
    model.send(owner=owner, calls=calls, pick=pick, mood=mood, times=1)
    model.safe()


def hook(model: Deliveries, name: str = "crm", project: str = "default", *, parks: bool = True) -> None:
    model.add_hook(project=project, name=name, from_start=True, parks=parks)
    model.safe()


def alone(model: Deliveries) -> None:
    """Of the two that the machine begins with, the one of `default` is left."""
    model.handle(pick=1, what="remove")
    model.safe()


def taken_over_between_effect_and_acknowledgement(model: Deliveries) -> None:
    model.read(pick=0, limit=9)
    model.do(pick=0, n=1, dies=False)
    model.clock.advance(61.0)
    take(model, "b")
    model.read(pick=1, limit=1)
    model.acknowledge(pick=0, how="done")
    model.safe()
    model.do(pick=1, n=1, dies=False)
    model.acknowledge(pick=1, how="done")
    model.safe()
    model.acknowledge(pick=0, how="old")
    model.acknowledge(pick=1, how="beyond")
    say(model)
    model.acknowledge(pick=1, how="unread")
    model.safe()


def a_lease_that_ended_moves_nothing_though_nobody_took_it(model: Deliveries) -> None:
    model.read(pick=0, limit=9)
    model.do(pick=0, n=9, dies=False)
    model.clock.advance(60.0)
    model.acknowledge(pick=0, how="done")
    model.safe()
    take(model, "a", keep=True)
    take(model, "a")
    model.go_on(pick=0, limit=9, n=9)
    model.safe()


def dies_in_an_effect_and_after_it(model: Deliveries) -> None:
    for dies in (True, False):
        take(model, "a")
        model.read(pick=0, limit=2)
        model.do(pick=0, n=2, dies=dies)
        model.die(pick=0)
        model.safe()
    model.clock.advance(61.0)
    take(model, "b")
    model.go_on(pick=0, limit=9, n=9)
    model.safe()


def holders_stand_in_each_others_way(model: Deliveries) -> None:
    take(model, "b")
    take(model, "a", keep=True)
    model.clock.advance(30.0)
    take(model, "a", keep=True)
    model.clock.advance(45.0)
    take(model, "b")
    take(model, "a", keep=True)
    model.go_on(pick=0, limit=9, n=9)
    model.safe()


def replayed_removed_and_made_again(model: Deliveries) -> None:
    model.go_on(pick=0, limit=9, n=9)
    model.safe()
    model.replay(project="default", name="mirror", pick=1, ahead=False)
    model.safe()
    model.go_on(pick=0, limit=9, n=9)
    take(model, "a")
    model.go_on(pick=0, limit=9, n=9)
    model.safe()
    model.remove(project="default", name="mirror")
    model.safe()
    take(model, "b")
    model.acknowledge(pick=0, how="done")
    model.safe()
    model.go_on(pick=1, limit=9, n=9)
    model.safe()


def what_a_filter_passes_by_is_covered_and_nothing_else(model: Deliveries) -> None:
    model.tick(seconds=4000.0)
    model.work(number=1, calls=None)
    model.safe()
    say(model)
    take(model, "a", "news")
    hook(model, "bi")
    hook(model, "ana")
    say(model, subject="ben")
    for _ in range(4):
        model.go_on(pick=2, limit=1, n=1)
        model.safe()
    send(model)
    model.erase(pick=0, whole=True)
    say(model)
    send(model)
    model.go_on(pick=2, limit=9, n=9)
    model.safe()


def a_receiver_that_fails_in_every_way_and_recovers(model: Deliveries) -> None:
    for mood in ("down", "error", "busy", "deaf", "rejects", "well"):
        send(model, mood)
        model.clock.advance(BUSY_S + 1.0)
        say(model)
    for _ in range(2):
        send(model)
        model.clock.advance(BUSY_S + 1.0)


def rejected_parked_and_taken_back(model: Deliveries) -> None:
    alone(model)
    for _ in range(REJECTIONS_MAX + 2):
        send(model, "rejects")
        model.clock.advance(BUSY_S + 1.0)
    send(model)
    model.handle(pick=0, what="retry")
    send(model, "rejects")
    model.handle(pick=0, what="retry")
    send(model)
    say(model)
    send(model)
    model.handle(pick=0, what="pause")
    say(model)
    send(model)
    model.handle(pick=0, what="resume")
    model.replay_hook(pick=0, place=0, ahead=False)
    model.safe()
    send(model)
    model.handle(pick=0, what="remove")
    model.safe()
    hook(model)
    send(model)


def one_that_holds_parks_nothing(model: Deliveries) -> None:
    alone(model)
    model.handle(pick=0, what="remove")
    hook(model, parks=False)
    for _ in range(REJECTIONS_MAX + 2):
        send(model, "rejects")
        model.clock.advance(BUSY_S + 1.0)
    send(model)


def a_sender_is_frozen_at_each_call_and_another_takes_over(model: Deliveries) -> None:
    for calls in range(1, 9):
        say(model)
        send(model, owner="a", calls=calls)
        model.clock.advance(61.0)
        send(model, owner="b")
        model.nudge(owner="a", calls=None)
        model.safe()


def a_sender_is_killed_at_each_call(model: Deliveries) -> None:
    for calls in range(1, 9):
        say(model)
        send(model, owner="a", calls=calls)
        model.kill_sender(owner="a")
        model.safe()
        model.clock.advance(61.0)
        send(model, owner="b")


def the_process_dies_at_each_statement_of_a_delivery(model: Deliveries) -> None:
    for statements in range(1, 26):
        say(model)
        model.arm_trouble(kind="full" if statements % 3 == 0 else "kill", statements=statements)
        send(model, mood="dies" if statements % 5 == 0 else "well")
        model.office.trouble.calm()
        model.clock.advance(61.0)
        send(model)


def the_process_dies_at_each_statement_of_an_acknowledgement(model: Deliveries) -> None:
    for statements in range(1, 12):
        say(model)
        take(model, "a")
        model.read(pick=0, limit=9)
        model.do(pick=0, n=9, dies=False)
        model.arm_trouble(kind="kill" if statements % 2 else "full", statements=statements)
        model.acknowledge(pick=0, how="done")
        model.office.trouble.calm()
        model.safe()
        model.arm_trouble(kind="kill", statements=statements)
        model.replay(project="default", name="mirror", pick=statements, ahead=False)
        model.office.trouble.calm()
        model.safe()


def hangs_while_its_project_is_merged(model: Deliveries) -> None:
    send(model, "hangs", pick=1)
    model.merge(source="other", into="default")
    model.safe()
    model.answer_hanging(pick=0, mood="well")
    model.safe()
    for _ in range(4):
        model.work(number=1, calls=None)
        model.safe()
        send(model, owner="b")


def merged_while_others_read_and_speak(model: Deliveries) -> None:
    """Chunk by chunk, with followers that are ahead of others of their project and some of names that both have."""
    take(model, "a", "news", "other")
    say(model, "other", n=1)
    model.go_on(pick=1, limit=1, n=1)
    hook(model, "bi", "other")
    hook(model, "ana", "default")
    send(model, pick=2)
    model.merge(source="other", into="default")
    model.safe()
    for _ in range(12):
        model.work(number=1, calls=2)
        model.safe()
        model.go_on(pick=0, limit=2, n=2)
        say(model, n=1)
        send(model, calls=4)
        model.arm_trouble(kind="kill", statements=12)
        model.move(number=1, calls=3)
        model.safe()
        model.clock.advance(61.0)
    model.office.trouble.calm()


def merged_once_all_of_it_was_heard(model: Deliveries) -> None:
    """What comes before its subject is joined is that subject's all the same."""
    hook(model, "ana", "default")
    model.go_on(pick=1, limit=9, n=9)
    for pick in range(3):
        send(model, pick=pick)
    model.merge(source="other", into="default")
    model.safe()
    for _ in range(3):
        model.work(number=1, calls=3)
        model.safe()
        send(model)


def merged_into_one_that_is_merged_itself(model: Deliveries) -> None:
    take(model, "a", "mirror", "third")
    model.go_on(pick=2, limit=1, n=1)
    model.merge(source="third", into="other")
    for _ in range(3):
        model.work(number=1, calls=None)
        model.safe()
    model.merge(source="other", into="default")
    for _ in range(3):
        model.work(number=1, calls=None)
        model.safe()
    model.merge(source="third", into="default")
    say(model, "third")


def erased_while_it_is_told(model: Deliveries) -> None:
    send(model, calls=5)
    model.read(pick=0, limit=2)
    model.erase(pick=0, whole=False)
    model.safe()
    model.erase(pick=1, whole=True)
    model.safe()
    model.work(number=1, calls=3)
    model.safe()
    model.nudge(owner="a", calls=None)
    model.do(pick=0, n=9, dies=False)
    model.acknowledge(pick=0, how="done")
    model.merge(source="other", into="default")
    model.safe()
    model.work(number=1, calls=None)
    model.restart(polite=True)
    model.safe()


SCENES: tuple[Callable[[Deliveries], None], ...] = (
    taken_over_between_effect_and_acknowledgement, a_lease_that_ended_moves_nothing_though_nobody_took_it,
    dies_in_an_effect_and_after_it, holders_stand_in_each_others_way, replayed_removed_and_made_again,
    what_a_filter_passes_by_is_covered_and_nothing_else, a_receiver_that_fails_in_every_way_and_recovers,
    rejected_parked_and_taken_back, one_that_holds_parks_nothing,
    a_sender_is_frozen_at_each_call_and_another_takes_over, a_sender_is_killed_at_each_call,
    the_process_dies_at_each_statement_of_a_delivery, the_process_dies_at_each_statement_of_an_acknowledgement,
    hangs_while_its_project_is_merged, merged_while_others_read_and_speak,
    merged_once_all_of_it_was_heard,
    merged_into_one_that_is_merged_itself, erased_while_it_is_told,
)  # fmt: skip


def play(scene: Callable[[Deliveries], None]) -> None:
    """One scene, with safety at its steps and liveness at its end. Raises Violation."""
    model = Deliveries()
    ended = False
    try:
        model.begin()
        model.safe()
        scene(model)
        model.safe()
        ended = True
    finally:
        if ended:
            model.teardown()
        else:
            model.close()
