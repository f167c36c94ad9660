"""Where the stores of scenarios lie, a folder each: as a file in it, or as a database of a server that it names.

A database is copied as a file is: the server clones it from a template that nobody is connected to.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from urllib.parse import urlsplit, urlunsplit

from everkept.prove.nursery import OUTCOME
from everkept.store.sqlite import choose_driver

if TYPE_CHECKING:
    from everkept.store.database import Database

DATABASE: Final = "everkept.db"
"""The file."""
DATABASE_URL: Final = "database-url"
"""A file that names a database, instead."""
LEFT_MAX_S: Final = 60.0
"""How long a server may take to notice that a client was killed."""
SHOWS_A_STORE: Final = "projects"
"""A table that every store has."""


class Ground(Protocol):
    name: str

    def make(self, folder: Path) -> None:
        """Make a folder with room for a store, and none in it."""
        ...

    def copy(self, template: Path, folder: Path) -> None:
        """Make a folder with all that is in another one, which nobody has open."""
        ...

    def remove(self, folder: Path) -> None: ...


class Files:
    name = "file"

    def make(self, folder: Path) -> None:
        folder.mkdir()

    def copy(self, template: Path, folder: Path) -> None:
        folder.mkdir()
        _copy_files(template, folder)

    def remove(self, folder: Path) -> None:
        shutil.rmtree(folder)


class Clones:
    """On a server of PostgreSQL whose role may make databases; the last of them go with the block it is used in."""

    name = "postgresql"

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._made: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in sorted(self._made):
            self._drop(name)

    def make(self, folder: Path) -> None:
        folder.mkdir()
        self._create(folder, "template0")

    def copy(self, template: Path, folder: Path) -> None:
        folder.mkdir()
        _copy_files(template, folder)
        self._create(folder, _database_of(template))

    def remove(self, folder: Path) -> None:
        self._drop(_database_of(folder))
        shutil.rmtree(folder)

    def _drop(self, name: str) -> None:
        with self._administrator() as raw:
            raw.execute(f"drop database if exists {name} with (force)")
        self._made.discard(name)

    def _create(self, folder: Path, template: str) -> None:
        from psycopg.errors import ObjectInUse

        name = f"everkept_scenario_{secrets.token_hex(6)}"
        end = time.monotonic() + LEFT_MAX_S
        with self._administrator() as raw:
            while True:
                with suppress(ObjectInUse):  # who used the template has ended, and the server not seen it yet
                    raw.execute(f"create database {name} template {template} encoding 'utf8'")
                    break
                if time.monotonic() > end:
                    raise RuntimeError(f"somebody is still connected to {template}")
                time.sleep(0.01)
        self._made.add(name)
        parts = urlsplit(self._server_url)
        (folder / DATABASE_URL).write_text(urlunsplit(parts._replace(path=f"/{name}")), "utf-8")

    def _administrator(self) -> Any:
        import psycopg

        return psycopg.connect(self._server_url, autocommit=True)


def _copy_files(template: Path, folder: Path) -> None:
    for file in template.iterdir():
        if file.is_file() and file.name not in (OUTCOME, DATABASE_URL):
            shutil.copyfile(file, folder / file.name)


def _database_of(folder: Path) -> str:
    return urlsplit((folder / DATABASE_URL).read_text("utf-8")).path.lstrip("/")


def is_server(folder: Path) -> bool:
    return (folder / DATABASE_URL).exists()


def place_of(folder: Path) -> Path | Database:
    """What a store in this folder is opened over."""
    if not is_server(folder):
        return folder / DATABASE
    from everkept.store.postgres import PostgresDatabase

    return PostgresDatabase((folder / DATABASE_URL).read_text("utf-8"))


@contextmanager
def left_in(folder: Path) -> Iterator[Path | Any | None]:
    """What a store left in this folder, as the checks read it: its file, or an open connection to a copy as one.

    None where there is no store.
    """
    if is_server(folder):
        from everkept.prove.copied import copied

        copy = copied((folder / DATABASE_URL).read_text("utf-8"))
        try:
            yield copy
        finally:
            if copy is not None:
                copy.close()
        return
    file = folder / DATABASE
    yield file if file.exists() and _shows_a_store(file) else None


def _shows_a_store(file: Path) -> bool:
    raw = choose_driver().module.connect(str(file), isolation_level=None)
    try:
        found = raw.execute("select 1 from sqlite_master where type = 'table' and name = ?", (SHOWS_A_STORE,))
        return found.fetchone() is not None
    finally:
        raw.close()
