"""What layer 2 has found, each as the kill that showed it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from everkept.prove.kill import Theatre, at_changes
from everkept.prove.nursery import Nursery
from everkept.prove.torture import silence

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked on Windows")


def test_project_settings_are_committed_with_the_timers_that_they_call_for(tmp_path: Path) -> None:
    """The timers came in a commit of their own: killed before it, threads waited for the sweep of the next day."""
    with silence(), Nursery() as nursery:
        report = Theatre(tmp_path, nursery).run(["project-settings"], at_changes)
    assert report.kills > 0
    assert [str(fallen) for fallen in report.fallen] == []
