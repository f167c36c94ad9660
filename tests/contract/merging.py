"""Two projects, one of which is merged into the other: the world of the tests of merges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contract.reviewing import Reviewing
from tests.factories import assert_lanes_count_right

from everkept.capture.agents.keeping import prepare, session_mark
from everkept.capture.messages import Given, check_messages
from everkept.domain.facts import FactDraft
from everkept.domain.ids import ProjectId, SubjectId
from everkept.domain.pages import PageText
from everkept.domain.passage import analyse
from everkept.domain.scope import Scope
from everkept.domain.session import AgentEvent
from everkept.models.fakes import Script
from everkept.prove.checks import check as broken
from everkept.recall.search import Query, Searcher
from everkept.store.facts import FactsOf, NewFact, write_facts
from everkept.store.merge import begin_merge
from everkept.store.merging import Merge, running_merges
from everkept.store.pages import NewPage, PageRow, write_page
from everkept.store.projects import ProjectRow, ensure_project, ensure_subject, find_project, find_subject
from everkept.store.sessions import SessionAppended, SessionBatch, SessionHeader, append_session
from everkept.store.streams import Append, Appended, append_events
from everkept.store.tables import metadata

OLD_SECRET = bytes(range(32, 64))


class Merging(Reviewing):
    """`default` and `old`, which is merged into it; what is done is done in `default` but for `in_old`."""

    def __init__(self, folder: Path, *, script: Script | None = None, **overrides: Any) -> None:
        super().__init__(folder, script=script, **overrides)
        self.here = self.project
        self.old: ProjectRow = self.write(ensure_project, "old", OLD_SECRET)
        self.searcher = Searcher(None)

    @contextmanager
    def in_old(self) -> Iterator[None]:
        """What is done meanwhile is done in the source."""
        self.project = self.old
        try:
            yield
        finally:
            self.project = self.here

    # ---- merging

    def begin(self) -> Merge:
        merge: Merge = self.write(begin_merge, "old", "default")
        self.here = self.project = self.named("default")
        return merge

    def merge(self) -> None:
        """To its end."""
        self.begin()
        self.run_until_idle()
        assert self.read(running_merges) == []

    def named(self, name: str) -> ProjectRow:
        found = self.read(find_project, name)
        assert found is not None
        return found

    # ---- telling again, as whoever knows the projects of today does

    def send(self, thread: str, *texts: str, key: str) -> list[Appended]:
        given = [Given(role="user", content=text) for text in texts]
        messages = check_messages(
            given, thread=thread, key=key, secret=self.project.secret, now_us=self.clock.now_us(),
            former=self.project.former_secrets,
        )  # fmt: skip
        batch = Append(project=self.project.id, thread=thread, subject="ana", messages=messages, base=self.settings)
        return self.run(self.store.write_item(append_events, batch))

    def tell_again(self, session: str, *events: AgentEvent) -> SessionAppended:
        project = self.project
        batch = SessionBatch(
            project=project.id, header=SessionHeader(agent="claude-code", native=session, origin="hook"),
            events=prepare(
                events, secret=project.secret, now_us=self.clock.now_us(), former=project.former_secrets
            ),
            base=self.settings, mark=session_mark("claude-code", session, project.secret),
            former_marks=tuple(session_mark("claude-code", session, s) for s in project.former_secrets),
        )  # fmt: skip
        answer: SessionAppended = self.write(append_session, batch)
        return answer

    # ---- what there is

    def recalled(self, question: str, *, subject: str | None = None) -> list[tuple[str, int]]:
        """(kind, row that it is) of all that is found, in no order; a turn by its stream and number."""
        owner = None if subject is None else self.read(find_subject, self.project.id, subject)
        whose = None if owner is None else SubjectId(owner)
        scope = Scope(project=ProjectId(self.project.id), subject=whose)
        hits = self.read(self.searcher.search, scope, Query(text=question)).hits
        return sorted((h.hit.kind, h.hit.ref or (h.hit.stream or 0) * 1000 + (h.hit.seq or 0)) for h in hits)

    def left_in_old(self) -> dict[str, int]:
        """Rows that still name the source, by table, but for what is left of it: its lanes, and subjects' numbers."""
        tables = [table.name for table in metadata.sorted_tables if "project_id" in table.c]
        counts = {t: self.value(f"select count(*) from {t} where project_id = ?", self.old.id) for t in tables}
        joined = "select count(*) from subjects where project_id = ? and merged_into is not null"
        counts["subjects"] -= self.value(joined, self.old.id)
        return {table: n for table, n in counts.items() if n and table not in ("lane_groups", "api_keys")}

    def know(self, subject: str, predicate: str, object_: str, *, key: str = "", entity: str = "Ana") -> int:
        said = self.clock.now_us()
        draft = FactDraft(
            entity=entity, predicate=predicate, object=object_, text=f"{entity} {predicate} {object_}", quote="",
            confidence=0.9, single_valued=True,
        )  # fmt: skip

        def state(conn: Any) -> int:
            of = FactsOf(
                project=self.project.id, subject=ensure_subject(conn, self.project.id, subject), window=None, slice=0,
                revision=None, key=f"hand:{key or said}",
            )  # fmt: skip
            fact = NewFact(draft=draft, said_at=said, zone_min=None, stream=None, analysed=analyse(draft.text))
            return write_facts(conn, of, [fact], "[]")[0]

        return int(self.write(state))

    def page(self, slug: str, body: str, kind: str = "note", **more: Any) -> PageRow:
        text = PageText(title=slug.title(), body=body)
        new = NewPage(project=self.project.id, kind=kind, slug=slug, text=text, author="hand", **more)
        written: PageRow | None = self.write(write_page, new)
        assert written is not None
        return written


def check(world: Merging) -> None:
    """Nothing names the source any more, and every guarantee stands."""
    assert world.left_in_old() == {}
    if world.store.path is not None:  # a server looks at references itself
        assert world.value("select count(*) from pragma_foreign_key_check") == 0
        assert [str(b) for b in broken(world.store.path)] == []
    assert_lanes_count_right(world)
