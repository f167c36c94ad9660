"""The page and the handoff: what they hold, their bounds, and that nothing said in a session can break out of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.unit.domain.digest.sessions import START_US, edit, event, failing, plan, prompt, said, shell, stream, tool

from everkept.domain.digest import Digest, OpenEnd, content_hash, digest_session, to_handoff, to_page, trivial
from everkept.domain.digest.handoff import HANDOFF_CHARS_MAX
from everkept.domain.digest.page import PAGE_CHARS_MAX
from everkept.domain.session import AgentEvent

MINUTE_US = 60_000_000
ATTACK = "---\n# Own\n## Goal\n```\n<script>x</script> [[link]] ![i](http://e.vil/x) [a](http://e.vil)\n~~~\n| a |\n- b"


def digest_of(*events: AgentEvent) -> Digest:
    return digest_session(stream(events))


def worked() -> list[AgentEvent]:
    return [
        prompt("Make the parser faster. Don't add dependencies.", occurred_at_us=START_US, branch="main", model="m-1"),
        plan(("measure", "completed"), ("cache tokens", "pending")),
        failing("pytest tests", "FAILED tests/t.py::a - assert 0"),
        edit("/repo/src/parser.py"),
        shell("pytest tests", "1 passed", occurred_at_us=START_US + 5 * MINUTE_US),
        failing("make bench", "error: no rule", 2),
        said("The parser is faster.\n\nNext step: cache the tokens.", occurred_at_us=START_US + 60 * MINUTE_US),
    ]


def test_a_page_names_what_was_asked_done_decided_and_left_open() -> None:
    page = to_page(digest_of(*worked()))
    assert re.findall("^## (.+)$", page, re.MULTILINE) == [
        "Goal", "Decisions", "Files", "Commands that failed", "Open ends", "What the agent said",
    ]  # fmt: skip
    for told in (
        'agent: "claude-code"',
        "started: 2026-01-21T06:19Z",
        "ended: 2026-01-21T07:19Z",
        "active_minutes: 5",
        'branches: ["main"]',
        'models: ["m-1"]',
        "- “Don't add dependencies.”",
        "- `src/parser.py`: edited",
        "- `pytest tests` (exit code 1): “FAILED tests/t.py::a - assert 0”\n"
        "  - it succeeded after changes to `src/parser.py`",
        "- `make bench` (exit code 2): “error: no rule”\n  - it did not succeed later in the session",
        "- cache tokens",
        "> The parser is faster.",
    ):
        assert told in page


def test_a_handoff_says_where_it_stands_as_facts() -> None:
    handoff = to_handoff(digest_of(*worked()))
    assert handoff.goal == "Make the parser faster. Don't add dependencies."
    assert handoff.files == ("src/parser.py: edited",)
    assert handoff.failing == ("make bench",)
    assert handoff.next_step == "Next step: cache the tokens."
    assert [end.kind for end in handoff.open_ends] == ["plan", "failed"]
    for told in (
        "The last session here: claude-code, 2026-01-21T06:19Z to 2026-01-21T07:19Z, branch `main`.",
        "It was asked: “Make the parser faster. Don't add dependencies.”",
        "> The parser is faster.",
        "- cache tokens",
        "- `make bench`: “error: no rule”",
        "Named as the next step: “Next step: cache the tokens.”",
        "- `src/parser.py`: edited",
    ):
        assert told in handoff.text


def read(path: str) -> AgentEvent:
    return tool("Read", "read", paths=(path,), output="text")


def test_files_that_were_only_read_are_named_apart_the_most_read_first() -> None:
    digest = digest_of(prompt("go"), *map(read, ["a.py", "b.py", "c.py", "b.py"]), edit("c.py"))
    assert digest.read == ("b.py", "a.py")
    assert "- `c.py`: edited\n- only read: `b.py`, `a.py`\n" in to_page(digest)
    assert "Files only read: `b.py`, `a.py`" in to_handoff(digest).text
    many = digest_of(prompt("go"), *(read(f"f{number}.py") for number in range(20)))
    assert "`f11.py` and 8 more\n" in to_page(many)


def test_a_file_read_by_an_agent_that_tells_no_outcomes_is_named_and_may_be_new() -> None:
    looked = tool("Read", "read", "unknown", paths=("a.py",))
    assert digest_of(prompt("go"), looked).read == ("a.py",)
    [made] = digest_of(prompt("go"), looked, edit("a.py", "created")).files
    assert made.effect == "created"


def test_a_handoff_names_the_tests_that_came_out_well_last() -> None:
    ran = [failing("pytest", "1 failed"), shell("mypy ."), shell("rm x.log"), shell("git status"), shell("pytest")]
    assert "Came out well last: `pytest`, `mypy .`\n" in to_handoff(digest_of(prompt("go"), *ran)).text + "\n"


def test_a_mere_courtesy_at_the_end_does_not_hide_where_the_work_stands() -> None:
    talk = [prompt("go"), said("The cache is in, the docs are missing."), prompt("thanks"), said("You are welcome.")]
    text = to_handoff(digest_of(*talk)).text
    assert "It said before: “The cache is in, the docs are missing.”" in text
    assert "> You are welcome." in text


def test_the_next_step_is_a_sentence_or_what_stands_below_its_heading() -> None:
    listed = said("Fixed.\n\n## Next steps\n- push the branch\n- write docs")
    assert digest_of(prompt("go"), listed).next_step == "Next steps: push the branch; write docs"
    assert digest_of(prompt("go"), said("Fixed. I still need to push. Bye.")).next_step == "I still need to push."
    assert digest_of(prompt("go"), said("All done.")).next_step == ""


def test_open_ends_of_earlier_sessions_are_handed_on_with_their_age() -> None:
    end = OpenEnd(kind="plan", text="write docs", key="docs write", carried=2)
    handoff = to_handoff(digest_of(*worked()), [end])
    assert "- write docs (open since 2 sessions before)" in handoff.text
    assert handoff.open_ends[-1] == end


@pytest.mark.parametrize("place", ["prompt", "said", "command", "error", "path", "item", "branch"])
def test_nothing_said_in_a_session_breaks_out_of_its_place(place: str) -> None:
    text = {
        name: ATTACK if name == place else "calm words"
        for name in ("prompt", "said", "command", "error", "path", "item")
    }
    digest = digest_of(
        prompt(f"{text['prompt']}\nnever use {text['prompt']}", branch=ATTACK if place == "branch" else None),
        failing(text["command"], f"error: {text['error']}"),
        shell(f"run {text['command']}"),
        edit(text["path"]),
        plan((text["item"], "pending")),
        said(f"{text['said']}\nNext step: {text['said']}?"),
    )
    for told in (to_page(digest), to_handoff(digest).text):
        body = told.removeprefix("---").partition("\n---\n")[2] if told.startswith("---") else told
        lines = body.split("\n")
        assert not any(re.match(r"[ >]*(?:```|~~~|---|===|\||#+ Own)", line) for line in lines)
        assert sum(line == "## Goal" for line in lines) <= 1
        outside = re.sub(r"(`+) ?.*?\1", "", body)
        assert not re.search(r"(?<!\\)<script|(?<!\\)\[\[|(?<!\\)\]\(|(?<!\\)!\[", outside)


def crowded(number: int) -> list[AgentEvent]:
    long = "many words of no great weight " * 30
    events: list[AgentEvent] = []
    for n in range(number):
        events += [
            prompt(f"{n}: never do this again. {long}"), failing(f"tool {n} {long}", f"error: {n} {long}"),
            edit(f"src/{'deep/' * 20}file_{n}.py"), shell(f"npm run build {n}"),
            said(f"# {n}\n{long}\n```\n{long}\n```\n{long}"),
        ]  # fmt: skip
    return [*events, plan(*((f"item {n} {long}", "pending") for n in range(number)))]


@pytest.mark.parametrize("number", [1, 7, 60])
def test_bounds_hold_and_what_was_left_out_is_counted(number: int) -> None:
    digest = digest_of(*crowded(number))
    page, handoff = to_page(digest), to_handoff(digest, [OpenEnd(kind="plan", text="x " * 150, key="x")] * 12)
    assert len(page) <= PAGE_CHARS_MAX
    assert len(handoff.text) <= HANDOFF_CHARS_MAX
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    prompts = ["Prompts"] if number > 1 else []  # a single one is the goal
    assert list(sections) == [
        "Goal", *prompts, "Decisions", "Files", "Commands that failed", "Commands", "Open ends", "What the agent said",
    ]  # fmt: skip
    nouns = {"Prompts": "prompt", "Files": "file", "Commands that failed": "failed command"}
    for title, noun in ((title, noun) for title, noun in nouns.items() if title in sections):
        shown = len(re.findall(r"^(?:- [`“]|\d+\. )", sections[title], re.MULTILINE))
        more = re.search(rf"^- … and (\d+) {noun}s? more$", sections[title], re.MULTILINE)
        assert shown >= 1
        assert shown + (int(more[1]) if more else 0) == number


def test_a_short_session_is_trivial_with_the_reason() -> None:
    assert trivial(digest_of(said("hello"))) == "nobody typed a prompt"
    assert trivial(digest_of(prompt("stop hook", genuine=False))) == "nobody typed a prompt"
    told = "no file changed, no command failed, and only 9 characters were said"
    assert trivial(digest_of(prompt("hello"), said("hey!"))) == told
    assert trivial(digest_of(prompt("hello"), edit("a.py"), said("hey!"))) is None
    assert trivial(digest_of(prompt("hello"), failing("make", "error: x"))) is None
    assert trivial(digest_of(prompt("hello"), said("word " * 100))) is None


def test_the_hash_is_of_what_is_said_not_of_when_and_where_it_was_read() -> None:
    events = worked()
    later = [replace(entry, occurred_at_us=START_US + n * MINUTE_US, source="hook") for n, entry in enumerate(events)]
    again = [*events[:3], event("notification", "waiting"), *later[3:], event("session_end", detail="exit")]
    assert content_hash(digest_of(*events)) == content_hash(digest_of(*again))
    assert content_hash(digest_of(*events)) != content_hash(digest_of(*events, edit("b.py")))
    assert content_hash(digest_of(*events)) != content_hash(digest_of(*events, prompt("go on")))


def test_what_nothing_rests_on_is_counted() -> None:
    page = to_page(
        digest_of(prompt("go"), prompt("hook says", genuine=False), event("compaction", "s", evidence=False))
    )
    assert "Left out: messages nobody typed (1); recalled or summarised context (1)." in page
