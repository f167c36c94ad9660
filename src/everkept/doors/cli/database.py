"""`db`: the file of the store itself, checked, upgraded, described."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from everkept import config
from everkept.doors.cli import backend, failures, screen
from everkept.doors.cli.options import Json, command_group
from everkept.doors.cli.wording import size
from everkept.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from everkept.store.inspection import Inspection

db = command_group("db")


def store_file(settings: config.Settings) -> Path:
    """The file of the store that these settings mean. Raises InvalidInput where it is not on this machine."""
    if settings.url:
        raise InvalidInput("this needs the store itself, and EVERKEPT_URL names a server; run it there, or unset it")
    if not settings.database_url.startswith("sqlite"):
        raise InvalidInput("this is for a store in a file; PostgreSQL has tools of its own", field="database_url")
    return Path(backend.store_path(settings))


def _is_served(settings: config.Settings) -> bool:
    """Whether the store is on a database server."""
    return settings.database_url.startswith(("postgresql://", "postgres://"))


def _upgrade_server(settings: config.Settings) -> int:
    from everkept.bootstrap import database_of
    from everkept.ports.clock import SystemClock
    from everkept.store.migrate import SCHEMA

    database_of(settings).prepare(SystemClock())
    return SCHEMA


@db.command(name="check")
def check_database(*, json: Json = False) -> int:
    """Read the store from end to end; exits with 5, and says why, if something needs attention."""
    from everkept.store.inspection import inspect_store

    found = inspect_store(store_file(config.load()))
    wrong = [finding for finding in found.findings if not finding.ok]
    if json:
        screen.emit(_as_dict(found))
    else:
        print(f"{found.path}  {size(found.size_bytes)}  {found.library}")
        print("\n".join(f"{'ok  ' if each.ok else 'TRIP'}  {each.name}: {each.message}" for each in found.findings))
        for copy in found.copies:
            screen.say(f"beside it: {copy}; it holds what was erased since, so delete it when it is no longer needed")
    for finding in wrong:
        screen.warn(f"needs attention: {finding.name}: {finding.message}")
    return failures.NEEDS_ATTENTION if wrong else 0


def _as_dict(found: Inspection) -> dict[str, Any]:
    return {
        "path": str(found.path), "library": found.library, "size_bytes": found.size_bytes,
        "free_bytes": found.free_bytes, "copies": [str(copy) for copy in found.copies],
        "checks": [{"name": each.name, "ok": each.ok, "message": each.message} for each in found.findings],
    }  # fmt: skip


@db.command(name="upgrade")
def upgrade_database(*, json: Json = False) -> None:
    """Bring the store to this program's schema now. A file is at the next start, too; a copy is kept beside it."""
    from everkept.store.migrate import upgrade_file

    settings = config.load()
    if _is_served(settings):
        schema = _upgrade_server(settings)
        screen.emit({"to": schema}) if json else print(f"schema {schema} is up to date")
        return
    path = store_file(settings)
    if not path.is_file():
        raise NotFound(f"there is no store at {path}; it is made when it is first used", path=str(path))
    done = upgrade_file(path)
    if json:
        screen.emit({"from": done.found, "to": done.schema, "copy": None if done.copy is None else str(done.copy)})
    elif done.copy is None:
        print(f"schema {done.schema} is up to date")
    else:
        print(f"upgraded from schema {done.found} to {done.schema}; the store as it was is {done.copy}")


@db.command(name="sql")
def show_schema(*, json: Json = False) -> None:
    """Print the schema as SQL, for PostgreSQL with what an administrator runs beside it; nothing is opened."""
    from everkept.store.migrate import SCHEMA, schema_statements

    if _is_served(config.load()):
        from everkept.store.postgres import administrators_statements

        statements = administrators_statements()
    else:
        statements = schema_statements()
    if json:
        screen.emit({"schema": SCHEMA, "statements": statements})
        return
    print(f"-- schema {SCHEMA}; times are microseconds since 1970 (UTC), JSON is text")
    print("\n\n".join(f"{statement};" for statement in statements))
