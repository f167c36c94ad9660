"""`config`: each setting, its value, and where that comes from."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from cyclopts import Parameter

from everkept import config as settings
from everkept.doors.cli import screen
from everkept.doors.cli.options import Json
from everkept.errors import NotFound


def config(
    key: Annotated[str | None, Parameter(help="A setting (`window.idle_s`) or a group (`window`).")] = None,
    /,
    *,
    json: Json = False,
) -> None:
    """Print each setting, its value, and where that comes from; nothing is created or opened."""
    rows = settings.load().explain()
    chosen = [row for row in rows if key is None or row.key == key or row.key.startswith(f"{key}.")]
    if not chosen:
        raise NotFound(f"{key} is not a setting; `everkept config` lists them all", key=key)
    if json:
        screen.emit_list([dataclasses.asdict(row) for row in chosen])
    elif len(chosen) == 1:
        _explain(chosen[0])
    else:
        _list(chosen)


def _list(rows: list[settings.SettingRow]) -> None:
    drawn = screen.table("Setting", "Value", "Where from")
    for row in rows:
        drawn.add_row(row.key, _value(row), row.source, style="" if row.source == "default" else "bold")
    screen.show(drawn)
    screen.say("`everkept config SETTING` explains one")


def _explain(row: settings.SettingRow) -> None:
    print(f"{row.key} = {_value(row)}   ({row.source})")
    print(f"{row.description}\naccepts {row.limit}; in the environment {row.env}")
    if row.overridable:
        print("a project or a thread may have its own value")


def _value(row: settings.SettingRow) -> str:
    if row.value is None:
        return "null"
    if isinstance(row.value, bool):
        return "true" if row.value else "false"
    text = f"{row.value:g}" if isinstance(row.value, float) else str(row.value)
    return f"{text} {row.unit}" if row.unit and row.unit != "cosine" else text
