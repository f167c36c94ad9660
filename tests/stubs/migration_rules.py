"""What a migration may do: judged by the statements that it runs, on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from alembic import command
from alembic.script import ScriptDirectory

from everkept.store.migrate import Migrations, alembic_config, revision
from everkept.store.migrations.open_connection import engine_over
from everkept.store.migrations.printed import printed
from everkept.store.sqlite import choose_driver

CONTRACTS: Final = (
    r"\bdrop (table|column|view|function|trigger|constraint|policy)\b",
    r"\brename\b",
    r"\bset not null\b",
    r"\balter column \S+ (set data )?type\b",
    r"\badd (constraint|check|unique|foreign|primary)\b",
    r"\bcreate unique index\b",
    r"\btruncate\b",
    r"\badd( column)? (?!.*\bdefault\b).*\bnot null\b",
)
"""Statements that take away what an older program reads, or refuse what it writes."""
RESTARTS: Final = r"\bif (not )?exists\b"
_DROPPED = re.compile(r"drop index (?:concurrently )?(?:if exists )?(\w+)")
_MADE = re.compile(r"create (?:unique )?index (?:concurrently )?(?:if not exists )?(\w+)")
_REBUILT = re.compile(r'alter table "?_alembic_tmp_(\w+)"? rename')


def faults_of(migrations: Migrations) -> list[str]:
    """What is wrong with each migration but the first, and what each older program would break on."""
    scripts = ScriptDirectory.from_config(alembic_config(migrations))
    before, found = 1, []
    for number in range(2, migrations.head + 1):
        migration: Any = scripts.get_revision(revision(number))
        module, works_with = migration.module, migration.module.works_with
        served = _flat(printed(number - 1, number, "postgresql", migrations))
        if not before <= works_with <= number:
            found.append(f"{number}: works_with is {works_with}, and must be from {before} to {number}")
        if works_with < number:
            both = [*served, *_flat(_run_on_a_file(migrations, number))]
            found += [f"{number}: breaks programs of schema {works_with}: {said}" for said in _contracts(both)]
        if getattr(module, "online", False):
            found += [f"{number}: cannot be run again: {said}" for said in _not_restartable(served)]
        else:
            found += [f"{number}: needs online = True: {said}" for said in served if "concurrently" in said]
        before = max(before, works_with)
    return found


def _flat(statements: Sequence[str]) -> list[str]:
    return [re.sub(r"\s+", " ", said).strip().lower() for said in statements]


def _contracts(statements: Sequence[str]) -> Iterator[str]:
    """An index that is made again stays; on a file Alembic makes a table again to alter it."""
    made = {name for said in statements for name in _MADE.findall(said)}
    rebuilt = {name for said in statements for name in _REBUILT.findall(said)}
    for said in statements:
        if "_alembic_tmp_" in said or said in {f"drop table {name}" for name in rebuilt}:
            continue
        gone = [name for name in _DROPPED.findall(said) if name not in made]
        if gone or any(re.search(pattern, said) for pattern in CONTRACTS):
            yield said


def _not_restartable(statements: Sequence[str]) -> Iterator[str]:
    dropped: set[str] = set()
    for said in statements:
        dropped |= set(_DROPPED.findall(said))
        bookkeeping = re.search(r"\b(alembic_version|schema_support)\b", said)
        if not (bookkeeping or re.search(RESTARTS, said) or dropped.intersection(_MADE.findall(said))):
            yield said


def _run_on_a_file(migrations: Migrations, number: int) -> list[str]:
    """What migration `number` runs on SQLite; Alembic prints no table that it makes again."""
    raw = choose_driver().module.connect(":memory:", isolation_level=None)
    ran: list[str] = []
    with engine_over(raw).connect() as connection:
        config = alembic_config(migrations)
        config.attributes["connection"] = connection
        command.upgrade(config, revision(number - 1))
        raw.set_trace_callback(ran.append)
        command.upgrade(config, revision(number))
    raw.close()
    return ran
