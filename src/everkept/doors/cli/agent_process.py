"""An agent in the same terminal, as if nobody stood between it and the person: its input, its signals, its exit code.

The terminal sends its signals (interrupt, quit, stop, a new size) to every process in the foreground, so that the agent
has them already; what somebody sends to us alone is passed on. Where the agent stops we stop, and the shell sees it;
where we are continued it is continued.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

SIGNALS: Final = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGWINCH", "SIGUSR1", "SIGUSR2", "SIGCHLD")
    if hasattr(signal, name)
)
"""Those that would end or stop us, or that an agent may listen to."""
LOOK_S: Final = 1.0
KILLED: Final = 128
"""Added to the number of the signal that ended the agent, as shells do."""


class AgentProcess:
    """Runs one agent; to be used by the main thread, before it starts others.

    They would take signals in its place: a thread has its starter's mask.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @contextmanager
    def started(self) -> Iterator[AgentProcess]:
        """Within, signals are held back until `wait` looks at them. Raises OSError where it cannot be started."""
        with _signals_held():
            self._child = subprocess.Popen(self._command, env=self._environment, preexec_fn=_unheld)
            yield self

    def wait(self) -> int:
        """Until it ends; its exit code, or 128 and the signal that ended it."""
        if sys.platform == "win32":
            assert self._child is not None
            return self._child.wait()
        while True:
            signum, from_terminal = _next_signal() or (signal.SIGCHLD, True)
            if signum != signal.SIGCHLD:
                if not from_terminal:
                    self._send(signum)
                continue
            if (code := self._look()) is not None:
                return code

    def _look(self) -> int | None:
        """How it ended, if it did; where it stopped, we stop with it until both are continued."""
        assert self._child is not None
        pid, status = os.waitpid(self._child.pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return None
        if os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            self._send(signal.SIGCONT)
            return None
        code = os.waitstatus_to_exitcode(status)
        self._child.returncode = code
        return KILLED - code if code < 0 else code

    def _send(self, signum: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended: SIGCHLD tells
            os.kill(self.pid, signum)


if sys.platform == "win32":

    @contextmanager
    def _signals_held() -> Iterator[None]:
        """Ctrl-C is the agent's; the console has sent it there."""
        before = signal.signal(signal.SIGINT, _nothing)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    _unheld = None
else:

    @contextmanager
    def _signals_held() -> Iterator[None]:
        """Blocked, to be taken one by one. A handler stands in for what another thread may take all the same.

        What is ignored (`nohup`, a job in the background) stays so, here and in the agent.
        """
        heard = [signum for signum in SIGNALS if signal.getsignal(signum) != signal.SIG_IGN or signum == signal.SIGCHLD]
        handlers = {signum: signal.signal(signum, _nothing) for signum in heard}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for signum, handler in handlers.items():
                signal.signal(signum, handler)

    def _unheld() -> None:
        """In the agent's process, before its program runs: it begins as any program does."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _next_signal() -> tuple[int, bool] | None:
    """(signal, whether the system sent it, as for a key of the terminal); None now and then: look for oneself.

    A thread that was there before took the news of the agent's end where it came to that thread.
    """
    if hasattr(signal, "sigtimedwait"):
        told = signal.sigtimedwait(SIGNALS, LOOK_S)
        return None if told is None else (told.si_signo, told.si_code > 0)
    signum = signal.sigwait(SIGNALS)  # who sent it cannot be told: in the foreground it was the terminal
    return signum, _in_foreground()


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def _nothing(_signum: int, _frame: Any) -> None:
    """For signals that are waited for, or the agent's alone."""
