"""What somebody does to jobs and facts by hand."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.crash.model.asking import (
    Asking,
    picks,
    project_names,
)
from tests.crash.model.process import words_of

from everkept.store.facts import retire_by_hand
from everkept.store.jobs_by_hand import discard_by_hand, release_by_hand, retry_by_hand
from everkept.store.reprocess import Selection, reprocess_chunk


class ByHand(Asking):
    @rule(pick=picks)
    def retry_dead(self, pick: int) -> None:
        dead = self.process.rows("select id, project_id from jobs where state = 'dead' order by id")
        if not dead:
            return
        self.count("retry_by_hand")
        job, project = dead[pick % len(dead)]
        if self.ask(retry_by_hand, project, job) is True or (self.process.job(job) or ("",))[0] != "dead":
            self.oracle.unreported[job] = 0
            self.oracle.hand_retries += 1
            self.tally["hand.retried"] += 1

    @rule(pick=picks, discard=st.booleans())
    def take_lease(self, pick: int, discard: bool) -> None:
        """A hand ends a lease, or gives up the job with it: the old holder is refused."""
        leased = self.process.rows("select id, project_id, fence, kind from jobs where state = 'leased' order by id")
        leased = [row for row in leased if row[3] != "erase_scope" or not discard]
        if not leased:
            return
        self.count("take_lease")
        job, project, fence, kind = leased[pick % len(leased)]
        discard = discard and kind in ("summarise_episode", "extract_facts")
        if discard:
            self.ask(discard_by_hand, project, job, "by hand")
        else:
            self.ask(release_by_hand, project, job)
        self.revive()
        row = self.process.job(job)
        assert row is not None
        if row[3] != fence:
            lease = self.oracle.leases.get(job)
            if lease is not None:
                lease.taken = True
            self.oracle.unreported[job] = 0 if discard else max(0, self.oracle.unreported[job] - 1)
            self.oracle.fences[job] = row[3]
            self.tally["hand.discarded" if discard else "hand.released"] += 1

    @rule(project=project_names, fresh=st.booleans(), include_skipped=st.booleans())
    def reprocess(self, project: str, fresh: bool, include_skipped: bool) -> None:
        self.count("reprocess")
        selection = Selection(
            project=self.numbers[project], stream=None, subject=None, since=None, until=None,
            include_skipped=include_skipped, fresh=fresh, model=self.process.provider.name,
        )  # fmt: skip
        mine = [m for m in self.oracle.messages.values() if m.project == project]
        if include_skipped:
            for message in mine:
                message.maybe_captured = True
            self.oracle.ask_afresh(words_of(mine))
        if fresh:
            self.oracle.ask_afresh(words_of(mine))
        self.ask(reprocess_chunk, selection, None)
        self.revive()
        # What was given up before is taken up again where its job is scheduled once more.
        for (job,) in self.process.rows("select id from jobs where state = 'waiting' and crashes = 0"):
            if self.oracle.unreported[job] and job not in self.oracle.leases:
                self.oracle.unreported[job] = 0

    @rule(pick=picks, undo=st.booleans())
    def forget(self, pick: int, undo: bool) -> None:
        """Retire one fact by hand, or bring it back."""
        facts = self.process.rows(
            "select f.id, f.project_id, f.text, f.retired_by_hand from facts f join subjects u on u.id = f.subject_id"
            " where u.erased_at is null and f.retired_by_hand = ? order by f.id", int(undo),
        )  # fmt: skip
        if not facts:
            return
        self.count("forget")
        fact, project, text, _ = facts[pick % len(facts)]
        word = text.split()[-1].rstrip(".")
        self.ask(retire_by_hand, project, fact, None if undo else "by hand")
        self.revive()
        by_hand = self.process.value("select retired_by_hand from facts where id = ?", fact)
        if by_hand:
            self.oracle.forgotten.add(word)
        else:
            self.oracle.forgotten.discard(word)
        self.tally["undone" if undo else "forgotten"] += 1
