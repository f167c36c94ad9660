"""The state machine: what clients, workers, providers, clocks and disks may do, one step at a time.

After each step safety is checked; at the end the faults stop, time passes, and everything must drain.
"""

from __future__ import annotations

import json
import shutil
import sys

from hypothesis.stateful import invariant
from tests.crash.model.asking import (
    HOUR_S,
    PROJECTS,
)
from tests.crash.model.by_hand import ByHand
from tests.crash.model.erasing import Erasing
from tests.crash.model.oracle import must
from tests.crash.model.saying import Saying
from tests.crash.model.worker import Worker
from tests.crash.model.working import Working

FULL_EVERY = 12
"""Steps between two looks at all contents."""
HOPS_MAX = 600


class Model(Saying, Working, ByHand, Erasing):
    # ---- after each step

    @invariant()
    def safe(self) -> None:
        self.revive()
        self.nothing_was_seen()
        if self.steps:
            self.safety.quick()
        self.steps += 1
        self.tally["steps"] += 1
        if self.steps % FULL_EVERY == 0:
            self.safety.full()

    def nothing_was_seen(self) -> None:
        """What was found inside a worker's task, whose runner has booked it as any failure."""
        if self.process.violations:
            raise self.process.violations[0]

    # ---- at the end

    def teardown(self) -> None:
        try:
            if not self._failed():
                self.drain()
                self.tally["runs"] += 1
        finally:
            self.process.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _failed(self) -> bool:
        return sys.exc_info()[0] is not None

    def drain(self) -> None:
        """The faults stop, time passes: every receipt becomes final, and nothing is left over."""
        self.process.trouble.calm()
        self.revive()
        self.process.provider.weather = "fine"
        for waiting, _ in list(self.process.provider.late):
            if not waiting.done():
                waiting.set_result(None)
        self.process.settle()
        for worker in self.process.living:  # whoever was frozen comes back, and tries to finish
            self.process.move(worker, None)
        self.safety.quick()
        worker = self.process.worker(1)
        self._until_quiet(worker)
        self.nothing_was_seen()
        self.clock.advance(25 * HOUR_S)  # the sweep for abandoned threads is the last that has anything to do
        self._until_quiet(worker)
        self.safety.quick()
        self.safety.full()
        self.nothing_was_seen()
        self._everything_is_final()
        self.safety.not_in_the_file()

    def _until_quiet(self, worker: Worker) -> None:
        for _ in range(HOPS_MAX):
            self.process.beat(worker)
            self.process.maintain(worker)
            while self.process.look_for_work(worker, None):
                pass
            busy, following = self.process.rows(
                "select count(*), min(case when lease_until > ? then lease_until when due_at > ? then due_at end)"
                " from jobs where state in ('waiting', 'ready', 'leased')", *[self.clock.now_us()] * 2,
            )[0]  # fmt: skip
            if not busy:
                return
            wait_s = 5.0 if following is None else max(1.0, (following - self.clock.now_us()) / 1e6 + 0.001)
            self.clock.advance(wait_s)
        left = self.process.rows(
            "select kind, key, state, error from jobs where state not in ('done', 'dead', 'discarded')"
        )
        must(False, "G3", f"still busy after {HOPS_MAX} looks: {left}")

    def _everything_is_final(self) -> None:
        for stream, n, covered, settings, of_project in self.process.rows(
            "select s.id, s.last_seq, s.covered_seq, s.settings, p.settings from streams s"
            " join projects p on p.id = s.project_id where s.erased_at is null"
        ):
            now = {"memory.enabled": True, "window.idle_s": 0, **json.loads(of_project), **json.loads(settings)}
            if not now["memory.enabled"] or now["window.idle_s"] is not None:
                dead = self.process.rows("select 1 from jobs where kind = 'open_window' and key = ? and state = 'dead'",
                                         str(stream))  # fmt: skip
                must(n == covered or bool(dead), "G5", f"stream {stream} is covered through {covered} of {n} for ever")
        for project in PROJECTS:
            for message, receipt in self.safety.receipts(project):
                waits = receipt.state in ("accepted", "searchable", "embedded")
                if waits and not message.erased:
                    must("idle_s is null" in (receipt.reason or ""), "G3", f"{message.word} never ends: {receipt}")
                self.tally[f"final.{receipt.state}"] += 1
        left = self.process.rows("select kind, subject_id, stream_id, seq from erasures where done_at is null")
        must(not left, "G10", f"the erases {left} never end")
        open_pairs = self.process.rows(
            "select v.subject_id from verdicts v where v.verdict is null and not exists (select 1 from jobs j"
            " where j.kind = 'judge_conflicts' and j.key = cast(v.subject_id as text) and j.state = 'dead')"
        )
        must(not open_pairs, "G9", f"conflicts of {open_pairs} wait for ever")
