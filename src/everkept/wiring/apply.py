"""Write what was planned: all files of one agent, or none."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from everkept.errors import CannotWire
from everkept.hook import install_hook
from everkept.wiring import files, record
from everkept.wiring.plan import AgentPlan, Change, Plan
from everkept.wiring.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    agent: str
    changes: tuple[Change, ...]
    backups: tuple[Path, ...]


def apply(plan: Plan, home: Path) -> tuple[Done, ...]:
    """Carry the plan out, agent by agent. Raises CannotWire; the agent at which that happens is as it was."""
    if plan.interpreter is not None:
        put_hook(home, plan.interpreter)
    return tuple(_apply(agent) for agent in plan.agents)


def put_hook(home: Path, interpreter: str) -> None:
    """The hook, and the command by which it wakes the worker, in Everkept's own folder. Raises CannotWire.

    They stay after an uninstall: sessions that are open go on running the hook until they end.
    """
    try:
        install_hook(home)
        command = json.dumps([interpreter, "-m", "everkept", "worker", "--until-idle"]) + "\n"
        target = home / "worker.json"
        if files.read_bytes(target) != command.encode():
            files.replace(target, command.encode())
    except OSError as error:
        raise CannotWire(f"the hook cannot be written to {home}: {error.strerror}", path=str(home)) from error


def _apply(plan: AgentPlan) -> Done:
    made: list[Path] = []
    written: list[Change] = []
    backups: dict[str, Path] = {}
    old_record = files.read_bytes(plan.record_file)
    try:
        for change in plan.changes:
            if files.read_bytes(change.path) != change.before:
                raise CannotWire(f"{change.path} was changed meanwhile; run this again", path=str(change.path))
        for folder in plan.make_folders:
            folder.mkdir(exist_ok=True)
            made.append(folder)
        for change in plan.changes:
            if plan.record is not None and change.before is not None:
                backups[str(change.path)] = files.back_up(change.path)
        if plan.record is not None and (plan.changes or old_record is None):
            _keep(plan.record_file, plan.record, backups)
        for change in plan.changes:
            written.append(change)
            files.replace(change.path, change.after)
    except (OSError, CannotWire) as error:
        _take_back(plan, written, made, backups, old_record)
        if isinstance(error, CannotWire):
            raise
        name = error.filename or plan.record_file
        raise CannotWire(f"{name} cannot be written: {error.strerror}; nothing was changed", path=str(name)) from error
    if plan.record is None:
        _clear(plan)
    return Done(agent=plan.agent, changes=plan.changes, backups=tuple(backups.values()))


def _keep(path: Path, entry: Record, backups: dict[str, Path]) -> None:
    with_backups = tuple(
        replace(each, backups=(*each.backups, str(backups[each.path]))) if each.path in backups else each
        for each in entry.files
    )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace(path, record.encoded(replace(entry, files=with_backups)))


def _take_back(
    plan: AgentPlan, written: list[Change], made: list[Path], backups: dict[str, Path], old_record: bytes | None
) -> None:
    """As it was; what cannot be put back either has its backup beside it."""
    stuck: set[str] = set()
    for change in reversed(written):
        try:
            if files.read_bytes(change.path) == change.after:
                files.replace(change.path, change.before)
        except (OSError, CannotWire):
            stuck.add(str(change.path))
    for name, backup in backups.items():
        if name not in stuck:
            with suppress(OSError):
                backup.unlink(missing_ok=True)
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()
    with suppress(OSError):
        files.replace(plan.record_file, old_record)


def _clear(plan: AgentPlan) -> None:
    """What an install left beside the files: backups, folders that it made and that are empty, the record."""
    for backup in plan.drop_backups:
        with suppress(OSError):
            backup.unlink(missing_ok=True)
    for folder in plan.drop_folders:
        with suppress(OSError):
            folder.rmdir()
    plan.record_file.unlink(missing_ok=True)
    with suppress(OSError):
        plan.record_file.parent.rmdir()
