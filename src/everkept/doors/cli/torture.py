"""`torture`: layers 2 and 3 of the proof on the user's own disk, in a store that is thrown away."""

from __future__ import annotations

import math
import random
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import failures, screen
from everkept.doors.cli.options import Json
from everkept.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from everkept.prove.torture import Torture

SECONDS_MIN, SECONDS_MAX = 1.0, 86_400.0
SHOWN_MAX = 10
WIDTH = 100
FAILED, COULD_NOT_LOOK = 1, 3


def torture(
    *,
    seed: Annotated[int | None, Parameter(help="Repeat the run of this number.")] = None,
    seconds: Annotated[float, Parameter(help="How long, about.")] = 60.0,
    dir: Annotated[Path | None, Parameter(help="A folder on the disk to try; default: where the memory is.")] = None,
    json: Json = False,
) -> int:
    """Kill processes and cut the power over a throw-away store, and check what is left; your memory is not touched.

    Exits with 0 where nothing broke, 1 where something did, 3 where it could not look.
    """
    from everkept.prove import nursery
    from everkept.prove.torture import torture as run

    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise InvalidInput(f"--seconds is {seconds:g}; {SECONDS_MIN:g} to {SECONDS_MAX:g} are allowed", field="seconds")
    number = random.SystemRandom().randrange(1, 1_000_000) if seed is None else seed
    parent = _existing(config.load().home) if dir is None else dir
    try:
        done = run(parent, seed=number, seconds=seconds, told=lambda words: None if json else screen.say(f"{words} …"))
    except OSError as error:
        return _could_not_look(f"nothing was tried: {parent}: {error.strerror or error}", json=json)
    except nursery.PlayerFailed as error:
        return _could_not_look(f"a scenario does not even play undisturbed: {str(error)[-600:].strip()}", json=json)
    if json:
        screen.emit(_as_dict(done))
    else:
        print(_page(done))
    if not done.looked:
        return COULD_NOT_LOOK
    return FAILED if done.violations else 0


def _could_not_look(why: str, *, json: bool) -> int:
    print(failures.json_of(StoreUnavailable.code, why, {}) if json else f"error: {why}", file=sys.stderr)
    return COULD_NOT_LOOK


def _existing(home: Path) -> Path:
    """The memory's folder, or what will hold it: the same disk, and nothing is made there that stays."""
    return next(folder for folder in (home, *home.absolute().parents) if folder.is_dir())


def _as_dict(done: Torture) -> dict[str, Any]:
    return {
        "seed": done.seed, "seconds": round(done.seconds, 1), "directory": str(done.directory.parent),
        "kill": {
            "kills": done.kill.kills, "scenarios": len({s.name for s in done.kill.scenarios}),
            "statements": len(done.kill.statements),
            "states": sum(s.states for s in done.kill.scenarios), "not_run": done.kill_not_run,
        },
        "too_short": done.too_short,
        "power": {"images": done.power.images, "cuts": done.power.cuts, "not_run": done.power.not_run},
        "violations": [
            {"guarantee": v.guarantee, "what": v.what, "where": v.where, "shown_by": again}
            for v, again in done.violations
        ],
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
    from everkept.prove.scenarios import SCENARIOS

    lines = [
        f"{done.seconds:.0f} seconds with seed {done.seed} on the disk of {done.directory.parent}, in a folder that is"
        " gone again."
    ]
    if done.kill.kills:
        again = sum(s.double_kills for s in done.kill.scenarios)
        states = sum(s.states for s in done.kill.scenarios)
        names = len({s.name for s in done.kill.scenarios})
        lines += _points([
            f"Killed {done.kill.kills:,} processes in {names} of {len(SCENARIOS)} scenarios, at"
            f" {len(done.kill.statements):,} different statements; {again:,} of them while they recovered from a kill."
            f" They left {states:,} different states behind; each was opened, worked to its end, and compared with what"
            " clients had been told."
        ])  # fmt: skip
    if done.power.images:
        lines += _points([
            f"Cut the power {done.power.cuts:,} times; each disk that this may have left was opened and compared"
            " likewise."
        ])  # fmt: skip
    return lines


def _broken(done: Torture) -> list[str]:
    again = f"everkept torture --seed {done.seed} --seconds {math.ceil(done.seconds)}"
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
            f" try --seconds {10 * math.ceil(done.seconds)}."
        ]
    return ["Nothing broke." if done.looked else "Nothing could be tried here, so nothing is shown."]


def _shown(done: Torture) -> list[str]:
    lines = []
    if done.kill.kills and not done.kill.fallen:
        lines.append("a program that is killed at any of these moments loses nothing and does nothing twice")
    if done.power.images and not done.power.violations:
        lines.append("a power cut loses nothing that was answered, as far as the disk keeps what it says it has kept")
    return lines


def _not_shown(done: Torture) -> list[str]:
    return [
        *([f"kills: {done.kill_not_run}"] if done.kill_not_run else []),
        *([f"power cuts: {done.power.not_run}"] if done.power.not_run else []),
        "whether this disk lies about what it has written: only pulling its plug shows that",
        "moments that this run did not come to: another --seed tries others, more --seconds more of them",
    ]
