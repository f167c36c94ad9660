"""What a launch's session is given at its start: the packet whole, with the handoff, both acknowledged or neither (H06,
I01)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk
from tests.stubs.line_of_work import CODEX, LineOfWork, prompt, said, text_of

from everkept.api.workstream_views import Launch
from everkept.capture.identity import look_at, with_root
from everkept.errors import Conflict, LeaseLost
from everkept.hook.hook_script import place_of, scope_key
from everkept.hook.hook_script import start_pack as read_start_pack

APP = "example.com/acme/app"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.delenv("EVERKEPT_LAUNCH", raising=False)
    with a_desk(tmp_path / "home") as made:
        yield made


class Started:
    """Somebody worked in the checkout and left a handoff; Codex is launched after it, in a new session."""

    def __init__(self, desk: Desk, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.desk = desk
        self.app = a_checkout(folder)
        self.line = LineOfWork(desk)
        desk.work("claude-code", "s0", self.app)
        self.line.service = desk.service(self.app)
        checkout = with_root(look_at(self.app))
        first = self.line.prepare("k1", checkout=checkout)
        self.line.finish(first, events=[prompt("Build the login", session="s1"), said("It is built", session="s1")])
        desk.settle()
        self.launch: Launch = self.line.prepare("k2", agent="codex", checkout=checkout)
        patch.setenv("EVERKEPT_LAUNCH", self.launch.id)

    def works(self) -> None:
        """What shows that the session has what it was given."""
        self.desk.prompt("codex", CODEX, self.app, "Write the docs")
        self.desk.edit("codex", CODEX, self.app, "docs/login.md")
        self.desk.hook("codex", "Stop", self.app, session_id=CODEX, last_assistant_message="Written.")
        self.desk.settle()

    def offers(self) -> list[tuple[str, bool, bool]]:
        """(state, has a packet, has a handoff) of what the session's hook printed."""
        return self.desk.rows(
            "select state, launch_id is not null, handoff_id is not null from offers"
            " where native_id = :native and items like '%hnd_%' order by id", native=CODEX,
        )  # fmt: skip

    def accepted(self) -> bool:
        return self.desk.run(self.line.service.get_launch(self.launch.id)).accepted_at is not None

    def open_handoffs(self) -> int:
        return int(self.desk.rows("select count(*) from handoffs where state = 'open'")[0][0])


@pytest.fixture
def started(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(desk, tmp_path / "app", monkeypatch)


def test_a_start_is_given_the_packet_and_the_handoff_in_one_offer(started: Started) -> None:
    given = started.desk.start("codex", CODEX, started.app)
    assert "Build the login" in given
    assert "It is built" in given
    started.desk.settle()
    assert started.offers()[0] == ("shown", 1, 1)
    assert not started.accepted()


def test_working_on_with_it_takes_both_up(started: Started) -> None:
    before = started.open_handoffs()
    started.desk.start("codex", CODEX, started.app)
    started.works()
    assert started.offers()[0] == ("acknowledged", 1, 1)
    assert started.accepted()
    assert started.open_handoffs() < before
    started.line.finish(started.launch)
    again = started.line.prepare("k3", agent="codex", native_session=CODEX, checkout=with_root(look_at(started.app)))
    assert "Build the login" not in text_of(again)


def test_a_session_that_did_nothing_takes_up_neither(started: Started) -> None:
    """H06."""
    before = started.open_handoffs()
    started.desk.start("codex", CODEX, started.app)
    started.desk.hook("codex", "SessionEnd", started.app, session_id=CODEX, reason="other")
    started.desk.settle()
    assert (started.offers()[0][0], started.accepted(), started.open_handoffs()) == ("shown", False, before)
    started.line.finish(started.launch)
    again = started.line.prepare("k3", agent="codex", native_session=CODEX, checkout=with_root(look_at(started.app)))
    assert "Build the login" in text_of(again)


def test_after_a_take_over_neither_is_taken_up(started: Started) -> None:
    before = started.open_handoffs()
    started.desk.start("codex", CODEX, started.app)
    started.desk.settle()
    started.desk.clock.advance(91)
    started.line.prepare("k9", owner="bo@desk/2", checkout=with_root(look_at(started.app)))
    offer = started.desk.rows("select max(id) from offers where native_id = :n", n=CODEX)[0][0]
    with pytest.raises(LeaseLost):
        started.desk.run(started.line.service.accept_offer(f"off_{offer}"))
    started.works()
    assert (started.offers()[0][0], started.accepted()) == ("shown", False)
    assert started.open_handoffs() >= before


def test_accepting_the_offer_by_hand_takes_both_up_and_twice_is_once(started: Started) -> None:
    before = started.open_handoffs()
    started.desk.start("codex", CODEX, started.app)
    offer = started.desk.rows("select max(id) from offers where native_id = :n", n=CODEX)[0][0]
    for _ in range(2):
        taken = started.desk.run(started.line.service.accept_offer(f"off_{offer}"))
        assert (taken.state, taken.launch_id) == ("acknowledged", started.launch.id)
        assert taken.handoff_id is not None
    assert started.accepted()
    assert started.open_handoffs() == before - 1


def test_a_clear_within_a_launch_is_told_of_the_packet_again(started: Started) -> None:
    started.desk.start("codex", CODEX, started.app)
    started.works()
    assert "Build the login" in started.desk.start("codex", CODEX, started.app, source="clear")
    assert "Build the login" not in started.desk.start("codex", CODEX, started.app, source="resume")


def test_a_packet_never_lies_in_the_start_pack_of_others(started: Started) -> None:
    started.desk.start("codex", CODEX, started.app)
    place = {"cwd": str(started.app), "place": place_of(str(started.app))}
    left = read_start_pack(str(started.desk.home), scope_key(place)).get("text", "")
    assert "What others did in the workstream" not in left


def test_hooks_link_every_session_of_the_launch_and_their_sub_agents(started: Started) -> None:
    started.desk.start("codex", CODEX, started.app)
    started.works()
    other = "0199dddd-1111-7222-8333-444455556666"
    started.desk.hook("gemini", "BeforeAgent", started.app, session_id=other, prompt="A helper's own session")
    started.desk.hook(
        "codex", "PostToolUse", started.app, session_id=CODEX, agent_id="a1", tool_name="Bash", tool_use_id="t1",
        tool_input={"command": "ls"}, tool_response={"stdout": "x"},
    )  # fmt: skip
    started.desk.settle()
    found = started.desk.run(started.line.service.get_workstream(started.launch.workstream_id))
    linked = {(s.agent, s.native_id.partition("@")[0]) for s in found.sessions if s.launch_id == started.launch.id}
    assert {("codex", CODEX), ("gemini", other)} <= linked
    assert len(linked) == 3
    assert started.desk.run(started.line.service.get_launch(started.launch.id)).native_id == CODEX


def test_a_launch_of_another_project_links_nothing(started: Started, tmp_path: Path) -> None:
    elsewhere = a_checkout(tmp_path / "else", remote="https://example.com/acme/else")
    session = "0199eeee-1111-7222-8333-444455556666"
    ingest = started.desk.app.ingest(project="default", confined=True)
    told = prompt("Not of it", session, "codex", launch=started.launch.id)
    started.desk.run(ingest.events([told], checkout=look_at(elsewhere)))
    assert started.desk.project_of(session) == "default"
    assert started.desk.rows("select count(*) from launch_sessions where native_id = :n", n=session) == [(0,)]


def test_what_is_no_launch_in_the_environment_is_nothing(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = a_checkout(tmp_path / "app")
    for told in ("lch_999", "no launch", "lch_0"):
        monkeypatch.setenv("EVERKEPT_LAUNCH", told)
        desk.work("codex", f"0199eeee-1111-7222-8333-44445555{len(told):04d}", app)
    assert desk.rows("select count(*) from sessions") == [(3,)]
    assert desk.rows("select count(*) from launch_sessions") == [(0,)]


def test_an_expired_offer_is_offered_again_and_not_accepted(started: Started) -> None:
    started.desk.start("codex", CODEX, started.app)
    store = started.desk.app.parts.store
    started.desk.run(store.write(lambda conn: conn.raw.execute("update offers set state = 'expired'")))
    offer = started.desk.rows("select max(id) from offers")[0][0]
    with pytest.raises(Conflict, match="offered again"):
        started.desk.run(started.line.service.accept_offer(f"off_{offer}"))


def test_the_packet_that_comes_back_in_a_prompt_is_known_as_ours(started: Started) -> None:
    """D07: it is not told to others as somebody's words."""
    assert started.launch.packet is not None
    typed = f"{started.launch.packet.text}\n\nGo on."
    started.line.tell(started.launch, prompt(typed, CODEX, "codex"))
    (kept,) = started.desk.rows("select content from events where content like '%Go on.%'")
    assert "Build the login" not in kept[0]
    assert json.dumps(kept[0]).count("what Everkept gave") == 1
