"""The hook as agents run it: a process of its own on the installed file, whatever the agent sends and the disk does."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from everkept.capture.spool import HALF_WRITTEN_AFTER_S, Spool
from everkept.hook import FILES, install_hook, remove_hook
from everkept.hook.hook_script import BUDGET_S, CONTEXT_CHARS_MAX, STDIN_WAIT_S, scope_key

WAIT_S = 30
JSON_AGENTS = ("codex", "cursor", "gemini")
OTHER_AGENTS = ("claude-code", "opencode", "an-agent-of-tomorrow")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    install_hook(folder)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that git's files call a checkout."""
    top = tmp_path / "app"
    (top / "src").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / ".git" / "HEAD").write_text("ref: refs/heads/feature/login\n")
    (top / ".git" / "config").write_text(
        '[core]\n\tbare = false\n[remote "fork"]\n\turl = https://example.com/fork.git\n'
        '[remote "origin"]\n\turl = https://ana:s3cret@Example.com/Acme/App.git\n'
    )
    return top


def start(
    home: Path,
    said: Any = None,
    *,
    agent: str = "claude-code",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """A hook that was told `said`, if anything."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(home / "hook.py"), "--agent", agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd or home,
        env={**plain_environment(), **(env or {})},
        **options,
    )
    if said is not None:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it may be dead already
            process.stdin.write(json.dumps(said).encode())
        process.stdin = None
    return process


def plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}


def run(home: Path, said: Any, **options: Any) -> tuple[str, str]:
    """(stdout, stderr) of a hook, which ended with 0."""
    process = start(home, **options)
    data = said if isinstance(said, bytes) else json.dumps(said).encode()
    out, told = process.communicate(data, timeout=WAIT_S)
    assert process.returncode == 0, told
    return out.decode(), told.decode()


def kept(home: Path) -> list[Mapping[str, Any]]:
    return [record.fields for record in Spool(home).records(1_000)]


def only(home: Path) -> Mapping[str, Any]:
    (record,) = kept(home)
    return record


def tool_result(output: str, **more: Any) -> dict[str, Any]:
    return {
        "session_id": "s-1", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1",
        "tool_input": {"command": "ls"}, "tool_response": {"stdout": output, "stderr": "", "interrupted": False},
        **more,
    }  # fmt: skip


def prompt(text: str, **more: Any) -> dict[str, Any]:
    return {"session_id": "s-1", "hook_event_name": "UserPromptSubmit", "prompt": text, **more}


# ---- one record


def test_a_record_carries_what_the_agent_said_and_where(home: Path, checkout: Path) -> None:
    said = tool_result("ok\n", cwd=str(checkout / "src"))
    before = time.time_ns()
    assert run(home, said, env={"EVERKEPT_LAUNCH": "lau_7"}) == ("", "")
    record = dict(only(home))
    assert before < record.pop("at_ns") < time.time_ns()
    assert record == {
        "format": 1,
        "agent": "claude-code",
        "event": "PostToolUse",
        "cwd": str(checkout / "src"),
        "place": {
            "top": str(checkout),
            "common_dir": str(checkout / ".git"),
            "remote": "https://Example.com/Acme/App.git",
            "branch": "feature/login",
        },
        "launch": "lau_7",
        "payload": said,
    }


def test_a_worktree_is_told_from_the_checkout_that_it_belongs_to(home: Path, checkout: Path, tmp_path: Path) -> None:
    tree, inner = tmp_path / "hotfix", checkout / ".git" / "worktrees" / "hotfix"
    tree.mkdir()
    inner.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {inner}\n")
    (inner / "commondir").write_text("../..\n")
    (inner / "HEAD").write_text("4b825dc642cb6eb9a060e54bf8d69288fbee4904\n")
    run(home, prompt("go on", cwd=str(tree)))
    run(home, prompt("go on", cwd=str(checkout)))
    first, second = kept(home)
    assert first["place"] == {
        "top": str(tree),
        "common_dir": str(checkout / ".git"),
        "remote": "https://Example.com/Acme/App.git",
        "worktree": "hotfix",
    }
    assert scope_key(first) == scope_key(second)


def test_files_and_folders_are_their_owners_only(home: Path) -> None:
    run(home, prompt("hello"))
    spool = home / "spool"
    assert [path.stat().st_mode & 0o777 for path in (spool, spool / "new", spool / "tmp")] == [0o700] * 3
    assert [path.stat().st_mode & 0o777 for path in (spool / "new").iterdir()] == [0o600]
    assert list((spool / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("data", "field", "value"),
    [
        (b"", "payload", {}),
        (b"  \n", "payload", {}),
        (b"\xef\xbb\xbf" + json.dumps(prompt("h\u00e9llo")).encode(), "payload", prompt("h\u00e9llo")),
        (json.dumps(prompt("hello")).encode("utf-16"), "payload", prompt("hello")),
        (b'{"prompt": "hello', "raw", '{"prompt": "hello'),
        (b'{"hook_event_name": "Stop"} and more', "raw", '{"hook_event_name": "Stop"} and more'),
        (b'{"prompt": "caf\xe9"}', "payload", {"prompt": "caf\ufffd"}),
        (b'{"prompt": "a\x01b\tc"}', "payload", {"prompt": "a\x01b\tc"}),
        (b'{"prompt": "half a pair \\ud800"}', "payload", {"prompt": "half a pair ?"}),
        (b"[1, 2]", "payload", [1, 2]),
        (b"[" * 50_000, "raw", None),
        (b'{"a":' * 700 + b"1" + b"}" * 700, "", None),
    ],
    ids=lambda value: repr(value)[:30] if isinstance(value, bytes) else "",
)
def test_whatever_comes_on_stdin_is_kept_as_far_as_possible(home: Path, data: bytes, field: str, value: Any) -> None:
    assert run(home, data) == ("", "")
    record = only(home)
    assert {"payload", "raw"} & set(record)
    if field:
        assert field in record
    if value is not None:
        assert record[field] == value


def test_ten_megabytes_keep_their_head_and_tail(home: Path) -> None:
    said = tool_result("first line\n" + "x" * 10_000_000 + "\nlast line")
    run(home, said)
    record = only(home)
    output = record["payload"]["tool_response"]["stdout"]
    assert output.startswith("first line\nxxx")
    assert output.endswith("xxx\nlast line")
    assert len(output) < 33_000
    assert record["cut"] == {"tool_response.stdout": len(said["tool_response"]["stdout"]) - 32_768}
    assert record["payload"]["tool_use_id"] == "toolu_1"


def test_ten_megabytes_of_no_json_keep_their_head_and_tail(home: Path) -> None:
    run(home, b"begin " + b"y" * 10_000_000 + b" end")
    record = only(home)
    assert record["raw"].startswith("begin yyy")
    assert record["raw"].endswith("yyy end")
    assert set(record["cut"]) == {"raw"}


def test_a_stdin_that_stays_open_holds_nobody_for_long(home: Path) -> None:
    process = start(home)
    assert process.stdin is not None
    process.stdin.write(json.dumps(prompt("hello")).encode())
    process.stdin.flush()
    began = time.monotonic()
    assert process.wait(WAIT_S) == 0
    assert time.monotonic() - began < STDIN_WAIT_S
    process.communicate()
    assert only(home)["payload"]["prompt"] == "hello"


def test_a_stdin_that_is_closed_is_an_event_without_a_payload(home: Path) -> None:
    command = f'exec "{sys.executable}" -I -S "{home}/hook.py" --agent codex <&-'
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, cwd=home, env=plain_environment(), timeout=WAIT_S, check=True
    )
    assert (done.stdout, done.stderr) == (b"{}", b"")
    assert only(home)["payload"] == {}


SLOW = {"json", "re", "enum", "hashlib", "socket", "subprocess", "tomllib", "fnmatch", "typing", "pathlib"}
"""What takes as long to import as all that a hook does, or longer."""


def imported_on(home: Path, said: Any) -> set[str]:
    """The modules that a hook imports while it keeps this."""
    command = [sys.executable, "-X", "importtime", "-I", "-S", str(home / "hook.py"), "--agent", "claude-code"]
    done = subprocess.run(
        command, input=json.dumps(said).encode(), capture_output=True, check=True, env=plain_environment()
    )
    imported = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert "everkept_hook" in imported
    return imported


def test_the_usual_way_imports_neither_json_nor_re(home: Path) -> None:
    output = (
        "Author: Ana <ana@example.com>\nsee https://example.com/a?b=c and task-12, disk-usage, ask-me; a basic test,\n"
        "the password is asked for, 4096 tokens, a private method, key: value, msg.txt\n"
    )
    assert not imported_on(home, tool_result(output * 20)) & SLOW
    assert only(home)["payload"]["tool_response"]["stdout"] == output * 20


def test_a_secret_a_private_part_and_a_key_cost_no_import(home: Path) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "QUJD" * 16 + "\n-----END RSA PRIVATE KEY-----"
    said = tool_result(f"<private>a</private>\nexport API_KEY={'k3y' * 10}\n{key}\nsee http://a:pa55@b.example/")
    assert not imported_on(home, said) & SLOW
    assert only(home)["removed"] == {"private": 1, "private-key": 1, "assigned": 1, "url-password": 1}


def test_a_folder_s_policy_costs_no_import(home: Path, checkout: Path) -> None:
    (checkout / ".everkept.toml").write_text('project = "app"  # ours\nignore = ["secrets/**", "*.pem"]\n')
    said = tool_result("the content", tool_input={"command": "cat deploy/a.pem"}, cwd=str(checkout))
    assert not imported_on(home, said) & SLOW
    assert "tool_response" not in only(home)["payload"]


def test_another_interpreter_than_the_installing_one_redacts_the_same(home: Path) -> None:
    """What lies ready for one interpreter is nothing for another."""
    module = home / "everkept_hook_patterns.py"
    module.write_text("VERSION = 0\nREADY = {}\n")
    assert "re" in imported_on(home, tool_result("export API_KEY=" + "k3y" * 10))
    module.unlink()
    run(home, tool_result("export API_KEY=" + "k3y" * 10))
    assert [record["removed"] for record in kept(home)] == [{"assigned": 1}] * 2


# ---- what agents take on stdout


@pytest.mark.parametrize("event", ["PostToolUse", "PreToolUse", "Stop", "SessionEnd", "Notification", "Fresh", ""])
def test_a_capture_event_prints_nothing_or_an_empty_object(home: Path, event: str) -> None:
    for agent in JSON_AGENTS:
        assert run(home, {"hook_event_name": event}, agent=agent) == ("{}", "")
    for agent in OTHER_AGENTS:
        assert run(home, {"hook_event_name": event}, agent=agent) == ("", "")


def test_what_cursor_sends_is_cursors_whoever_was_asked(home: Path) -> None:
    said = {"hook_event_name": "beforeSubmitPrompt", "cursor_version": "2.1", "workspace_roots": [str(home)]}
    run(home, said, agent="claude-code")
    record = only(home)
    assert record["agent"] == "cursor"
    assert record["cwd"] == str(home)


# ---- what is kept out


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_everkept_off_keeps_all_out(home: Path, value: str) -> None:
    assert run(home, prompt("hello"), env={"EVERKEPT_OFF": value}) == ("", "")
    assert run(home, prompt("hello"), env={"EVERKEPT_OFF": value}, agent="codex") == ("{}", "")
    assert kept(home) == []


def test_that_a_session_is_off_is_noted_once_and_that_it_is_on_again(home: Path) -> None:
    run(home, prompt("hello"))
    assert not (home / "off").exists()
    for _ in range(2):
        run(home, prompt("hello"), env={"EVERKEPT_OFF": "1"})
    run(home, prompt("hello", session_id="s-2"))
    for _ in range(2):
        run(home, prompt("hello"))
    [note] = (home / "off").iterdir()
    assert [line.split()[1] for line in note.read_text().splitlines()] == ["off", "on"]


def test_everkept_off_at_0_is_on(home: Path) -> None:
    run(home, prompt("hello"), env={"EVERKEPT_OFF": "0"})
    assert len(kept(home)) == 1


def test_a_folder_that_is_off_keeps_all_out_of_it_and_nothing_else(home: Path, checkout: Path) -> None:
    (checkout / "src" / ".everkept.toml").write_text("off = true\n")
    (checkout / "src" / "deep").mkdir()
    run(home, prompt("here", cwd=str(checkout / "src" / "deep")))
    run(home, prompt("there", cwd=str(checkout)))
    assert [record["payload"]["prompt"] for record in kept(home)] == ["there"]


def test_a_marker_above_the_checkout_is_not_its(home: Path, checkout: Path) -> None:
    (checkout.parent / ".everkept.toml").write_text("off = true\n")
    run(home, prompt("here", cwd=str(checkout)))
    assert len(kept(home)) == 1


def test_prompts_can_be_kept_out(home: Path, checkout: Path) -> None:
    (checkout / ".everkept.toml").write_text('prompts = false\nproject = "acme"\n')
    run(home, prompt("my words", cwd=str(checkout), transcript_path="/t.jsonl"))
    run(home, tool_result("output", cwd=str(checkout)))
    first, second = kept(home)
    assert "my words" not in json.dumps(first)
    assert "transcript_path" not in first["payload"]
    assert first["payload"]["session_id"] == "s-1"
    assert first["removed"] == {"prompts": 1}
    assert first["policy"] == ["prompts = false"]
    assert first["place"]["marker"] == "acme"
    assert second["payload"]["tool_response"]["stdout"] == "output"


def test_metadata_only_keeps_who_when_and_which_tool(home: Path, checkout: Path) -> None:
    (checkout / ".everkept.toml").write_text("metadata_only = true\n")
    run(home, tool_result("output", cwd=str(checkout)))
    run(home, b'{"prompt": "torn', cwd=checkout)
    first, second = kept(home)
    assert first["payload"] == {
        "session_id": "s-1", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1",
        "cwd": str(checkout),
    }  # fmt: skip
    assert second["raw"] == ""


@pytest.mark.parametrize("marker", ["this is no TOML", "metadata_only = 'maybe'", b"\xff\xfe"])
def test_a_policy_that_cannot_be_read_keeps_content_out(home: Path, checkout: Path, marker: str | bytes) -> None:
    (checkout / ".everkept.toml").write_bytes(marker.encode() if isinstance(marker, str) else marker)
    run(home, prompt("my words", cwd=str(checkout)))
    assert "my words" not in json.dumps(only(home))


@pytest.mark.parametrize(
    ("glob", "asked", "is_kept"),
    [
        ("secrets/", {"file_path": "{top}/secrets/a/b.txt"}, False),
        ("secrets/", {"file_path": "{top}/src/main.py"}, True),
        ("*.env", {"file_path": "{top}/deploy/prod.env"}, False),
        ("*.env", {"command": "cat deploy/prod.env | head"}, False),
        ("*.env", {"command": "cat 'deploy/prod.env'"}, False),
        ("*.env", {"command": "env"}, True),
        ("/build", {"command": "ls src/build"}, True),
        ("/build", {"command": "ls build/out"}, False),
        ("docs/**", {"file_path": "{top}/docs/a.md"}, False),
        ("**/private/*", {"file_path": "{top}/x/private/y"}, False),
        ("*.pem", {"patch": "*** Begin Patch\n*** Update File: keys/a.pem\n"}, False),
        ("*.txt", {"file_path": "/elsewhere/a.txt"}, True),
        ("secrets/**", {"command": "cat sec*/key.txt"}, False),
        ("secrets/**", {"command": "cat s[e]crets/key.tx?"}, False),
        ("secrets/**", {"command": "cat s{e,x}crets/key.txt"}, False),
        ("secrets/**", {"command": "cat */../secr*s/key.txt"}, False),
        ("secrets/**", {"command": "cat {top}/../*/secrets/key.txt"}, False),
        ("secrets/**", {"command": "grep -r x *"}, False),
        ("secrets/**", {"command": "cat src/*.py docs/x*"}, True),
        ("*.pem", {"command": "cat keys/*"}, False),
        ("*.pem", {"command": "cat keys/*.txt"}, True),
        ("secrets/**", {"content": "a * b"}, True),
    ],
)
def test_what_touches_an_ignored_file_has_no_content(
    home: Path, checkout: Path, glob: str, asked: dict[str, str], is_kept: bool
) -> None:
    (checkout / ".everkept.toml").write_text(f'ignore = ["{glob}"]\n')
    given = {name: value.replace("{top}", str(checkout)) for name, value in asked.items()}
    run(home, tool_result("the content", tool_input=given, cwd=str(checkout)))
    assert is_kept == ("the content" in json.dumps(only(home)))


def test_an_ignored_folder_is_off(home: Path, checkout: Path) -> None:
    (checkout / ".everkept.toml").write_text('ignore = ["src"]\n')
    run(home, prompt("hello", cwd=str(checkout / "src")))
    assert kept(home) == []


def test_what_is_marked_private_goes(home: Path) -> None:
    run(home, prompt("a <private>b</private> c <PRIVATE>d\ne</PRIVATE> f <private>to the end"))
    record = only(home)
    assert record["payload"]["prompt"] == "a  c  f "
    assert record["removed"] == {"private": 3}


@pytest.mark.parametrize(
    ("said", "kept_of_it"),
    [
        ("a <  private >b</ private> c", "a  c"),
        ("a <\nprivate>b</private> c", "a  c"),
        ("a &lt;private&gt;b&lt;/private&gt; c", "a  c"),
        ("private static List<private_key> x;", "private static List<private_key> x;"),
        (
            [{"type": "text", "text": "<private> my PIN is"}, {"type": "text", "text": "b"},
             {"type": "text", "text": "</private> hello"}, {"type": "text", "text": "you"}],
            [{"type": "text", "text": ""}, {"type": "text", "text": ""},
             {"type": "text", "text": " hello"}, {"type": "text", "text": "you"}],
        ),
    ],
)  # fmt: skip
def test_a_private_part_is_seen_however_it_is_marked(home: Path, said: Any, kept_of_it: Any) -> None:
    run(home, prompt(said, after="words"))
    payload = only(home)["payload"]
    assert payload["prompt"] == kept_of_it
    assert payload["after"] == "words"


def test_secrets_in_names_of_fields_and_about_the_event_are_redacted(home: Path) -> None:
    token = "ghp_" + "7Yk2mQx9LrT4vBn8WcZ3pHs6JdF1gKa5Ue0R"
    asked = {token: 1, f"{token} ": 2, "<private>my diagnosis</private>": 3, "x": {token: "y" * 40_000}}
    said = tool_result("out", tool_input=asked, cwd=f"/code/{token}", hook_event_name=f"Post {token}")
    run(home, said, agent="claude-code", env={"EVERKEPT_LAUNCH": token})
    record = only(home)
    written = json.dumps(record)
    assert token not in written
    assert "diagnosis" not in written
    assert [value for value in record["payload"]["tool_input"].values() if isinstance(value, int)] == [1, 2, 3]
    assert record["cwd"] == "/code/[redacted:github-token]"


def test_all_that_stands_under_the_name_of_a_secret_goes(home: Path) -> None:
    run(home, tool_result("out", tool_input={"secret": ["hunter77PIN-x", {"a": "hunter78PIN-x"}, 7, "ro"]}))
    assert only(home)["payload"]["tool_input"]["secret"] == ["[redacted:named]", {"a": "[redacted:named]"}, 7, "ro"]


@pytest.mark.parametrize("cwd", ["/tmp/\0x", "/tmp/\ud800x", "\0"])
def test_a_folder_that_no_disk_can_have_costs_no_words(home: Path, cwd: str) -> None:
    run(home, prompt("hello", cwd=cwd))
    assert only(home)["payload"]["prompt"] == "hello"
    assert only(home)["cwd"] == str(home)


def test_a_number_too_long_to_be_read_costs_no_words(home: Path) -> None:
    run(
        home,
        b'{"session_id": "s-1", "hook_event_name": "UserPromptSubmit", "prompt": "hello", "n": 1' + b"0" * 9_999 + b"}",
    )
    assert only(home)["event"] == "UserPromptSubmit"
    assert only(home)["payload"]["n"] == "1" + "0" * 9_999


@pytest.mark.parametrize("name", [".git", ".everkept.toml"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(home: Path, checkout: Path, name: str) -> None:
    where = checkout / "src"
    os.mkfifo(where / name)
    run(home, prompt("hello", cwd=str(where)))
    assert only(home)["payload"].get("prompt") == ("hello" if name == ".git" else None)


# ---- many at once, kills, disks


def test_a_hundred_at_once_are_a_hundred_records_and_one_worker(home: Path, tmp_path: Path) -> None:
    with sleeping_worker(home, tmp_path) as workers:
        hooks = [start(home, tool_result(f"output {number}")) for number in range(100)]
        for hook in hooks:
            out, told = hook.communicate(timeout=WAIT_S)
            assert (hook.returncode, out, told) == (0, b"", b"")
        assert len(workers()) == 1
    outputs = {record["payload"]["tool_response"]["stdout"] for record in kept(home)}
    assert outputs == {f"output {number}" for number in range(100)}
    assert Spool(home).state().aside == 0


def test_a_kill_at_any_time_leaves_whole_records_and_torn_files_only(home: Path) -> None:
    rng = random.Random(11)
    content = "".join(rng.choices("abcdefgh \n", k=30_000))
    fields = {f"field {number}": content for number in range(8)}
    killed, ended, wait_s = 0, set(), 0.1
    for number in range(60):
        hook = start(home, tool_result(f"output {number}", hook_event_name="Stop", **fields))
        delay = threading.Timer(rng.uniform(0, wait_s), hook.kill)
        delay.start()
        hook.communicate(timeout=WAIT_S)
        delay.cancel()
        if hook.returncode == -signal.SIGKILL:
            killed += 1
            wait_s *= 1.1
        else:
            ended.add(f"output {number}")
            wait_s *= 0.9  # so that about every second one is killed, however fast the machine is
    long_ago = time.time() - HALF_WRITTEN_AFTER_S - 60
    for half in (home / "spool" / "tmp").iterdir():
        os.utime(half, (long_ago, long_ago))
    records = kept(home)
    assert killed
    assert ended
    assert ended <= {record["payload"]["tool_response"]["stdout"] for record in records}
    assert all(record["payload"]["field 7"] == content for record in records)
    assert list((home / "spool" / "tmp").iterdir()) == []


def without_override() -> None:
    """Even root keeps to file modes then."""
    import ctypes

    assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


@pytest.mark.skipif(sys.platform != "linux", reason="drops a capability of Linux")
def test_a_home_that_is_read_only_is_said_and_hurts_nobody(home: Path) -> None:
    home.chmod(0o500)
    guard = {"preexec_fn": without_override} if os.getuid() == 0 else {}
    try:
        out, told = run(home, prompt("hello"), agent="codex", **guard)
    finally:
        home.chmod(0o700)
    assert out == "{}"
    assert "Permission denied" in told
    assert kept(home) == []


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_disk_that_is_full_is_said_and_leaves_no_half_record(home: Path) -> None:
    out, told = run(home, tool_result("x" * 30_000), preexec_fn=no_room)
    assert out == ""
    assert "File too large" in told
    assert kept(home) == []
    assert list((home / "spool" / "tmp").iterdir()) == []


def test_a_link_in_place_of_the_spool_file_is_not_followed(home: Path, tmp_path: Path) -> None:
    run(home, prompt("first"))
    target = tmp_path / "elsewhere"
    target.mkdir()
    (home / "worker.lock").symlink_to(target / "made")
    (home / "worker.json").write_text('["/bin/true"]')
    _, told = run(home, prompt("second"))
    assert "symbolic link" in told
    assert list(target.iterdir()) == []
    assert len(kept(home)) == 2


# ---- the worker

WORKER = """
import json, os, sys, time
links = {}
for name in os.listdir("/proc/self/fd"):
    try:
        links[name] = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        pass
told = {"pid": os.getpid(), "sid": os.getsid(0), "links": links, "cwd": os.getcwd(), "env": dict(os.environ)}
half = f"{sys.argv[1]}/.{os.getpid()}"
with open(half, "w") as file:
    json.dump(told, file)
os.rename(half, f"{sys.argv[1]}/{os.getpid()}.json")
time.sleep(60)
"""


@contextmanager
def sleeping_worker(home: Path, tmp_path: Path) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """A command for workers that tell what they have and sleep; yields what those told that were started so far."""
    place = tmp_path / "workers"
    place.mkdir(exist_ok=True)
    (home / "worker.json").write_text(json.dumps([sys.executable, "-I", "-S", "-c", WORKER, str(place)]))

    def told() -> list[dict[str, Any]]:
        until(lambda: any(place.glob("*.json")))
        return [json.loads(file.read_text()) for file in place.glob("*.json")]

    try:
        yield told
    finally:
        for file in place.glob("*.json"):
            kill(json.loads(file.read_text())["pid"])


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_is_started_with_nothing_of_the_agents(home: Path, tmp_path: Path) -> None:
    extra, other = os.pipe()
    with sleeping_worker(home, tmp_path) as workers:
        os.set_inheritable(other, True)
        run(home, prompt("hello"), env={"EVERKEPT_LAUNCH": "lau_1", "PYTHONPATH": "/x"}, close_fds=False)
        (worker,) = workers()
        links = worker["links"]
        nothing = os.path.realpath(os.devnull)
        assert [links.pop(name) for name in "012"] == [nothing] * 3
        assert links.pop("3") == str(home / "worker.lock")
        assert not any("pipe" in link or "socket" in link for link in links.values())
        assert worker["sid"] == worker["pid"]
        assert worker["cwd"] == str(home)
        assert worker["env"]["EVERKEPT_HOME"] == str(home)
        assert not {"EVERKEPT_LAUNCH", "PYTHONPATH"} & set(worker["env"])
    os.close(extra)
    os.close(other)


def test_an_agent_that_reads_to_the_end_does_not_wait_for_the_worker(home: Path, tmp_path: Path) -> None:
    with sleeping_worker(home, tmp_path) as workers:
        process = start(home)
        try:
            out, told = process.communicate(json.dumps(prompt("hello")).encode(), timeout=10)
        except subprocess.TimeoutExpired:
            pytest.fail("somebody holds the agent's pipes")
        assert (out, told) == (b"", b"")
        (worker,) = workers()
        os.kill(worker["pid"], 0)  # it is awake all the same


def test_a_worker_that_keeps_the_agents_stdout_would_be_seen(home: Path, tmp_path: Path) -> None:
    """The planted bug: the worker inherits stdout. It must fail the test above."""
    script = home / "everkept_hook.py"
    whole = "for descriptor in (0, 1, 2):"
    assert whole in script.read_text()
    script.write_text(script.read_text().replace(whole, "for descriptor in (0, 2):"))
    with sleeping_worker(home, tmp_path) as workers:
        process = start(home, prompt("hello"))
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=3)
        assert process.wait(WAIT_S) == 0  # the hook itself has ended long ago
        assert len(workers()) == 1
    process.communicate()


def test_a_second_worker_is_started_only_when_the_first_is_dead(home: Path, tmp_path: Path) -> None:
    with sleeping_worker(home, tmp_path) as workers:
        run(home, prompt("one"))
        (first,) = workers()
        run(home, prompt("two"))
        assert len(workers()) == 1
        os.kill(first["pid"], signal.SIGKILL)
        until(lambda: run(home, prompt("three")) == ("", "") and len(workers()) == 2)


def test_without_a_command_nothing_is_started(home: Path) -> None:
    run(home, prompt("hello"))
    assert not (home / "worker.lock").exists()


@pytest.mark.parametrize("command", ["[", "[]", '["/nowhere/python"]', "{}", "[1]", "null"])
def test_a_command_that_cannot_be_run_hurts_nobody(home: Path, command: str) -> None:
    (home / "worker.json").write_text(command)
    out, _ = run(home, prompt("hello"))
    assert out == ""
    assert len(kept(home)) == 1


# ---- context


@contextmanager
def answering(home: Path, answer: Callable[[dict[str, Any]], bytes | None]) -> Iterator[list[dict[str, Any]]]:
    """A server on the context socket; yields what it was asked. None: it never answers."""
    asked: list[dict[str, Any]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(home / "context.sock"))
        listener.listen(8)
        held = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection.makefile("rb") as lines:
                    asked.append(json.loads(lines.readline()))
                said = answer(asked[-1])
                if said is None:
                    held.append(connection)
                    continue
                connection.sendall(said)
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(WAIT_S)
            for connection in held:
                connection.close()


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@pytest.fixture
def short_home(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A path that a socket's address has room for."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="everkept-", dir="/tmp") as folder:
        install_hook(Path(folder))
        yield Path(folder)


ENVELOPE = {"hookSpecificOutput": {"hookEventName": "{event}", "additionalContext": "Last time: \u201cit\u201d\n"}}


@pytest.mark.parametrize(
    ("agent", "event", "shape"),
    [
        ("claude-code", "SessionStart", ENVELOPE),
        ("claude-code", "UserPromptSubmit", ENVELOPE),
        ("codex", "SessionStart", ENVELOPE),
        ("codex", "UserPromptSubmit", ENVELOPE),
        ("gemini", "SessionStart", ENVELOPE),
        ("gemini", "BeforeAgent", ENVELOPE),
        ("cursor", "sessionStart", {"additional_context": "Last time: \u201cit\u201d\n"}),
        ("cursor", "beforeSubmitPrompt", {}),
        ("kiro", "SessionStart", "Last time: \u201cit\u201d\n"),
        ("opencode", "user-prompt", "Last time: \u201cit\u201d\n"),
    ],
)
def test_context_has_the_shape_that_the_agent_takes(short_home: Path, agent: str, event: str, shape: Any) -> None:
    with answering(short_home, lambda _: line(text="Last time: \u201cit\u201d\n", offer="off_1", age_s=1)):
        out, told = run(short_home, {"hook_event_name": event, "session_id": "s-1"}, agent=agent)
    assert told == ""
    if isinstance(shape, str):
        assert out == shape
    else:
        assert json.loads(out) == json.loads(json.dumps(shape).replace("{event}", event))
    records = kept(short_home)
    assert records[0]["event"] == event
    shown = [(record["offer"], record["session"], record["agent"]) for record in records[1:]]
    assert shown == ([("off_1", "s-1", agent)] if shape else [])


def test_the_record_is_in_the_spool_before_context_is_asked_for(short_home: Path) -> None:
    waiting: list[frozenset[str]] = []

    def answer(question: dict[str, Any]) -> bytes:
        waiting.append(Spool(short_home).names())
        return line(text="known", offer=None)

    with answering(short_home, answer) as asked:
        run(short_home, prompt("hello"))
    assert [{asked[0]["name"]}] == waiting
    assert asked[0]["hook"] == only(short_home)
    assert 0 < asked[0]["budget_ms"] <= 300


def test_context_is_cut_to_what_every_agent_takes(short_home: Path) -> None:
    with answering(short_home, lambda _: line(text="x" * 20_000)):
        out, _ = run(short_home, {"hook_event_name": "SessionStart"}, agent="kiro")
    assert out == "x" * (CONTEXT_CHARS_MAX - 1) + "…"


@pytest.mark.parametrize(
    "answer", [b"", b"no json\n", b"[]\n", b'{"text": 7}\n', b'{"text": ""}\n', b'{"text": null, "offer": "off_1"}\n']
)
def test_an_answer_that_says_nothing_prints_nothing(short_home: Path, answer: bytes) -> None:
    with answering(short_home, lambda _: answer):
        assert run(short_home, prompt("hello")) == ("", "")
        assert run(short_home, prompt("hello"), agent="gemini") == ("{}", "")
    assert all("offer" not in record for record in kept(short_home))


@pytest.mark.parametrize(("event", "kind"), [("SessionStart", "session_start"), ("UserPromptSubmit", "prompt")])
def test_a_server_that_does_not_answer_holds_the_agent_for_its_budget(short_home: Path, event: str, kind: str) -> None:
    with answering(short_home, lambda _: None):
        began = time.monotonic()
        assert run(short_home, {"hook_event_name": event}) == ("", "")
        took = time.monotonic() - began
    assert BUDGET_S[kind] <= took < BUDGET_S[kind] + 2


def keep_pack(home: Path, record: Mapping[str, Any], **pack: Any) -> None:
    (home / "start").mkdir(exist_ok=True)
    (home / "start" / f"{scope_key(record)}.json").write_text(json.dumps(pack))


def test_without_an_answer_a_start_has_the_last_pack_and_its_age(home: Path, checkout: Path) -> None:
    said = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": str(checkout / "src")}
    run(home, said)
    made_at_us = int((time.time() - 7_300) * 1e6)
    keep_pack(home, only(home), text="Focus: the login.", offer="off_9", made_at_us=made_at_us)
    out, _ = run(home, said)
    text = json.loads(out)["hookSpecificOutput"]["additionalContext"]
    assert text == "(As of 2 hours ago: Everkept did not answer in time.)\n\nFocus: the login."
    assert [record.get("offer") for record in kept(home)] == [None, None, "off_9"]


def test_without_an_answer_a_prompt_has_nothing(home: Path, checkout: Path) -> None:
    said = prompt("hello", cwd=str(checkout))
    run(home, said)
    keep_pack(home, only(home), text="Focus: the login.", offer="off_9")
    assert run(home, said) == ("", "")


def test_the_pack_of_another_project_is_not_shown(home: Path, checkout: Path) -> None:
    keep_pack(home, {"place": {"remote": "https://example.com/other/app"}}, text="Focus: secret.")
    assert run(home, {"hook_event_name": "SessionStart", "cwd": str(checkout)}) == ("", "")


def test_a_pack_that_is_torn_is_no_pack(home: Path, checkout: Path) -> None:
    said = {"hook_event_name": "SessionStart", "cwd": str(checkout)}
    run(home, said)
    (home / "start").mkdir()
    (home / "start" / f"{scope_key(only(home))}.json").write_text('{"text": "Foc')
    assert run(home, said) == ("", "")


def test_a_start_waits_for_the_worker_that_it_has_started(short_home: Path) -> None:
    """The socket is there a moment later than the hook."""
    script = (
        "import socket\n"
        f"s = socket.socket(socket.AF_UNIX); s.bind({str(short_home / 'context.sock')!r}); s.listen()\n"
        'c, _ = s.accept(); c.recv(1 << 20); c.sendall(b\'{"text": "awake"}\\n\')\n'
    )
    (short_home / "worker.json").write_text(json.dumps([sys.executable, "-I", "-c", script]))
    out, _ = run(short_home, {"hook_event_name": "SessionStart"}, agent="kiro")
    assert out == "awake"


# ---- installing


def test_installing_again_changes_no_byte_and_no_time(home: Path) -> None:
    before = {name: ((home / name).read_bytes(), (home / name).stat().st_mtime_ns) for name in FILES}
    assert install_hook(home) == home / "hook.py"
    assert before == {name: ((home / name).read_bytes(), (home / name).stat().st_mtime_ns) for name in FILES}


def test_an_upgrade_replaces_what_runs_and_leaves_what_is_started(home: Path) -> None:
    (home / "everkept_hook.py").write_text("raise SystemExit(7)  # of yesterday\n")
    inode = (home / "hook.py").stat().st_ino
    install_hook(home)
    assert (home / "hook.py").stat().st_ino == inode
    run(home, prompt("hello"))
    assert len(kept(home)) == 1


def test_a_hook_that_is_not_whole_hurts_nobody(home: Path) -> None:
    (home / "everkept_hook.py").unlink()
    (home / "__pycache__").rename(home / "elsewhere")
    out, told = run(home, prompt("hello"))
    assert out == ""
    assert "everkept install" in told


def test_what_was_installed_can_be_removed(home: Path) -> None:
    (home / "everkept.db").write_text("kept")
    remove_hook(home)
    remove_hook(home)
    assert [path.name for path in home.iterdir()] == ["everkept.db"]


def test_the_environment_says_which_home(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    run(home, prompt("there"), env={"EVERKEPT_HOME": str(other)})
    run(home, prompt("here"), env={"EVERKEPT_HOME": "relative"})
    assert [[record["payload"]["prompt"] for record in kept(place)] for place in (other, home)] == [["there"], ["here"]]
