"""The ledger: what linked sessions said and did, in the order of the commits, listed and searched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.stubs.line_of_work import CLAUDE, CODEX, OTHER, LineOfWork, prompt, said

from everkept.domain.session import AgentEvent, ToolCall, natural_key
from everkept.errors import Conflict, InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.ledger import ledger_sizes


def call(id_: str, output: str, *, ended: bool = True, source: str = "hook") -> AgentEvent:
    tool = ToolCall(name="Bash", family="shell", command="make", ended=ended, output=output, outcome="ok")
    return AgentEvent(
        kind="tool", agent="claude-code", session=CLAUDE, key=natural_key("claude-code", id_), source=source,  # type: ignore[arg-type]  # of the words
        tool=tool,
    )  # fmt: skip


def test_events_of_several_agents_are_listed_in_the_order_they_were_taken_in(line: LineOfWork) -> None:
    line.worked(prompt("One"), said("Two"), key="k1")
    line.worked(prompt("Three", CODEX, "codex"), agent="codex", key="k2")
    line.worked(said("Four"), key="k3")
    assert [(e.agent, e.kind, e.text) for e in line.events()] == [
        ("claude-code", "prompt", "One"), ("claude-code", "said", "Two"), ("codex", "prompt", "Three"),
        ("claude-code", "said", "Four"),
    ]  # fmt: skip


def test_a_list_goes_on_behind_any_place(line: LineOfWork) -> None:
    line.worked(*(prompt(f"Number {n}") for n in range(7)), key="k1")
    line.worked(prompt("Last", CODEX, "codex"), agent="codex", key="k2")
    told, after = [], None
    while True:
        page = line.desk.run(line.service.workstream_events("app/main", after=after, limit=3))
        told += [e.text for e in page.items]
        if page.next_cursor is None:
            break
        after = page.next_cursor
    assert told == [*(f"Number {n}" for n in range(7)), "Last"]


def test_it_is_searched_by_words_of_its_sessions_alone(line: LineOfWork) -> None:
    line.worked(prompt("Mend the pelican parser"), said("The parser was mended"), key="k1")
    ingest = line.desk.app.ingest(project="default", confined=True)
    line.desk.run(ingest.events([prompt("Another pelican parser", OTHER)]))
    assert line.texts(query="pelican parsers") == ["Mend the pelican parser"]
    assert len(line.texts(query="parser")) == 2
    assert line.texts(query="albatross") == []
    with pytest.raises(InvalidInput):
        line.texts(query="parser", after="1.1")


def test_a_session_that_is_linked_late_brings_all_it_has_behind_every_cursor(line: LineOfWork) -> None:
    ingest = line.desk.app.ingest(project="default", confined=True)
    line.desk.run(ingest.events([prompt("Told before"), said("Answered before")]))
    line.worked(prompt("Elsewhere", CODEX, "codex"), agent="codex", key="k1")
    end = line.events()[-1].place
    launch = line.prepare("k2")
    line.tell(launch, said("Since"))
    line.tell(launch, said("Since"))
    assert line.texts(after=end) == ["Told before", "Answered before", "Since"]


def test_a_fuller_telling_stands_in_the_place_of_the_poorer(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.tell(launch, call("t1", "", ended=False))
    line.tell(launch, call("t1", "all built", source="transcript"))
    (told,) = line.events()
    assert "all built" in told.text


def test_what_nobody_needs_to_see_is_covered(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.tell(
        launch, prompt("Environment", genuine=False), said("A summary", evidence=False),
        AgentEvent(kind="notification", agent="claude-code", session=CLAUDE, key="claude-code:n1", source="launch",
                   text="Waiting"), prompt("Seen"),
    )  # fmt: skip
    assert line.texts() == ["Seen"]
    assert line.desk.run(line.service.get_workstream("app/main")).entries == 4


def test_one_session_in_two_workstreams_tells_both(line: LineOfWork) -> None:
    first = line.prepare("k1")
    line.tell(first, prompt("One"))
    line.finish(first)
    line.desk.run(line.service.create_workstream("second"))
    second = line.prepare("k2", workstream="second")
    line.tell(second, said("Two"))
    assert line.texts() == ["One", "Two"]
    assert line.texts(workstream="second") == ["One", "Two"]


def test_the_ledger_has_the_projects_own_numbers(line: LineOfWork) -> None:
    line.worked(prompt("One"), key="k1")
    line.worked(prompt("Two", CODEX, "codex"), agent="codex", key="k2")
    numbers = {r[0] for r in line.rows("select seq from workstream_ledger")}
    told = {r[0] for r in line.rows("select seq from changes where kind in ('session.appended', 'workstream.linked')")}
    assert numbers <= told


def test_a_workstream_with_numbers_of_another_project_still_grows_behind_its_cursors(line: LineOfWork) -> None:
    """After projects were merged its numbers may be ahead of the counter of the project that it is in now."""
    line.worked(prompt("One"), key="k1")
    store = line.desk.app.parts.store
    line.desk.run(store.write(lambda conn: conn.raw.execute("update workstream_ledger set seq = seq + 1000000")))
    launch = line.prepare("k2", agent="codex", native_session=CODEX)
    line.accept(launch)
    line.finish(launch)
    line.worked(said("Two"), key="k3")
    line.worked(prompt("Three", OTHER, "gemini"), agent="gemini", key="k4")
    packet = line.prepare("k5", agent="codex", native_session=CODEX).packet
    assert packet is not None
    assert packet.shown == 2


def test_what_a_merge_brought_is_found_by_its_words(line: LineOfWork) -> None:
    here = line.service
    line.desk.run(here.create_project("old"))
    for n in range(20):  # else the ledger of the source would be ahead of the target's changes
        line.desk.run(here.create_workstream(f"line {n}"))
    line.service = line.desk.run(line.desk.app.service("old"))
    line.worked(prompt("Paint the lighthouse"), key="k1")
    line.desk.run(here.merge_project("old", into="default"))
    line.desk.settle()
    line.service = here
    assert line.texts(query="lighthouse") == line.texts() == ["Paint the lighthouse"]


def test_names_are_unique_and_selections_follow_the_last(line: LineOfWork) -> None:
    line.desk.run(line.service.create_workstream("one", place="/code/app"))
    two = line.desk.run(line.service.create_workstream("two", place="/code/app"))
    assert line.desk.run(line.service.create_workstream("two")).id == two.id
    listed = line.desk.run(line.service.list_workstreams()).items
    assert [(w.name, w.selected_in) for w in listed] == [("two", ["/code/app"]), ("one", [])]
    line.desk.run(line.service.select_workstream("one", place="/code/app"))
    assert line.prepare("k1").workstream == "one"
    with pytest.raises(Conflict, match="called 'one' already"):
        line.desk.run(line.service.rename_workstream("two", "one"))
    assert line.desk.run(line.service.rename_workstream("two", "three")).id == two.id
    with pytest.raises(NotFound):
        line.desk.run(line.service.get_workstream("two"))
    with pytest.raises(InvalidInput, match="look like an id"):
        line.desk.run(line.service.create_workstream("wst_1"))


def test_no_write_waits_until_a_long_ledger_was_counted(line: LineOfWork, monkeypatch: pytest.MonkeyPatch) -> None:
    line.worked(prompt("Build it"), key="k1")
    only_read: list[bool] = []

    def counted(conn: Connection, workstreams: Sequence[int]) -> dict[int, tuple[int, int | None]]:
        asked = "pragma query_only" if conn.dialect.name == "sqlite" else "show transaction_read_only"
        only_read.append(conn.raw.execute(asked).fetchone()[0] in (1, "on"))
        return ledger_sizes(conn, workstreams)

    monkeypatch.setattr("everkept.api.workstreams.ledger_sizes", counted)
    made = line.desk.run(line.service.create_workstream("app/main", place="/code/other"))
    chosen = line.desk.run(line.service.select_workstream("app/main", place="/code/third"))
    renamed = line.desk.run(line.service.rename_workstream("app/main", "main"))
    assert (made.entries, chosen.entries, renamed.entries) == (1, 1, 1)
    assert (made.selected_in, renamed.name) == (["/code/app", "/code/other"], "main")
    assert only_read == [True, True, True]
