"""H: coding agents. Each thing that they do is kept once, in its own project, and told to who needs it.

Also D07, E03 and F04 as they happen to agents. The hook as a process is tried in `tests/acceptance/test_hook.py`, whole
sessions in `tests/acceptance/test_agents.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk, a_worktree
from tests.stubs.replayed import hook, install_patient_hook, plain_environment

from everkept.capture.identity import look_at
from everkept.errors import NotFound
from everkept.hook.hook_script import CONTEXT_CHARS_MAX, JSON_ONLY, scope_key
from everkept.store.handoffs import KEPT_US
from everkept.wiring import AGENTS, apply, plan_install, plan_uninstall
from everkept.wiring.agent import Place

SESSION = "019ae2f0-6b1d-7c3e-9a52-4f1d08b7c6e1"
"""As agents name theirs: nobody else in the world has it."""
pytestmark = pytest.mark.own_engine("hooks, sessions and handoffs of coding agents")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def contents(desk: Desk, session: str) -> list[str]:
    return [text for (text,) in desk.rows(
        "select e.content from events e join sessions s on s.stream_id = e.stream_id where s.native_id = :native"
        " or s.native_id like :native || '@%' order by e.seq", native=session)]  # fmt: skip


def open_handoffs(desk: Desk) -> list[str]:
    return [title for (title,) in desk.rows("select title from handoffs where state = 'open' order by id")]


def in_any_file(folder: Path, *words: str) -> list[str]:
    """The files below a folder that hold one of the words."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted({str(path) for path in files for word in words if word.encode() in path.read_bytes()})


# ---- H01: the hook


@pytest.mark.parametrize("agent", ["claude-code", *sorted(JSON_ONLY)])
@pytest.mark.parametrize(
    "said", [b"", b"{", b"\xef\xbb\xbf{}", b"\xff\xfe{", b"[1]", b'"' * 3, b"\x00", b"[" * 100_000],
    ids=["empty", "cut", "BOM", "UTF-16", "list", "quotes", "NUL", "deep"],
)  # fmt: skip
def test_h01_whatever_is_on_stdin_the_agent_goes_on_and_the_next_record_is_taken_in(
    tmp_path: Path, agent: str, said: bytes
) -> None:
    with a_desk(tmp_path / "home") as desk:
        app = a_checkout(tmp_path / "app")
        install_patient_hook(desk.home)
        command = [sys.executable, "-I", "-S", str(desk.home / "hook.py"), "--agent", agent]
        done = subprocess.run(command, input=said, capture_output=True, cwd=app, env=plain_environment(), check=False)
        assert done.returncode == 0
        assert done.stdout == (b"{}" if agent in JSON_ONLY else b"")
        desk.work("codex", "s1", app)
        assert not desk.spool.names()
        assert "Fix the failing login test" in contents(desk, "s1")


def test_h01_a_record_torn_by_a_kill_is_set_aside_and_holds_nobody_up(desk: Desk, app: Path) -> None:
    torn = desk.home / "spool" / "new" / "00000000000000000001-1-0.json"
    desk.hook("codex", "SessionStart", app, session_id="s1")
    torn.write_text('{"format": 1, "agent": "codex", "payl')
    desk.work("codex", "s1", app)
    assert desk.spool.state().aside == 1
    assert not desk.spool.names()
    assert open_handoffs(desk) == ["Fix the failing login test"]


def test_h01_with_nobody_awake_for_days_nothing_is_lost(desk: Desk, app: Path) -> None:
    for n in range(250):
        desk.hook("codex", "UserPromptSubmit", app, session_id="s1", prompt=f"Task number {n}")
    desk.clock.advance(5 * 86_400)
    desk.settle()
    assert contents(desk, "s1") == [f"Task number {n}" for n in range(250)]


# ---- H02: what each agent takes

ENVELOPE = {"hookSpecificOutput": {"hookEventName", "additionalContext"}}
TAKES: dict[str, tuple[str, dict[str, Any]]] = {
    "claude-code": ("SessionStart", ENVELOPE),
    "codex": ("SessionStart", ENVELOPE),
    "gemini": ("SessionStart", ENVELOPE),
    "cursor": ("sessionStart", {"additional_context": None}),
}


@pytest.mark.parametrize("agent", TAKES)
def test_h02_each_agent_is_given_its_own_shape_and_not_a_key_more(desk: Desk, app: Path, agent: str) -> None:
    install_patient_hook(desk.home)
    record = desk.hook("codex", "SessionStart", app, session_id="s0")
    folder = desk.home / "start"
    folder.mkdir(exist_ok=True)
    pack = {"text": "“Zoë” said:\n" + "漢" * 20_000, "offer": None, "made_at_us": 1}
    (folder / f"{scope_key(record)}.json").write_text(json.dumps(pack))
    event, keys = TAKES[agent]
    found = json.loads(hook(desk.home, agent, event, app, session_id="s1"))
    assert set(found) == set(keys)
    inner = found.get("hookSpecificOutput", found)
    assert set(inner) == (keys.get("hookSpecificOutput") or set(keys))
    assert inner.get("hookEventName", event) == event
    text = inner.get("additionalContext", inner.get("additional_context"))
    assert "“Zoë” said:" in text
    assert len(text) == CONTEXT_CHARS_MAX


# ---- H03: sessions that never end, come back, or are told again


def test_h03_a_session_that_never_ends_is_ended_by_idleness(desk: Desk, app: Path) -> None:
    desk.prompt("codex", "s1", app, "Build the export of the invoices as CSV")
    desk.edit("codex", "s1", app, "src/export.py")
    desk.settle()
    assert open_handoffs(desk) == []
    desk.settle(31 * 60)
    assert open_handoffs(desk) == ["Build the export of the invoices as CSV"]


def test_h03_a_session_that_is_resumed_has_one_page_and_one_handoff(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    desk.hook("claude-code", "SessionStart", app, session_id="s1", source="resume")
    desk.prompt("claude-code", "s1", app, "Now the docs of the login, too")
    desk.edit("claude-code", "s1", app, "docs/login.md")
    desk.hook("claude-code", "SessionEnd", app, session_id="s1", reason="other")
    desk.settle()
    assert desk.rows("select version from pages") == [(2,)]
    [(body,)] = desk.rows("select body from handoffs where state = 'open'")
    assert "docs/login.md" in body
    assert "src/login.py" in body


def recorded(path: Path, app: Path) -> Path:
    lines = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Add a docstring to the main module"}},
        {"type": "assistant", "uuid": "a1", "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "Edit",
             "input": {"file_path": "src/main.py", "old_string": "1", "new_string": "2"}}]}},
        {"type": "user", "uuid": "u2", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "The file src/main.py has been updated."}]}},
        {"type": "assistant", "uuid": "a2", "message": {"role": "assistant", "content": [
            {"type": "text", "text": "The docstring is there now."}]}},
    ]  # fmt: skip
    common = {"sessionId": "s1", "cwd": str(app), "version": "2.1.0"}
    path.write_text("".join(json.dumps({**common, **line}) + "\n" for line in lines))
    return path


def fire_all(desk: Desk, app: Path, file: Path) -> None:
    base = {"session_id": "s1", "transcript_path": str(file)}
    desk.hook("claude-code", "SessionStart", app, source="startup", **base)
    desk.hook("claude-code", "UserPromptSubmit", app, prompt="Add a docstring to the main module", **base)
    desk.edit("claude-code", "s1", app, "src/main.py", id_="t1")
    desk.hook("claude-code", "Stop", app, last_assistant_message="The docstring is there now.", **base)
    desk.hook("claude-code", "SessionEnd", app, reason="other", **base)
    desk.settle()


def test_h03_a_session_that_is_told_66_times_is_kept_once(desk: Desk, app: Path, tmp_path: Path) -> None:
    file = recorded(tmp_path / "s1.jsonl", app)
    fire_all(desk, app, file)
    before = [desk.rows(f"select count(*) from {table}") for table in ("events", "page_versions", "handoffs")]
    for _ in range(65):
        fire_all(desk, app, file)
    assert before == [desk.rows(f"select count(*) from {table}") for table in ("events", "page_versions", "handoffs")]
    assert contents(desk, "s1").count("Add a docstring to the main module") == 1
    assert contents(desk, "s1").count("The docstring is there now.") == 1


def test_h03_a_hook_that_two_agents_fire_is_one_event(desk: Desk, app: Path) -> None:
    """Cursor runs the hooks of Claude Code, too."""
    more = {"cursor_version": "2.4", "conversation_id": "c1", "generation_id": "g1"}
    for agent, names in (("cursor", ("beforeSubmitPrompt", "stop")), ("claude-code", ("UserPromptSubmit", "Stop"))):
        desk.hook(agent, names[0], app, prompt="Add a docstring to the main module", **more)
    desk.edit("cursor", "c1", app, "src/main.py", id_="t1")
    desk.edit("cursor", "c1", app, "src/main.py", id_="t1")
    desk.settle()
    [session] = desk.run(desk.service(app).list_sessions()).items
    assert (session.agent, session.native_id) == ("cursor", "c1")
    assert len(contents(desk, "c1")) == 2


def test_h03_the_same_words_typed_again_are_kept_where_no_transcript_tells_so(desk: Desk, app: Path) -> None:
    for _ in range(3):
        desk.hook("kiro", "UserPromptSubmit", app, session_id="s1", prompt="continue")
        desk.clock.advance(60)
    desk.settle()
    assert contents(desk, "s1") == ["continue"] * 3


# ---- H04: whose project


def test_h04_worktrees_clones_and_sub_folders_are_one_project(desk: Desk, app: Path, tmp_path: Path) -> None:
    (app / "src" / "deep").mkdir(parents=True)
    places = [
        app, app / "src" / "deep", a_worktree(tmp_path / "wt", app, branch="feature"),
        a_checkout(tmp_path / "clone", remote="git@Example.com:Acme/App.git"),
        a_checkout(tmp_path / "container", remote="ssh://git@example.com:22/acme/app/"),
    ]  # fmt: skip
    for n, place in enumerate(places):
        desk.work("claude-code", f"s{n}", place, f"Task number {n} of the app")
    assert {desk.project_of(f"s{n}") for n in range(len(places))} == {"example.com/acme/app"}
    scopes = [desk.run(desk.app.resolve_scope(look_at(place))) for place in places]
    assert {(scope.project, scope.found_by) for scope in scopes} == {("example.com/acme/app", "remote")}


def test_h04_a_folder_that_is_renamed_stays_its_project(desk: Desk, tmp_path: Path) -> None:
    old, new = a_repository(tmp_path / "old"), tmp_path / "new"
    desk.work("claude-code", "s1", old)
    shutil.move(old, new)
    desk.work("claude-code", "s2", new, "Go on after the move")
    assert desk.project_of("s1") == desk.project_of("s2")


def a_repository(top: Path, *, day: int = 1) -> Path:
    """With one commit, of that day, and no remote."""
    top.mkdir(parents=True)
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"2026-01-{day:02}T00:00:00")
    for words in ("init -q", "commit -q --allow-empty -m first"):
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words.split(" ")], cwd=top, check=True,
            env=plain_environment(GIT_CONFIG_GLOBAL="/dev/null", **dates),
        )  # fmt: skip
    return top


def test_h04_the_same_folder_name_in_two_places_is_two_projects(desk: Desk, tmp_path: Path) -> None:
    places = [tmp_path / "work" / "app", tmp_path / "play" / "app"]
    for n, place in enumerate(places):
        place.mkdir(parents=True)
        desk.work("claude-code", f"s{n}", place, f"Task number {n} here")
    assert desk.project_of("s0") != desk.project_of("s1")
    assert "Task number 1 here" not in desk.start("codex", "next", places[0])


def test_h04_another_repository_in_the_same_folder_is_another_project(desk: Desk, tmp_path: Path) -> None:
    place = a_repository(tmp_path / "app")
    desk.work("claude-code", "s1", place)
    shutil.rmtree(place)
    desk.wake_again()
    a_repository(place, day=2)
    desk.work("claude-code", "s2", place, "Something else entirely")
    assert desk.project_of("s1") != desk.project_of("s2")


def test_h04_a_cd_in_mid_session_keeps_the_project(desk: Desk, app: Path, tmp_path: Path) -> None:
    other = a_checkout(tmp_path / "other", remote="https://example.com/acme/other")
    desk.prompt("claude-code", SESSION, app, "Look at the other project and come back, please")
    desk.edit("claude-code", SESSION, other, "README.md")
    desk.hook("claude-code", "SessionEnd", other, session_id=SESSION, reason="other")
    desk.settle()
    assert desk.project_of(SESSION) == "example.com/acme/app"
    assert len(desk.rows("select 1 from sessions")) == 1


def test_h04_a_folder_that_nobody_knows_is_an_error_to_read_and_not_another_project(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no memory of"):
        desk.run(desk.app.resolve_scope(look_at(tmp_path)))


# ---- H05: secrets

TOKEN = "ghp_" + "x7Kd92LmQp4RtVw8Zs" + "Yb3NcHf6JgTa1EuOi5"
KEY = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQ\n" * 12 + "-----END PRIVATE KEY-----"
SAID = {
    "at the cut": "x " * 8_180 + f"{TOKEN} " + "y " * 20_000,
    "before the tail": "x " * 20_000 + f"{TOKEN} " + "y " * 8_180,
    "beside CJK": f"令牌是{TOKEN}。密码",
    "private key": f"cat id_rsa\n{KEY}\n",
    "open private key": KEY.partition("-----END")[0],
}


@pytest.mark.parametrize("where", SAID)
def test_h05_no_secret_gets_into_the_spool_or_the_store(desk: Desk, app: Path, where: str) -> None:
    desk.hook("claude-code", "UserPromptSubmit", app, session_id="s1", prompt=SAID[where])
    desk.hook(
        "claude-code", "PostToolUse", app, session_id="s1", tool_name="Bash", tool_use_id="t1",
        tool_input={"command": "cat x"}, tool_response={"stdout": SAID[where], "stderr": ""},
    )  # fmt: skip
    secrets = (TOKEN, TOKEN[:20], TOKEN[-20:], "MIIEvQIBADANBgkqhkiG9w0BAQ")
    assert in_any_file(desk.home, *secrets) == []
    desk.settle()
    assert len(contents(desk, "s1")) == 2
    assert in_any_file(desk.home, *secrets) == []


# ---- H06: handoffs


def test_h06_a_session_that_did_nothing_and_a_retry_use_no_handoff_up(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    for _ in range(3):
        assert "Fix the failing login test" in desk.start("codex", "s2", app)
    desk.hook("codex", "Notification", app, session_id="s2", message="waiting for you")
    desk.hook("codex", "SessionEnd", app, session_id="s2", reason="other")
    desk.settle()
    assert open_handoffs(desk) == ["Fix the failing login test"]
    assert "Fix the failing login test" in desk.start("gemini", "s3", app)


def test_h06_another_project_is_neither_offered_a_handoff_nor_uses_it_up(desk: Desk, app: Path, tmp_path: Path) -> None:
    other = a_checkout(tmp_path / "other", remote="https://example.com/acme/other")
    desk.work("claude-code", "s1", app)
    desk.work("claude-code", "s2", other, "Something else entirely")
    given = desk.start("codex", "s3", other)
    assert "Fix the failing login test" not in given
    desk.prompt("codex", "s3", other, "Go on with that, please")
    desk.edit("codex", "s3", other, "x.py")
    desk.settle()
    assert open_handoffs(desk) == ["Fix the failing login test"]
    [(id_,)] = desk.rows("select id from handoffs where state = 'open'")
    with pytest.raises(NotFound):
        desk.run(desk.service(other).acknowledge_handoff(f"hnd_{id_}", by="me"))


def test_h06_many_sessions_leave_one_open_handoff_for_each_worktree(desk: Desk, app: Path, tmp_path: Path) -> None:
    places = [app, a_worktree(tmp_path / "wt", app, branch="feature")]
    for n in range(10):
        desk.work("claude-code", f"s{n}", places[n % 2], f"Task number {n} of the app")
    assert open_handoffs(desk) == ["Task number 8 of the app", "Task number 9 of the app"]


def test_h06_a_handoff_that_nobody_takes_up_expires(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    desk.clock.advance(KEPT_US / 1e6 + 60)
    assert "Where the last session left off" not in desk.start("codex", "s2", app)


# ---- H07: the agents' settings


@pytest.fixture
def person(tmp_path: Path) -> Place:
    user = tmp_path / "user"
    (user / ".claude").mkdir(parents=True)
    (user / ".claude" / "settings.json").write_text(
        '{\n  // mine\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, // beep\n}\n'
    )
    (user / ".codex").mkdir()
    (user / ".codex" / "config.toml").write_text('# mine\nmodel = "o5"\n')
    return Place(home=user / ".everkept", user=user, env={})


def settings_files(person: Place) -> dict[str, bytes]:
    files = [path for path in person.user.rglob("*") if path.is_file() and ".everkept" not in path.parts]
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("agent", AGENTS)
def test_h07_installing_twice_changes_nothing_and_an_uninstall_leaves_nothing_behind(person: Place, agent: str) -> None:
    before = settings_files(person)
    apply(plan_install(person, [agent], sys.executable), person.home)
    once = settings_files(person)
    assert once != before
    apply(plan_install(person, [agent], sys.executable), person.home)
    assert settings_files(person) == once
    apply(plan_uninstall(person, [agent]), person.home)
    assert settings_files(person) == before


def test_h07_foreign_hooks_and_comments_stay(person: Place) -> None:
    apply(plan_install(person, ["claude-code"], sys.executable), person.home)
    text = (person.user / ".claude" / "settings.json").read_text()
    assert "// mine" in text
    assert "// beep" in text
    assert "say done" in text


# ---- D07, E03, F04, as they happen to agents


def test_d07_what_we_gave_an_agent_comes_back_and_is_no_evidence(desk: Desk, app: Path, tmp_path: Path) -> None:
    desk.work("claude-code", "s0", app)
    desk.page(app, "Deploying", "The billing service is deployed with the quokka script.")
    given = desk.start("claude-code", "s1", app)
    assert "quokka" in given
    file = recorded(tmp_path / "s1.jsonl", app)
    echo = {"type": "user", "uuid": "u9", "sessionId": "s1", "cwd": str(app),
            "message": {"role": "user", "content": f"<system-reminder>{given}</system-reminder>"}}  # fmt: skip
    file.write_text(file.read_text() + json.dumps(echo) + "\n")
    fire_all(desk, app, file)
    desk.prompt("claude-code", "s1", app, f"You told me:\n{given}")
    desk.settle()
    ours = "content like '%everkept:offer%'"
    assert {evidence for (evidence,) in desk.rows(f"select evidence from events where {ours}")} == {0}
    bodies = [body for (body,) in desk.rows("select body from handoffs union select body from page_versions")]
    assert not [body for body in bodies if "everkept:offer" in body]
    found = desk.run(desk.service(app).recall("Which script deploys the billing service?"))
    assert [result.kind for result in found.results if "quokka" in result.text] == ["page"]


def test_e03_a_deleted_page_comes_back_by_hand_only(desk: Desk, app: Path, tmp_path: Path) -> None:
    file = recorded(tmp_path / "s1.jsonl", app)
    fire_all(desk, app, file)
    service = desk.service(app)
    [page] = desk.run(service.list_pages()).items
    desk.run(service.delete_page(page.slug))
    fire_all(desk, app, file)  # told again
    desk.run(desk.app.importer().take(None, file))
    desk.prompt("claude-code", "s1", app, "One more thing to do in this session, please")
    desk.edit("claude-code", "s1", app, "src/more.py")
    desk.hook("claude-code", "SessionEnd", app, session_id="s1", reason="other")
    desk.settle()
    assert desk.run(service.list_pages()).items == []
    again = desk.run(service.write_page(page.title, "Written by hand.", kind="session", slug=page.slug))
    assert again.body == "Written by hand."


def test_f04_a_decision_is_told_with_nine_newer_logs_about_it_and_no_words_twice(desk: Desk, app: Path) -> None:
    asks = "Which queue did we choose for the mail service?"
    desk.work("claude-code", "s0", app, "Tidy up the readme of the project")
    desk.start("codex", "next", app)
    desk.page(app, "Queue of the mail service", "We chose river as the queue of the mail service.", "decision")
    for n in range(1, 10):
        desk.work("claude-code", f"s{n}", app, asks)
    given = desk.prompt("codex", "next", app, asks)
    assert "We chose river" in given
    assert given.count(f"“{asks}”") <= 1


def test_f04_the_newest_session_does_not_hide_the_one_that_bears_on_it(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s0", app, "Move the invoices to the quokka database")
    for n in range(1, 6):
        desk.work("claude-code", f"s{n}", app, f"Polish the colours of page {n}")
    found = desk.run(desk.service(app).recall("Where are the invoices?", kinds=("page",)))
    assert "quokka" in found.results[0].text
