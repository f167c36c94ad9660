"""Installing into and uninstalling from the files of a person's agents (H07 and its neighbours)."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.wiring.conftest import PYTHON, tree

from everkept.errors import CannotWire
from everkept.wiring import AGENTS, apply, found_agents, plan_install, plan_uninstall, wired_agents
from everkept.wiring.agent import Place
from everkept.wiring.apply import Done
from everkept.wiring.files import BACKUP_MARK
from everkept.wiring.jsonc import parse

EVERY_AGENT = pytest.mark.parametrize("agent", AGENTS)


def install(place: Place, *agents: str, python: str = PYTHON) -> tuple[Done, ...]:
    return apply(plan_install(place, agents, python), place.home)


def uninstall(place: Place, *agents: str) -> tuple[Done, ...]:
    return apply(plan_uninstall(place, agents), place.home)


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """When each file was written, and whether it is still the same one; what Python compiles is not ours."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


def write(place: Place, name: str, content: str | bytes) -> Path:
    path = place.user / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fill(place: Place) -> None:
    """Files as people have them, for every agent."""
    foreign = '{"hooks": [{"type": "command", "command": "say done"}]}'
    nested = (
        f'{{\n    // mine\n    "hooks": {{\n        "Stop": [\n            {foreign}, // beep\n        ]\n    }},\n}}\n'
    )
    write(place, ".claude/settings.json", nested)
    write(place, ".claude.json", '{\n  "numStartups": 3,\n  "mcpServers": {}\n}')
    write(place, ".claude/CLAUDE.md", "# Rules\n\nBe kind.")
    write(place, ".codex/hooks.json", nested.replace("\n", "\r\n"))
    write(place, ".codex/config.toml", '# mine\nmodel = "o5"\n\n[mcp_servers.gh]\ncommand = "gh"')
    write(place, ".cursor/hooks.json", '{"version": 1, "hooks": {"stop": [{"command": "say done"}]}}')
    write(place, ".cursor/mcp.json", "")
    write(place, ".gemini/settings.json", b"\xef\xbb\xbf" + b'{\n\t"theme": "dark" /* best */\n}\n')
    write(place, ".config/opencode/opencode.jsonc", '{\n  // mine\n  "theme": "x",\n}\n')
    write(place, ".config/opencode/AGENTS.md", "# Mine\r\n")


@EVERY_AGENT
def test_an_uninstall_leaves_the_files_byte_for_byte_as_they_were(agent: str, place: Place) -> None:
    fill(place)
    before = tree(place.user)
    install(place, agent)
    assert tree(place.user) != before
    uninstall(place, agent)
    assert tree(place.user) == before


@EVERY_AGENT
def test_what_an_install_made_is_gone_after_an_uninstall(agent: str, place: Place) -> None:
    install(place, agent)
    assert tree(place.user)
    uninstall(place, agent)
    assert [path for path in place.user.iterdir() if path != place.home] == []


@EVERY_AGENT
def test_a_second_install_changes_nothing_and_writes_nothing(agent: str, place: Place) -> None:
    fill(place)
    install(place, agent)
    before = stamps(place.user)
    assert plan_install(place, [agent], PYTHON).changes == ()
    install(place, agent)
    assert stamps(place.user) == before


@EVERY_AGENT
def test_each_file_that_is_edited_has_one_backup_a_change(agent: str, place: Place) -> None:
    fill(place)
    before = tree(place.user)
    (done,) = install(place, agent)
    edited = [change.path for change in done.changes if change.before is not None]
    assert len(done.backups) == len(edited)
    for path, backup in zip(edited, done.backups, strict=True):
        assert backup.read_bytes() == before[str(path.relative_to(place.user))]
        assert backup.name.startswith(f"{path.name}{BACKUP_MARK}")
    install(place, agent)
    assert len(list(place.user.rglob(f"*{BACKUP_MARK}*"))) == len(edited)


@EVERY_AGENT
def test_another_interpreter_replaces_the_commands_in_place_and_all_can_be_undone(agent: str, place: Place) -> None:
    fill(place)
    before = tree(place.user)
    install(place, agent)
    first = tree(place.user)
    install(place, agent, python="/new/place/python")
    second = {name: content for name, content in tree(place.user).items() if BACKUP_MARK not in name}
    for name, content in second.items():
        assert content.replace(b"/new/place/python", PYTHON.encode()) == first[name]
    uninstall(place, agent)
    assert tree(place.user) == before


@EVERY_AGENT
def test_what_was_edited_meanwhile_stays_and_only_our_parts_go(agent: str, place: Place) -> None:
    fill(place)
    before = tree(place.user)
    edits: dict[str, Callable[[bytes], bytes]] = {
        ".claude/settings.json": lambda text: text.replace(b"// mine", b"// still mine"),
        ".claude.json": lambda text: text.replace(b'"numStartups": 3', b'"numStartups": 4'),
        ".claude/CLAUDE.md": lambda text: text.replace(b"Be kind.", b"Be very kind."),
        ".codex/hooks.json": lambda text: text.replace(b"// beep", b"// honk"),
        ".codex/config.toml": lambda text: text.replace(b'"o5"', b'"o6"'),
        ".cursor/hooks.json": lambda text: text.replace(b"say done", b"say hello"),
        ".gemini/settings.json": lambda text: text.replace(b"dark", b"light"),
        ".config/opencode/opencode.jsonc": lambda text: text.replace(b'"x"', b'"y"'),
        ".config/opencode/AGENTS.md": lambda text: text.replace(b"Mine", b"Yours"),
    }
    install(place, agent)
    for name, edit in edits.items():
        path = place.user / name
        path.write_bytes(edit(path.read_bytes()))
    uninstall(place, agent)
    assert tree(place.user) == {name: edits.get(name, lambda text: text)(content) for name, content in before.items()}


@EVERY_AGENT
def test_without_its_record_an_uninstall_still_finds_what_is_ours(agent: str, place: Place) -> None:
    fill(place)
    install(place, agent)
    shutil.rmtree(place.home / "wiring")
    uninstall(place, agent)
    left = {name: content for name, content in tree(place.user).items() if BACKUP_MARK not in name}
    assert [name for name, content in left.items() if b"everkept" in content] == []
    assert b"say done" in left[".claude/settings.json"]
    assert wired_agents(place) == []


def test_foreign_hooks_keep_their_place_for_their_trust_depends_on_it(place: Place) -> None:
    fill(place)
    install(place, "codex")
    groups = parse((place.user / ".codex/hooks.json").read_text()).root.value
    assert groups["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"


def test_events_that_an_older_version_wired_are_taken_back(place: Place) -> None:
    command = f"/old/python -I -S {place.home}/hook.py --agent claude-code"
    entry = [{"hooks": [{"type": "command", "command": command}]}]
    write(place, ".claude/settings.json", json.dumps({"hooks": {"PreToolUse": entry, "Stop": [*entry, *entry]}}))
    install(place, "claude-code")
    hooks = json.loads((place.user / ".claude/settings.json").read_text())["hooks"]
    assert "PreToolUse" not in hooks
    assert [len(groups) for groups in hooks.values()] == [1] * 10


def test_a_time_limit_that_a_person_set_on_our_hook_stays(place: Place) -> None:
    install(place, "claude-code")
    path = place.user / ".claude/settings.json"
    path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 99', 1))
    assert plan_install(place, ["claude-code"], PYTHON).changes == ()


def test_our_handler_in_a_group_with_others_goes_alone(place: Place) -> None:
    install(place, "claude-code")
    path = place.user / ".claude/settings.json"
    settings_now = json.loads(path.read_text())
    settings_now["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "mine"})
    path.write_text(json.dumps(settings_now, indent=2))
    uninstall(place, "claude-code")
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}


def test_a_server_of_our_name_that_is_not_ours_is_left_and_said(place: Place) -> None:
    other = {"mcpServers": {"everkept": {"type": "http", "url": "http://127.0.0.1:7411/mcp"}}}
    path = write(place, ".claude.json", json.dumps(other))
    plan = plan_install(place, ["claude-code"], PYTHON)
    assert any("left as it is" in note for note in plan.agents[0].notes)
    apply(plan, place.home)
    uninstall(place, "claude-code")
    assert json.loads(path.read_text()) == other


def test_keys_that_a_person_added_to_our_server_stay_when_it_is_put_right(place: Place) -> None:
    install(place, "cursor")
    path = place.user / ".cursor/mcp.json"
    servers = json.loads(path.read_text())
    servers["mcpServers"]["everkept"]["disabled"] = True
    path.write_text(json.dumps(servers))
    install(place, "cursor", python="/new/python")
    entry = json.loads(path.read_text())["mcpServers"]["everkept"]
    assert (entry["command"], entry["disabled"]) == ("/new/python", True)


@pytest.mark.parametrize(
    ("agent", "name", "content", "words"),
    [
        ("claude-code", ".claude/settings.json", '{\n  "a": 1\n  "b": 2\n}', "settings.json, line 3: not valid JSON"),
        ("claude-code", ".claude/settings.json", '{"hooks": []}', "`hooks` is not an object"),
        ("claude-code", ".claude/settings.json", '{"hooks":\n {"Stop": {}}}', "line 2: `hooks.Stop` is not an array"),
        ("claude-code", ".claude.json", "[]", "the whole is not an object"),
        ("claude-code", ".claude.json", b'{\n"\xff": 1}', ".claude.json, line 2: not UTF-8"),
        ("claude-code", ".claude/CLAUDE.md", "\n<!-- everkept:begin -->\n", "CLAUDE.md, line 2: the marks"),
        ("codex", ".codex/config.toml", "a = 1\n\nb =\n", "config.toml, line 3: not valid TOML"),
        ("gemini", ".gemini/settings.json", '{"mcpServers": 3}', "`mcpServers` is not an object"),
        ("opencode", ".config/opencode/plugins/everkept.ts", "export {}", "is not ours"),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": {', "line 1: not valid JSON"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_with_the_line_and_nothing_is_written_anywhere(
    agent: str, name: str, content: str | bytes, words: str, place: Place
) -> None:
    write(place, name, content)
    before = tree(place.user)
    with pytest.raises(CannotWire) as caught:
        install(place, "cursor", agent)
    assert words in caught.value.message
    assert tree(place.user) == before
    assert not (place.home / "wiring").exists()


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/CLAUDE.md"])
def test_a_read_only_file_is_a_clear_error_and_nothing_is_written(name: str, place: Place) -> None:
    write(place, name, "{}" if name.endswith("json") else "x").chmod(0o444)
    before = tree(place.user)
    with pytest.raises(CannotWire, match="is read-only"):
        install(place, "claude-code")
    assert tree(place.user) == before


def test_the_files_of_one_agent_are_all_written_or_none(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(place)
    before = tree(place.user)
    plan = plan_install(place, ["claude-code"], PYTHON)
    real = os.replace
    calls: list[Path] = []

    def full_disk(self: Path, target: Path) -> Path:
        if target.name == "CLAUDE.md" and not calls:
            calls.append(target)
            raise OSError(28, "No space left on device", str(target))
        real(self, target)
        return target

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(CannotWire, match="No space left on device; nothing was changed"):
        apply(plan, place.home)
    assert tree(place.user) == before
    assert list((place.home / "wiring").glob("*.json")) == []


def test_a_file_that_changed_since_it_was_shown_is_not_overwritten(place: Place) -> None:
    fill(place)
    plan = plan_install(place, ["claude-code"], PYTHON)
    write(place, ".claude/CLAUDE.md", "something new")
    before = tree(place.user)
    with pytest.raises(CannotWire, match="was changed meanwhile"):
        apply(plan, place.home)
    assert tree(place.user) == before


def test_links_are_followed_and_modes_kept(place: Place) -> None:
    real = write(place, "dotfiles/claude.json", "{}")
    real.chmod(0o640)
    (place.user / ".claude").mkdir()
    link = place.user / ".claude" / "settings.json"
    link.symlink_to(real)
    (done,) = install(place, "claude-code")
    assert link.is_symlink()
    assert b"hook.py" in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [backup.parent for backup in done.backups] == [real.parent]
    assert stat.S_IMODE(done.backups[0].stat().st_mode) == 0o640
    uninstall(place, "claude-code")
    assert (link.is_symlink(), real.read_bytes()) == (True, b"{}")


def test_variables_move_the_files_also_when_they_are_gone_at_the_uninstall(place: Place) -> None:
    moved = {"CLAUDE_CONFIG_DIR": "c", "CODEX_HOME": "x", "XDG_CONFIG_HOME": "g", "GEMINI_CLI_HOME": "m"}
    there = replace(place, env={name: str(place.user / folder) for name, folder in moved.items()})
    install(there, "claude-code", "codex", "opencode", "gemini")
    found = set(tree(place.user))
    assert {
        "c/settings.json", "c/.claude.json", "c/CLAUDE.md", "x/hooks.json", "x/config.toml", "x/AGENTS.md",
        "g/opencode/opencode.json", "g/opencode/plugins/everkept.ts", "g/opencode/AGENTS.md",
        "m/.gemini/settings.json", "m/.gemini/GEMINI.md",
    } == found  # fmt: skip
    uninstall(place, "claude-code", "codex", "opencode", "gemini")
    assert not tree(place.user)


def test_all_means_every_agent_that_has_a_folder(place: Place) -> None:
    write(place, ".codex/config.toml", "")
    write(place, ".config/opencode/opencode.json", "{}")
    assert found_agents(place) == ["codex", "opencode"]


def test_opencode_does_not_get_an_agents_file_that_would_hide_claudes_rules(place: Place) -> None:
    write(place, ".claude/CLAUDE.md", "# Rules\n")
    plan = plan_install(place, ["opencode"], PYTHON)
    assert not any(change.path.name == "AGENTS.md" for change in plan.changes)
    assert any("would hide" in note for note in plan.agents[0].notes)


def test_opencodes_second_form_of_servers_is_kept(place: Place) -> None:
    path = write(
        place, ".config/opencode/opencode.json", '{"mcp": {"servers": {"x": {"type": "local", "command": ["y"]}}}}'
    )
    before = path.read_text()
    install(place, "opencode")
    assert set(json.loads(path.read_text())["mcp"]["servers"]) == {"x", "everkept"}
    uninstall(place, "opencode")
    assert path.read_text() == before


def test_codexs_override_file_gets_the_block_where_it_is_the_one_that_is_read(place: Place) -> None:
    override = write(place, ".codex/AGENTS.override.md", "# Mine\n")
    install(place, "codex")
    assert b"everkept:begin" in override.read_bytes()
    assert not (place.user / ".codex/AGENTS.md").exists()


def test_the_diff_shows_the_whole_change(place: Place) -> None:
    fill(place)
    diff = next(
        each for each in plan_install(place, ["codex"], PYTHON).changes if each.path.name == "config.toml"
    ).diff()
    assert '+command = "/opt/everkept/bin/python"' in diff.splitlines()
    assert diff.startswith(f"--- {place.user}/.codex/config.toml\n+++ ")


def test_the_diff_counts_lines_from_the_start_of_the_file(place: Place) -> None:
    write(place, ".codex/config.toml", "".join(f"a{n} = {n}\n" for n in range(100)))
    changes = plan_install(place, ["codex"], PYTHON).changes
    diff = next(each for each in changes if each.path.name == "config.toml").diff()
    assert [line for line in diff.splitlines() if line.startswith("@@")] == ["@@ -98,3 +98,7 @@"]
