"""`db`: the file of the store itself, checked, upgraded, described."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import backend, failures, screen
from everkept.doors.cli.options import Json, Switch, command_group
from everkept.doors.cli.wording import size
from everkept.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from everkept.store.inspection import Inspection
    from everkept.store.migrate import Upgraded
    from everkept.store.postgres import PostgresDatabase

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


def _server(settings: config.Settings) -> PostgresDatabase:
    from everkept.bootstrap import database_of

    database: Any = database_of(settings)  # first: it names the extra where that is missing
    served: PostgresDatabase = database
    return served


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
def upgrade_database(
    *,
    check: Annotated[bool, Switch, Parameter(help="Only say what is there and what is needed; 5: an upgrade.")] = False,
    json: Json = False,
) -> int:
    """Bring the store to this program's schema. A file is at the next start, too, and a copy of it is kept beside."""
    settings = config.load()
    if check:
        return _compare(_found(settings), json=json)
    done = _upgrade(settings)
    copy = None if done.copy is None else str(done.copy)
    if json:
        screen.emit({"from": done.found, "to": done.schema, "copy": copy})
    elif done.found in (0, done.schema):
        print(f"schema {done.schema} is up to date")
    else:
        as_it_was = "" if copy is None else f"; the store as it was is {copy}"
        print(f"upgraded from schema {done.found} to {done.schema}{as_it_was}")
    return 0


def _upgrade(settings: config.Settings) -> Upgraded:
    from everkept.doors.cli.logs import write_logs

    write_logs(settings)  # what is printed is for whoever reads it
    if _is_served(settings):
        served = _server(settings)
        from everkept.store.postgres_upgrade import upgrade_database as upgrade_served

        return upgrade_served(served)
    from everkept.store.migrate import upgrade_file

    return upgrade_file(_existing_file(settings))


def _existing_file(settings: config.Settings) -> Path:
    path = store_file(settings)
    if not path.is_file():
        raise NotFound(f"there is no store at {path}; it is made when it is first used", path=str(path))
    return path


def _found(settings: config.Settings) -> int:
    """The schema that is there. Raises StoreNotSupported for a newer one that this program does not run on."""
    if _is_served(settings):
        return _server(settings).find_schema()
    from everkept.store.copy import opened
    from everkept.store.migrate import read_schema

    path = _existing_file(settings)
    with opened(path) as raw:
        return read_schema(raw, path)


def _compare(found: int, *, json: bool) -> int:
    from everkept.store.migrate import SCHEMA

    if json:
        screen.emit({"found": found, "needed": SCHEMA, "upgrade": found < SCHEMA})
    elif found < SCHEMA:
        print(f"schema {found}, and {SCHEMA} is needed: everkept db upgrade")
    elif found > SCHEMA:
        print(f"schema {found} is newer than {SCHEMA}, and this program goes on with it")
    else:
        print(f"schema {found} is up to date")
    return failures.NEEDS_ATTENTION if found < SCHEMA else 0


@db.command(name="sql")
def show_schema(
    *,
    from_: Annotated[
        int | None, Parameter(name="--from", help="Of PostgreSQL: what brings a database of this schema to the newest.")
    ] = None,
    json: Json = False,
) -> None:
    """Print the schema as SQL, for PostgreSQL with what an administrator runs beside it; nothing is opened."""
    from everkept.store.migrate import SCHEMA

    statements = _making(config.load()) if from_ is None else _upgrading(config.load(), from_)
    if json:
        screen.emit({"schema": SCHEMA, "statements": statements})
        return
    if not statements:
        print(f"-- schema {SCHEMA} is the newest: there is nothing to run")
        return
    print(f"-- schema {SCHEMA}; times are microseconds since 1970 (UTC), JSON is text")
    print("\n\n".join(f"{statement};" for statement in statements))


def _making(settings: config.Settings) -> list[str]:
    if _is_served(settings):
        from everkept.store.postgres_schema import administrators_statements

        return administrators_statements()
    from everkept.store.migrate import schema_statements

    return schema_statements()


def _upgrading(settings: config.Settings, older: int) -> list[str]:
    from everkept.store.migrate import SCHEMA

    if not _is_served(settings):
        raise InvalidInput("a file is upgraded by `everkept db upgrade`, which keeps a copy of it", field="from")
    if not 1 <= older <= SCHEMA:
        raise InvalidInput(f"there are the schemas 1 to {SCHEMA}", field="from")
    from everkept.store.postgres_upgrade import upgrading_statements

    return upgrading_statements(older)


@db.command(name="index")
def index_vectors(*, json: Json = False) -> None:
    """On PostgreSQL, make the vector index of each large project; run it now and then as the owner of the tables."""
    settings = config.load()
    if not _is_served(settings):
        raise InvalidInput("a store in a file needs no index of its vectors: they are searched in memory")
    graphs = [{"project": g.project, "model": g.model, "vectors": g.vectors} for g in _server(settings).make_graphs()]
    if json:
        screen.emit({"made": graphs})
        return
    print("\n".join(f"project {g['project']}: {g['vectors']:,} vectors indexed" for g in graphs) or "nothing to do")
