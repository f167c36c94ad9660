"""A migration that no version has, and a process that dies at each of its statements in turn."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from everkept.ports.clock import VirtualClock
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.migrate import SCHEMA, SHIPPED, Migrations, read_revision, revision, upgrade
from everkept.store.sqlite import choose_driver, open_file

STATEMENTS_MAX = 200
SOURCE = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, works_with = {revision!r}, {down!r}, {works_with!r}


def upgrade():
    for number, step in enumerate((add, fill, rebuild, make)):
        if number == {fails_at!r}:
            raise RuntimeError("planted")
        step()
    if {last!r}:
        op.execute({last!r})


def add():
    op.add_column("projects", sa.Column("colour", sa.Text()))


def fill():
    op.execute("update projects set colour = 'green'")


def rebuild():
    with op.batch_alter_table("projects", recreate="always") as batch:
        batch.add_column(sa.Column("position", sa.Integer(), server_default="0", nullable=False))


def make():
    op.create_table("ribbons", sa.Column("id", sa.Integer(), primary_key=True), sa.Column("name", sa.Text()))
    op.execute("insert into ribbons(name) select name from projects")
"""


def plant(folder: Path, *, fails_at: int | None = None, last: str = "", works_with: int = SCHEMA + 1) -> Migrations:
    """The shipped migrations and one more, which fails before its step `fails_at` or runs `last` at its end."""
    folder.mkdir(exist_ok=True)
    source = SOURCE.format(
        revision=revision(SCHEMA + 1), down=revision(SCHEMA), fails_at=fails_at, last=last,
        works_with=works_with,
    )  # fmt: skip
    (folder / "planted.py").write_text(source, "utf-8")
    return found(folder)


def found(folder: Path) -> Migrations:
    return Migrations(head=SCHEMA + 1, places=(*SHIPPED.places, folder))


def upgrade_and_die(path: Path, migrations: Migrations, at: int) -> None:
    """Upgrade; SIGKILL as statement number `at` begins."""
    count = 0

    def count_down(_statement: str) -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    raw = open_file(choose_driver(), path)
    raw.set_trace_callback(count_down)
    upgrade(Connection(raw, sqlite_dialect(), VirtualClock()), path, migrations)
    raw.close()


def state(path: Path) -> tuple[int, str | None, str, bool]:
    raw = choose_driver().module.connect(str(path))
    try:
        tables = {row[0] for row in raw.execute("select name from sqlite_master")}
        whole: str = raw.execute("pragma integrity_check").fetchone()[0]
        return raw.execute("pragma user_version").fetchone()[0], read_revision(raw), whole, "ribbons" in tables
    finally:
        raw.close()


def main(home: Path, planted: Path) -> None:
    import alembic.command  # noqa: F401  (once for all children)

    path, broken = home / "everkept.db", []
    old, new = (SCHEMA, revision(SCHEMA), "ok", False), (SCHEMA + 1, revision(SCHEMA + 1), "ok", True)
    for at in range(1, STATEMENTS_MAX):
        trial = home / f"trial-{at}"
        trial.mkdir()
        shutil.copy(path, trial / path.name)
        child = os.fork()
        if child == 0:
            upgrade_and_die(trial / path.name, found(planted), at)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        after = state(trial / path.name)
        shutil.rmtree(trial)
        if os.WIFEXITED(status):
            broken += [] if after == new and os.WEXITSTATUS(status) == 0 else [(at, after)]
            print(json.dumps({"killed": at - 1, "broken": broken, "schema": after[0]}), file=sys.stderr)  # noqa: T201
            return
        broken += [] if after in (old, new) else [(at, after)]
    raise AssertionError("it never came to its end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
