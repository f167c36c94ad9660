"""Every pipeline and every command that writes, small, each as a scenario: what it starts from, and what is killed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from everkept.derive.tools import analyse_fact
from everkept.domain.facts import FactDraft
from everkept.domain.ids import row_id
from everkept.domain.jobs import Done
from everkept.errors import LeaseLost
from everkept.prove.grounds import DATABASE
from everkept.prove.scenario import Scenario
from everkept.prove.scenarios_agents import AGENT_SCENARIOS
from everkept.prove.scenarios_deliveries import DELIVERY_SCENARIOS
from everkept.prove.scenarios_merge import MERGE_SCENARIOS
from everkept.prove.scenarios_proposals import PROPOSAL_SCENARIOS
from everkept.prove.scenarios_reviews import REVIEW_SCENARIOS
from everkept.prove.scenarios_workstreams import WORKSTREAM_SCENARIOS
from everkept.prove.stage import DAY_S, SECRET, Cast, Stage, connect_unsynced
from everkept.store.backup import back_up, restore
from everkept.store.changes import acknowledge, lease_consumer
from everkept.store.claims import Claimed, ClaimRequest, claim
from everkept.store.entity_merges import merge_entities, split_entity
from everkept.store.erase import clean_again, finish_erase, note_cleaned
from everkept.store.facts import FactsOf, NewFact, write_facts
from everkept.store.jobs import promote_due
from everkept.store.jobs_by_hand import retry_dead
from everkept.store.leases import finish, refuse_finish, remove_worker
from everkept.store.pauses import pause, resume
from everkept.store.projects import ensure_project, find_subject
from everkept.store.providers import forget_other_pools, note_failure, permits_left
from everkept.store.streams import get_thread

BACKUP: Final = "backup.db"
QUIET_S = 7_200.0
"""Longer than any back-off that a kill may leave behind."""


NO_MODEL: Final = Cast(model=False, embedder=None)


# ---- capture


def _append_single(s: Stage) -> None:
    s.add("chat", "I live in Lisbon and I like tea.", key="one")


def _append_batch(s: Stage) -> None:
    s.add("chat", "I live in Lisbon.", "I like tea.", "And the weather is fine today.", key="batch")


def _append_together(s: Stage) -> None:
    s.add_together(
        ("chat", "I live in Lisbon.", "k1"), ("walk", "I like walking.", "k2"), ("chat", "I like tea.", "k3")
    )


def _append_replayed(s: Stage) -> None:
    s.add("chat", "I like tea a lot.", key="twice")
    s.add("chat", "I like tea a lot.", key="twice")
    s.add("chat", "I like coffee too.", key="once")


def _said(s: Stage) -> None:
    s.add("chat", "I live in Lisbon and I like tea.", "It rains today.", key="before")


def _create_and_pull(s: Stage) -> None:
    s.create("walk")
    s.add("walk", "I like walking.", key="walk")
    s.clock.advance(30.0)
    s.create("third")


def _end(s: Stage) -> None:
    s.add("chat", "I like cheese as well.", key="last")
    s.end("chat")


def _end_only(s: Stage) -> None:
    """Nothing but the end itself asks for the window: its thread has no idle time."""
    s.end("chat")


def _import(s: Stage) -> None:
    for part in range(3):
        s.add("imported", *(f"Line {part}.{n} of an imported talk." for n in range(3)), key=f"file-{part}", name="Ana")
    s.end("imported")


# ---- derive


def _tell_and_end(s: Stage) -> None:
    s.add("chat", "I live in Lisbon and I like tea.", key="before")
    s.end("chat")


def _work(s: Stage) -> None:
    s.work()
    s.clock.advance(2.0)
    s.work()


def _timer(s: Stage) -> None:
    """The timer fires, and everything that follows from it is worked."""
    s.clock.advance(3_600.0)
    s.work()
    s.clock.advance(60.0)
    s.work()


def _conversation(s: Stage) -> None:
    """The whole pipeline, from the message to the rolling summary."""
    s.add("chat", "I live in Lisbon and I like tea.", key="one")
    s.end("chat")
    _timer(s)


def _second_window(s: Stage) -> None:
    s.add("chat", "I now live in Porto.", key="second")
    s.end("chat")
    _timer(s)


def _worked(s: Stage) -> None:
    _tell_and_end(s)
    s.drain()


def _conflicting(s: Stage) -> None:
    """Two places to live, said at one moment: a conflict that the judge has to rule on."""
    s.add("chat", "I live in Lisbon.", key="one")
    s.end("chat")
    s.drain()
    s.add("other", "I live in Porto.", key="two")
    s.end("other")


def _late_window(s: Stage) -> None:
    """An older window is worked after a newer one."""
    s.end("chat")
    s.work()
    s.clock.advance(120.0)
    s.work()


def _two_windows(s: Stage) -> None:
    s.add("late", "I live in Lisbon.", key="old")
    s.clock.advance(60.0)
    s.add("chat", "I now live in Porto.", key="new")
    s.end("chat")
    s.drain()
    s.add("chat", "I like rain.", key="newest")


def _babble(s: Stage) -> None:
    """Both first replies are paid for, kept and rejected; the second ones are taken."""
    s.add("chat", "I live in Lisbon, babble babble.", key="one")
    s.end("chat")
    s.work()
    s.clock.advance(600.0)
    s.work()


def _long_message(s: Stage) -> None:
    """One message over the limit of a window: worked in slices."""
    s.add("chat", " ".join(f"I like thing{chr(97 + n % 26)}." for n in range(120)), key="long")
    s.end("chat")
    _timer(s)


def _embed(s: Stage) -> None:
    s.clock.advance(2.0)
    s.work()


def _embed_again(s: Stage) -> None:
    """Another embedder than the one that made the vectors: all are made again."""
    s.embed_again()
    _embed(s)


def _two_stays(s: Stage) -> None:
    """Nobody can tell from the words whether both hold: a conflict is opened, and judged."""
    s.add("chat", "I stay in Lisbon.", key="one")
    s.end("chat")
    s.drain()
    s.add("other", "I stay in Porto.", key="two")
    s.end("other")


def _fold(s: Stage) -> None:
    s.clock.advance(60.0)
    s.work()


def _long_fold(s: Stage) -> None:
    for n in range(3):
        s.add("chat", f"Number {n}: " + "we talked about one thing and another. " * 12, key=f"long-{n}")
        s.end("chat")
        s.work()


# ---- facts by hand


def _put_right(s: Stage) -> None:
    s.run(s.service().pin_fact("fct_1"))
    s.run(s.service().correct_fact("fct_1", object="Porto", key="right"))
    s.work()


def _was_put_right(s: Stage) -> None:
    """One fact of a window was corrected by hand, and another one is pinned."""
    _worked(s)
    s.run(s.service().correct_fact("fct_1", object="Porto", key="right"))
    s.run(s.service().pin_fact("fct_2"))
    s.drain()


def _two_names(s: Stage) -> None:
    for name, firm in (("Ana", "Acme"), ("Annie", "Beta")):
        s.run(s.service().remember(
            f"{name} works at {firm}.", subject="ana", predicate="works at", object=firm, entity=name
        ))  # fmt: skip
    s.drain()


def _merge_and_split(s: Stage) -> None:
    one, other = (int(s.value(f"select id from entities where name = '{name}'")) for name in ("Ana", "Annie"))
    s.write(merge_entities, s.project_id(), other, one, "hand")
    s.work()
    s.write(split_entity, s.project_id(), other)
    s.work()


def _erase_what_was_put_right(s: Stage) -> None:
    s.erase("event", "chat", 1)
    s.drain()


def _remember(s: Stage) -> None:
    s.remember("Ana prefers trains to planes.", key="trains")
    s.remember("Ana prefers trains to planes.", key="trains")
    s.remember("Ana works at Acme.", predicate="works at", thing="Acme", pinned=True)


def _correct(s: Stage) -> None:
    s.remember("Ana works at Beta.", predicate="works at", thing="Beta", key="correction")


def _employed(s: Stage) -> None:
    s.remember("Ana works at Acme.", predicate="works at", thing="Acme", key="employer")


def _forget_and_undo(s: Stage) -> None:
    fact = int(s.value("select min(id) from facts"))
    s.forget(fact)
    s.forget(fact, undo=True)


# ---- erasing


def _full(s: Stage) -> None:
    """Two threads of one subject, one of another, all worked; a fact by hand, a key, a consumer."""
    s.add("chat", "I live in Lisbon and I like tea.", "Tomorrow it rains again, they say.", key="chat")
    s.end("chat")
    s.drain()
    s.add("chat", "I now live in Porto, which is north.", key="moved")
    s.add("walk", "I like walking along the river Douro.", key="walk")
    s.end("chat")
    s.end("walk")
    s.add("bela", "I like chess and I live in Braga.", subject="bela", key="bela")
    s.end("bela")
    s.remember("Ana prefers trains to planes.", key="trains")
    s.drain()
    s.add("chat", "This lies in no window yet.", key="open")
    s.ack("follower", 2)
    s.run(s.service().create_key("spare"))


def _erase_event(s: Stage) -> None:
    s.erase("event", "chat", 1)
    s.drain()


def _one_forgotten(s: Stage) -> None:
    """Two facts of one window, of which a hand has forgotten the second."""
    s.add("chat", "I live in Lisbon.", "I like tea.", key="chat")
    s.end("chat")
    s.drain()
    s.forget(int(s.value("select id from facts where text like '%tea%'")))


def _erase_beside_forgotten(s: Stage) -> None:
    """The window is derived again: what was forgotten of it comes back forgotten."""
    s.erase("event", "chat", 1)
    s.drain()


def _erase_its_window(s: Stage) -> None:
    """The window goes before it is derived again, and what was noted of it too."""
    s.erase("event", "chat", 1)
    s.erase("thread", "chat")
    s.drain()


def _erase_open_event(s: Stage) -> None:
    s.erase("event", "chat", 4)
    s.drain()


def _erase_only_event(s: Stage) -> None:
    """The only message of a window, whose words others' facts borrowed."""
    s.erase("event", "walk", 1)
    s.drain()


def _erase_thread(s: Stage) -> None:
    s.erase("thread", "chat")
    s.drain()


def _erase_subject(s: Stage) -> None:
    s.erase("subject", "ana")
    s.add("chat", "The same names, but somebody new.", key="new")
    s.drain()


def _other_project(s: Stage) -> None:
    s.run(s.service().create_project("work"))
    s.add("chat", "I live in Lisbon and I like tea.", key="chat", project="work")
    s.end("chat", project="work")
    s.drain()
    s.ack("follower", 1, project="work")
    s.run(s.service("work").create_key("spare"))


def _erase_project(s: Stage) -> None:
    s.erase("project", project="work")
    s.drain()


def _erase_held(s: Stage) -> None:
    """A reader holds the log, so that the file cannot be cleaned at first; and the probe finds something once."""
    reader = connect_unsynced(s.folder / DATABASE, True)
    reader.execute("begin")
    reader.execute("select count(*) from events").fetchone()
    s.erase("thread", "chat")
    s.work()
    reader.close()
    s.clock.advance(2.0)
    s.write(finish_erase, int(s.value("select max(id) from erasures")), 1, [])
    s.drain()


def _borrowed(s: Stage) -> None:
    """What one thread calls Porto, the other calls by a name of its own."""
    _full(s)
    stream, seq = s.read(get_thread, s.project_id(), "walk").id, 1
    draft = FactDraft(
        entity="ana", predicate="visited", object="Oporto", text="ana visited Oporto.", quote="I like walking",
        confidence=0.9, kind="entity", object_type="place", seqs=(seq,),
    )  # fmt: skip
    subject = s.read(find_subject, s.project_id(), "ana")
    assert subject is not None
    now = s.clock.now_us()
    fact = NewFact(draft=draft, said_at=now, zone_min=None, stream=stream, analysed=analyse_fact(draft, now),
                   object_is="Porto")  # fmt: skip
    of = FactsOf(project=s.project_id(), subject=subject, window=None, slice=0, revision=None, key="borrowed")
    s.write(write_facts, of, [fact], "[]")


def _erase_in_flight(s: Stage) -> None:
    """A thread is erased between the claim of its work and its end."""
    s.erase("thread", "chat")
    s.work()
    s.clock.advance(QUIET_S)
    s.work()


def _leave_work(s: Stage) -> None:
    """A worker that claims and never comes back."""
    _tell_and_end(s)
    s.step()
    _claim_and_vanish(s)


def _claim_and_vanish(s: Stage, *, lease_s: float = 600.0) -> Claimed:
    s.write(promote_due, 100)
    return s.write(claim, ClaimRequest(
        owner="vanished", free=4, slots=5, lease_s=lease_s, uses={"local": 9, "model": 9, "embedder": 9}, idle=True,
        estimates_s={},
    ))  # fmt: skip


def _clean_again(s: Stage) -> None:
    cleaned: list[str] = []
    s.write(clean_again, cleaned)
    s.write(note_cleaned, cleaned)


def _left_unclean(s: Stage) -> None:
    _full(s)
    s.erase("thread", "chat")
    s.drain()
    s.write(lambda conn: conn.raw.execute("update erasures set unclean = 'a reader held the log'"))


# ---- operating


def _projects(s: Stage) -> None:
    s.change(
        "create a project", lambda: s.run(s.service().create_project("work")),
        sql="select count(*) from projects where name in ('work', 'play')", after=1,
    )  # fmt: skip
    s.add("chat", "I like tea at work.", key="w1", project="work")
    s.rename("work", "play")
    s.change(
        "settings of a project",
        lambda: s.run(s.service().update_project("play", settings={"memory.enabled": False})),
        sql="select settings from projects where name in ('work', 'play')", after='{"memory.enabled": false}',
    )  # fmt: skip
    s.add("chat", "This is said while memory is off.", key="w2", project="play")


def _switched_off(s: Stage) -> None:
    """Two threads that no timer waits for, as their project has no idle time."""
    s.run(s.service().update_project("default", settings={"window.idle_s": None}))
    s.add("chat", "I live in Lisbon.", key="one")
    s.add("walk", "I like walking.", key="two")


def _switched_on(s: Stage) -> None:
    s.change(
        "settings of a project", lambda: s.run(s.service().update_project("default", settings={})),
        sql="select settings from projects where name = 'default'", after="{}",
    )  # fmt: skip


def _thread_settings(s: Stage) -> None:
    s.change(
        "settings of a thread",
        lambda: s.run(s.service().set_thread_settings("chat", {"window.idle_s": 60.0})),
        sql="select settings from streams where name = 'chat'", after='{"window.idle_s": 60.0}',
    )  # fmt: skip


def _keys(s: Stage) -> None:
    s.change(
        "create a key", lambda: s.run(s.service().create_key("laptop")), sql="select count(*) from api_keys", after=1
    )
    key = int(s.value("select max(id) from api_keys"))
    s.change(
        "revoke a key", lambda: s.run(s.service().revoke_key(row_id("key", key))),
        sql="select count(*) from api_keys where revoked_at is not null", after=1,
    )  # fmt: skip


def _consumers(s: Stage) -> None:
    s.run(s.service().changes(consumer="crm"))
    s.ack("crm", 1)
    fence = s.write(lease_consumer, s.project_id(), "crm", "here", 60.0)
    s.asking(
        "ack", lambda: s.write(acknowledge, s.project_id(), "crm", 2, fence), lambda cursor: {"cursor": cursor},
        project="default", consumer="crm", upto=2,
    )  # fmt: skip


def _settle(s: Stage) -> None:
    s.run(s.service().settle(timeout_s=0.0))
    s.work()


def _dead_jobs(s: Stage) -> None:
    _tell_and_end(s)
    s.step()
    s.write(lambda conn: conn.raw.execute(
        "update jobs set state = 'dead', error = 'planted', error_class = 'permanent', finished_at = 1"
        " where kind in ('summarise_episode', 'extract_facts') and state = 'waiting'"))  # fmt: skip


def _retry_by_hand(s: Stage) -> None:
    s.change(
        "retry by hand", lambda: s.write(retry_dead, s.project_id(), None, None, 0, 100),
        sql="select max(budget) from jobs", after=2,
    )  # fmt: skip
    s.work()


def _pause_and_resume(s: Stage) -> None:
    """What was ready before the pause is held by the claim, and what comes due later by the tick."""
    s.write(promote_due, 100)
    s.write(pause, "kind", "open_window", "prices", "hand")
    s.work()
    s.write(pause, "kind", "open_window", "prices, again", "hand")
    s.run(s.service().resume_jobs(kind="open_window"))
    s.write(pause, "kind", "summarise_episode", "prices", "hand")
    s.work()
    s.clock.advance(60.0)
    s.work()
    s.run(s.service().resume_jobs(kind="summarise_episode"))
    s.work()


def _held_and_discarded(s: Stage) -> None:
    s.write(pause, "kind", "summarise_episode", "prices", "hand")
    s.work()
    held = int(s.value("select min(id) from jobs where uses = 'held_model'"))
    s.run(s.service().discard_job(row_id("job", held)))
    s.write(resume, "kind", "summarise_episode")
    s.work()


def _discard_and_release(s: Stage) -> None:
    leased = int(s.value("select min(id) from jobs where state = 'leased'"))
    s.run(s.service().release_job(row_id("job", leased)))
    s.run(s.service().discard_job(row_id("job", leased)))
    s.work()


def _reprocess(s: Stage) -> None:
    s.reprocess()
    s.work()
    s.reprocess(fresh=True)
    s.work()


def _said_while_off(s: Stage) -> None:
    s.run(s.service().update_project("default", settings={"memory.enabled": False}))
    s.add("chat", "I live in Lisbon.", key="off")
    s.clock.advance(2 * DAY_S)
    s.drain()
    s.run(s.service().update_project("default", settings={}))


def _window_waits(s: Stage) -> None:
    _tell_and_end(s)
    s.step()


def _switched_off_meanwhile(s: Stage) -> None:
    """Memory is switched off while a window waits for its work."""
    s.run(s.service().update_project("default", settings={"memory.enabled": False}))
    s.work()


def _reprocess_skipped(s: Stage) -> None:
    s.reprocess(include_skipped=True)
    s.work()


# ---- the engine


def _recover_from_a_death(s: Stage) -> None:
    """Another worker's leases have ended: they are taken back, and the work is done."""
    s.clock.advance(700.0)
    s.maintain()
    s.work()
    s.clock.advance(60.0)
    s.work()


def _lost_jobs(s: Stage) -> None:
    """What every sweep repairs: jobs and timers that are not there."""
    _tell_and_end(s)
    s.work()
    s.add("walk", "I like walking.", key="walk")
    s.write(lambda conn: conn.raw.execute("delete from jobs where state = 'waiting'"))


def _sweep(s: Stage) -> None:
    s.clock.advance(2 * DAY_S)
    s.maintain()
    s.work()


def _prune(s: Stage) -> None:
    s.clock.advance(60 * DAY_S)
    s.maintain()
    s.clock.advance(DAY_S)
    s.maintain()


def _heartbeat(s: Stage) -> None:
    s.runner.heartbeat()
    s.work()
    s.runner.heartbeat()
    s.write(remove_worker, "player")


def _weather(s: Stage) -> None:
    """The provider fails until its circuit opens, is probed, and answers again."""
    pool = "fake"
    s.write(permits_left, pool, 0, 4)
    for _ in range(3):
        s.write(lambda conn: note_failure(conn, pool, "transient", "planted", probe_s=1.0, retry_after_s=None))
    s.clock.advance(30.0)
    s.work()
    s.write(lambda conn: note_failure(conn, "gone", "transient", "planted", probe_s=1.0, retry_after_s=None))
    s.write(permits_left, "gone", 0, 4)
    s.write(lambda conn: note_failure(conn, "gone", "provider_down", "planted", probe_s=1.0, retry_after_s=None))
    s.write(forget_other_pools, [pool])


def _pushed_out(s: Stage) -> None:
    """A timer that became ready is pushed out by a message before anybody takes it."""
    s.clock.advance(3_600.0)
    s.write(promote_due, 100)
    s.add("chat", "I was not done yet.", key="more")
    s.work()


def _some_work_waits(s: Stage) -> None:
    _said(s)
    s.maintain()
    _claim_and_vanish(s)


def _clock_set_back(s: Stage) -> None:
    s.clock.step_wall(-7_200.0)
    s.clock.advance(10.0)
    s.maintain()
    s.work()


def _lost_lease(s: Stage) -> None:
    """A worker comes back after its lease has ended: its finish is refused and counted."""
    claimed = _claim_and_vanish(s, lease_s=10.0)
    s.clock.advance(20.0)
    try:
        s.write(finish, claimed.leases[0], Done(), 1.0)
    except LeaseLost:
        s.write(refuse_finish)
    s.maintain()
    s.work()


# ---- the file


def _first_open(s: Stage) -> None:
    s.add("chat", "The first message of all.", key="first")


def _checkpoint(s: Stage) -> None:
    s.add("chat", "Something to checkpoint.", key="checkpoint")
    s.store.writer._guard(lambda: s.store.writer._tidy(everything=True))


def _back_up(s: Stage) -> None:
    """The newest message is in the log only, when the copy is made."""
    s.add("chat", "Said just before the backup.", key="newest")
    back_up(s.folder / DATABASE, s.folder / BACKUP, force=True)


def _backed_up(s: Stage) -> None:
    _said(s)
    back_up(s.folder / DATABASE, s.folder / BACKUP)
    s.write(ensure_project, "since", SECRET)


def _restore(s: Stage) -> None:
    ask = s.record.asked(
        "change", what="restore a backup", sql="select count(*) from projects where name = 'since'", before=1, after=0
    )
    s.store.close()
    restore(s.folder / BACKUP, s.folder / DATABASE, datetime.fromtimestamp(s.clock.now_us() / 1e6, UTC))
    s.record.told(ask)


SMALL_WINDOWS: Final = Cast(settings=MappingProxyType({"EVERKEPT_WINDOW__TOKENS_MAX": "200"}))
OTHER_EMBEDDER: Final = Cast(embedder="fake:other")
_ALL: Final = (
    Scenario(name="append", act=_append_single),
    Scenario(name="append-batch", act=_append_batch),
    Scenario(name="append-together", act=_append_together),
    Scenario(name="append-replayed", act=_append_replayed),
    Scenario(name="create-and-pull", prepare=_said, act=_create_and_pull),
    Scenario(name="end", prepare=_said, act=_end),
    Scenario(name="end-only", prepare=_switched_off, act=_end_only),
    Scenario(name="import", act=_import, cast=NO_MODEL),
    Scenario(name="conversation", act=_conversation),
    Scenario(name="conversation-without-model", act=_conversation, cast=NO_MODEL),
    Scenario(name="timer", prepare=_said, act=_timer),
    Scenario(name="second-window", prepare=_worked, act=_second_window),
    Scenario(name="second-window-without-model", prepare=_worked, act=_second_window, cast=NO_MODEL),
    Scenario(name="conflict", prepare=_conflicting, act=_timer),
    Scenario(name="judge", prepare=_two_stays, act=_timer),
    Scenario(name="judge-without-model", prepare=_two_stays, act=_timer, cast=NO_MODEL),
    Scenario(name="late-window", prepare=_two_windows, act=_late_window),
    Scenario(name="rejected-replies", act=_babble),
    Scenario(name="slices", act=_long_message, cast=SMALL_WINDOWS),
    Scenario(name="fold-by-model", prepare=_long_fold, act=_fold),
    Scenario(name="embed", prepare=_said, act=_embed),
    Scenario(name="embed-again", prepare=_worked, act=_embed_again, cast=OTHER_EMBEDDER, prepared_by=Cast()),
    Scenario(name="remember", act=_remember),
    Scenario(name="correct", prepare=_employed, act=_correct),
    Scenario(name="forget", prepare=_worked, act=_forget_and_undo),
    Scenario(name="erase-event", prepare=_full, act=_erase_event),
    Scenario(name="erase-beside-forgotten", prepare=_one_forgotten, act=_erase_beside_forgotten),
    Scenario(name="erase-forgotten-window", prepare=_one_forgotten, act=_erase_its_window),
    Scenario(name="erase-open-event", prepare=_full, act=_erase_open_event),
    Scenario(name="erase-only-event", prepare=_full, act=_erase_only_event),
    Scenario(name="erase-thread", prepare=_full, act=_erase_thread),
    Scenario(name="erase-borrowed-name", prepare=_borrowed, act=_erase_thread),
    Scenario(name="erase-held", prepare=_full, act=_erase_held, of_a_file=True),
    Scenario(name="erase-subject", prepare=_full, act=_erase_subject),
    Scenario(name="erase-project", prepare=_other_project, act=_erase_project),
    Scenario(name="erase-in-flight", prepare=_leave_work, act=_erase_in_flight),
    Scenario(name="clean-again", prepare=_left_unclean, act=_clean_again, of_a_file=True),
    Scenario(name="projects", act=_projects),
    Scenario(name="project-settings", prepare=_switched_off, act=_switched_on),
    Scenario(name="thread-settings", prepare=_said, act=_thread_settings),
    Scenario(name="keys", act=_keys),
    Scenario(name="consumers", prepare=_two_windows, act=_consumers),
    Scenario(name="settle", prepare=_said, act=_settle),
    Scenario(name="retry-by-hand", prepare=_dead_jobs, act=_retry_by_hand),
    Scenario(name="put-right", prepare=_worked, act=_put_right),
    Scenario(name="erase-what-was-put-right", prepare=_was_put_right, act=_erase_what_was_put_right),
    Scenario(name="merge-and-split", prepare=_two_names, act=_merge_and_split),
    Scenario(name="pause-and-resume", prepare=_tell_and_end, act=_pause_and_resume),
    Scenario(name="held-and-discarded", prepare=_tell_and_end, act=_held_and_discarded),
    Scenario(name="release-and-discard", prepare=_leave_work, act=_discard_and_release),
    Scenario(name="reprocess", prepare=_worked, act=_reprocess),
    Scenario(name="reprocess-skipped", prepare=_said_while_off, act=_reprocess_skipped),
    Scenario(name="switched-off", prepare=_window_waits, act=_switched_off_meanwhile),
    Scenario(name="clock-set-back", prepare=_some_work_waits, act=_clock_set_back),
    Scenario(name="recover", prepare=_leave_work, act=_recover_from_a_death),
    Scenario(name="sweeps", prepare=_lost_jobs, act=_sweep, damaged=True),
    Scenario(name="prune", prepare=_worked, act=_prune),
    Scenario(name="heartbeat", prepare=_tell_and_end, act=_heartbeat),
    Scenario(name="weather", prepare=_tell_and_end, act=_weather),
    Scenario(name="pushed-out", prepare=_said, act=_pushed_out),
    Scenario(name="lost-lease", prepare=_tell_and_end, act=_lost_lease),
    *AGENT_SCENARIOS,
    *REVIEW_SCENARIOS,
    *WORKSTREAM_SCENARIOS,
    *MERGE_SCENARIOS,
    *PROPOSAL_SCENARIOS,
    *DELIVERY_SCENARIOS,
    Scenario(name="first-open", act=_first_open, from_nothing=True),
    Scenario(name="checkpoint", act=_checkpoint, of_a_file=True),
    Scenario(name="backup", prepare=_said, act=_back_up, copy=BACKUP, of_a_file=True),
    Scenario(name="restore", prepare=_backed_up, act=_restore, of_a_file=True),
)
SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType({s.name: s for s in _ALL})


def playable(*, on_a_server: bool) -> list[str]:
    """Names of the scenarios that a server can be put through, or all of them."""
    return [name for name, scenario in SCENARIOS.items() if not (on_a_server and scenario.of_a_file)]
