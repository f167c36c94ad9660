"""Webhooks: made, sent, stopped and moved by hand; two processes that send, each of which may freeze or die."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.crash.model.deliveries.clients import Clients, owners, picks, projects, seldom
from tests.crash.model.deliveries.outbox import Wants
from tests.crash.model.deliveries.receiver import BUSY_S, MOODS, REJECTIONS_MAX, SECRET, Hook
from tests.crash.model.oracle import must

from everkept.errors import Conflict
from everkept.store.projects import find_subject
from everkept.store.webhooks import (
    NewWebhook,
    add_webhook,
    drop_parked,
    pause_webhook,
    remove_webhook,
    replay_webhook,
    resume_webhook,
    retry_parked,
)

HOOKS_MAX = 5
FILTERS: dict[str, tuple[tuple[str, ...] | None, str | None]] = {
    "crm": (None, None), "bi": (("messages.appended", "memory.erased"), None), "ana": (None, "ana"),
}  # fmt: skip
"""Name → kinds, subject."""
names = st.sampled_from(tuple(FILTERS))


class Sending(Clients):
    # ---- by hand

    @rule(project=projects, name=names, from_start=st.booleans(), parks=st.booleans())
    def add_hook(self, project: str, name: str, from_start: bool, parks: bool) -> None:
        number = self.number(project)
        if len(self.hooks()) >= HOOKS_MAX:
            return
        self.count("add_hook")
        kinds, subject = FILTERS[name]
        whose = None if subject is None else self.office.store.read_now(find_subject, number, subject)
        url = f"https://hook-{self.steps}-{number}.example/"
        new = NewWebhook(
            name=name, url=url, secret=SECRET, kinds=kinds, subject=whose, on_reject="park" if parks else "hold",
            after=0 if from_start else None,
        )  # fmt: skip
        try:
            self.ask_of(number, add_webhook, new)
        except Conflict:
            there = [h.name for h in self.hooks() if h.project == number]
            must(name in there, "G11", f"there is no webhook {name} in project {number}, and none can be made")
            return
        rows = self.office.rows("select id from webhooks where url = ?", url)
        for (id_,) in rows:
            hook = Hook(id=id_, name=name, project=number, wants=Wants(kinds=kinds, subject=whose), parks=parks)
            self.receivers.hooks[url] = hook
            hook.cursor = 0 if from_start else self.outbox.head(number)
            hook.pass_by(self.outbox, hook.cursor)
            self.tally["hook.added"] += 1

    def hook(self, pick: int) -> Hook | None:
        """One whose project is not on its way into another one."""
        there = [h for h in self.hooks() if h.project not in self.merged]
        return there[pick % len(there)] if there else None

    @rule(pick=picks, what=st.sampled_from(("pause", "resume", "resume", "retry", "retry", "drop", "remove")))
    def handle(self, pick: int, what: str) -> None:
        hook = self.hook(pick)
        if hook is None:
            return
        self.count("handle")
        self.tally[f"hand.{what}"] += 1
        match what:
            case "pause":
                self.ask_of(hook.project, pause_webhook, hook.id, "a release")
            case "resume":
                self.ask_of(hook.project, resume_webhook, hook.id)
            case "retry":
                self.ask_of(hook.project, retry_parked, hook.id, None)
            case "drop":
                self.ask_of(hook.project, drop_parked, hook.id, None)
                if not self._parked(hook):
                    hook.passed |= hook.parked
                    hook.parked = set()
            case _:
                self.ask_of(hook.project, remove_webhook, hook.id)
                self._forget_removed()

    @rule(pick=picks, place=picks, ahead=seldom)
    def replay_hook(self, pick: int, place: int, ahead: bool) -> None:
        """What follows is sent again, under its ids; what is jumped over is a hand's to answer for."""
        hook = self.hook(pick)
        if hook is None:
            return
        self.count("replay_hook")
        after = place % ((self.outbox.head(hook.project) if ahead else hook.cursor) + 1)
        self.ask_of(hook.project, replay_webhook, hook.id, after)
        if self._place(hook) == after:
            hook.pass_by(self.outbox, after)
            self.tally["hook.replayed_back"] += after < hook.cursor
            hook.cursor = after

    def handle_all(self, hook: Hook) -> None:
        """A hand that wants everything sent: what was parked too."""
        self.ask_of(hook.project, resume_webhook, hook.id)
        self.ask_of(hook.project, retry_parked, hook.id, None)

    # ---- the other end

    @rule(pick=picks, mood=st.sampled_from(("well", "well", "error", "rejects", "deaf")))
    def answer_hanging(self, pick: int, mood: str) -> None:
        """A receiver that hung answers, whatever became of who asked; the sender may be frozen since."""
        waiting = [future for future in self.receivers.hanging if not future.done()]
        if waiting:
            self.count("answer_hanging")
            waiting[pick % len(waiting)].set_result(mood)
            self.office.settle()

    # ---- those who send

    @rule(
        owner=owners, calls=st.sampled_from((2, 4, 9, None, None, None)), pick=picks, mood=st.sampled_from(MOODS),
        times=st.sampled_from((1, 1, 1, 6)),
    )  # fmt: skip
    def send(self, owner: str, calls: int | None, pick: int, mood: str, times: int) -> None:
        """A process looks for what is due, and does so many store calls of it; one receiver is in this mood now."""
        self.count("send")
        hook = self.hook(pick)
        if hook is not None:
            hook.mood = mood
        for _ in range(times):
            self.office.look_for_webhooks(self.office.sender(owner), calls)
            if times > 1:
                self.clock.advance(BUSY_S + 1.0)

    @rule(owner=owners, calls=st.sampled_from((1, 2, 5, None)))
    def nudge(self, owner: str, calls: int | None) -> None:
        self.count("nudge")
        self.office.nudge(self.office.sender(owner), calls)

    @rule(owner=owners)
    def kill_sender(self, owner: str) -> None:
        """Between two calls, or while its receiver has not answered yet; the others and the store go on."""
        sender = self.office.sender(owner)
        self.count("kill_sender")
        self.tally["sender.killed_busy"] += bool(sender.tasks)
        sender.kill()
        self.office.settle()

    # ---- what must hold after each step

    def hooks_hold(self) -> None:
        self._forget_removed()
        for hook in self.hooks():
            self._moved(hook)
            cursor = self._place(hook)
            must(cursor >= hook.cursor, "G11", f"webhook {hook.name} went back from {hook.cursor} to {cursor}")
            hook.cursor = cursor
            if hook.project not in self.merged:
                self._parked_rightly(hook)
                hook.skips_nothing(self.outbox)

    def _forget_removed(self) -> None:
        there = {id_ for (id_,) in self.office.rows("select id from webhooks")}
        for url, hook in list(self.receivers.hooks.items()):
            if hook.id not in there:
                del self.receivers.hooks[url]

    def _moved(self, hook: Hook) -> None:
        """Its project was merged, and it came along: it goes on behind what all of the project had heard."""
        now = self.office.value("select project_id from webhooks where id = ?", hook.id)
        if now == hook.project:
            return
        must(self.merged.get(hook.project) == now, "G15", f"webhook {hook.name} is of project {now}")
        before, hook.project = hook.project, now
        hook.name = self.office.value("select name from webhooks where id = ?", hook.id)
        hook.cursor = self._place(hook)
        hook.pass_by(self.outbox, hook.cursor, but_of=self.lineage[before])
        self.tally["hook.moved"] += 1

    def _place(self, hook: Hook) -> int:
        return int(self.office.value(
            "select c.cursor from webhooks w join consumers c on c.project_id = w.project_id"
            " and c.name = 'webhook:' || w.name where w.id = ?", hook.id,
        ))  # fmt: skip

    def _parked(self, hook: Hook) -> set[str]:
        told = self.outbox.told[hook.project]
        rows = self.office.rows("select seq from parked_changes where webhook_id = ?", hook.id)
        return {told[seq].name for (seq,) in rows}

    def _parked_rightly(self, hook: Hook) -> None:
        now = self._parked(hook)
        must(hook.parks or not now, "G11", f"webhook {hook.name} holds, and has parked {now}")
        for name in now - hook.parked:
            seen = hook.rejected[name]
            must(seen >= REJECTIONS_MAX, "G11", f"{hook.name} parked {name}, which was rejected {seen} times")
            self.tally["change.parked"] += 1
        for name in hook.parked - now:
            must(name in hook.taken, "G11", f"{name} is not parked any more, and {hook.name} never took it")
            self.tally["change.taken_back"] += 1
        hook.parked = now
