"""The digest as a whole: folding in sub-agents, reading twice, and any events in any order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.domain.digest.sessions import START_US, edit, event, failing, plan, prompt, said, shell, stream

from everkept.domain.digest import (
    Digest,
    SessionEvent,
    content_hash,
    digest_session,
    merge_open_ends,
    to_handoff,
    to_page,
    trivial,
)
from everkept.domain.digest.handoff import HANDOFF_CHARS_MAX
from everkept.domain.digest.page import PAGE_CHARS_MAX
from everkept.domain.session import AgentEvent, ToolCall, kept, read_back

WORK = [
    prompt("Make it faster, never mind the size", key="k1"),
    shell("make", "ok", key="k2"),
    failing("pytest tests", "E   assert 0"),
    edit("a.py"),
    plan(("measure", "pending")),
    said("Which way?", key="k3"),
]


def test_work_of_sub_agents_counts_and_their_talk_does_not() -> None:
    child: dict[str, Any] = {"session": "agent-7", "parent": "ses-1"}
    events = [
        prompt("Make it faster"),
        prompt("never stop", **child),
        event("plan", items=(("child's", "pending"),), **child),
        replace(edit("/repo/b.py"), **child),
        replace(failing("make", "error: x"), **child),
        said("child's words?", **child),
        said("Done."),
    ]
    digest = digest_session(stream(events))
    assert [entry.text for entry in digest.prompts] == ["Make it faster"]
    assert [entry.text for entry in digest.said] == ["Done."]
    assert ([change.path for change in digest.files], len(digest.failed)) == (["b.py"], 1)
    assert [end.kind for end in digest.open_ends] == ["failed"]
    assert (digest.decisions, dict(digest.left_out)) == ((), {"messages of sub-agents": 2})


def test_a_sub_agents_own_stream_is_digested_as_a_session() -> None:
    child: dict[str, Any] = {"session": "agent-7", "parent": "ses-1"}
    digest = digest_session(stream([prompt("look", **child), said("Found.", **child)]))
    assert (digest.session, digest.goal, digest.said[0].text) == ("agent-7", "look", "Found.")


def test_an_event_given_twice_counts_once_in_its_fuller_version() -> None:
    announced = event("tool", key="k2", tool=ToolCall(name="Bash", family="shell", command="make", ended=False))
    events = [WORK[0], announced, *WORK[1:], announced]
    assert content_hash(digest_session(stream(events))) == content_hash(digest_session(stream(WORK)))
    entries = stream(WORK)
    assert digest_session([*entries, *entries]) == digest_session(entries)


def test_events_as_the_store_gives_them_back_make_the_same_digest() -> None:
    again = [read_back(*kept(entry), agent=entry.agent, session=entry.session) for entry in WORK]
    assert digest_session(stream(again)) == digest_session(stream([replace(entry, key="") for entry in WORK]))


def test_times_out_of_order_and_missing_ones_do_no_harm() -> None:
    minutes = [7, None, 0, 30, 3]
    events = [said(f"{n}", occurred_at_us=None if n is None else START_US + n * 60_000_000) for n in minutes]
    digest = digest_session(stream(events))
    assert (digest.started_at_us, digest.duration_us, digest.active_us) == (START_US, 30 * 60_000_000, 7 * 60_000_000)


def test_no_events_make_an_empty_digest() -> None:
    digest = digest_session([])
    assert trivial(digest) == "nobody typed a prompt"
    assert (digest.session, digest.files, digest.duration_us) == ("", (), 0)
    assert len(to_page(digest)) < 200


TEXTS = st.one_of(
    st.text(max_size=300),
    st.text(alphabet="`~#-=|>[]()!<\\\n\t \"'$&;{}*_aé数", max_size=200),
    st.sampled_from(["word " * 400, "x" * 3000,
     "数" * 2000, "Which one?", "never do that", "e\u0301" * 400, "\ud800 half", "\x00\x1b[31m"]),
)  # fmt: skip
COMMANDS = st.one_of(
    TEXTS,
    st.lists(
        st.sampled_from(["cd x", "&&", "||", ";", "|", "\n", "rm -rf a", "mv a b", "echo 'x' > f",
             "cat <<'E'\nb\nE", "$(", "`", '"', "("]),
        max_size=12,
    ).map(" ".join),
)  # fmt: skip
FAMILIES = st.sampled_from(["shell", "edit", "read", "question", "plan", "mcp", "other"])
OUTCOMES = st.sampled_from(["ok", "failed", "denied", "interrupted", "unknown"])
PATHS = st.sampled_from(["a.py", "/repo/a.py", "/repo", "..", ".", "", "~/x", "C:\\x\\a", "d/", "d/e.py", "/", "//x"])
CHANGES = st.sampled_from(["created", "edited", "deleted", "moved to b.py", "moved to d", "moved to ", "odd"])
CALLS = st.builds(
    ToolCall,
    name=TEXTS, family=FAMILIES, command=st.none() | COMMANDS, paths=st.lists(PATHS, max_size=3).map(tuple),
    changes=st.lists(st.tuples(PATHS, CHANGES), max_size=3).map(tuple), input=TEXTS, output=TEXTS,
    ended=st.booleans(), outcome=OUTCOMES, decided_by=TEXTS, exit_code=st.none() | st.integers(-2, 300),
)  # fmt: skip
KINDS = st.sampled_from(
    ["session_start", "prompt", "prompt", "said", "said", "plan", "compaction", "clear", "notification", "turn_end",
     "subagent_start", "subagent_end", "session_end", "other"]
)  # fmt: skip
COMMON = {
    "agent": st.sampled_from(["claude-code", "codex", "x\n# y"]), "session": st.sampled_from(["s", "t", ""]),
    "key": st.sampled_from(["", "", "k1", "k2", "k3"]), "source": st.just("hook"), "detail": TEXTS,
    "occurred_at_us": st.none() | st.integers(-(10**18), 10**18), "evidence": st.booleans(), "genuine": st.booleans(),
    "parent": st.sampled_from([None, None, "s"]), "cwd": st.sampled_from([None, "/repo", "", "/", "C:\\x"]),
    "branch": st.none() | TEXTS,
}  # fmt: skip
EVENTS = st.one_of(
    st.builds(
        AgentEvent, kind=KINDS, text=TEXTS, **COMMON,
        items=st.lists(st.tuples(TEXTS, st.sampled_from(["pending", "completed", "odd"])), max_size=4).map(tuple),
    ),
    st.builds(AgentEvent, kind=st.just("tool"), tool=CALLS, **COMMON),
)  # fmt: skip
ENTRIES = st.lists(st.builds(SessionEvent, st.integers(0, 9), EVENTS), max_size=25)


def check_bounds(digest: Digest, earlier: Digest) -> None:
    page = to_page(digest)
    carried = merge_open_ends(earlier.open_ends, digest)
    handoff = to_handoff(digest, carried)
    assert len(page) <= PAGE_CHARS_MAX
    assert len(handoff.text) <= HANDOFF_CHARS_MAX
    assert all(len(entry.text) <= 200 for entry in digest.prompts)
    assert all("\n" not in entry.text for entry in digest.prompts)
    assert all("\n" not in end.text for end in digest.open_ends)
    assert page.encode()
    assert handoff.text.encode()
    front, _, body = page.removeprefix("---\n").partition("\n---\n")
    assert "---" not in front.split("\n")
    assert "---" not in body.split("\n")
    assert not any(line.lstrip(" >").startswith(("```", "~~~")) for line in page.split("\n"))


@settings(max_examples=150, deadline=None)
@given(entries=ENTRIES, earlier=ENTRIES)
def test_any_events_in_any_order_are_digested_in_bounds(
    entries: list[SessionEvent], earlier: list[SessionEvent]
) -> None:
    digest = digest_session(entries)
    check_bounds(digest, digest_session(earlier))
    assert digest == digest_session(entries)
    assert content_hash(digest) == content_hash(digest_session([*entries, *entries]))


@settings(max_examples=60, deadline=None)
@given(order=st.permutations(stream(WORK) * 2))
def test_no_order_of_a_sessions_events_raises(order: list[SessionEvent]) -> None:
    digest = digest_session(order)
    check_bounds(digest, digest)
    assert [change.path for change in digest.files] == ["a.py"]
    assert [failed.command for failed in digest.failed] == ["pytest tests"]
