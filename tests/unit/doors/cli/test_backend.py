from __future__ import annotations

import socket
from pathlib import Path

import pytest

from everkept import config
from everkept.doors.cli import backend
from everkept.doors.cli.backend import is_alive, local_url, same_place, store_path


def test_store_path_is_the_file_of_the_home(tmp_path: Path):
    assert store_path(config.load({}, home=tmp_path)) == str(tmp_path / "everkept.db")


def test_store_path_shows_no_password(tmp_path: Path):
    settings = config.load({"EVERKEPT_DATABASE_URL": "postgresql://me:secret@db/memory"}, home=tmp_path)
    assert "secret" not in store_path(settings)
    assert store_path(settings).startswith("postgresql://me:")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("{home}/everkept.db", "{home}/./everkept.db", True),
        ("{home}/everkept.db", "{home}/x/everkept.db", False),
        ("postgresql://db/a", "postgresql://db/a", True),
        ("postgresql://db/a", "{home}/everkept.db", False),
    ],
)
def test_same_place_looks_through_paths(one, other, same, tmp_path):
    assert same_place(one.format(home=tmp_path), other.format(home=tmp_path)) is same


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (("127.0.0.1", 7411), "http://127.0.0.1:7411"),
        (("0.0.0.0", 7411), "http://127.0.0.1:7411"),
        (("::", 7411), "http://[::1]:7411"),
    ],
)
def test_local_url_is_where_this_machine_reaches_the_address(address, url):
    assert local_url(*address) == url


def test_a_server_that_listens_and_does_not_answer_is_not_passed_by_in_silence(capsys, monkeypatch):
    monkeypatch.setattr(backend, "ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as busy:
        url = local_url(*busy.getsockname())
        assert not is_alive(url)
    assert f"what listens at {url} does not answer; it is not used" in capsys.readouterr().err
    assert not is_alive(url)
    assert capsys.readouterr().err == "", "nothing listens there: the usual case"
