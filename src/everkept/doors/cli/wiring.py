"""`install` and `uninstall`: the hooks, the MCP server and the instructions in the files of coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everkept import config, wiring
from everkept.doors.cli import failures, screen
from everkept.doors.cli.options import Json, Switch
from everkept.doors.cli.wording import count
from everkept.errors import InvalidInput

if TYPE_CHECKING:
    from everkept.wiring.agent import Place

NAMES = ", ".join(wiring.AGENTS)
Yes = Annotated[bool, Switch, Parameter(name=["--yes", "-y"], help="Do not ask.")]


def install(
    agents: Annotated[list[str] | None, Parameter(help=f"Which agents: {NAMES}.", negative="")] = None,
    /,
    *,
    all_found: Annotated[bool, Switch, Parameter(name="--all", help="Every agent that has a folder here.")] = False,
    interpreter: Annotated[
        Path | None, Parameter(help="The Python that hooks and server run with; it must have Everkept and stay.")
    ] = None,
    plugin: Annotated[
        Path | None, Parameter(help="Write a plugin for claude-code into this folder, and change nothing else.")
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Wire coding agents to this memory: hooks, MCP server and a marked block in their instructions.

    Shows the change as a diff, then asks. Foreign settings stay byte for byte; a second run changes nothing.
    """
    place = wiring.here(config.load().home)
    if plugin is not None:
        return _write_plugin(place, agents or [], plugin, wiring.find_interpreter(interpreter), as_json=json)
    names = _chosen(agents, all_found=all_found, found=wiring.found_agents(place), verb="install")
    python = wiring.find_interpreter(interpreter)
    plan = wiring.plan_install(place, names, python)
    return _carry_out(plan, place, yes=yes, as_json=json, nothing=f"already wired: {', '.join(names) or 'no agent'}")


def uninstall(
    agents: Annotated[list[str] | None, Parameter(help=f"Which agents: {NAMES}.", negative="")] = None,
    /,
    *,
    all_found: Annotated[bool, Switch, Parameter(name="--all", help="Every agent that is wired.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Leave the files of coding agents as they were; what was changed in them since stays. The memory stays, too.

    Shows the change as a diff, then asks.
    """
    place = wiring.here(config.load().home)
    names = _chosen(agents, all_found=all_found, found=wiring.wired_agents(place), verb="uninstall")
    plan = wiring.plan_uninstall(place, names)
    code = _carry_out(plan, place, yes=yes, as_json=json, nothing="nothing of Everkept is in the files of these agents")
    if not json and place.home.is_dir():
        screen.say(f"the memory itself stays in {place.home}; deleting that folder destroys it for good, and "
                   "`everkept export` or `everkept backup` keeps it elsewhere first")  # fmt: skip
    return code


def _chosen(agents: list[str] | None, *, all_found: bool, found: list[str], verb: str) -> list[str]:
    """The agents that are meant. Raises InvalidInput where none, or both an agent and all, are named."""
    if all_found and agents:
        raise InvalidInput("name agents, or give --all, not both")
    if all_found:
        return found
    if not agents:
        raise InvalidInput(f"say which agents to {verb} ({NAMES}), or give --all")
    for name in agents:
        wiring.agent_named(name)  # before anything else is looked at
    return agents


def _carry_out(plan: wiring.Plan, place: Place, *, yes: bool, as_json: bool, nothing: str) -> int:
    if not plan.changes:
        wiring.apply(plan, place.home)
        return _tell(plan, [], applied=True, as_json=as_json, words=nothing)
    if not as_json:
        for change in plan.changes:
            print(change.diff(), end="\n\n")
    if not yes and not (screen.can_ask() and screen.confirm(f"Change {count(len(plan.changes), 'file')}?")):
        words = "nothing was changed"
        if not screen.can_ask():
            words += "; there is no terminal to ask on, so give --yes to apply this"
        _tell(plan, [], applied=False, as_json=as_json, words=words)
        return 1 if screen.can_ask() else failures.NEEDS_ATTENTION
    done = wiring.apply(plan, place.home)
    backups = [str(backup) for each in done for backup in each.backups]
    return _tell(plan, backups, applied=True, as_json=as_json, words=f"changed {count(len(plan.changes), 'file')}")


def _tell(plan: wiring.Plan, backups: list[str], *, applied: bool, as_json: bool, words: str) -> int:
    notes = [f"{each.agent}: {note}" for each in plan.agents for note in each.notes]
    if as_json:
        screen.emit({"applied": applied, "agents": [_as_dict(each) for each in plan.agents], "backups": backups})
        return 0
    screen.say(words)
    for backup in backups:
        screen.say(f"as it was: {backup}")
    for note in notes if applied and plan.changes else []:
        screen.say(note)
    return 0


def _as_dict(plan: Any) -> dict[str, Any]:
    changes = [{"path": str(each.path), "action": each.action, "diff": each.diff()} for each in plan.changes]
    return {"agent": plan.agent, "changes": changes, "notes": list(plan.notes)}


def _write_plugin(place: Place, agents: list[str], folder: Path, python: str, *, as_json: bool) -> int:
    if agents != ["claude-code"]:
        raise InvalidInput("a plugin is for claude-code: `everkept install claude-code --plugin DIR`")
    written = wiring.write_plugin(folder, place.home, python)
    if as_json:
        screen.emit({"applied": True, "plugin": str(folder), "files": [str(path) for path in written]})
    else:
        print("\n".join(str(path) for path in written))
        screen.say(f"try it with `claude --plugin-dir {folder}`")
        screen.say("a plugin and `everkept install claude-code` do the same; with both, each event is told twice")
    return 0
