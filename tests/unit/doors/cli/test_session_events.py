"""How sessions and their events are drawn: as what they are, without the codes of a terminal."""

from __future__ import annotations

import pytest
from rich.console import Console
from tests.stubs.fake_agents import a_session, an_event
from tests.unit.doors.cli.fake_service import FakeService

from everkept.api import views as v
from everkept.doors.cli.agent_pages import event_list
from everkept.doors.cli.main import run


def test_what_nobody_typed_is_no_prompt_and_colours_are_not_shown() -> None:
    told = an_event(
        content="<local-command-stdout>Set model to \x1b[1mOpus\x1b[22m</local-command-stdout>",
        metadata={"kind": "prompt", "genuine": False, "extra": {"not_typed": "command output"}},
    )
    console = Console(width=140, no_color=True)
    with console.capture() as drawn:
        console.print(event_list([told, an_event(metadata={"kind": "prompt", "genuine": True})]))
    first, *rest = drawn.get().splitlines()
    assert "command output  <local-command-stdout>Set model to Opus</local-command-stdout>" in first
    assert any("  prompt  " in line for line in rest)


def test_phantoms_are_counted_and_left_out_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    told = [a_session(title="Fix the login test"), a_session(id="ses_2", title="Nothing was done", state="phantom")]
    service = FakeService(
        resolve_scope=v.Scope(project="github.com/acme/app", found_by="remote", value="github.com/acme/app"),
        list_sessions=v.Page(items=told),
    )
    assert run(["sessions"], opener=service) == 0
    shown = capsys.readouterr()
    assert "Fix the login test" in shown.out
    assert "Nothing was done" not in shown.out
    assert "1 session; 1 phantom left out (--json has them)" in shown.err
    assert run(["sessions", "--json"], opener=service) == 0
    assert "Nothing was done" in capsys.readouterr().out
