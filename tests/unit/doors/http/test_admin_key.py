"""The admin key of a server is what its file says, as soon as it says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import structlog
from tests.stubs.door_client import DoorClient

from everkept.doors.http import admin_key

FIRST, SECOND = "the-first-key-of-all", "the-second-key-of-all"


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """As a new file in the place of the old one, as a cluster does it."""
    new = file.with_name("new")
    new.write_text(text, "utf-8")
    new.chmod(mode)
    os.replace(new, file)


def answers(door: DoorClient, *keys: str) -> list[int]:
    return [door("GET", "/metrics", headers={"Authorization": f"Bearer {key}"}).status_code for key in keys]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write(tmp_path / "key", f"{FIRST}\n")
    return tmp_path / "key"


@pytest.fixture
def door(file: Path) -> DoorClient:
    return DoorClient(EVERKEPT_BIND="0.0.0.0:7411", EVERKEPT_ADMIN_KEY_FILE=str(file), url="http://10.0.0.7:7411")


def test_a_new_key_in_the_file_holds_at_once_and_the_old_one_no_more(door: DoorClient, file: Path) -> None:
    assert answers(door, FIRST, SECOND) == [200, 401]
    write(file, SECOND)
    assert answers(door, FIRST, SECOND) == [401, 200]
    assert answers(door, SECOND) == [200]


def test_a_file_that_cannot_be_used_leaves_the_last_key_and_is_told_once(
    door: DoorClient, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_key, "_log", structlog.get_logger())  # the module's keeps what it was first used with
    with structlog.testing.capture_logs() as log:
        for text, mode in (("short", 0o600), (SECOND, 0o644), ("", 0o600)):
            write(file, text, mode)
            assert answers(door, FIRST, SECOND, text or "x") == [200, 401, 401]
        file.unlink()
        assert answers(door, FIRST, FIRST) == [200, 200]
    told = [line["event"] for line in log if line["log_level"] == "warning"]
    assert told == ["the file of the admin key cannot be used; the last key goes on"] * 4
    assert not any(key in str(log) for key in (FIRST, SECOND))
    write(file, SECOND)
    assert answers(door, FIRST, SECOND) == [401, 200]


def test_a_key_of_the_environment_stays_as_it_is() -> None:
    door = DoorClient(EVERKEPT_BIND="0.0.0.0:7411", EVERKEPT_ADMIN_KEY=FIRST, url="http://10.0.0.7:7411")
    assert answers(door, FIRST, SECOND) == [200, 401]
