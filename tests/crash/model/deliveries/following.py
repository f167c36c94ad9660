"""Consumers that read, do and acknowledge by themselves; several processes each, which die at any moment."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.crash.model.deliveries.clients import LEASE_S, Clients, Unknown, owners, picks, projects, seldom
from tests.crash.model.deliveries.followers import Died, Follower, Holder
from tests.crash.model.deliveries.outbox import Wants
from tests.crash.model.oracle import must

from everkept.errors import Conflict, LeaseLost, NotFound
from everkept.store.changes import Only, covered, find_cursor, read_changes
from everkept.store.consumers import (
    acknowledge_read,
    hold_consumer,
    note_handed_out,
    remove_consumer,
    replay_consumer,
)

NEWS = ("messages.appended", "memory.erased")
FILTERS = {"mirror": Wants(), "news": Wants(kinds=NEWS)}
names = st.sampled_from(tuple(FILTERS))


class Following(Clients):
    def follower(self, project: int, name: str) -> Follower:
        known = self.followers.get((project, name))
        if known is None:
            known = self.followers[project, name] = Follower(name=name, wants=FILTERS[name])
        return known

    @rule(project=projects, name=names, owner=owners, keep=st.booleans())
    def take(self, project: str, name: str, owner: str, keep: bool) -> None:
        """Lease a consumer, or keep the lease that one has."""
        self.count("take")
        number, now = self.number(project), self.clock.now_us()
        follower = self.follower(number, name)
        lease, holder = follower.lease, follower.holders.get(owner)
        fence = holder.fence if keep and holder is not None else None
        holds = lease.is_held(now) and lease.owner == owner and fence in (None, lease.fence)
        try:
            held = self.ask_of(number, hold_consumer, name, owner, LEASE_S, fence)
        except Conflict:
            must(lease.is_held(now) and lease.owner != owner, "G11", f"{owner} cannot have {name}, which nobody holds")
            self.tally["consumer.busy"] += 1
            return
        except LeaseLost:
            must(fence is not None and not holds, "G11", f"{owner} holds {name}, and could not keep it")
            self.tally["consumer.not_kept"] += 1
            return
        if isinstance(held, Unknown):
            self._find_lease(number, follower)
            return
        if fence is not None:
            must(holds and held.fence == fence, "G11", f"{owner} kept {name}, which it did not hold")
        else:
            must(not lease.is_held(now) or lease.owner == owner, "G11", f"{owner} took {name} from {lease.owner}")
            must(held.fence > lease.fence, "G11", f"fence {held.fence} of {name} does not grow over {lease.fence}")
            self.tally["consumer.taken_over"] += lease.owner not in (None, owner)
            follower.holders[owner] = Holder(fence=held.fence)
            follower.handed_out = follower.cursor
        lease.owner, lease.fence, lease.until_us, follower.there = owner, held.fence, held.until, True

    def _find_lease(self, project: int, follower: Follower) -> None:
        """The answer was lost: what was asked for was done, or not."""
        rows = self.office.rows(
            "select owner, fence, lease_until, max(cursor, handed_out) from consumers"
            " where project_id = ? and name = ?", project, follower.name,
        )  # fmt: skip
        follower.there = bool(rows)
        for owner, fence, until, handed_out in rows:
            follower.handed_out = handed_out
            must(fence >= follower.lease.fence, "G11", f"the fence of {follower.name} went back to {fence}")
            follower.lease.owner, follower.lease.fence, follower.lease.until_us = owner, fence, until or 0

    def held(self, pick: int) -> tuple[int, Follower, str] | None:
        """(project, consumer, owner) of a process that follows, or did before it was fenced off."""
        there = [
            (project, follower, owner)
            for (project, _), follower in self.followers.items() if project not in self.merged
            for owner in follower.holders
        ]  # fmt: skip
        return there[pick % len(there)] if there else None

    @rule(pick=picks, limit=st.integers(1, 9))
    def read(self, pick: int, limit: int) -> None:
        """Reading consumes nothing, and gives all that follows the cursor, in order."""
        found = self.held(pick)
        if found is None:
            return
        self.count("read")
        number, follower, owner = found
        cursor = self.office.store.read_now(find_cursor, number, follower.name)
        must(cursor == follower.cursor, "G11", f"{follower.name} acknowledged {follower.cursor}, and is at {cursor}")
        only = Only(kinds=follower.wants.kinds, subject=follower.wants.subject)
        rows, head = self.office.store.read_now(read_changes, number, cursor, limit, only)
        expected = self.outbox.between(number, cursor, head, follower.wants)[:limit]
        got = [(row[0], row[7]) for row in rows]
        must(
            got == [(seq, what.name) for seq, what in expected],
            "G11", f"after {cursor} {follower.name} was given {got}, and {expected} follows",
        )  # fmt: skip
        self.tally["change.offered_again"] += sum(seq <= follower.offered for seq, _ in got)
        follower.offered = max([follower.offered, *(seq for seq, _ in got)])
        through = covered(rows, after=cursor, head=head, limit=limit)
        if isinstance(self.ask_of(number, note_handed_out, follower.name, through), Unknown):
            self._find_lease(number, follower)
            return
        follower.handed_out, follower.there = max(follower.handed_out, through), True
        holder = follower.holders[owner]
        holder.given, holder.done, holder.through = expected, 0, through

    @rule(pick=picks, n=st.integers(1, 9), dies=st.sampled_from((False, False, True)))
    def do(self, pick: int, n: int, dies: bool) -> None:
        """The effects of some of what was given; the process may die in the last of them."""
        found = self.held(pick)
        if found is None:
            return
        _, follower, owner = found
        holder = follower.holders[owner]
        wanted = holder.is_new()[:n]
        self.count("do")
        for nth, (_, what) in enumerate(wanted, 1):
            try:
                new = follower.effects.do(what.name, dies=dies and nth == len(wanted))
            except Died:
                del follower.holders[owner]
                self.tally["follower.died_in_effect"] += 1
                return
            self.tally["effect.done" if new else "effect.left_out"] += 1
            holder.done += 1

    @rule(pick=picks, limit=st.integers(1, 9), n=st.integers(1, 9))
    def go_on(self, pick: int, limit: int, n: int) -> None:
        """As a follower is when all is well: read, do, acknowledge."""
        self.read(pick, limit)
        self.do(pick, n, dies=False)
        self.acknowledge(pick, "done")

    @rule(pick=picks, how=st.sampled_from(("done", "done", "done", "old", "unread", "beyond", "unfenced")))
    def acknowledge(self, pick: int, how: str) -> None:
        """What is done; an old place again; or what does not exist."""
        found = self.held(pick)
        if found is None:
            return
        number, follower, owner = found
        holder, now, head = follower.holders[owner], self.clock.now_us(), self.outbox.head(number)
        done = holder.may_acknowledge()
        if done is None:
            return
        self.count("acknowledge")
        upto = {"old": max(0, follower.cursor - 1), "unread": head, "beyond": head + 1}.get(how, done)
        lease, fence = follower.lease, None if how == "unfenced" else holder.fence
        held = fence is None or (lease.is_held(now) and lease.fence == fence)
        try:
            answer = self.ask_of(number, acknowledge_read, follower.name, upto, fence)
        except NotFound:
            must(upto > head, "G11", f"{upto} of {head} could not be acknowledged")
            self.tally["ack.beyond_refused"] += 1
        except Conflict:
            must(follower.handed_out < upto <= head, "G11", f"{follower.name} was given {upto}, and was refused")
            self.tally["ack.unread_refused"] += 1
        except LeaseLost:
            must(not held and upto > follower.cursor, "G11", f"{owner} holds {follower.name}, and was refused")
            self.tally["ack.refused"] += 1
        else:
            self._acknowledged(number, follower, upto, held=held, answer=answer)
            self.tally[f"ack.{how}"] += 1

    def _acknowledged(
        self, number: int, follower: Follower, upto: int, *, held: bool, answer: int | Unknown
    ) -> None:  # fmt: skip
        cursor = self._cursor(number, follower.name)
        moved = max(follower.cursor, upto)
        unread = upto > follower.handed_out
        must(not unread or cursor == follower.cursor, "G11", f"{follower.name} acknowledged {upto} unread")
        if isinstance(answer, Unknown):
            must(cursor in (follower.cursor, moved), "G11", f"{follower.name} is at {cursor}, {upto} was acknowledged")
            self._find_lease(number, follower)
        else:
            must(held or upto <= follower.cursor, "G11", f"{follower.name} moved for one who does not hold it")
            must(cursor == answer == moved, "G11", f"{follower.name} acknowledged {upto}, its cursor is {cursor}")
            follower.there = True
        follower.cursor = cursor

    def _cursor(self, number: int, name: str) -> int:
        return int(self.office.value(
            "select coalesce(max(cursor), 0) from consumers where project_id = ? and name = ?", number, name
        ))  # fmt: skip

    @rule(pick=picks)
    def die(self, pick: int) -> None:
        """Between two calls; its lease runs on."""
        found = self.held(pick)
        if found is not None:
            self.count("die")
            del found[1].holders[found[2]]

    @rule(project=projects, name=names, pick=picks, ahead=seldom)
    def replay(self, project: str, name: str, pick: int, ahead: bool) -> None:
        """From any point, also ahead: then it is a hand that passes things by."""
        self.count("replay")
        number = self.number(project)
        follower = self.follower(number, name)
        after = pick % ((self.outbox.head(number) if ahead else follower.cursor) + 1)
        answer = self.ask_of(number, replay_consumer, name, after)
        cursor = self._cursor(number, name)
        if isinstance(answer, Unknown) and cursor != after:
            must(cursor == follower.cursor, "G11", f"{name} was at {follower.cursor}, and is at {cursor}")
            self._find_lease(number, follower)
            return
        must(cursor == after, "G11", f"{name} was moved to {after}, and is at {cursor}")
        follower.pass_by(self.outbox, number, after)
        self.tally["replay.back" if after < follower.cursor else "replay.on"] += 1
        if isinstance(answer, Unknown):
            self._find_lease(number, follower)
        else:
            follower.lease.end(follower.lease.fence + 1)
            follower.there, follower.handed_out = True, after
        follower.cursor = after

    @rule(project=projects, name=names)
    def remove(self, project: str, name: str) -> None:
        """Whoever comes next under the name begins at the first change, under a fence above all before."""
        self.count("remove")
        number = self.number(project)
        follower = self.follower(number, name)
        try:
            answer = self.ask_of(number, remove_consumer, name)
        except NotFound:
            must(not follower.there, "G11", f"{name} is there, and could not be removed")
            return
        if isinstance(answer, Unknown) and self.office.value(
            "select count(*) from consumers where project_id = ? and name = ?", number, name
        ):  # fmt: skip
            return
        must(follower.there or isinstance(answer, Unknown), "G11", f"{name} was removed, and was not there")
        self.tally["consumer.removed"] += follower.there
        follower.lease.end(follower.lease.fence)
        follower.cursor = follower.handed_out = 0
        follower.there = False
