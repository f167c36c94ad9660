"""Safety: what must hold after each step, read from the file itself and compared with the oracle."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from tests.crash.model.oracle import Message, Oracle, must
from tests.crash.model.process import Process
from tests.crash.model.provider import WORD

from everkept.derive.kinds import periodic_tasks
from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.errors import NotFound
from everkept.store.connection import Connection
from everkept.store.joblist import list_jobs
from everkept.store.receipts import ReceiptRow, receipts_of
from everkept.store.search import find_postings, load_hits
from everkept.store.status import read_given_up

TEXTS = {
    "projects": "settings", "subjects": "name", "streams": "name || settings || coalesce(summary, '')",
    "events": "coalesce(content, '') || coalesce(metadata, '') || coalesce(name, '')",
    "windows": "coalesce(summary, '') || coalesce(learnings, '')",
    "slices": "coalesce(summary, '') || coalesce(learnings, '') || coalesce(rejected, '')",
    "passage_text": "speaker || ' ' || own || ' ' || said || ' ' || before",
    "entities": "name || norm", "entity_aliases": "name || norm",
    "facts": "text || object || object_norm || coalesce(quote, '') || replaces", "verdicts": "coalesce(reason, '')",
    "jobs": "args || coalesce(error, '') || history", "changes": "ref || data",
    "replies": "coalesce(text, '') || recipe",
    "passages": "coalesce(speaker, '')",
}  # fmt: skip
"""Every place where words of users can stand."""
MAY_REPAIR = ("sweep_abandoned", "expire_leases")
"""Beside the routine ones. All other backstops find nothing, ever: what they look for is scheduled with its cause."""


class Safety:
    def __init__(self, process: Process, oracle: Oracle, projects: dict[str, int], tally: Counter[str]) -> None:
        self.process = process
        self.oracle = oracle
        self.projects = projects
        self.tally = tally
        self._windows: dict[tuple[int, int], int] = {}
        self._fences: dict[int, int] = {}

    # ---- after each step: numbers alone

    def quick(self) -> None:
        self.streams_hold_what_was_accepted()
        self.windows_tile()
        self.jobs_are_booked_right()
        self.lanes_count_right()

    def streams_hold_what_was_accepted(self) -> None:
        """G1: no message more, none less; and whatever waits for a window has something that will open it."""
        last = {s: (n, covered, erased) for s, n, covered, erased in self.process.rows(
            "select id, last_seq, covered_seq, erased_at is not null from streams")}  # fmt: skip
        for stream, log in self.oracle.logs.items():
            must(stream in last, "G1", f"stream {stream} is gone")
            must(last[stream][0] == len(log), "G1", f"stream {stream} has {last[stream][0]} of {len(log)} messages")
            erased = bool(last[stream][2])
            must(erased == (stream in self.oracle.erased_streams), "G10", f"stream {stream}: erased {erased}")
        empty = [s for s, (n, _, _) in last.items() if n and s not in self.oracle.logs]
        must(not empty, "G1", f"streams {empty} hold messages that nobody was told of")

    def windows_tile(self) -> None:
        """G5: each begins where the one before ended, the last ends where the stream is covered, none ever moves."""
        found: dict[tuple[int, int], int] = {}
        rows = self.process.rows(
            "select w.stream_id, w.start_seq, w.end_seq, s.covered_seq from windows w"
            " join streams s on s.id = w.stream_id"
            " where s.erased_at is null order by 1, 2"
        )
        before: tuple[int, int] = (0, 0)
        covered: dict[int, tuple[int, int]] = {}
        for stream, start, end, through in rows:
            expected = before[1] + 1 if before[0] == stream else 1
            must(start == expected and end >= start, "G5", f"stream {stream}: a window [{start}, {end}] after {before}")
            must(end - start < self.process.settings.window.events_max, "G5", f"window [{start}, {end}] is too long")
            found[stream, start] = end
            before = stream, end
            covered[stream] = end, through
        for stream, (end, through) in covered.items():
            must(end == through, "G5", f"stream {stream} is covered through {through}, its windows through {end}")
        for (stream, start), end in self._windows.items():
            if stream not in self.oracle.erased_streams:
                must(found.get((stream, start)) == end, "G5", f"window [{start}, {end}] of stream {stream} moved")
        self.tally["window.opened"] += len(found.keys() - self._windows.keys())
        self._windows = found

    def jobs_are_booked_right(self) -> None:
        """G6, G7, G13, G14, of every job there is."""
        o = self.oracle
        serial: Counter[str] = Counter()
        timers = set()
        for job, kind, key, state, fence, crashes, serial_key, lane, error, error_class, history, finished in (
            self.process.rows(
                "select id, kind, key, state, fence, crashes, serial_key, lane_id, error, error_class, history,"
                " finished_at from jobs"
            )
        ):  # fmt: skip
            must(fence >= self._fences.get(job, 0), "G6", f"the fence of {kind} {key} went back")
            self._fences[job] = fence
            if kind == "open_window" and state in ("waiting", "ready", "leased", "dead"):
                timers.add(int(key))
            if state == "leased":
                serial[serial_key or f"job {job}"] += 1
                serial[f"facts of lane {lane}"] += kind == "extract_facts"
                must(job in o.leases, "G6", f"{kind} {key} is leased, and no worker was told")
            if state not in ("done", "discarded"):
                must(
                    crashes == o.unreported[job],
                    "G7", f"{kind} {key} ({state}) has {crashes} crashes on its books, {o.unreported[job]} happened",
                )  # fmt: skip
            if state == "dead":
                must(
                    bool(error and error_class and finished) and history != "[]",
                    "G14", f"{kind} {key} is dead without a cause",
                )  # fmt: skip
                if error_class == "crashed":
                    must(o.unreported[job] >= 5, "G7", f"{kind} {key} is dead after {o.unreported[job]} crashes")
                self.tally[f"dead.{error_class}"] += 1
        twice = [k for k, n in serial.items() if n > 1]
        must(not twice, "G13", f"{twice} are worked twice at once")
        for stream, settings, of_project in self.process.rows(
            "select s.id, s.settings, p.settings from streams s join projects p on p.id = s.project_id"
            " where s.covered_seq < s.last_seq and s.erased_at is null"
        ):
            now = {"memory.enabled": True, "window.idle_s": 0, **json.loads(of_project), **json.loads(settings)}
            if now["memory.enabled"] and now["window.idle_s"] is not None:
                must(stream in timers, "G3", f"stream {stream} holds messages that nothing will open a window over")

    def lanes_count_right(self) -> None:
        """G13: what the counters say is what the jobs say."""
        jobs: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        place = {"local": 1, "model": 2, "embedder": 3}
        for lane, state, uses, n in self.process.rows(
            "select lane_id, state, uses, count(*) from jobs where state in ('leased', 'ready') group by 1, 2, 3"
        ):
            jobs[lane][0 if state == "leased" else place[uses]] += n
        groups: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for lane, group, *counts in self.process.rows(
            "select id, group_id, running, ready_local, ready_model, ready_embedder from lanes"
        ):
            must(counts == jobs[lane], "G13", f"lane {lane} counts {counts}, its jobs are {jobs[lane]}")
            groups[group] = [a + b for a, b in zip(groups[group], counts, strict=True)]
        for group, *counts in self.process.rows(
            "select id, running, ready_local, ready_model, ready_embedder from lane_groups"
        ):
            must(counts == groups[group], "G13", f"project {group} counts {counts}, its lanes {groups[group]}")

    # ---- now and then: contents

    def full(self) -> None:
        self.contents_are_what_was_said()
        self.receipts_tell_the_truth()
        self.effects_happened_once()
        self.latest_said_holds()
        self.erased_is_nowhere()
        self.changes_are_dense()
        self.failures_are_visible()
        self.projects_are_apart()
        self.sweeps_found_nothing()

    def contents_are_what_was_said(self) -> None:
        """G1, G10: every message has its words, or none if it was erased."""
        rows = {(s, q): (content, erased) for s, q, content, erased in self.process.rows(
            "select stream_id, seq, content, erased_at from events")}  # fmt: skip
        for stream, log in self.oracle.logs.items():
            for seq, message in enumerate(log, 1):
                must((stream, seq) in rows, "G1", f"{message.word} is gone")
                content, erased = rows[stream, seq]
                if not message.erased:
                    must(content == message.text and erased is None, "G1", f"{message.word} says {content!r}")
        must(len(rows) == sum(map(len, self.oracle.logs.values())), "G1", "there are messages that nobody sent")

    def receipts(self, project: str) -> list[tuple[Message, ReceiptRow]]:
        messages = [m for m in self.oracle.messages.values() if m.project == project]
        places = [m.place for m in messages if m.place is not None]
        told = self.process.store.read_now(receipts_of, self.projects[project], places, self.process.settings)
        return list(zip(messages, told, strict=True))

    def receipts_tell_the_truth(self) -> None:
        """G3, against the effects in the file and what the model was really asked."""
        windows = {
            (stream, seq): (skipped, summary_at, facts_at, live)
            for stream, start, end, skipped, summary_at, facts_at, live in self.process.rows(
                "select w.stream_id, w.start_seq, w.end_seq, w.skipped_because, w.summary_at, w.facts_at, exists ("
                " select 1 from jobs j where j.kind in ('summarise_episode', 'extract_facts')"
                " and j.key like w.id || '.%' and j.state not in ('done', 'dead', 'discarded'))"
                " or exists (select 1 from erasures x"
                " where x.done_at is null and x.kind = 'event' and x.stream_id = w.stream_id"
                " and x.seq between w.start_seq and w.end_seq) from windows w"
            )
            for seq in range(start, end + 1)
        }
        dead = {kind for (kind,) in self.process.rows("select kind from jobs where state in ('dead', 'discarded')")}
        for project in self.projects:
            for message, receipt in self.receipts(project):
                assert message.place is not None
                self._receipt(message, receipt, windows.get(message.place), dead)

    def _receipt(
        self, message: Message, receipt: ReceiptRow, window: tuple[Any, ...] | None, dead: set[str]
    ) -> None:  # fmt: skip
        said = f"{message.word} at {message.place}: {receipt.state} ({receipt.reason})"
        if message.erased:
            # Of a scope that is still being destroyed no receipt is read by anybody: its names are gone.
            if message.place is not None and message.place[0] not in self.oracle.erased_streams:
                must(receipt.state == "erased", "G3", f"erased {said}")
            return
        must(receipt.state != "erased", "G3", said)
        self.tally[f"receipt.{receipt.state}"] += 1
        if not message.evidence:
            must(receipt.state == "skipped", "G3", f"no evidence, yet {said}")
            return
        if message.said_while_off:
            must(message.maybe_captured or receipt.state == "skipped", "G3", f"said while off, yet {said}")
            return
        if receipt.state == "remembered":
            for step in ("summary", "facts"):
                must(message.word in self.oracle.told[step], "G3", f"no {step} was ever paid for, yet {said}")
            must(window is not None and window[1] is not None and window[2] is not None, "G3", f"no effect, yet {said}")
            must(window is not None and not window[3], "G3", f"its window is worked on again, yet {said}")
        elif window is not None and window[0] is None and window[1] and window[2] and not window[3]:
            must(False, "G3", f"both stages are done, yet {said}")
        elif receipt.state == "skipped":
            must(bool(receipt.reason), "G3", f"without a reason {said}")
        elif receipt.state == "failed":
            must(bool(dead) and "retry by hand" in (receipt.reason or ""), "G3", f"nothing is dead, yet {said}")
        else:
            must(receipt.state in ("searchable", "embedded") and bool(receipt.reason), "G3", f"not searchable: {said}")

    def effects_happened_once(self) -> None:
        """Nothing twice: one fact a message, one passage a turn, fact or episode, one change an append."""
        facts = self.process.rows("select said_stream, said_seq, count(*) from facts group by 1, 2 having count(*) > 1")
        must(not facts, "G8", f"facts were written twice: {facts}")
        passages = self.process.rows(
            "select kind, coalesce(ref_id, stream_id), case when ref_id is null then seq end, count(*) from passages"
            " group by 1, 2, 3 having count(*) > 1"
        )
        must(not passages, "G1", f"passages were written twice: {passages}")
        for stream, seq, said_at in self.process.rows("select said_stream, said_seq, said_at from facts"):
            message = self.oracle.logs[stream][seq - 1]
            must(message.evidence, "G5", f"{message.word} is no evidence, and a fact rests on it")
            if not message.erased:
                must(said_at == message.occurred_us, "G9", f"the fact of {message.word} was said at {said_at}")

    def latest_said_holds(self) -> None:
        """G9: of where somebody lives only what was said last is open, whatever was worked first."""
        homes: dict[int, list[tuple[int, int, int, int, bool]]] = defaultdict(list)
        for subject, said_at, stream, seq, closed_at, retired in self.process.rows(
            "select subject_id, said_at, said_stream, said_seq, closed_at, retired_at is not null from facts"
            " where predicate = 'lives in' and subject_id not in (select id from subjects where erased_at is not null)"
        ):
            if not retired:
                homes[subject].append((said_at, stream, seq, 0, closed_at is None))
        for subject, facts in homes.items():
            last = max(facts)
            open_now = [f for f in facts if f[4]]
            must(open_now == [last], "G9", f"subject {subject} lives in {open_now}, said last was {last}")
            self.tally["home.settled"] += len(facts) > 1
        for word in self.oracle.forgotten:
            back = self.process.rows("select id from facts where live and text like ?", f"%{word}%")
            must(not back, "G9", f"the fact of {word} was forgotten by hand and is believed again")

    # ---- erased (G10)

    def erased_is_nowhere(self) -> None:
        pending = self.process.rows("select kind, subject_id, stream_id, seq from erasures where done_at is null")
        erased = [m for m in self.oracle.messages.values() if m.erased]
        if not erased:
            return
        gone = {m.word for m in erased if not any(self._covers(e, m) for e in pending)}
        residue = self.process.rows("select id from erasures where done_at is not null and coalesce(residue, 1) <> 0")
        must(not residue, "G10", f"erases {residue} are done with something left")
        if not gone:
            return
        for table, expression in TEXTS.items():
            for (text,) in self.process.rows(f"select {expression} from {table}"):
                left = gone.intersection(WORD.findall(text or ""))
                must(not left, "G10", f"{sorted(left)} stand in {table}: {text[:200]!r}")
        self.tally["erased.looked_for"] += 1

    def _covers(self, erasure: tuple[Any, ...], message: Message) -> bool:
        """Whether a pending erase may still have to destroy it: any of its subject, since lineage crosses windows."""
        kind, subject, stream, _ = erasure
        assert message.place is not None
        mine = self.process.value("select subject_id from streams where id = ?", message.place[0])
        return kind == "project" or stream == message.place[0] or subject == mine

    def not_in_the_file(self) -> None:
        """The bytes of the file and of its log hold no erased word."""
        if self.process.rows("select 1 from erasures where done_at is null or unclean is not null"):
            return
        gone = {m.word.encode() for m in self.oracle.messages.values() if m.erased}
        if not gone:
            return
        for path in (self.process.path, self.process.path.with_name(self.process.path.name + "-wal")):
            held = path.read_bytes() if path.exists() else b""
            left = sorted(word for word in gone if word in held)
            must(not left, "G10", f"{left} stand in the bytes of {path.name}")
        self.tally["erased.looked_for_in_bytes"] += 1

    def found(self, project: str, word: str) -> list[tuple[str, int | None, int | None]]:
        """(kind, stream, seq) of what a search for the word shows."""

        def search(conn: Connection) -> list[tuple[str, int | None, int | None]]:
            scope = Scope(project=ProjectId(self.projects[project]))
            ids = [
                int(i) for _, joined in find_postings(conn, scope, word, ("turn", "fact", "episode"))
                for i in joined.split(",")
            ]  # fmt: skip
            return [(hit.kind, hit.stream, hit.seq) for hit in load_hits(conn, scope, ids)]

        return self.process.store.read_now(search)

    def is_found(self, message: Message) -> None:
        """G4."""
        assert message.place is not None
        found = self.found(message.project, message.word)
        must(("turn", *message.place) in found, "G4", f"{message.word} is not found: {found}")
        for other in self.projects.keys() - {message.project}:
            must(not self.found(other, message.word), "G15", f"{message.word} is found in project {other}")

    def is_not_found(self, messages: Sequence[Message]) -> None:
        for message in messages:
            found = self.found(message.project, message.word)
            must(not found, "G10", f"{message.word} was erased, and is found: {found}")

    # ---- delivery, visibility, isolation

    def changes_are_dense(self) -> None:
        """G11: the sequence of a project has no gap, and tells of every append once."""
        for project, number in self.projects.items():
            head = self.process.value("select change_seq from projects where id = ?", number)
            seqs = [
                s for (s,) in self.process.rows("select seq from changes where project_id = ? order by seq", number)
            ]
            must(seqs == list(range(1, head + 1)), "G11", f"the changes of {project} are {seqs[-5:]}, head {head}")
        told: Counter[tuple[int, int]] = Counter()
        for stream, data in self.process.rows("select stream_id, data from changes where kind = 'messages.appended'"):
            span = json.loads(data)
            told.update((stream, seq) for seq in range(span["first_seq"], span["last_seq"] + 1))
        missing = {m.place for m in self.oracle.messages.values() if m.place is not None} - told.keys()
        must(not missing, "G11", f"no change tells of {sorted(missing)[:5]}")
        must(max(told.values(), default=1) == 1, "G11", "a change tells of a message again")

    def failures_are_visible(self) -> None:
        """G14: every dead job is listed, with its cause, where people look."""
        for project, number in self.projects.items():
            dead = {j for (j,) in self.process.rows(
                "select id from jobs where project_id = ? and state = 'dead'", number)}  # fmt: skip
            listed = {j.id for j in self.process.store.read_now(list_jobs, number, "dead", None, None, 1000) if j.error}
            must(dead == listed, "G14", f"dead in {project}: {dead}, listed: {listed}")
            shown = {i.id for i in self.process.store.read_now(read_given_up, number) if i.error}
            must(len(dead) > 20 or shown == {f"job_{j}" for j in dead}, "G14", f"given up shows {shown} of {dead}")

    def projects_are_apart(self) -> None:
        """G15: no row of one project speaks of the other's words, and its places do not exist there."""
        words = {name: {m.word for m in self.oracle.messages.values() if m.project == name} for name in self.projects}
        names = list(self.projects)
        for mine, other in zip(names, reversed(names), strict=True):
            number = self.projects[mine]
            for table in ("facts", "entities", "windows", "replies", "changes", "jobs"):
                for (text,) in self.process.rows(f"select {TEXTS[table]} from {table} where project_id = ?", number):
                    foreign = words[other].intersection(WORD.findall(text or ""))
                    must(not foreign, "G15", f"{foreign} of {other} stand in {table} of {mine}")
            foreign_place = next((m.place for m in self.oracle.messages.values() if m.project == other), None)
            if foreign_place is not None:
                try:
                    self.process.store.read_now(receipts_of, number, [foreign_place], self.process.settings)
                except NotFound:
                    self.tally["foreign.refused"] += 1
                else:
                    must(False, "G15", f"{mine} shows a receipt of {other}")

    def sweeps_found_nothing(self) -> None:
        may = {*MAY_REPAIR, *(task.name for task in periodic_tasks(self.process.settings) if task.expected)}
        for name, repaired in self.process.rows("select name, rows_repaired from periodic"):
            must(
                name in may or not repaired,
                "G6", f"{name} repaired {repaired} rows: a job was not scheduled with its cause",
            )  # fmt: skip
