"""What each tool asks of the use cases, and what it makes of their answers and errors."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.doors.mcp.memories import NoMemories, OneMemory

from everkept.api import views as v
from everkept.capture.identity import Checkout
from everkept.doors.mcp.answers import Answer
from everkept.doors.mcp.calls import Calls
from everkept.doors.mcp.place import Memories, Place
from everkept.doors.mcp.reading import EVENT_CHARS
from everkept.errors import NotFound, StoreUnavailable

HERE = Place(checkout=Checkout(cwd="/work/app", top="/work/app", branch="main"), agent="codex")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def call(memories: Memories, name: str, place: Place = HERE, **arguments: Any) -> Answer:
    return asyncio.run(Calls(memories).call(name, arguments, place))


class Recalls:
    def __init__(self, *results: v.RecallResult) -> None:
        self._results = list(results)

    async def recall(self, query: str, **asked: Any) -> v.RecallAnswer:
        return v.RecallAnswer(
            query=query, results=self._results, held_back=None, text="", tokens=0, lexical_only=False, note=None
        )


def test_nothing_found_is_an_answer_and_could_not_look_is_an_error():
    nothing = call(OneMemory(Recalls()), "recall", query="harbour")
    could_not = call(OneMemory(None, fault=StoreUnavailable("the disk is gone")), "recall", query="harbour")

    assert not nothing.failed
    assert "nothing found" in nothing.text
    assert nothing.data["results"] == []
    assert could_not.failed
    assert "could not look: the disk is gone" in could_not.text


def test_an_answer_says_where_the_newest_may_be_missing_from_it():
    found = call(OneMemory(Recalls()), "recall", query="harbour")

    assert "3 records of hooks not taken in yet" in found.text
    assert found.data["records_waiting"] == 3


def test_a_result_cites_its_id_and_the_place_in_its_page():
    page = v.RecallResult(
        kind="page", id="pag_4", text="Because it is one file.", score=2.0, subject="me", thread=None, seq=None,
        speaker=None, occurred_at=NOW, page="use-sqlite#why", heading="Why",
    )  # fmt: skip

    found = call(OneMemory(Recalls(page)), "recall", query="why")

    assert found.data["results"][0]["page"] == "use-sqlite#why"
    assert '"id": "pag_4"' in found.text


@pytest.mark.parametrize("name", ["recall", "read", "forget", "handoff", "timeline", "review"])
def test_an_unknown_folder_is_an_error_that_says_what_to_do(name):
    needed: dict[str, dict[str, Any]] = {"recall": {"query": "x"}, "read": {"id": "x"}, "forget": {"id": "x"}}

    refused = call(NoMemories(), name, **needed.get(name, {}))

    assert refused.failed
    assert refused.text.startswith("unknown_scope: there is no memory of /work/app yet")
    assert "`remember` begins it" in refused.text


def test_a_caller_whose_folder_cannot_be_seen_is_asked_for_a_project():
    refused = call(NoMemories(), "recall", Place(), query="x")

    assert refused.failed
    assert "`project`" in refused.text


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": "a", "title": "b", "body": "c"},
        {"title": "b"},
        {"body": "c"},
        {"text": "a", "slug": "b"},
        {"title": "b", "body": "c", "subject": "me"},
    ],
)
def test_remember_takes_a_fact_or_a_page_and_never_half_of_one(arguments):
    refused = call(OneMemory(None), "remember", **arguments)

    assert refused.data["error"]["code"] == "invalid_input"


class Forgets:
    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def delete_page(self, slug: str) -> v.KnowledgePage:
        self.deleted.append(slug)
        return page_of(slug=slug, body="")


def test_forget_deletes_a_page_but_neither_undoes_that_nor_touches_sessions():
    double = Forgets()

    assert not call(OneMemory(double), "forget", id="use-sqlite").failed
    assert "write it again" in call(OneMemory(double), "forget", id="use-sqlite", undo=True).text
    assert "everkept erase" in call(OneMemory(double), "forget", id="ses_4").text
    assert not call(OneMemory(double), "forget", id="use-sqlite#why").failed
    assert double.deleted == ["use-sqlite", "use-sqlite"]


class Handoffs:
    def __init__(self, *handoffs: v.Handoff) -> None:
        self._handoffs = list(handoffs)
        self.asked: dict[str, Any] = {}
        self.taken: list[tuple[str, str]] = []

    async def choose_handoff(self, **where: Any) -> v.HandoffChoice:
        self.asked = where
        if not self._handoffs:
            return v.HandoffChoice(chosen=None, because="no handoff is open", others=[])
        return v.HandoffChoice(chosen=self._handoffs[0], because="same worktree", others=self._handoffs[1:])

    async def get_handoff(self, handoff_id: str) -> v.Handoff:
        return next(each for each in self._handoffs if each.id == handoff_id)

    async def acknowledge_handoff(self, handoff_id: str, *, by: str) -> v.Handoff:
        self.taken.append((handoff_id, by))
        handoff = await self.get_handoff(handoff_id)
        return handoff.model_copy(update={"state": "acknowledged", "acknowledged_by": by})


def handoff_of(number: int) -> v.Handoff:
    return v.Handoff(
        id=f"hnd_{number}", session_id=f"ses_{number}", agent="claude-code", worktree="/work/app", branch="main",
        title=f"Session {number}", body="Tests fail in test_a.py", open_ends=["fix test_a.py"], state="open",
        acknowledged_by=None, left_at=NOW, expires_at=NOW,
    )  # fmt: skip


def test_reading_a_handoff_takes_nothing_up_and_lists_the_others():
    double = Handoffs(handoff_of(1), handoff_of(2))

    seen = call(OneMemory(double), "handoff")

    assert double.asked == {"worktree": "/work/app", "branch": "main"}
    assert double.taken == []
    assert seen.data["chosen"]["id"] == "hnd_1"
    assert [other["id"] for other in seen.data["others"]] == ["hnd_2"]
    assert "same worktree" in seen.text


def test_a_handoff_is_taken_up_in_the_name_of_the_agent():
    double = Handoffs(handoff_of(1), handoff_of(2))

    taken = call(OneMemory(double), "handoff", take=True)
    other = call(OneMemory(double), "handoff", take=True, id="hnd_2")

    assert double.taken == [("hnd_1", "codex"), ("hnd_2", "codex")]
    assert "taken up by codex" in taken.text
    assert other.data["chosen"]["id"] == "hnd_2"


def test_there_must_be_a_handoff_to_take_one_up():
    refused = call(OneMemory(Handoffs()), "handoff", take=True)

    assert refused.data["error"]["code"] == "not_found"


def test_the_place_in_this_folder_does_not_choose_among_another_projects_handoffs():
    double = Handoffs(handoff_of(1))

    call(OneMemory(double), "handoff", project="other")

    assert double.asked == {"worktree": None, "branch": None}


def page_of(*, slug: str = "use-sqlite", body: str) -> v.KnowledgePage:
    return v.KnowledgePage(
        id="pag_7", slug=slug, kind="decision", title="Use SQLite", version=2, body=body, author="codex", reason=None,
        source=None, session_id=None, superseded=False, created_at=NOW, updated_at=NOW,
    )  # fmt: skip


class Reads:
    def __init__(self, body: str = "", events: tuple[str, ...] = ()) -> None:
        self._page = page_of(body=body)
        self._events = events

    async def get_page(self, slug: str) -> v.KnowledgePage:
        if slug != self._page.slug:
            raise NotFound(f"there is no page {slug!r}")
        return self._page

    async def list_pages(self, **asked: Any) -> v.Page[v.KnowledgePage]:
        return v.Page(
            items=[] if asked["cursor"] is None else [self._page], next_cursor="1" if not asked["cursor"] else None
        )

    async def get_session(self, session_id: str) -> v.Session:
        return v.Session(
            id=session_id, agent="codex", native_id="n", parent=None, title=None, worktree=None, branch=None,
            model=None, started_at=NOW, last_event_at=NOW, events=len(self._events), state="open",
            trivial_because=None, page=None, finished_seq=None,
        )  # fmt: skip

    async def session_events(self, session_id: str, *, after_seq: int, limit: int) -> v.Page[v.Message]:
        return v.Page(items=[
            v.Message(
                event_id=f"evt_9_{seq}", seq=seq, role="user", name=None, content=text, occurred_at=NOW,
                recorded_at=NOW, metadata={"kind": "prompt"}, tokens=1, model=None, evidence=True,
            )
            for seq, text in enumerate(self._events, 1) if after_seq < seq <= after_seq + limit
        ])  # fmt: skip


def read_through(double: Reads, name: str, limit: int) -> tuple[list[str], int]:
    """(the texts of all parts, how many parts there were)."""
    texts: list[str] = []
    offset: int | None = 0
    parts = 0
    while offset is not None:
        part = call(OneMemory(double), "read", id=name, offset=offset, limit=limit)
        assert not part.failed, part.text
        texts += [item["text"] for item in part.data["items"]]
        offset = part.data["next_offset"]
        parts += 1
    return texts, parts


def test_a_long_page_read_in_parts_is_the_whole_page():
    body = "\n".join(f"line {n}" for n in range(400))

    texts, parts = read_through(Reads(body), "use-sqlite", 1_000)

    assert "".join(texts) == body
    assert parts == -(-len(body) // 1_000)


def test_a_session_read_in_parts_is_all_its_events_each_once():
    events = tuple(f"event {n} " + "x" * (n * 40) for n in range(1, 40))

    texts, parts = read_through(Reads(events=events), "ses_9", 1_000)

    assert texts == list(events)
    assert parts > 5


def test_a_long_event_of_a_session_is_cut_and_says_by_how_much():
    part = call(OneMemory(Reads(events=("y" * (EVENT_CHARS + 500),))), "read", id="ses_9")

    assert part.data["items"][0]["text"].endswith("… (500 characters more)")
    assert part.data["items"][0]["id"] == "evt_9_1"


def test_a_section_is_where_reading_begins_and_an_id_of_a_page_will_do():
    double = Reads("# First\nalpha\n# Why\nbecause")

    section = call(OneMemory(double), "read", id="use-sqlite#why")
    whole = call(OneMemory(double), "read", id="pag_7")
    missing = call(OneMemory(double), "read", id="pag_8")

    assert section.data["items"][0]["text"] == "because"
    assert whole.data["items"][0]["text"].startswith("# First")
    assert missing.data["error"]["code"] == "not_found"


class Knows:
    def __init__(self) -> None:
        self.asked: list[bool] = []

    async def status(self, *, project_only: bool) -> v.Status:
        self.asked.append(project_only)
        return v.Status(
            version="1", store={"degraded": "no fsync here"}, messages=4, episodes=3, facts=2, backlog_due=1,
            backlog_armed=0, oldest_due_s=None, stages={}, stuck=[], given_up=[], timings=[], workers=[], periodic=[],
            providers=[], checks=[], model="none", embedder="none", refused_finishes=0, asked_again=0, lanes=[],
            reviews=[],
        )  # fmt: skip


def test_status_tells_what_still_waits_and_whose_memory_it_is():
    double = Knows()
    told = call(OneMemory(double), "status")

    assert double.asked == [True]  # beside the name of a project stand its own figures
    assert "3 records of hooks not taken in yet; 1 that could not be read, kept" in told.text
    assert "4 messages, 3 episodes, 2 facts; 1 job due, 0 in need of attention" in told.text
    assert "degraded: no fsync here" in told.text
    assert (told.data["spool_waiting"], told.data["spool_aside"], told.data["facts"]) == (3, 1, 2)
    assert told.data["scope"]["value"] == "/work/app"


def test_status_answers_where_the_folder_is_unknown_and_a_key_sees_its_project_only():
    class Confined(OneMemory):
        whole_store = False

    double = Knows()
    unknown = call(Confined(double), "status", Place())

    assert not unknown.failed
    assert unknown.text.startswith("no project: this server cannot see your folder")
    assert double.asked == [True]


def test_a_tool_that_does_not_exist_is_an_error_that_lists_those_that_do():
    assert "remember, recall, read" in call(NoMemories(), "search").text


class Keeps:
    """Notes what it is asked to keep."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    async def remember(self, text: str, *, subject: str, key: str) -> v.Remembered:
        self.kept += [text, subject]
        raise NotFound("noted")

    async def write_page(self, title: str, body: str, **more: Any) -> v.KnowledgePage:
        self.kept += [title, body]
        raise NotFound("noted")

    async def forget(self, fact_id: str, *, reason: str, undo: bool) -> v.Fact:
        self.kept.append(reason)
        raise NotFound("noted")


TOKEN = "ghp_" + "7Yk2mQx9LrT4vBn8WcZ3pHs6JdF1gKa5Ue0R"


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("remember", {"text": "{}", "subject": "of {}"}),
        ("remember", {"title": "On {}", "body": "Use {} here"}),
        ("forget", {"id": "fct_1", "reason": "as {} says"}),
    ],
    ids=["a fact", "a page", "a reason"],
)
def test_no_word_that_is_kept_holds_a_secret_or_a_private_part(tool: str, words: dict[str, str]) -> None:
    memory = Keeps()
    told: dict[str, Any] = {name: word.format(f"{TOKEN} <private>4711</private>") for name, word in words.items()}

    call(OneMemory(memory), tool, **told)

    assert len(memory.kept) == len(words) - ("id" in words)
    assert all("[redacted:" in kept and "4711" not in kept and TOKEN not in kept for kept in memory.kept)


def test_what_is_private_as_a_whole_is_refused_and_not_kept():
    memory = Keeps()

    refused = call(OneMemory(memory), "remember", text="<private>4711</private>")

    assert refused.failed
    assert refused.text.startswith("invalid_input: text is private")
    assert memory.kept == []
