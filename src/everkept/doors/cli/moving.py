"""`move`: the whole memory, from a file to PostgreSQL or back, while it is used."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import screen
from everkept.doors.cli.options import Json, Switch
from everkept.errors import InvalidInput

if TYPE_CHECKING:
    from everkept.store.database import Database
    from everkept.store.moving.mover import Moved
    from everkept.store.moving.pair import Told

PHASES = {
    "begin": "preparing both places", "copy": "copying", "follow": "following what was written",
    "compare": "comparing", "switch": "switching", "end": "making the new place a memory",
}  # fmt: skip


def move(
    *,
    to: Annotated[str | None, Parameter(help="Where to: postgresql://… or sqlite:///path; an empty place.")] = None,
    cancel: Annotated[bool, Switch, Parameter(help="End a move that has not switched; with --to, empty it.")] = False,
    json: Json = False,
) -> None:
    """Move the whole memory to another database while it is used; run it again if it was stopped.

    Every row is compared before the switch, in which writers wait for a moment. From then on the old place is only
    read, and says where the memory is; set EVERKEPT_DATABASE_URL to that, and start again what uses it.
    """
    from everkept.bootstrap import database_of
    from everkept.ports.clock import SystemClock
    from everkept.store.moving.mover import cancel_move, move_memory

    settings = config.load()
    if settings.url:
        raise InvalidInput("this needs the store itself, and EVERKEPT_URL names a server; run it there, or unset it")
    if to is None and not cancel:
        raise InvalidInput("--to names the place to move to: postgresql://… or sqlite:///path", field="to")
    source, target = database_of(settings), None if to is None else _database(settings, to)
    if cancel or target is None:
        cancel_move(source, target, SystemClock())
        _tell_cancelled(emptied=target is not None, json=json)
        return
    with _Progress(json=json) as progress:
        moved = move_memory(source, target, SystemClock(), progress.told)
    screen.emit(_as_dict(moved)) if json else print(_page(moved))


def _database(settings: config.Settings, url: str) -> Database:
    from everkept.bootstrap import database_of

    return database_of(dataclasses.replace(settings, database_url=url, database_direct_url=None))


class _Progress:
    """One line of progress on the screen; with `json`, a line of JSON on stderr for each table."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._drawn = None if json else screen.progress("moving")
        self._bar: screen.Bar | None = None
        self._last: tuple[str, str] | None = None

    def __enter__(self) -> _Progress:
        self._bar = None if self._drawn is None else self._drawn.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._drawn is not None:
            self._drawn.__exit__(*error)

    def told(self, told: Told) -> None:
        if self._bar is not None:
            self._bar.at(told.rows_done, max(told.rows, 1), _words(told))
        elif (told.phase, told.name) != self._last:
            print(screen.to_json({**dataclasses.asdict(told), "percent": _percent(told)}), file=sys.stderr, flush=True)
        self._last = told.phase, told.name


def _percent(told: Told) -> int:
    return 100 * told.rows_done // told.rows if told.rows else 0


def _words(told: Told) -> str:
    if told.phase not in ("copy", "compare"):
        return PHASES[told.phase]
    return f"{PHASES[told.phase]} {told.name}: {told.rows_done:,} of {told.rows:,} rows, {_percent(told)} %"


def _page(moved: Moved) -> str:
    rows = sum(moved.rows.values())
    if moved.switch_s is None:
        return f"the memory is in {moved.target} ({rows:,} rows); set EVERKEPT_DATABASE_URL to it"
    return (
        f"moved {rows:,} rows of {len(moved.rows)} tables to {moved.target}; {moved.compared:,} were compared before"
        f" the switch, in which writers waited {moved.switch_s * 1000:,.0f} ms\n"
        "set EVERKEPT_DATABASE_URL to it and start again what uses the memory; the old place is only read from now on,"
        " and holds what is erased later: delete it when it is no longer needed"
    )


def _as_dict(moved: Moved) -> dict[str, Any]:
    return dataclasses.asdict(moved)


def _tell_cancelled(*, emptied: bool, json: bool) -> None:
    if json:
        screen.emit({"cancelled": True, "emptied": emptied})
        return
    print("the move has ended; the memory stays here" + (", and the other place is empty" if emptied else ""))
    if not emptied:
        screen.say("the other place still holds a part of the copy: `everkept move --cancel --to …` empties it")
