"""Time, weather, and what workers do: each works, hangs, freezes and dies on its own, or all with the process."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.crash.model.asking import (
    HOUR_S,
    Asking,
    picks,
    workers,
)
from tests.crash.model.provider import WEATHERS

from everkept.ports.faults import POINTS


class Working(Asking):
    @rule(seconds=st.sampled_from((1.0, 5.0, 20.0, 61.0, 100.0, 400.0)), beating=st.booleans())
    def tick(self, seconds: float, beating: bool) -> None:
        """Time passes; the workers' hearts beat meanwhile, or all of them are frozen."""
        self.count("tick")
        self.pass_time(seconds, beating=beating)

    @rule(hours=st.sampled_from((0.6, 0.6, 5.0, 30.0)))
    def long_pause(self, hours: float) -> None:
        """Nobody runs anything for so long, but the provider answers or times out."""
        self.count("long_pause")
        self.pass_time(hours * HOUR_S, beating=False)

    def pass_time(self, seconds: float, *, beating: bool) -> None:
        step = 10.0 if beating else seconds
        while seconds > 0 and not self.process.dead:
            self.clock.advance(min(step, seconds))
            seconds -= step
            if beating:
                for worker in self.process.living:
                    self.process.beat(worker)
        if not self.process.dead:
            self.process.settle()

    @rule(seconds=st.sampled_from((-3600.0, -70.0, -5.0, 5.0, 70.0, 3600.0)))
    def step_wall(self, seconds: float) -> None:
        """Somebody sets the clock."""
        self.count("step_wall")
        self.clock.step_wall(seconds)
        if seconds < 0:
            self.oracle.clock_set_back()

    @rule(weather=st.sampled_from(("fine", "fine", "late", "late", *WEATHERS)))
    def change_weather(self, weather: str) -> None:
        self.count("weather")
        self.process.provider.weather = weather

    @rule(pick=picks, calls=st.sampled_from((0, 1, None)))
    def answer_late(self, pick: int, calls: int | None) -> None:
        """A question that hung is answered, whatever became of who asked; the worker may be frozen since."""
        late = self.process.provider.late
        if not late:
            return
        self.count("answer_late")
        waiting, _ = late[pick % len(late)]
        if not waiting.done():
            waiting.set_result(None)
        self.process.settle()
        for worker in self.process.living:
            self.process.move(worker, calls)

    # ---- workers

    @rule(number=workers, calls=st.sampled_from((0, 1, 2, 4, 8, None, None, None)))
    def work(self, number: int, calls: int | None) -> None:
        """One round of a worker: promote, claim, start; its jobs then do so many store calls."""
        self.count("work")
        self.process.look_for_work(self.process.worker(number), calls)

    @rule(number=workers, calls=st.sampled_from((1, 2, 3, 6, None)))
    def move(self, number: int, calls: int | None) -> None:
        """A worker does some more of what it has begun, without looking at anything new."""
        self.count("move")
        self.process.move(self.process.worker(number), calls)

    @rule(number=workers)
    def work_on(self, number: int) -> None:
        """A worker as it is when all is well: rounds until nothing is due."""
        self.count("work_on")
        worker = self.process.worker(number)
        for _ in range(8):
            if not worker.alive or not self.process.look_for_work(worker, None):
                return

    @rule(number=workers, weather=st.sampled_from(("fine", "fine", "late", "refusal", "garbage", "error", "down")))
    def live(self, number: int, weather: str) -> None:
        """Half an hour in which a worker does all that comes up, in this weather."""
        self.count("live")
        self.process.provider.weather = weather
        worker = self.process.worker(number)
        for seconds in (1000.0, 900.0, 61.0):
            self.clock.advance(seconds)
            self.process.settle()
            self.process.beat(worker)
            self.process.maintain(worker)
            for _ in range(8):
                if not worker.alive or not self.process.look_for_work(worker, None):
                    break

    @rule(number=workers)
    def beat(self, number: int) -> None:
        self.count("beat")
        self.process.beat(self.process.worker(number))

    @rule(number=workers)
    def kill_worker(self, number: int) -> None:
        """Between two calls; the others and the store go on."""
        self.count("kill_worker")
        worker = self.process.worker(number)
        self.tally["killed.busy"] += bool(worker.tasks)
        worker.kill()
        self.process.settle()

    @rule(number=workers)
    def sweep(self, number: int) -> None:
        self.count("sweep")
        self.process.maintain(self.process.worker(number))

    @rule(polite=st.booleans())
    def restart(self, polite: bool) -> None:
        self.count("restart")
        if polite:
            self.process.stop_and_start()
        else:
            self.process.restart()

    @rule(kind=st.sampled_from(("kill", "kill", "full")), statements=st.integers(1, 60))
    def arm_trouble(self, kind: str, statements: int) -> None:
        """The process dies, or the disk is full, at a statement that is not far."""
        self.count("arm_trouble")
        self.process.trouble.arm(kind, statements)

    @rule(kind=st.sampled_from(("kill", "fail")), point=st.sampled_from(POINTS))
    def arm_point(self, kind: str, point: str) -> None:
        self.count("arm_point")
        self.process.trouble.arm_point(kind, point)
