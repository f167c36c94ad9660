"""The known hard cases, played with the machine's own rules: what chance reaches too rarely for a smoke of seconds.

The machine checks them as it checks any other run; a scene only says who does what, in which order.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.crash.model.machine import Model
from tests.crash.model.oracle import must

IDLE_S = 1801.0


def say(
    model: Model, subject: str = "ana", n: int = 0, *, project: str = "default", size: int = 2, kind: int = 0
) -> None:
    model.append(project=project, subject=subject, n=n, size=size, keyed=True, kind=kind, late_s=0.0)


def idle(model: Model) -> None:
    """The idle time is over, and nobody has looked yet."""
    model.clock.advance(IDLE_S)


def remembered(model: Model, subject: str = "ana", n: int = 0) -> None:
    say(model, subject, n)
    model.live(number=1, weather="fine")


def frozen_and_taken_over(model: Model) -> None:
    say(model)
    idle(model)
    model.work(number=1, calls=0)
    model.tick(seconds=61.0, beating=False)
    model.sweep(number=2)
    model.work(number=2, calls=None)
    model.move(number=1, calls=None)


def frozen_beside_the_new_holder(model: Model) -> None:
    """The old holder comes back while another works on it."""
    say(model)
    idle(model)
    model.work(number=1, calls=0)
    model.clock.advance(61.0)
    model.sweep(number=2)
    model.work(number=2, calls=0)
    model.move(number=1, calls=None)
    model.safe()
    model.move(number=2, calls=None)


def lease_ended_and_nobody_noticed(model: Model) -> None:
    remembered(model)
    say(model, kind=1)
    idle(model)
    model.work(number=1, calls=0)
    model.clock.advance(61.0)
    model.move(number=1, calls=None)


def dies_until_it_is_dead(model: Model) -> None:
    say(model)
    model.live(number=1, weather="late")
    for _ in range(12):  # two jobs, of which each may kill five workers
        model.work(number=2, calls=2)
        model.safe()
        model.kill_worker(number=2)
        model.tick(seconds=61.0, beating=False)
        model.sweep(number=3)
        model.safe()
    model.retry_dead(pick=0)


def provider_weather(model: Model) -> None:
    for n, weather in enumerate(("down", "limited", "limited_until", "error", "garbage", "refusal", "permanent")):
        say(model, n=n % 3, kind=n)
        idle(model)
        model.change_weather(weather=weather)
        model.work_on(number=1)
        model.safe()
        model.live(number=1, weather=weather)
        model.safe()
        for pick in range(4):
            model.retry_dead(pick=pick)
        model.live(number=1, weather="fine")


def dies_with_the_last_reply_it_may_ask_for(model: Model) -> None:
    """Nobody has booked that it was the last, but it is kept."""
    say(model)
    idle(model)
    model.change_weather(weather="garbage")
    model.work_on(number=1)
    model.tick(seconds=400.0, beating=True)
    model.arm_point(kind="kill", point="journal.after_commit")
    model.work(number=1, calls=None)
    model.safe()
    model.tick(seconds=61.0, beating=False)
    model.sweep(number=2)
    model.work_on(number=2)


def told_when_to_come_back(model: Model) -> None:
    """The provider names a time that is longer than our own wait would be: also to the one question of a probe."""
    say(model)
    idle(model)
    model.change_weather(weather="limited_until")
    model.work_on(number=1)
    model.tick(seconds=400.0, beating=True)
    model.work(number=1, calls=None)
    model.change_weather(weather="fine")
    for _ in range(5):
        model.tick(seconds=61.0, beating=True)
        model.work(number=2, calls=None)
        model.safe()


def one_stage_of_two_is_done(model: Model) -> None:
    say(model)
    idle(model)
    model.change_weather(weather="late")
    for _ in range(3):
        model.work(number=1, calls=None)
    model.answer_late(pick=0, calls=None)
    model.steps = 11
    model.safe()


def answered_late(model: Model) -> None:
    say(model)
    model.live(number=1, weather="late")
    model.work(number=1, calls=None)
    model.beat(number=1)
    for _ in range(4):
        model.answer_late(pick=0, calls=0)  # the reply is there, and its worker freezes before it is kept
    model.clock.advance(61.0)
    model.sweep(number=2)
    model.change_weather(weather="fine")
    model.work(number=2, calls=None)
    model.move(number=1, calls=None)
    model.work_on(number=2)


def moved_while_it_ran(model: Model) -> None:
    """Somebody forgets a fact while another window's facts are being extracted."""
    remembered(model)
    say(model, kind=3)
    idle(model)
    model.change_weather(weather="late")
    for _ in range(3):
        model.work(number=1, calls=None)
    model.forget(pick=0, undo=False)
    must(model.tally["forgotten"] > 0, "G6", "nothing was forgotten: this scene proves nothing")
    model.change_weather(weather="fine")
    for _ in range(4):
        model.answer_late(pick=0, calls=None)
    model.work_on(number=1)
    model.reprocess(project="default", fresh=False, include_skipped=False)
    model.work_on(number=1)
    model.forget(pick=0, undo=True)


def one_subject_with_much_to_do(model: Model) -> None:
    """More jobs of one lane are due than a worker has slots."""
    for n in range(3):
        say(model, n=n, kind=n)
    idle(model)
    model.change_weather(weather="late")
    for turn in range(8):
        model.work(number=1, calls=None)
        model.safe()
        model.answer_late(pick=min(turn, 1), calls=None)  # the facts of one window stay under way


def said_again_while_its_window_opens(model: Model) -> None:
    """The timer is being worked on when the next message arms it again."""
    say(model)
    idle(model)
    model.work(number=1, calls=0)
    say(model)
    model.end(project="default", subject="ana", n=0)
    model.move(number=1, calls=None)
    model.safe()
    model.live(number=1, weather="fine")
    model.end(project="default", subject="ana", n=0)
    model.work(number=1, calls=1)
    model.restart(polite=False)


def said_again_while_it_is_embedded(model: Model) -> None:
    """A job has read what there is to do when more of it comes."""
    say(model)
    model.clock.advance(2.0)
    model.work(number=1, calls=1)
    say(model, "ben")
    model.move(number=1, calls=None)
    model.clock.advance(300.0)
    model.sweep(number=1)
    repaired = model.process.value("select rows_repaired from periodic where name = 'sweep_unembedded'")
    must(not repaired, "G6", "a job that was scheduled again while it ran was not armed again by its finish")


def late_window_of_early_words(model: Model) -> None:
    model.append(project="default", subject="ben", n=0, size=1, keyed=True, kind=0, late_s=0.0)
    model.live(number=1, weather="fine")
    model.append(project="default", subject="ben", n=1, size=1, keyed=True, kind=0, late_s=90_000.0)
    model.live(number=1, weather="fine")
    model.append(project="default", subject="ben", n=2, size=4, keyed=True, kind=1, late_s=0.0)
    model.append(project="default", subject="ben", n=2, size=4, keyed=True, kind=3, late_s=0.0)
    model.live(number=1, weather="fine")


def erased_under_the_hands_of_workers(model: Model) -> None:
    for erase in (
        lambda: model.erase_event(pick=1), lambda: model.erase_event(pick=3), lambda: model.erase_thread(pick=1),
        lambda: model.erase_subject(project="default", subject="ana"),
    ):  # fmt: skip
        remembered(model)
        say(model, n=1, size=4)
        model.live(number=1, weather="late")
        model.work(number=1, calls=None)
        model.answer_late(pick=0, calls=0)
        erase()
        model.safe()
        model.replay(pick=1)
        model.safe()
        model.change_weather(weather="fine")
        for _ in range(4):
            model.answer_late(pick=0, calls=None)
        model.safe()
        model.work_on(number=1)
        model.work_on(number=1)
        model.steps = 11
        model.safe()


def one_message_is_erased(model: Model) -> None:
    """Nothing else that is erased later could hide what this one leaves."""
    remembered(model)
    model.erase_event(pick=0)
    model.steps = 11
    model.safe()
    model.replay(pick=0)
    model.live(number=1, weather="fine")
    model.safety.sweeps_found_nothing()


def one_thread_is_erased(model: Model) -> None:
    remembered(model)
    remembered(model, n=1)
    model.erase_thread(pick=0)
    model.replay(pick=0)
    model.live(number=1, weather="fine")


def derived_while_a_message_is_erased(model: Model) -> None:
    """A hand asks for the episode again before the erase has taken its replies: none is paid for twice."""
    remembered(model)
    model.erase_event(pick=0)
    model.reprocess(project="default", fresh=False, include_skipped=False)
    model.step_wall(seconds=-3600.0)
    model.live(number=1, weather="fine")


def derived_again_beside_what_was_forgotten(model: Model) -> None:
    """An erase takes every fact of its window, also the one that somebody had forgotten: it comes back forgotten."""
    for pick in range(3):
        say(model, n=pick, size=3)
        idle(model)
        model.work_on(number=1)
        model.forget(pick=0, undo=False)
        model.erase_event(pick=3 * pick + 1)
        model.live(number=1, weather="fine")
        model.safe()
    must(model.tally["forgotten"] > 0, "G9", "nothing was forgotten: this scene proves nothing")


def opened_while_a_message_is_erased(model: Model) -> None:
    """The window comes after the erase: its reply has not seen the message, and is used when the erase ends."""
    say(model, size=4)
    model.erase_event(pick=1)
    idle(model)
    model.work_on(number=1)
    model.live(number=1, weather="fine")


def answered_after_the_erase(model: Model) -> None:
    """A reply that saw what is erased comes when the question over what remains is under way."""
    say(model, size=3)
    idle(model)
    model.change_weather(weather="late")
    for _ in range(3):
        model.work(number=1, calls=None)
    for pick in range(3):
        model.answer_late(pick=pick, calls=0)
    model.erase_event(pick=1)
    model.work_on(number=2)
    model.clock.advance(2.0)
    model.work_on(number=2)
    model.move(number=1, calls=None)
    model.steps = 11
    model.safe()


def keys_and_strangers(model: Model) -> None:
    say(model)
    say(model, project="other")
    model.replay(pick=0)
    model.reuse_key(pick=0)
    model.append_for_another(subject="ana", n=0)
    model.create(project="default", subject="ana", n=4)
    model.erase_elsewhere(pick=0)
    model.append_odd(subject="ana", n=1, what="no_evidence")
    model.append_odd(subject="ana", n=1, what="long")
    model.append_odd(subject="ana", n=2, what="full")
    model.set_project(project="default", what="off")
    say(model)
    model.long_pause(hours=30.0)
    model.sweep(number=1)
    model.work_on(number=1)
    model.set_project(project="default", what="on")
    model.set_thread(subject="ana", n=0, what="none")
    model.reprocess(project="default", fresh=False, include_skipped=True)
    model.live(number=1, weather="fine")
    model.reprocess(project="default", fresh=True, include_skipped=False)
    model.live(number=1, weather="fine")


def disks_and_kills(model: Model) -> None:
    model.arm_point(kind="fail", point="writer.after_commit")
    say(model)
    for at in (4, 6, 8, 10, 13, 16):
        for between in (False, True):
            model.append_together(sizes=[2, 1, 1], subject="ana", between=between, trouble="full", at=at)
            model.safe()
        model.append_together(sizes=[1, 2], subject="ana", between=True, trouble="kill", at=at)
        model.safe()
    idle(model)
    for statements in range(12, 60, 3):
        model.arm_trouble(kind="kill" if statements % 2 else "full", statements=statements)
        model.work(number=1, calls=None)
        model.safe()
        model.tick(seconds=61.0, beating=False)
        model.sweep(number=1)
        model.safe()
        say(model, n=statements % 3, size=1, kind=statements)
        model.end(project="default", subject="ana", n=statements % 3)
    model.restart(polite=True)


def cut_off_while_it_finishes(model: Model) -> None:
    """The process dies, or the disk is full, at statements of a finish: effect and completion are one."""
    for at in range(3, 27, 2):
        say(model, n=at % 3, size=1, kind=at)
        idle(model)
        model.work(number=1, calls=at % 4)
        model.arm_trouble(kind="full" if at % 6 == 1 else "kill", statements=at)
        model.move(number=1, calls=None)
        model.process.trouble.calm()
        model.safe()
        model.live(number=1, weather="fine")


def taken_from_its_worker_by_hand(model: Model) -> None:
    say(model)
    say(model, "ben")
    idle(model)
    for discard in (False, True, False):
        model.work(number=1, calls=0)
        model.take_lease(pick=0, discard=discard)
        model.safe()
        model.move(number=1, calls=None)
        model.safe()
        model.live(number=1, weather="fine")
    model.step_wall(seconds=-3600.0)
    say(model)
    model.live(number=1, weather="fine")


SCENES: tuple[Callable[[Model], None], ...] = (
    frozen_and_taken_over, frozen_beside_the_new_holder, lease_ended_and_nobody_noticed, dies_until_it_is_dead,
    provider_weather, dies_with_the_last_reply_it_may_ask_for, told_when_to_come_back,
    one_stage_of_two_is_done, one_subject_with_much_to_do, answered_late,
    moved_while_it_ran, said_again_while_its_window_opens, said_again_while_it_is_embedded, late_window_of_early_words,
    erased_under_the_hands_of_workers, one_message_is_erased, one_thread_is_erased, derived_while_a_message_is_erased,
    opened_while_a_message_is_erased, derived_again_beside_what_was_forgotten, answered_after_the_erase,
    keys_and_strangers, disks_and_kills,
    cut_off_while_it_finishes, taken_from_its_worker_by_hand,
)  # fmt: skip


def play(scene: Callable[[Model], None]) -> None:
    """One scene, with safety at its steps and liveness at its end. Raises Violation."""
    model = Model()
    ended = False
    try:
        scene(model)
        model.safe()
        ended = True
    finally:
        if ended:
            model.teardown()
        else:
            model.process.close()
