"""Settings: where values come from, and what is refused."""

from __future__ import annotations

import dataclasses
import math
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from everkept import config
from everkept.config import SETTINGS, Setting, Settings, load, validate_overrides
from everkept.errors import ConfigInvalid

NUMBERS = [row for row in SETTINGS.values() if row.type in ("int", "float")]


def write_toml(home: Path, text: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(text, "utf-8")
    return home


# ---- the table


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("window.idle_s", 1800), ("window.wait_max_s", 14_400), ("window.sibling_pull_s", 300),
        ("window.events_max", 100), ("window.tokens_max", 12_000), ("window.abandoned_s", 86_400),
        ("memory.enabled", True),
        ("work.tick_s", 5), ("work.episode_sweep_s", 120), ("work.fact_sweep_s", 120),
        ("work.abandoned_sweep_s", 3600), ("work.claim_max", 20), ("work.summary_retries_max", 3),
        ("work.fact_retries_max", 3), ("work.crashes_max", 5), ("work.lease_s", 600), ("work.backoff_max_s", 3600),
        ("work.drain_s", 5),
        ("models.text_timeout_s", 30), ("models.structured_timeout_s", 90), ("models.embedding_timeout_s", 30),
        ("models.asks_max", 2), ("models.embedding_batch_max", 100),
        ("models.daily_tokens_max", None), ("models.daily_usd_max", None),
        ("recall.facts_max", 8), ("recall.confidence_floor", 0.5), ("recall.entity_cosine", 0.88),
        ("recall.contradiction_low", 0.80),
        ("recall.candidates_lexical", 150), ("recall.candidates_dense", 40),
        ("server.bind", "127.0.0.1:7411"), ("store.changes_retention_s", 30 * 86_400),
        ("status.due_work_s", 300), ("status.episode_failures_max", 0), ("status.fact_failures_max", 0),
        ("model", None), ("embedder", "wordllama"),
    ],
)  # fmt: skip
def test_defaults_are_those_of_the_design(tmp_path: Path, key: str, default: Any) -> None:
    assert load({}, tmp_path).get(key) == default


@pytest.mark.parametrize("row", SETTINGS.values(), ids=SETTINGS)
def test_setting_has_a_meaning_and_a_default_it_accepts_itself(row: Setting) -> None:
    assert row.rule.description.endswith(".")
    assert row.limit
    if row.type in ("int", "float"):
        assert row.rule.least is not None
        assert row.rule.most is not None
        assert row.rule.least < row.rule.most
    if row.default is not None and row.type != "path":
        assert config._accept(row, row.default) == row.default


@pytest.mark.parametrize("row", NUMBERS, ids=[row.key for row in NUMBERS])
def test_setting_is_accepted_at_its_limits_and_refused_beyond(row: Setting) -> None:
    least, most = row.rule.least, row.rule.most
    assert least is not None
    assert most is not None
    as_type = int if row.type == "int" else float
    assert config._accept(row, as_type(least)) == least
    assert config._accept(row, as_type(most)) == most
    refused_values: list[Any] = [as_type(least - 1), as_type(most + 1), math.nan, math.inf, True, "many", []]
    for beyond in refused_values:
        with pytest.raises(ConfigInvalid) as refused:
            config._accept(row, beyond)
        assert row.key in refused.value.message
        assert row.limit in refused.value.message


def test_numbers_carry_a_unit_or_are_plain() -> None:
    units = {row.key: row.unit for row in NUMBERS}
    assert units["window.idle_s"] == "s"
    assert units["window.tokens_max"] == "tokens"
    assert units["models.daily_usd_max"] == "USD a day"
    assert units["server.body_max_bytes"] == "bytes"
    assert units["work.slots"] == ""
    assert SETTINGS["memory.enabled"].unit == ""


def test_settings_are_frozen_at_every_level(tmp_path: Path) -> None:
    settings = load({}, tmp_path)
    for target, name in ((settings, "model"), (settings.window, "idle_s")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(target, name, 1)


# ---- sources


def test_environment_wins_over_file_and_file_over_default(tmp_path: Path) -> None:
    home = write_toml(tmp_path, "[window]\nidle_s = 60\nevents_max = 7\n")
    settings = load({"EVERKEPT_WINDOW__IDLE_S": "90"}, home)
    assert (settings.window.idle_s, settings.window.events_max, settings.window.tokens_max) == (90.0, 7, 12_000)
    source = {row.key: row.source for row in settings.explain()}
    assert source["window.idle_s"] == "environment EVERKEPT_WINDOW__IDLE_S"
    assert source["window.events_max"] == "config.toml"
    assert source["window.tokens_max"] == "default"


def test_overrides_win_over_everything_and_thread_over_project(tmp_path: Path) -> None:
    settings = load({"EVERKEPT_WINDOW__IDLE_S": "90"}, tmp_path)
    resolved = settings.with_overrides({"window.idle_s": 10, "memory.enabled": False}, {"window.idle_s": 20})
    assert (resolved.window.idle_s, resolved.memory.enabled) == (20.0, False)
    assert settings.window.idle_s == 90.0, "the settings of the process do not change"
    source = {row.key: row.source for row in resolved.explain()}
    assert (source["window.idle_s"], source["memory.enabled"]) == ("thread", "project")


def test_without_overrides_nothing_is_copied(tmp_path: Path) -> None:
    settings = load({}, tmp_path)
    assert settings.with_overrides() is settings
    assert settings.with_overrides({}, {}) is settings


def test_null_turns_the_timer_off_from_every_source(tmp_path: Path) -> None:
    assert load({"EVERKEPT_WINDOW__IDLE_S": "null"}, tmp_path).window.idle_s is None
    assert load({}, write_toml(tmp_path, 'window.idle_s = "null"')).window.idle_s is None
    assert load({}, tmp_path / "other").with_overrides({"window.idle_s": None}).window.idle_s is None


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("EVERKEPT_MODEL", "openai:gpt-5-mini", "model", "openai:gpt-5-mini"),
        ("EVERKEPT_MODEL", "none", "model", None),
        ("EVERKEPT_EMBEDDER", "minilm", "embedder", "minilm"),
        ("EVERKEPT_URL", "http://127.0.0.1:7411", "url", "http://127.0.0.1:7411"),
        ("EVERKEPT_DATABASE_URL", "postgresql://h/db", "database_url", "postgresql://h/db"),
        ("EVERKEPT_BIND", "0.0.0.0:80", "server.bind", "0.0.0.0:80"),
        ("EVERKEPT_SERVER__BIND", "[::1]:7411", "server.bind", "[::1]:7411"),
        ("EVERKEPT_API_KEY", "ek_1", "secrets.api_key", "ek_1"),
        ("EVERKEPT_MEMORY__ENABLED", "false", "memory.enabled", False),
        ("EVERKEPT_WORK__SLOTS", " 8 ", "work.slots", 8),
        ("EVERKEPT_SERVER__ALLOWED_HOSTS", "a.example, b.example,", "server.allowed_hosts", ("a.example", "b.example")),
        ("EVERKEPT_MODELS__DAILY_USD_MAX", "2.5", "models.daily_usd_max", 2.5),
    ],
)
def test_environment_is_read(tmp_path: Path, name: str, text: str, key: str, value: Any) -> None:
    assert load({name: text}, tmp_path).get(key) == value


def test_message_between_processes_is_not_a_setting(tmp_path: Path) -> None:
    assert load({"EVERKEPT_LAUNCH": "lau_1", "PATH": "/bin"}, tmp_path).sources == {"home": "argument"}


def test_bind_is_read_as_host_and_port(tmp_path: Path) -> None:
    assert load({}, tmp_path).server.address == ("127.0.0.1", 7411)
    assert load({"EVERKEPT_BIND": "[::1]:0"}, tmp_path).server.address == ("::1", 0)


# ---- refusals


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"EVERKEPT_MODLE": "openai:x"}, ["EVERKEPT_MODLE", "EVERKEPT_MODEL"]),
        ({"EVERKEPT_WINDOW__IDLE": "5"}, ["EVERKEPT_WINDOW__IDLE", "EVERKEPT_WINDOW__IDLE_S"]),
        ({"EVERKEPT_IDLE_S": "5"}, ["EVERKEPT_WINDOW__IDLE_S"]),
        ({"EVERKEPT_MODEL_FILE": "/x"}, ["EVERKEPT_MODEL_FILE"]),
        ({"EVERKEPT_WINDOW__IDLE_S": "0"}, ["window.idle_s", "from 1 to 2592000", "null", "EVERKEPT_WINDOW__IDLE_S"]),
        ({"EVERKEPT_WINDOW__IDLE_S": "soon"}, ["window.idle_s", "'soon'"]),
        ({"EVERKEPT_WORK__SLOTS": "1.5"}, ["work.slots", "whole number"]),
        ({"EVERKEPT_MEMORY__ENABLED": "maybe"}, ["memory.enabled", "true or false"]),
        ({"EVERKEPT_MODEL": "gpt-5"}, ["model", "vendor:model"]),
        ({"EVERKEPT_BIND": "7411"}, ["server.bind", "host:port"]),
        ({"EVERKEPT_BIND": "127.0.0.1:65536"}, ["server.bind", "host:port"]),
        ({"EVERKEPT_URL": "127.0.0.1"}, ["url", "http://"]),
        ({"EVERKEPT_LOG__LEVEL": "loud"}, ["log.level", "debug, info"]),
        ({"EVERKEPT_STORE__CHANGES_RETENTION_S": "1"}, ["store.changes_retention_s", "from 60"]),
        ({"EVERKEPT_BIND": "a:1", "EVERKEPT_SERVER__BIND": "a:2"}, ["EVERKEPT_BIND", "EVERKEPT_SERVER__BIND"]),
        ({"EVERKEPT_WORK__HEARTBEAT_S": "60", "EVERKEPT_WORK__LEASE_S": "30"}, ["work.heartbeat_s", "work.lease_s"]),
    ],
)
def test_environment_is_refused(tmp_path: Path, env: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        load(env, tmp_path)
    for word in words:
        assert word in refused.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[window]\nidle = 5", ["window.idle", "window.idle_s", "config.toml"]),
        ("idle_s = 5", ["window.idle_s"]),
        ("windows.idle_s = 5", ["window.idle_s"]),
        ("window = 5", ["window", "window.idle_s"]),
        ("[window.idle_s]\nx = 5", ["window.idle_s", "a number"]),
        ("window.idle_s = true", ["window.idle_s", "True"]),
        ("window.idle_s = inf", ["window.idle_s"]),
        ("work.slots = 2.0", ["work.slots"]),
        ('memory.enabled = "yes"', ["memory.enabled"]),
        ("server.allowed_hosts = 'a'", ["server.allowed_hosts", "list"]),
        ("embedder = ''", ["embedder"]),
        ("home = '/elsewhere'", ["home", "EVERKEPT_HOME"]),
        ("window.idle_s = ", ["config.toml", "TOML"]),
    ],
)
def test_file_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        load({}, write_toml(tmp_path, text))
    for word in words:
        assert word in refused.value.message


def test_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        load({}, tmp_path)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"window.idle": 5}, ["window.idle_s"]),
        ({"idle_s": 5}, ["window.idle_s"]),
        ({"window.idle_s": -1}, ["window.idle_s", "from 1"]),
        ({"window.idle_s": "5"}, ["window.idle_s"]),
        ({"window.events_max": None}, ["window.events_max"]),
        ({"work.slots": 8}, ["work.slots", "whole installation", "memory.enabled"]),
        ({"secrets.api_key": "x"}, ["secrets.api_key", "whole installation"]),
        ({"server": {"bind": "0.0.0.0:1"}}, ["server.bind", "whole installation"]),
        ({"window": 5}, ["window"]),
    ],
)
def test_override_is_refused(tmp_path: Path, overrides: dict[str, Any], words: list[str]) -> None:
    settings = load({}, tmp_path)
    for refuse in (validate_overrides, settings.with_overrides):
        with pytest.raises(ConfigInvalid) as refused:
            refuse(overrides)
        for word in words:
            assert word in refused.value.message


def test_override_may_be_nested_and_comes_back_flat() -> None:
    given = {"window": {"idle_s": 5, "events_max": 9}, "memory.enabled": False}
    assert validate_overrides(given) == {"window.idle_s": 5.0, "window.events_max": 9, "memory.enabled": False}


def test_override_keeps_pairs_in_order(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"window.sibling_pull_s \(300\).*window.wait_max_s \(100\)"):
        load({}, tmp_path).with_overrides({"window.wait_max_s": 100})


def test_unknown_key_is_refused_by_get(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"window\.idle_s"):
        load({}, tmp_path).get("window.idle_ss")


# ---- places


def test_home_is_under_the_user_unless_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert load({}).home == tmp_path / ".everkept"
    monkeypatch.setattr(sys, "platform", "win32")
    assert load({"LOCALAPPDATA": str(tmp_path / "Local")}).home == tmp_path / "Local" / "everkept"
    assert load({}).home == tmp_path / ".everkept"


def test_database_lies_in_the_home(tmp_path: Path) -> None:
    settings = load({"EVERKEPT_HOME": str(tmp_path)})
    assert settings.database_url == f"sqlite:///{(tmp_path / 'everkept.db').as_posix()}"
    assert {row.key: row.source for row in settings.explain()}["database_url"] == "default"


def test_a_relative_home_is_an_argument_and_never_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load({}, Path("memory")).home == tmp_path / "memory"
    with pytest.raises(ConfigInvalid, match="another place in each folder"):
        load({"EVERKEPT_HOME": "memory"})


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        ("sqlite:///mine.db", "sqlite:///{home}/mine.db"),
        ("sqlite:///sub/mine.db?timeout=5", "sqlite:///{home}/sub/mine.db?timeout=5"),
        ("sqlite:///{home}/x.db", "sqlite:///{home}/x.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("sqlite://", "sqlite://"),
        ("postgresql+psycopg://h/db", "postgresql+psycopg://h/db"),
    ],
)
def test_database_never_depends_on_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, placed: str
) -> None:
    home = tmp_path / "home"
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        settings = load({"EVERKEPT_DATABASE_URL": given.format(home=home.as_posix())}, home)
        assert settings.database_url == placed.format(home=home.as_posix())
    source = {row.key: row.source for row in settings.explain()}["database_url"]
    assert source.endswith(", relative to the home") == ("mine.db" in given)


def test_loading_creates_nothing_and_make_home_is_private(tmp_path: Path) -> None:
    settings = load({}, tmp_path / "new" / "home")
    assert not settings.home.exists()
    assert config.make_home(settings) == settings.home
    if os.name == "posix":
        assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700
    config.make_home(settings)


# ---- secrets


def secret_settings(tmp_path: Path) -> Settings:
    key_file = tmp_path / "admin"
    key_file.write_text("s3cret-of-the-admin\n", "utf-8")
    key_file.chmod(0o600)
    return load(
        {
            "EVERKEPT_API_KEY": "s3cret-client",
            "EVERKEPT_ADMIN_KEY_FILE": str(key_file),
            "EVERKEPT_DATABASE_URL": "postgresql://me:s3cret-db@host:5432/db",
        },
        tmp_path,
    )


def test_secret_is_read_from_its_file(tmp_path: Path) -> None:
    settings = secret_settings(tmp_path)
    assert settings.secrets.admin_key == "s3cret-of-the-admin"
    source = {row.key: row.source for row in settings.explain()}["secrets.admin_key"]
    assert source == "environment EVERKEPT_ADMIN_KEY_FILE"


def test_secrets_are_shown_nowhere(tmp_path: Path) -> None:
    settings = secret_settings(tmp_path)
    shown = {row.key: row.value for row in settings.explain()}
    for text in (repr(settings), str(settings), repr(settings.secrets), repr(settings.explain())):
        assert "s3cret" not in text
    assert shown["secrets.api_key"] == config.MASK
    assert shown["database_url"] == f"postgresql://me:{config.MASK}@host:5432/db"


def test_password_with_an_at_sign_is_masked_whole(tmp_path: Path) -> None:
    settings = load({"EVERKEPT_DATABASE_URL": "postgresql://me:a@b@host/db"}, tmp_path)
    assert {row.key: row.value for row in settings.explain()}[
        "database_url"
    ] == f"postgresql://me:{config.MASK}@host/db"


def test_refused_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        load({"EVERKEPT_URL": "s3cret"}, tmp_path)
    assert "s3cret" not in refused.value.message


def test_missing_secret_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"EVERKEPT_API_KEY_FILE.*cannot be read"):
        load({"EVERKEPT_API_KEY_FILE": str(tmp_path / "missing")}, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a file has no such mode")
@pytest.mark.parametrize("mode", [0o644, 0o604, 0o666])
def test_file_of_a_secret_that_everybody_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "admin"
    file.write_text("s3cret-of-the-admin", "utf-8")
    file.chmod(mode)
    with pytest.raises(ConfigInvalid, match=rf"EVERKEPT_ADMIN_KEY_FILE .*mode {mode:04o}.*chmod o-rwx") as refused:
        load({"EVERKEPT_ADMIN_KEY_FILE": str(file)}, tmp_path)
    assert "s3cret" not in refused.value.message
    file.chmod(0o440)  # as a group that the process is in may read what a cluster mounts
    assert load({"EVERKEPT_ADMIN_KEY_FILE": str(file)}, tmp_path).secrets.admin_key == "s3cret-of-the-admin"


@pytest.mark.parametrize("key", ["s3cret-that-is", "s3cret of several words", "s3crét-with-an-accent", "s3" * 129])
def test_admin_key_that_is_short_or_cannot_be_sent_is_refused_with_the_limit(tmp_path: Path, key: str) -> None:
    file = tmp_path / "admin"
    file.write_text(key, "utf-8")
    file.chmod(0o600)
    for given in ({"EVERKEPT_ADMIN_KEY": key}, {"EVERKEPT_ADMIN_KEY_FILE": str(file)}):
        (name,) = given
        with pytest.raises(ConfigInvalid, match=rf"secrets\.admin_key must be 16 to 256 .*\({name}\)") as refused:
            load(given, tmp_path)
        assert "s3" not in refused.value.message


def test_file_of_a_secret_with_several_lines_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "admin"
    file.write_text("s3cret-of-the-admin\ns3cret-of-another-one\n", "utf-8")
    file.chmod(0o600)
    with pytest.raises(ConfigInvalid, match=r"EVERKEPT_ADMIN_KEY_FILE .*more than one line") as refused:
        load({"EVERKEPT_ADMIN_KEY_FILE": str(file)}, tmp_path)
    assert "s3cret" not in refused.value.message


def test_secret_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"both set secrets\.api_key"):
        load({"EVERKEPT_API_KEY": "a", "EVERKEPT_API_KEY_FILE": str(tmp_path)}, tmp_path)


# ---- explain


def test_explain_lists_every_setting_in_order_with_its_unit(tmp_path: Path) -> None:
    rows = load({}, tmp_path).explain()
    assert [row.key for row in rows] == list(SETTINGS)
    idle = next(row for row in rows if row.key == "window.idle_s")
    assert (idle.value, idle.unit, idle.env, idle.overridable) == (1800.0, "s", "EVERKEPT_WINDOW__IDLE_S", True)
    assert idle.limit == "a number from 1 to 2592000, or null"
    assert all(isinstance(row.value, bool | int | float | str | list | None) for row in rows)
