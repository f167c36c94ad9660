"""`torture`: layers 2 to 4 of the proof on the user's own disk or server, in stores that are thrown away."""

from __future__ import annotations

import math
import random
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import failures, screen
from everkept.doors.cli.options import Json
from everkept.errors import ExtraMissing, InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from everkept.prove.storm.report import StormReport
    from everkept.prove.torture import Orders, Torture

SECONDS_MIN, SECONDS_MAX = 1.0, 86_400.0
MANY_MAX = 64
SHOWN_MAX = 10
WIDTH = 100
FAILED, COULD_NOT_LOOK = 1, 3


def torture(
    *,
    seed: Annotated[int | None, Parameter(help="Repeat the run of this number.")] = None,
    seconds: Annotated[float, Parameter(help="How long, about.")] = 60.0,
    dir: Annotated[Path | None, Parameter(help="A folder on the disk to try; default: where the memory is.")] = None,
    only: Annotated[
        list[Literal["kill", "power", "processes"]] | None,
        Parameter(
            help="Kills at statements, power cuts, or a storm over real processes; may be repeated.",
            consume_multiple=False,
            negative="",
        ),
    ] = None,
    database_url: Annotated[
        str | None,
        Parameter(help="A PostgreSQL (postgresql://…) to try instead; databases are made there and dropped again."),
    ] = None,
    workers: Annotated[int, Parameter(help="Worker processes in the storm.")] = 4,
    clients: Annotated[int, Parameter(help="Clients in the storm.")] = 16,
    restart_command: Annotated[
        str | None, Parameter(help="Restarts that PostgreSQL at once; without it, it is not restarted.")
    ] = None,
    nats_server: Annotated[
        Path | None, Parameter(help="The program nats-server, for a broker of the storm's own.")
    ] = None,
    json: Json = False,
) -> int:
    """Kill processes and cut the power over throw-away stores, and check what is left; your memory is not touched.

    Exits with 0 where nothing broke, 1 where something did, 3 where it could not look.
    """  # fmt: skip
    from everkept.prove import nursery
    from everkept.prove.torture import LAYERS, Orders
    from everkept.prove.torture import torture as run

    _require("seconds", seconds, SECONDS_MIN, SECONDS_MAX)
    _require("workers", workers, 1, MANY_MAX)
    _require("clients", clients, 1, MANY_MAX)
    _require_server(database_url, restart_command)
    orders = Orders(
        seed=random.SystemRandom().randrange(1, 1_000_000) if seed is None else seed, seconds=seconds,
        layers=tuple(only) if only else LAYERS, database_url=database_url, workers=workers, clients=clients,
        restart_command=restart_command, nats_server=nats_server,
    )  # fmt: skip
    parent = _existing(config.load().home) if dir is None else dir
    try:
        done = run(parent, orders, told=lambda words: None if json else screen.say(f"{words} …"))
    except OSError as error:
        return _could_not_look(f"nothing was tried: {parent}: {error.strerror or error}", json=json)
    except RuntimeError as error:
        return _could_not_look(str(error), json=json)
    except nursery.PlayerFailed as error:
        return _could_not_look(f"a scenario does not even play undisturbed: {str(error)[-600:].strip()}", json=json)
    if json:
        screen.emit(_as_dict(done))
    else:
        print(_page(done))
    if not done.looked:
        return COULD_NOT_LOOK
    return FAILED if done.violations else 0


def _require(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"--{name} is {value:g}; {least:g} to {most:g} are allowed", field=name)


def _require_server(database_url: str | None, restart_command: str | None) -> None:
    """Raises InvalidInput for what is no server, and ExtraMissing where its client is not installed."""
    if database_url is None:
        if restart_command is not None:
            raise InvalidInput("--restart-command needs --database-url", field="restart_command")
        return
    if not database_url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput("--database-url is a postgresql:// URL", field="database_url")
    if find_spec("psycopg") is None:
        raise ExtraMissing(
            "--database-url needs the extra `postgres`: pip install 'everkept[postgres]'", module="psycopg"
        )


def _could_not_look(why: str, *, json: bool) -> int:
    print(failures.json_of(StoreUnavailable.code, why, {}) if json else f"error: {why}", file=sys.stderr)
    return COULD_NOT_LOOK


def _existing(home: Path) -> Path:
    """The memory's folder, or what will hold it: the same disk, and nothing is made there that stays."""
    return next(folder for folder in (home, *home.absolute().parents) if folder.is_dir())


def _as_dict(done: Torture) -> dict[str, Any]:
    return {
        "seed": done.orders.seed, "seconds": round(done.seconds, 1), "directory": str(done.directory.parent),
        "kill": {
            "kills": done.kill.kills, "scenarios": len({s.name for s in done.kill.scenarios}),
            "statements": len(done.kill.statements),
            "states": sum(s.states for s in done.kill.scenarios), "not_run": done.kill_not_run,
        },
        "too_short": done.too_short,
        "power": {"images": done.power.images, "cuts": done.power.cuts, "not_run": done.power.not_run},
        "processes": {"not_run": done.storm_not_run, **({} if done.storm is None else _storm_as_dict(done.storm))},
        "violations": [
            {"guarantee": v.guarantee, "what": v.what, "where": v.where, "shown_by": again}
            for v, again in done.violations
        ],
    }  # fmt: skip


def _storm_as_dict(storm: StormReport) -> dict[str, Any]:
    return {
        "database": storm.database, "seconds": round(storm.seconds, 1), "strikes": dict(storm.strikes),
        "messages": storm.messages, "changes": storm.changes, "refused_finishes": storm.refused_finishes,
        "longest_overdue_s": round(storm.longest_overdue_s, 1), "deadlocks": storm.deadlocks,
        "not_struck": list(storm.not_run),
    }  # fmt: skip


def _page(done: Torture) -> str:
    """For a tired reader: what was done, what broke, what that proves and what it does not."""
    parts = [_done(done), _broken(done), ["Shown:", *_points(_shown(done))], ["Not shown:", *_points(_not_shown(done))]]
    return "\n\n".join("\n".join(part) for part in parts)


def _points(lines: list[str]) -> list[str]:
    return [
        textwrap.fill(line, WIDTH, initial_indent="  - ", subsequent_indent="    ") for line in lines or ["nothing"]
    ]


def _done(done: Torture) -> list[str]:
    from everkept.prove.scenarios import playable
    from everkept.prove.storm.report import counted

    on_a_server = done.orders.database_url is not None
    where = f"on the disk of {done.directory.parent}, in a folder that is"
    if on_a_server:
        where = "on PostgreSQL, in databases that are"
    lines = [f"{done.seconds:.0f} seconds with seed {done.orders.seed} {where} gone again."]
    if done.kill.kills:
        again = sum(s.double_kills for s in done.kill.scenarios)
        states = sum(s.states for s in done.kill.scenarios)
        names = len({s.name for s in done.kill.scenarios})
        lines += _points([
            f"Killed {done.kill.kills:,} processes in {names} of {len(playable(on_a_server=on_a_server))} scenarios, at"
            f" {len(done.kill.statements):,} different statements; {again:,} of them while they recovered from a kill."
            f" They left {states:,} different states behind; each was opened, worked to its end, and compared with what"
            " clients had been told."
        ])  # fmt: skip
    if done.power.images:
        lines += _points([
            f"Cut the power {done.power.cuts:,} times; each disk that this may have left was opened and compared"
            " likewise."
        ])  # fmt: skip
    if done.storm is not None:
        lines += _points([
            f"Let a storm go over {done.storm.servers} servers, {done.storm.workers} workers and"
            f" {done.storm.clients} clients for {done.storm.seconds:.0f} seconds ({counted(done.storm.strikes)}):"
            f" {done.storm.messages:,} messages were acknowledged and {done.storm.changes:,} changes followed,"
            f" {done.storm.refused_finishes} finishes of workers that came too late were refused and counted, and no"
            f" ended lease stood longer than {done.storm.longest_overdue_s:.1f} seconds."
        ])  # fmt: skip
    return lines


def _broken(done: Torture) -> list[str]:
    orders = done.orders
    again = f"everkept torture --seed {orders.seed} --seconds {math.ceil(orders.seconds)}{_options(orders)}"
    if done.violations:
        shown = [f"  {line}" for _, line in done.violations[:SHOWN_MAX]]
        more = len(done.violations) - SHOWN_MAX
        return [
            f"{len(done.violations):,} violations:", *shown, *([f"  and {more:,} more"] if more > 0 else []),
            f"See it again: {again}", "Please report it, with these lines.",
        ]  # fmt: skip
    if done.too_short:
        return [
            f"Could not look: {' and '.join(done.too_short)} before the time was over. This machine is slow or busy:"
            f" try --seconds {10 * math.ceil(done.orders.seconds)}."
        ]
    return ["Nothing broke." if done.looked else "Nothing could be tried here, so nothing is shown."]


def _options(orders: Orders) -> str:
    """What else was given, but for the URL, which may hold a password."""
    from everkept.prove.torture import LAYERS

    only = [] if orders.layers == LAYERS else [f" --only {layer}" for layer in orders.layers]
    return "".join([*only, *([" --database-url …"] if orders.database_url is not None else [])])


def _shown(done: Torture) -> list[str]:
    lines = []
    if done.kill.kills and not done.kill.fallen:
        lines.append("a program that is killed at any of these moments loses nothing and does nothing twice")
    if done.power.images and not done.power.violations:
        lines.append("a power cut loses nothing that was answered, as far as the disk keeps what it says it has kept")
    if done.storm is not None and done.storm.strikes and not done.storm.violations:
        lines.append(
            "however its processes are killed, frozen and cut off: nothing acknowledged is lost, no effect is there"
            " twice, and no work stays behind"
        )
    return lines


def _not_shown(done: Torture) -> list[str]:
    return [
        *([f"kills: {done.kill_not_run}"] if done.kill_not_run else []),
        *([f"power cuts: {done.power.not_run}"] if done.power.not_run else []),
        *([f"processes: {done.storm_not_run}"] if done.storm_not_run else []),
        *([f"what was not struck: {why}" for why in done.storm.not_run] if done.storm is not None else []),
        "whether this disk lies about what it has written: only pulling its plug shows that",
        "moments that this run did not come to: another --seed tries others, more --seconds more of them",
    ]
