"""Check a store's file against what clients were told, and against itself (G1 to G15).

Plain SQL, independent of `everkept.store`, over a file that somebody may have open. What was told must be there, once;
what was asked without an answer may be there once, wholly, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from everkept.prove.invariants import ALWAYS, DRAINED, Invariant
from everkept.prove.record import Asked, History, Record, read_record
from everkept.store.sqlite import choose_driver

SHOWN_MAX = 5
"""Rows of one broken invariant that are shown."""
NEVER = 1 << 60
"""The line of an answer that never came."""
BUSY_S = 30.0
CHECKS_TEXT = (3, 45, 0)
"""From this version on SQLite's own check of a file looks at full-text indexes too, and writes nothing for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    guarantee: str
    """G1 to G16."""
    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.guarantee}: {self.what} ({self.where})"


def check(store: Path | Any, record: Record | Path | History | None = None, *, deaths: int = 0) -> list[Violation]:
    """All that must hold at this instant; an empty list is the proof.

    `store` is the file or an open driver connection to it. `deaths`: processes that were killed, each of which may have
    taken one paid reply to its grave.
    """
    history = _history(record)

    def look(raw: Any) -> Iterator[Violation]:
        yield from _whole(raw)
        yield from _broken(raw, ALWAYS)
        yield from _Told(raw, history, deaths).violations()

    return _looked(store, look)


def check_drained(
    store: Path | Any, record: Record | Path | History | None = None, *, deaths: int = 0
) -> list[Violation]:
    """As `check`, once nothing is due any more: everything is remembered or visibly failed, nothing erased is left."""
    history = _history(record)

    def look(raw: Any) -> Iterator[Violation]:
        yield from _whole(raw)
        yield from _broken(raw, (*ALWAYS, *DRAINED))
        yield from _Told(raw, history, deaths).violations()
        yield from _left_of_erased(raw, history, store if isinstance(store, Path) else None)

    return _looked(store, look)


def _history(record: Record | Path | History | None) -> History:
    if record is None or isinstance(record, History):
        return record or History()
    return read_record(record if isinstance(record, Path) else record.path)


def _looked(store: Path | Any, look: Callable[[Any], Iterator[Violation]]) -> list[Violation]:
    """All that `look` finds; where the file is too damaged to be read on, that is what it found last."""
    found: list[Violation] = []
    damaged = choose_driver().module.DatabaseError
    try:
        with opened(store) as raw:
            found.extend(look(raw))
    except damaged as error:
        if type(error) is not damaged:  # a lock, a full disk, a wrong query: errors of their own, derived from this one
            raise
        found.append(_damage(str(error)))
    return found


def _damage(where: str) -> Violation:
    return Violation(guarantee="G1", what="the file is damaged", where=where)


@contextmanager
def opened(store: Path | Any) -> Iterator[Any]:
    """A connection, inside one read transaction: all queries see the same instant."""
    raw: Any = store
    if isinstance(store, Path):
        raw = choose_driver().module.connect(str(store), isolation_level=None, timeout=BUSY_S)
    try:
        raw.execute("begin")
        yield raw
    finally:
        if raw.in_transaction:
            raw.execute("rollback")
        if isinstance(store, Path):
            raw.close()


# ---- the file


def _whole(raw: Any) -> Iterator[Violation]:
    faults = [str(r[0]) for r in raw.execute("pragma integrity_check(5)").fetchall() if r[0] != "ok"]
    faults += [f"a row of {r[0]} refers to nothing" for r in raw.execute("pragma foreign_key_check").fetchmany(5)]
    yield from map(_damage, faults)
    if not faults and choose_driver().module.sqlite_version_info < CHECKS_TEXT:
        _check_text(raw)


def _check_text(raw: Any) -> None:
    """FTS5's own check. It is an insert, so it has a private copy and no lock on the store. Raises DatabaseError."""
    private = choose_driver().module.connect(":memory:", isolation_level=None)
    try:
        raw.backup(private)
        private.execute("insert into passage_text(passage_text, rank) values('integrity-check', 1)")
    finally:
        private.close()


def _broken(raw: Any, invariants: Iterable[Invariant]) -> Iterator[Violation]:
    for invariant in invariants:
        for row in raw.execute(invariant.query).fetchmany(SHOWN_MAX):
            yield Violation(guarantee=invariant.guarantee, what=invariant.what, where=" ".join(map(str, row)))


# ---- what clients were told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One message of one asking."""

    asked: Asked
    index: int
    project: str
    thread: str
    subject: str | None
    key: str | None
    content: str

    @property
    def unit(self) -> tuple[str, str]:
        """What may be there once: a key's message, else this very asking's."""
        return ("key", self.key) if self.key else (self.asked.id, str(self.index))

    @property
    def seq(self) -> int | None:
        return None if self.asked.told is None else int(self.asked.told["seqs"][self.index])


def _shown(project: str, thread: str, content: str) -> str:
    return f"{project}/{thread}: {content[:60]!r}"


class _Told:
    """A record held against a file."""

    def __init__(self, raw: Any, history: History, deaths: int) -> None:
        self._raw = raw
        self._history = history
        self._deaths = deaths

    def violations(self) -> Iterator[Violation]:
        yield from self._appended()
        yield from self._refused()
        yield from self._whole_batches()
        yield from self._created()
        yield from self._ended()
        yield from self._remembered()
        yield from self._forgotten()
        yield from self._erased()
        yield from self._acknowledged()
        yield from self._paid()
        yield from self._changed()

    def _one(self, sql: str, *params: Any) -> Any:
        row = self._raw.execute(sql, params).fetchone()
        return None if row is None else row[0]

    @cached_property
    def _erases(self) -> list[Asked]:
        return self._history.of("erase")

    @cached_property
    def _projects(self) -> dict[str, int]:
        """By every name that a project has had, its number; erased ones are left out. Merged ones are the others."""
        found = dict(self._raw.execute(
            "select name, coalesce(merged_into, id) from projects where erased_at is null").fetchall())  # fmt: skip
        for rename in reversed(self._history.of("rename")):
            old, new = rename.what["project"], rename.what["new"]
            if new in found:
                found.setdefault(old, found[new])
            elif old in found:
                found[new] = found[old]
        return found

    def _stream(self, project: str, thread: str) -> int | None:
        """By its name in the project, also while a merge brings it, and where that had to call it otherwise."""
        number = self._projects.get(project)
        now = self._one(
            "select r.value ->> 2 from merges m, json_each(m.renamed) r"
            " where m.source_name = ? and r.value ->> 0 = 'thread' and r.value ->> 1 = ?", project, thread,
        )  # fmt: skip
        found: int | None = self._one(
            "select s.id from streams s join subjects u on u.id = s.subject_id and u.erased_at is null"
            " join projects p on p.id = s.project_id where ? in (p.id, p.merged_into) and s.name = ?"
            " and s.erased_at is null order by p.name <> ? limit 1",
            number, thread if now is None else now, project,
        )  # fmt: skip
        return found

    # ---- messages

    @cached_property
    def _said(self) -> list[_Said]:
        return [
            _Said(
                asked=a, index=i, project=a.what["project"], thread=a.what["thread"], subject=a.what["subject"],
                key=m["key"], content=m["content"],
            )
            for a in self._history.of("append")
            for i, m in enumerate(a.what["messages"])
        ]  # fmt: skip

    @cached_property
    def _of_thread(self) -> dict[tuple[str, str], list[_Said]]:
        found: dict[tuple[str, str], list[_Said]] = {}
        for said in self._said:
            found.setdefault((said.project, said.thread), []).append(said)
        return found

    @cached_property
    def _of_asking(self) -> dict[str, list[_Said]]:
        found: dict[str, list[_Said]] = {}
        for said in self._said:
            found.setdefault(said.asked.id, []).append(said)
        return found

    def _fate(self, said: _Said) -> str:
        """`kept`; `erased`, where an erase was told after it; `either`, where nobody can say.

        What was erased stays out when it is sent again under its key.
        """
        fates = {self._fate_of_asking(said)}
        if said.key:
            fates |= {self._fate_of_asking(one) for one in self._of_key[said.project, said.key] if one is not said}
        return next(fate for fate in ("erased", "either", "kept") if fate in fates)

    @cached_property
    def _of_key(self) -> dict[tuple[str, str], list[_Said]]:
        found: dict[tuple[str, str], list[_Said]] = {}
        for said in self._said:
            if said.key:
                found.setdefault((said.project, said.key), []).append(said)
        return found

    def _fate_of_asking(self, said: _Said) -> str:
        fate = "kept"
        for erase in self._erases_near(said):
            if not self._covers(erase, said) or (erase.told_line or NEVER) < said.asked.line:
                continue
            if erase.told_line is not None and (said.asked.told_line or NEVER) < erase.line:
                return "erased"
            fate = "either"
        return fate

    def _erases_near(self, said: _Said) -> Iterator[Asked]:
        """All erases that may cover it: thousands of messages are each held against hundreds of erases."""
        yield from self._erases_by_name.get(("project", None), ())
        yield from self._erases_by_name.get(("thread", said.thread), ())
        yield from self._erases_by_name.get(("event", said.thread), ())
        if said.subject is not None:
            yield from self._erases_by_name.get(("subject", said.subject), ())
        else:
            yield from (erase for erase in self._erases if erase.what["kind"] == "subject")

    @cached_property
    def _erases_by_name(self) -> dict[tuple[str, str | None], list[Asked]]:
        found: dict[tuple[str, str | None], list[Asked]] = {}
        for erase in self._erases:
            kind = erase.what["kind"]
            found.setdefault((kind, None if kind == "project" else str(erase.what["name"])), []).append(erase)
        return found

    def _covers(self, erase: Asked, said: _Said) -> bool:
        what = erase.what
        if not self._same_project(what["project"], said.project):
            return False
        match what["kind"]:
            case "project":
                return True
            case "subject":
                return said.subject is None or said.subject == what["name"]
            case "thread":
                return said.thread == str(what["name"])
            case _:
                return said.thread == what["name"] and said.seq in (None, what["seq"])

    def _same_project(self, one: str, other: str) -> bool:
        return one == other or (self._projects.get(one, -1) == self._projects.get(other, -2))

    def _appended(self) -> Iterator[Violation]:
        """Each told message is at its place; no message is there more often than it was said."""
        by_text: dict[tuple[str, str, str], list[_Said]] = {}
        for said in self._said:
            by_text.setdefault((said.project, said.thread, said.content), []).append(said)
        counts: dict[tuple[str, str], Counter[str]] = {}
        for (project, thread, content), group in by_text.items():
            stream = self._stream(project, thread)
            if (project, thread) not in counts:
                rows = self._raw.execute("select content from events where stream_id = ?", (stream,))
                counts[project, thread] = Counter(r[0] for r in rows)
            where = _shown(project, thread, content)
            most = {s.unit for s in group if self._fate(s) != "erased"}
            least = {s.unit for s in group if self._fate(s) == "kept" and s.seq is not None}
            there = counts[project, thread][content]
            if there < len(least):
                yield Violation(guarantee="G1", what=f"told {len(least)} times, there {there} times", where=where)
            if there > len(most):
                yield Violation(guarantee="G2", what=f"said {len(most)} times, there {there} times", where=where)
            yield from self._in_place(stream, group, where)

    def _refused(self) -> Iterator[Violation]:
        """What was refused did not happen, unless it was asked for once more."""
        asked = {(s.project, s.thread, s.content) for s in self._said}
        for ask in self._history.asked:
            if ask.verb != "append" or ask.refused is None:
                continue
            project, thread = ask.what["project"], ask.what["thread"]
            for content in (m["content"] for m in ask.what["messages"]):
                stream = self._stream(project, thread)
                there = self._one("select 1 from events where stream_id = ? and content = ?", stream, content)
                if there and (project, thread, content) not in asked:
                    where = _shown(project, thread, content)
                    yield Violation(guarantee="G2", what=f"refused ({ask.refused}), and there", where=where)

    def _in_place(self, stream: int | None, group: Sequence[_Said], where: str) -> Iterator[Violation]:
        places: dict[tuple[str, str], int] = {}
        for said in group:
            if said.seq is None or self._fate(said) != "kept":
                continue
            if places.setdefault(said.unit, said.seq) != said.seq:
                yield Violation(guarantee="G2", what="one key was told two places", where=where)
            content = self._one("select content from events where stream_id = ? and seq = ?", stream, said.seq)
            if content != said.content:
                yield Violation(guarantee="G1", what=f"not at the place it was told, {said.seq}", where=where)

    def _whole_batches(self) -> Iterator[Violation]:
        """A batch is there whole or not at all."""
        texts = Counter((s.project, s.thread, s.content) for s in self._said)
        for ask in self._history.of("append"):
            mine = self._of_asking.get(ask.id, [])
            alone = all(texts[s.project, s.thread, s.content] == 1 for s in mine)
            if len(mine) < 2 or ask.told is not None or not alone or any(self._fate(s) != "kept" for s in mine):
                continue
            stream = self._stream(mine[0].project, mine[0].thread)
            there = sum(
                self._one("select count(*) from events where stream_id = ? and content = ?", stream, s.content)
                for s in mine
            )
            if there not in (0, len(mine)):
                where = _shown(mine[0].project, mine[0].thread, mine[0].content)
                yield Violation(guarantee="G2", what=f"{there} of a batch of {len(mine)} are there", where=where)

    # ---- threads

    def _thread_fate(self, asked: Asked) -> str:
        what = asked.what
        place = _Said(asked=asked, index=0, project=what["project"], thread=what["thread"],
                      subject=what.get("subject"), key=None, content="")  # fmt: skip
        erases = [e for e in self._erases if e.what["kind"] != "event" and self._covers(e, place)]
        return "either" if any((e.told_line or NEVER) > asked.line for e in erases) else "kept"

    def _created(self) -> Iterator[Violation]:
        for ask in self._history.of("create"):
            if ask.told is None or self._thread_fate(ask) != "kept":
                continue
            if self._stream(ask.what["project"], ask.what["thread"]) is None:
                where = f"{ask.what['project']}/{ask.what['thread']}"
                yield Violation(guarantee="G1", what="a thread that was created is gone", where=where)

    def _ended(self) -> Iterator[Violation]:
        """An end that was told is done, or written down: its messages are covered, or asked to be."""
        for ask in self._history.of("end"):
            if ask.told is None or self._thread_fate(ask) != "kept":
                continue
            project, thread = ask.what["project"], ask.what["thread"]
            said = self._of_thread.get((project, thread), [])
            before = [
                s.seq
                for s in said
                if s.seq is not None and (s.asked.told_line or NEVER) < ask.line and self._fate(s) == "kept"
            ]
            last = max(before, default=0)
            reached = self._one(
                "select max(covered_seq, end_through) from streams where id = ?", self._stream(project, thread)
            )
            if last and (reached or 0) < last:
                yield Violation(guarantee="G1", what="an end was told and forgotten", where=f"{project}/{thread}")

    # ---- facts by hand

    def _subject_fate(self, asked: Asked) -> str:
        what = asked.what
        erases = [
            e for e in self._erases
            if e.what["kind"] in ("subject", "project") and self._same_project(e.what["project"], what["project"])
            and (e.what["kind"] == "project" or "subject" not in what or e.what["name"] == what["subject"])
        ]  # fmt: skip
        return "either" if any((e.told_line or NEVER) > asked.line for e in erases) else "kept"

    def _remembered(self) -> Iterator[Violation]:
        units: dict[tuple[str, str, str], list[Asked]] = {}
        for ask in self._history.of("remember"):
            units.setdefault((ask.what["project"], ask.what["subject"], ask.what["text"]), []).append(ask)
        for (project, subject, text), asks in units.items():
            there = self._one(
                "select count(*) from facts f join projects p on p.id = f.project_id join subjects o on"
                " o.id = f.subject_id join subjects u on u.id = coalesce(o.merged_into, o.id)"
                " where ? in (p.id, p.merged_into) and u.name = ? and f.text = ? and f.window_id is null",
                self._projects.get(project), subject, text,
            )  # fmt: skip
            most = len({a.what["key"] or a.id for a in asks})
            least = len({a.what["key"] or a.id for a in asks if a.told is not None and self._subject_fate(a) == "kept"})
            where = f"{project}/{subject}: {text[:60]!r}"
            if there < least:
                yield Violation(guarantee="G1", what=f"stated {least} times, there {there} times", where=where)
            if there > most:
                yield Violation(guarantee="G2", what=f"stated {most} times, there {there} times", where=where)

    def _forgotten(self) -> Iterator[Violation]:
        last: dict[tuple[str, int], list[Asked]] = {}
        for ask in self._history.of("forget"):
            last.setdefault((ask.what["project"], ask.what["fact"]), []).append(ask)
        for (project, fact), asks in last.items():
            told = [a for a in asks if a.told is not None]
            open_ = [a for a in asks if a.told is None and a.line > (told[-1].line if told else -1)]
            retired = self._one("select retired_by_hand from facts where id = ?", fact)
            allowed = {not told[-1].what["undo"] if told else False, *(not a.what["undo"] for a in open_)}
            if retired is not None and bool(retired) not in allowed:
                where = f"{project}: fct_{fact}"
                yield Violation(guarantee="G1", what="a fact is not as it was told by hand", where=where)
            if retired is None and allowed == {True} and self._believed(project, told[-1].what["text"]):
                where = f"{project}: {told[-1].what['text'][:60]!r}"
                yield Violation(guarantee="G9", what="derived again, a forgotten fact is believed", where=where)

    def _believed(self, project: str, text: str) -> bool:
        return bool(self._one(
            "select count(*) from facts where project_id = ? and text = ? and live and window_id is not null",
            self._projects.get(project), text,
        ))  # fmt: skip

    # ---- erasing

    def _erased(self) -> Iterator[Violation]:
        """An erase that was told is written down at once; what it covers is hidden from then on."""
        for ask in self._erases:
            if ask.told is None or ask.what["kind"] not in ("thread", "subject", "project"):
                continue
            if self._named_again(ask):
                continue
            project, kind, name = ask.what["project"], ask.what["kind"], ask.what["name"]
            there = (
                self._projects.get(project) if kind == "project"
                else self._stream(project, name) if kind == "thread"
                else self._one("select id from subjects where project_id = ? and name = ? and erased_at is null",
                               self._projects.get(project), name)
            )  # fmt: skip
            if there is not None:
                yield Violation(guarantee="G10", what=f"an erased {kind} is still there", where=f"{project}/{name}")

    def _named_again(self, erase: Asked) -> bool:
        """Whether the name may mean somebody new by now."""
        kind, name = erase.what["kind"], erase.what["name"]
        for ask in self._history.of("append", "create", "remember", "rename", "change"):
            if (ask.told_line or NEVER) < erase.line:
                continue
            if kind == "project" or ask.what.get(kind) == name:
                return True
        return False

    # ---- followers

    def _acknowledged(self) -> Iterator[Violation]:
        asks: dict[tuple[str, str], list[Asked]] = {}
        for ask in self._history.of("ack"):
            asks.setdefault((ask.what["project"], ask.what["consumer"]), []).append(ask)
        for (project, consumer), mine in asks.items():
            number = self._projects.get(project)
            if number is None:
                continue
            cursor = self._one("select cursor from consumers where project_id = ? and name = ?", number, consumer) or 0
            least = max((a.what["upto"] for a in mine if a.told is not None), default=0)
            most = max(a.what["upto"] for a in mine)
            where = f"{project}/{consumer}: the cursor is {cursor}"
            if cursor < least:
                yield Violation(guarantee="G11", what=f"{least} was acknowledged", where=where)
            if cursor > most:
                yield Violation(guarantee="G11", what=f"no more than {most} was acknowledged", where=where)

    # ---- money

    def _paid(self) -> Iterator[Violation]:
        """Every reply that was paid for is in the journal, but for those that died with their process."""
        if self._erases:
            return
        paid = sum(a.told is not None for a in self._history.of("question"))
        kept = int(self._one("select count(*) from replies where text is not null"))
        if paid - kept > self._deaths:
            where = f"{paid} were answered, {kept} are kept, {self._deaths} processes died"
            yield Violation(guarantee="G8", what="paid replies are not in the journal", where=where)

    # ---- everything else

    def _changed(self) -> Iterator[Violation]:
        """Any other command is wholly there or not at all; the last one that was told binds."""
        commands: dict[str, list[Asked]] = {}
        for ask in self._history.of("change"):
            commands.setdefault(ask.what["sql"], []).append(ask)
        for sql, asks in commands.items():
            allowed = [asks[0].what["before"]]
            for ask in asks:
                allowed = [ask.what["after"]] if ask.told is not None else [*allowed, ask.what["after"]]
            found = self._one(sql)
            if found not in allowed:
                where = f"{found!r} is there, {' or '.join(map(repr, allowed))} was expected"
                yield Violation(guarantee="G1", what=f"not as told: {asks[-1].what['what']}", where=where)


# ---- after an erase


def _left_of_erased(raw: Any, history: History, file: Path | None) -> list[Violation]:
    """Texts of messages whose erase was told stand nowhere: in no table, and in no page of the file."""
    told = _Told(raw, history, 0)
    fates: dict[str, set[str]] = {}
    for said in told._said:
        fates.setdefault(said.content, set()).add(told._fate(said))
    erased = [text for text, fate in fates.items() if fate == {"erased"} and len(text) >= 12]
    if not erased:
        return []
    found = []
    clean = raw.execute("select 1 from erasures where done_at is null or unclean is not null").fetchone() is None
    pages = file.read_bytes() + _log_of(file) if file is not None and clean else b""
    quotes = [text[:40] for text in erased]
    for table, column in _text_columns(raw):
        kept = "\n".join(
            str(r[0]) for r in raw.execute(f'select "{column}" from "{table}" where "{column}" is not null')
        )
        found += [
            Violation(guarantee="G10", what=f"erased text in {table}.{column}", where=repr(quote))
            for quote in quotes
            if quote in kept
        ]
    found += [
        Violation(guarantee="G10", what="erased text in the file", where=repr(quote))
        for quote in quotes
        if quote.encode() in pages
    ]
    return found


def _log_of(file: Path) -> bytes:
    log = Path(f"{file}-wal")
    return log.read_bytes() if log.exists() else b""


def _text_columns(raw: Any) -> list[tuple[str, str]]:
    tables = [r[0] for r in raw.execute("select name from sqlite_master where type = 'table' and sql is not null")]
    return [
        (table, row[1])
        for table in tables
        if not table.startswith(("sqlite_", "passage_text", "passage_terms", "alembic"))
        for row in raw.execute(f'pragma table_info("{table}")').fetchall()
        if row[2].upper() in ("TEXT", "VARCHAR(32)")
    ]
