"""`everkept run`: an agent in the same terminal as without us, its sessions linked, whoever is killed in the middle
(H06, I04)."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.test_agents import Machine, machine, until
from tests.stubs import agent_program
from tests.stubs.real_server import serving

__all__ = ["machine"]
WAIT_S = 60
AGENTS = {"claude": "claude-code", "codex": "codex"}


class Line:
    """One line of work on a machine with two agents."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.bin = machine.root / "bin"
        self.bin.mkdir()
        for program, agent in AGENTS.items():
            made = self.bin / program
            made.write_text(f'#!/bin/sh\nexec {sys.executable} {agent_program.__file__} {agent} "$@"\n')
            made.chmod(0o755)
        (machine.home / "worker.json").unlink(missing_ok=True)  # nobody wakes: what is there was told by the command

    def environment(self, **more: str) -> dict[str, str]:
        found = self.machine.environment()
        return {**found, "PATH": f"{self.bin}:{found['PATH']}", "PYTHONPATH": str(Path(__file__).parents[2]), **more}

    def __call__(self, *words: str, said: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "everkept", *words], env=self.environment(**environment), cwd=self.machine.app,
            input=said, capture_output=True, encoding="utf-8", timeout=WAIT_S * 2, check=False,
        )  # fmt: skip

    @contextmanager
    def running(self, *words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "everkept", *words], env=self.environment(**environment), cwd=self.machine.app,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def file(self, name: str) -> Path:
        return self.machine.root / name

    def agents_pid(self, ready: Path) -> int:
        until(ready.exists)
        return int(ready.read_text().split()[0])

    def asked(self, *words: str, **environment: str) -> Any:
        done = self(*words, "--json", **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def show(self) -> Any:
        [found] = self.asked("workstreams")["items"]
        return self.asked("workstreams", "show", found["id"])

    def said(self) -> list[str]:
        """What its sessions said, in the order of the ledger, without what has no words."""
        events = self.asked("workstreams", "events", self.show()["id"], "--limit", "200")["items"]
        return [one["text"] for one in events if one["kind"] in ("prompt", "said")]


@pytest.fixture
def line(machine: Machine) -> Line:
    return Line(machine)


# ---- as without us


def test_arguments_output_input_and_exit_code_are_the_agents(line: Line) -> None:
    done = line("run", "claude", "echo=--json", "echo=-- --help", "read", "exit=7", said="a word\n")
    assert (done.returncode, done.stdout) == (7, "--json\n-- --help\nread 'a word'\n")


@pytest.mark.parametrize("signum", ["SIGTERM", "SIGKILL"])
def test_an_agent_that_a_signal_ended_ends_us_as_a_shell_says_it(line: Line, signum: str) -> None:
    done = line("run", "claude", f"die={signum}")
    assert done.returncode == 128 + getattr(signal, signum)
    assert line.show()["last"]["exit_code"] == done.returncode


def test_options_behind_the_agent_are_the_agents_and_before_it_ours(line: Line) -> None:
    assert line("workstreams", "create", "release").returncode == 0
    done = line("run", "--workstream", "release", "claude", "echo=--workstream", "ready=" + str(line.file("ready")))
    assert (done.returncode, done.stdout) == (0, "--workstream\n"), done.stderr
    assert line.show()["last"]["id"] == line.file("ready").read_text().split()[1]


def test_a_program_that_is_not_there_is_not_launched(line: Line) -> None:
    done = line("run", "gemini")
    assert done.returncode == 4
    assert "there is no program 'gemini' on PATH; here are: claude-code, codex" in done.stderr
    (line.bin / "odd").write_bytes(b"\x7fELF no program")
    (line.bin / "odd").chmod(0o755)
    done = line("run", "odd")
    assert done.returncode == 3
    assert "cannot be started" in done.stderr
    assert line.show()["last"]["state"] == "cancelled"
    assert not list((line.machine.home / "launches").glob("*.json"))


def test_what_is_sent_to_us_alone_reaches_the_agent_once(line: Line) -> None:
    ready, noted, go = line.file("ready"), line.file("noted"), line.file("go")
    with line.running("run", "claude", f"signals={noted}", f"ready={ready}", f"until={go}", "exit=3") as process:
        line.agents_pid(ready)
        for count, signum in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH), 1):
            process.send_signal(signum)
            until(partial(_has_noted, noted, count))
        go.touch()
        assert process.wait(WAIT_S) == 3
    assert noted.read_text().split() == ["SIGINT", "SIGTERM", "SIGHUP", "SIGWINCH"]


def _has_noted(noted: Path, count: int) -> bool:
    return noted.exists() and len(noted.read_text().split()) >= count


class Terminal:
    """A shell's side of a terminal: `everkept run` in its foreground."""

    def __init__(self, line: Line, *words: str) -> None:
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.chdir(line.machine.app)
            os.execve(sys.executable, [sys.executable, "-m", "everkept", *words], line.environment())
        self.shown = b""

    def see(self, words: bytes) -> None:
        while words not in self.shown:
            try:
                self.shown += os.read(self.screen, 4_096)
            except OSError:  # nobody has the other side any more
                pytest.fail(f"it ended, and showed {self.shown.decode()}")

    def press(self, key: bytes) -> None:
        os.write(self.screen, key)

    def end(self) -> int:
        """Its exit code; what it still shows is read, so that nobody waits for us."""
        with suppress(OSError):  # nobody has the other side any more
            while chunk := os.read(self.screen, 4_096):
                self.shown += chunk
        os.close(self.screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_the_terminal_is_the_agents_with_its_keys_and_its_size(line: Line) -> None:
    ready, noted, go = line.file("ready"), line.file("noted"), line.file("go")
    terminal = Terminal(
        line, "run", "claude", f"signals={noted}", f"ready={ready}", "terminal", "read", f"until={go}", "exit=5"
    )  # fmt: skip
    terminal.see(b"terminal [True, True, True]")
    terminal.press(b"hello\n")
    terminal.see(b"read 'hello'")
    terminal.press(b"\x03")
    until(lambda: noted.exists() and noted.read_text().split() == ["SIGINT"])
    fcntl.ioctl(terminal.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    until(lambda: noted.read_text().split() == ["SIGINT", "SIGWINCH"])
    go.touch()
    assert terminal.end() == 5
    assert noted.read_text().split() == ["SIGINT", "SIGWINCH"]


def test_a_stopped_agent_stops_us_and_goes_on_with_us(line: Line) -> None:
    ready, noted, go = line.file("ready"), line.file("noted"), line.file("go")
    with line.running("run", "claude", f"signals={noted}", f"ready={ready}", f"until={go}", "exit=4") as process:
        agent = line.agents_pid(ready)
        os.kill(agent, signal.SIGSTOP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        until(lambda: noted.exists() and "SIGCONT" in noted.read_text())
        go.touch()
        assert process.wait(WAIT_S) == 4


def test_where_memory_is_off_the_agent_runs_and_nothing_is_kept(line: Line) -> None:
    done = line("run", "claude", "without_hooks", "prompt=Private", "ready=" + str(line.file("ready")), "exit=9",
                EVERKEPT_OFF="1")  # fmt: skip
    assert done.returncode == 9
    assert "nothing of this is kept" in done.stderr
    assert len(line.file("ready").read_text().split()) == 1
    (line.machine.app / ".everkept.toml").write_text("off = true\n")
    assert line("run", "claude", "exit=8").returncode == 8
    assert not (line.machine.home / "everkept.db").exists()


# ---- linked, and told


def test_the_agents_session_is_linked_and_all_that_it_said_is_there(line: Line) -> None:
    session = str(uuid.uuid4())
    steps = ["start", "prompt=Mend the lamp", "say=It is mended", "stop", "say=Good night", "end"]
    done = line("run", "claude", f"session={session}", *steps)
    assert done.returncode == 0, done.stderr
    found = line.show()
    assert [(one["agent"], one["native_id"], one["launch_id"]) for one in found["sessions"]] == [
        ("claude-code", session, found["last"]["id"])
    ]
    assert line.said() == ["Mend the lamp", "It is mended", "Good night"]
    assert (found["live"], found["last"]["state"], found["last"]["exit_code"]) == (None, "finished", 0)


def test_without_hooks_its_transcript_is_taken_in_and_linked(line: Line) -> None:
    done = line("run", "claude", "without_hooks", "prompt=Mend the lamp", "say=It is mended")
    assert done.returncode == 0, done.stderr
    assert line.said() == ["Mend the lamp", "It is mended"]
    assert len(line.show()["sessions"]) == 1


def test_another_agent_is_told_at_its_start_and_what_it_took_up_is_not_told_again(line: Line) -> None:
    line("run", "claude", "start", "prompt=Mend the lamp", "say=The wick was wet", "stop", "end")
    with serving(line.machine.home):
        told = line("run", "codex", "start", "prompt=Go on", "say=Done", "stop", "end")
    assert "The wick was wet" in told.stdout
    assert "Mend the lamp" in told.stdout


def test_a_workstream_that_is_held_says_by_whom_and_how_long(line: Line) -> None:
    ready, go = line.file("ready"), line.file("go")
    with line.running("run", "claude", f"ready={ready}", f"until={go}") as process:
        line.agents_pid(ready)
        refused = line("run", "codex")
        assert refused.returncode == 4
        assert "has the workstream" in refused.stderr
        assert "its lease ends in" in refused.stderr
        go.touch()
        assert process.wait(WAIT_S) == 0
    assert line("run", "codex").returncode == 0


def test_continue_takes_the_work_of_this_folder_and_the_agent_that_had_it(line: Line) -> None:
    nothing = line("continue")
    assert nothing.returncode == 4
    assert "no work to continue in this folder" in nothing.stderr or "nobody" in nothing.stderr
    line("run", "codex", "echo=first")
    last = line.show()["last"]["id"]
    done = line("continue", "echo=--agent", "exit=6")
    assert (done.returncode, done.stdout) == (6, "--agent\n")
    assert (line.show()["last"]["agent"], line.show()["last"]["id"] != last) == ("codex", True)
    done = line("continue", "--agent", "claude", "exit=2")
    assert (done.returncode, line.show()["last"]["agent"]) == (2, "claude-code")


# ---- killed in the middle


def test_when_we_are_killed_the_agent_goes_on_and_a_later_run_tells_the_rest(line: Line) -> None:
    ready, go, gone = line.file("ready"), line.file("go"), line.file("gone")
    steps = ["without_hooks", "prompt=Before", f"ready={ready}", f"until={go}", "say=After", f"ready={gone}"]
    with line.running("run", "claude", *steps) as process:
        agent = line.agents_pid(ready)
        process.kill()
        process.wait()
        os.kill(agent, 0)  # it lives
        go.touch()
        until(gone.exists)
        until(lambda: not Path(f"/proc/{agent}").exists())
    done = line("run", "codex", "exit=0")
    assert done.returncode == 0, done.stderr
    assert line.said() == ["Before", "After"]
    assert not list((line.machine.home / "launches").glob("*.json"))


def test_when_the_agent_is_killed_its_last_words_are_there(line: Line) -> None:
    ready, never = line.file("ready"), line.file("never")
    steps = ["start", "prompt=Before", "say=The last words", f"ready={ready}", f"until={never}"]
    with line.running("run", "claude", *steps) as process:
        os.kill(line.agents_pid(ready), signal.SIGKILL)
        assert process.wait(WAIT_S) == 137
    assert line.said() == ["Before", "The last words"]
    assert (line.show()["last"]["state"], line.show()["last"]["exit_code"]) == ("finished", 137)


def test_when_the_server_is_killed_the_store_of_this_home_is_told(line: Line) -> None:
    ready, go = line.file("ready"), line.file("go")
    steps = ["start", "prompt=Before", f"ready={ready}", f"until={go}", "say=After", "stop", "end", "exit=1"]
    with serving(line.machine.home) as (server, url):
        bind = url.removeprefix("http://")
        with line.running("run", "claude", *steps, EVERKEPT_BIND=bind) as process:
            line.agents_pid(ready)
            server.kill()
            server.wait()
            go.touch()
            assert process.wait(WAIT_S) == 1
    assert line.said() == ["Before", "After"]
    assert line.show()["last"]["exit_code"] == 1
