"""Where the client of a stdio server works."""

from __future__ import annotations

from pathlib import Path

import pytest

from everkept.doors.cli.mcp import chosen_folder, folder_of

APP = Path("/work/app")


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("file:///work/app", APP),
        ("file://localhost/work/my%20app", Path("/work/my app")),
        ("file:///work/100%25", Path("/work/100%")),
        ("file://server/share", None),
        ("https://example.com/work", None),
        ("file:", None),
    ],
)
def test_a_root_is_a_folder_of_this_machine_or_nothing(uri: str, folder: Path | None):
    assert folder_of(uri) == folder


@pytest.mark.parametrize(
    ("started_in", "roots", "chosen"),
    [
        (APP, [], APP),
        (APP / "src", [APP], APP / "src"),
        (APP, [Path("/work/lib"), APP], APP),
        (Path("/home/ana"), [APP, Path("/work/lib")], APP),
    ],
)
def test_the_folder_it_was_started_in_counts_where_it_lies_in_a_root(started_in, roots, chosen):
    assert chosen_folder(started_in, roots) == chosen
