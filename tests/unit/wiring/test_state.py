"""How an agent is wired, as `doctor` tells it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest
from tests.unit.wiring.conftest import PYTHON

from everkept.errors import InvalidInput
from everkept.wiring import AGENTS, Wiring, apply, codex, plan_install, plan_uninstall, wired
from everkept.wiring.agent import Place

Look = Callable[[str], Wiring]


@pytest.fixture
def look(place: Place) -> Look:
    """Wire the agent with this very Python, and look."""
    return lambda agent: wired(place.home, agent, place)


def install(place: Place, agent: str, python: str = sys.executable) -> None:
    apply(plan_install(place, [agent], python), place.home)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_installed_agent_is_wired_and_an_uninstalled_one_is_not(agent: str, place: Place, look: Look) -> None:
    assert (look(agent).found, look(agent).wired, look(agent).problems) == (False, False, ())
    install(place, agent)
    found = look(agent)
    assert (found.wired, found.server, found.block, found.hook_exists) == (True, "ok", "ok", True)
    assert set(found.hooks.values()) == {"ok"}
    assert (found.interpreter, found.interpreter_exists) == (sys.executable, True)
    assert found.problems == () or agent == "codex"
    apply(plan_uninstall(place, [agent]), place.home)
    assert not look(agent).wired


def test_what_is_broken_is_named(place: Place, look: Look) -> None:
    install(place, "claude-code", PYTHON)
    path = place.user / ".claude/settings.json"
    settings = json.loads(path.read_text())
    del settings["hooks"]["Stop"]
    settings["hooks"]["SessionEnd"][0]["hooks"][0]["command"] += " --more"
    path.write_text(json.dumps(settings | {"disableAllHooks": True}))
    (place.user / ".claude.json").unlink()
    (place.home / "hook.py").unlink()
    found = look("claude-code")
    assert (found.hooks["Stop"], found.hooks["SessionEnd"], found.hooks["SessionStart"]) == ("missing", "other", "ok")
    words = "\n".join(found.problems)
    for part in (
        "no hook at Stop",
        "at SessionEnd",
        PYTHON,
        "hook.py is missing",
        "entry is missing",
        "disableAllHooks",
    ):
        assert part in words


def test_a_file_that_cannot_be_read_is_a_problem_and_no_error(place: Place, look: Look) -> None:
    install(place, "cursor")
    (place.user / ".cursor/mcp.json").write_text("{")
    assert any("mcp.json" in problem and "line 1" in problem for problem in look("cursor").problems)


def test_codexs_trust_is_read_from_its_files(place: Place, look: Look) -> None:
    install(place, "codex")
    assert set(look("codex").trust.values()) == {"untrusted"}
    hooks_file = place.user / ".codex/hooks.json"
    config = place.user / ".codex/config.toml"
    hooks = json.loads(hooks_file.read_text())["hooks"]
    lines = []
    for event in codex.EVENTS:
        mark = codex.trust_hash(event, None, hooks[event][0]["hooks"][0])
        label = {"SessionStart": "session_start", "UserPromptSubmit": "user_prompt_submit"}.get(event)
        label = label or "".join(f"_{x.lower()}" if x.isupper() else x for x in event).lstrip("_")
        lines.append(f"[hooks.state.'{hooks_file}:{label}:0:0']\ntrusted_hash = \"{mark}\"\n")
    config.write_text(config.read_text() + "\n" + "\n".join(lines))
    assert set(look("codex").trust.values()) == {"trusted"}
    assert look("codex").problems == ()
    install(place, "codex", "/bin/sh")
    found = look("codex")
    assert set(found.trust.values()) == {"changed"}
    assert any("changed since it was trusted" in problem for problem in found.problems)


@pytest.mark.parametrize("switch", ["hooks = false", "codex_hooks = false"])
def test_codexs_switch_is_seen(switch: str, place: Place, look: Look) -> None:
    (place.user / ".codex").mkdir()
    (place.user / ".codex/config.toml").write_text(f"[features]\n{switch}\n")
    install(place, "codex")
    assert look("codex").switched_off == "features.hooks"


def test_an_unknown_agent_is_an_error_that_lists_the_known(place: Place) -> None:
    with pytest.raises(InvalidInput, match="claude-code, codex, cursor, gemini, opencode"):
        wired(place.home, "emacs", place)
