"""The end of an agent is seen whoever its signal came to."""

from __future__ import annotations

import subprocess
import sys

import pytest

TAKEN_BY_ANOTHER = """
import os, signal
from everkept.doors.cli.agent_process import AgentProcess

process = AgentProcess(["/bin/sh", "-c", "exit 3"], os.environ)
with process.started():
    signal.sigwait([signal.SIGCHLD])  # as a thread that stood there before does
    print(process.wait())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere signals cannot be waited for with a limit")
def test_an_end_whose_signal_another_thread_took_is_seen() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TAKEN_BY_ANOTHER], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "3\n"
