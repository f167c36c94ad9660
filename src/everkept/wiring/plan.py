"""What an install or an uninstall would change, worked out whole before anything is written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from everkept.errors import CannotWire
from everkept.wiring import files, record
from everkept.wiring.agent import SERVER, Agent, Commands, Kept, Part, Place
from everkept.wiring.agents import AGENTS, agent_named
from everkept.wiring.json_parts import ServerPart
from everkept.wiring.jsonc import JsonFault
from everkept.wiring.record import FileRecord, Record
from everkept.wiring.text_parts import TomlServerPart

Result = TypeVar("Result")
CONTEXT_LINES: Final = 3
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file: what it holds, and what it is to hold; None is no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def action(self) -> str:
        return "create" if self.before is None else "delete" if self.after is None else "edit"

    def diff(self) -> str:
        """A unified diff; line ends are shown as they are in the terminal."""
        old, new = (_shown(content) for content in (self.before, self.after))
        before, after = ("/dev/null" if content is None else str(self.path) for content in (self.before, self.after))
        same = next(
            (n for n, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new))
        )
        skipped = max(0, same - CONTEXT_LINES)  # comparing all lines of a large file would take seconds
        lines = difflib.unified_diff(old[skipped:], new[skipped:], before, after, lineterm="")
        return "\n".join(_HUNK.sub(lambda found: _moved(found, skipped), line, count=1) for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    agent: str
    changes: tuple[Change, ...]
    record_file: Path
    record: Record | None
    """As it is to be; None: deleted."""
    make_folders: tuple[Path, ...] = ()
    drop_folders: tuple[Path, ...] = ()
    drop_backups: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    agents: tuple[AgentPlan, ...]
    interpreter: str | None
    """Of an install."""

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(change for agent in self.agents for change in agent.changes)


def plan_install(place: Place, names: Sequence[str], interpreter: str) -> Plan:
    """Hooks, server and instructions for these agents. Raises InvalidInput or CannotWire; writes nothing."""
    agents = [agent_named(name) for name in dict.fromkeys(names)]
    return Plan(agents=tuple(_install(place, agent, interpreter) for agent in agents), interpreter=interpreter)


def plan_uninstall(place: Place, names: Sequence[str]) -> Plan:
    """The files of these agents without us. Raises InvalidInput or CannotWire; writes nothing."""
    found: list[AgentPlan] = []
    for agent in (agent_named(name) for name in dict.fromkeys(names)):
        known = dict(record.records(place.home, agent.name))
        now = record.path_of(place.home, agent.name, agent.folder(place))
        for path, each in known.items():
            found.append(_uninstall(_as_it_was(place, agent, each), agent, path, each))
        if now not in known:
            found.append(_uninstall(place, agent, now, None))
    return Plan(agents=tuple(found), interpreter=None)


def wired_agents(place: Place) -> list[str]:
    """The agents that an install left a record of, or whose files hold something of ours."""
    return [
        name
        for name in AGENTS
        if any(True for _ in record.records(place.home, name)) or plan_uninstall(place, [name]).changes
    ]


def _install(place: Place, agent: Agent, interpreter: str) -> AgentPlan:
    folder = agent.folder(place)
    commands = Commands.of(place, agent.name, interpreter)
    record_file = record.path_of(place.home, agent.name, folder)
    known = record.load(record_file)
    changes: list[Change] = []
    kept: list[FileRecord] = []
    for path, parts in _by_file(agent.parts(place)).items():
        content = files.read_bytes(path)
        old = known.file(path) if known else None
        original = _without_us(parts, path, content, old)
        mark, text = files.decoded(content or b"", path)
        after = mark + _through(parts, path, text, lambda part, text: part.add(text, commands)).encode()
        if after != content:
            files.check_writable(path)
            changes.append(Change(path=path, before=content, after=after))
        kept.append(_file_record(parts, path, original, after, old))
    missing = _missing_folders(change.path for change in changes)
    made = tuple(dict.fromkeys([*(known.made_folders if known else ()), *(str(each) for each in missing)]))
    env = {name: place.env[name] for name in agent.variables if place.env.get(name, "").strip()}
    entry = Record(
        agent=agent.name, folder=str(folder), interpreter=interpreter, env=env, files=tuple(kept), made_folders=made,
    )  # fmt: skip
    return AgentPlan(
        agent=agent.name, changes=tuple(changes), record_file=record_file, record=entry, make_folders=missing,
        notes=(*agent.notes(place), *_foreign_servers(agent.parts(place))),
    )  # fmt: skip


def _uninstall(place: Place, agent: Agent, record_file: Path, known: Record | None) -> AgentPlan:
    changes: list[Change] = []
    backups: list[Path] = []
    for path, parts in _by_file(agent.parts(place)).items():
        content = files.read_bytes(path)
        old = known.file(path) if known else None
        after = _without_us(parts, path, content, old)
        if after != content:
            files.check_writable(path)
            changes.append(Change(path=path, before=content, after=after))
        backups += [Path(each) for each in (old.backups if old else ())]
    made = [Path(each) for each in (known.made_folders if known else ())]
    return AgentPlan(
        agent=agent.name, changes=tuple(changes), record_file=record_file, record=None,
        drop_folders=tuple(sorted(made, key=lambda each: -len(each.parts))), drop_backups=tuple(backups),
    )  # fmt: skip


def _without_us(parts: Sequence[Part], path: Path, content: bytes | None, old: FileRecord | None) -> bytes | None:
    """The file as it was, byte for byte, where nobody changed it since; else as it is now without our parts."""
    if content is None:
        return None
    if old is not None and files.fingerprint(content) == old.after:
        if not old.existed:
            return None
        for saved in (files.read_bytes(Path(backup)) for backup in old.backups):
            if saved is not None and files.fingerprint(saved) == old.before:
                return saved
    mark, text = files.decoded(content, path)
    kept: Kept = frozenset(old.kept if old else ())
    bare = _through(parts, path, text, lambda part, text: part.remove(text, kept))
    if bare == text:
        return content
    ours_alone = old is not None and not old.existed
    if (ours_alone or not bare) and all(part.is_bare(bare) for part in parts):
        return None
    return mark + bare.encode()


def _file_record(
    parts: Sequence[Part], path: Path, original: bytes | None, after: bytes, old: FileRecord | None
) -> FileRecord:
    """`original` is the file without us, `old` what an earlier install noted."""
    kept: Kept = frozenset()
    if original is not None:
        for part in parts:
            kept |= _named(path, part.kept, files.decoded(original, path)[1])
    return FileRecord(
        path=str(path), existed=original is not None, before=None if original is None else files.fingerprint(original),
        after=files.fingerprint(after), kept=tuple(sorted(kept)), backups=old.backups if old else (),
    )  # fmt: skip


def _through(parts: Sequence[Part], path: Path, text: str, step: Callable[[Part, str], str]) -> str:
    for part in parts:
        changed = _named(path, partial(step, part), text)
        if _named(path, part.foreign, changed) != _named(path, part.foreign, text):
            raise CannotWire(f"{path} is written in a way that cannot be changed safely by a program", path=str(path))
        text = changed
    return text


def _named(path: Path, step: Callable[[str], Result], text: str) -> Result:
    """Run one step on the text of a file; what is wrong with the text is told with the file's name."""
    try:
        return step(text)
    except JsonFault as fault:
        where = f"{path}, line {fault.line}"
        raise CannotWire(f"{where}: not valid JSON: {fault.what}", path=str(path), line=fault.line) from fault
    except CannotWire as refusal:
        message = refusal.message if str(path) in refusal.message else f"{path}, {refusal.message}"
        raise CannotWire(message, **{"path": str(path)} | refusal.details) from refusal


def _by_file(parts: Sequence[Part]) -> dict[Path, list[Part]]:
    found: dict[Path, list[Part]] = {}
    for part in parts:
        found.setdefault(part.path, []).append(part)
    return found


def _missing_folders(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Folders that must be made first, outermost first."""
    above = {parent for path in paths for parent in path.parents if not parent.exists()}
    return tuple(sorted(above, key=lambda each: len(each.parts)))


def _foreign_servers(parts: Sequence[Part]) -> list[str]:
    """A server of our name that somebody else set up is left as it is, and said."""
    found: list[str] = []
    for part in parts:
        if isinstance(part, ServerPart | TomlServerPart):
            content = files.read_bytes(part.path)
            entry = part.find(files.decoded(content or b"", part.path)[1])
            entry = entry[1] if isinstance(entry, tuple) else entry
            if entry is not None and not part.is_ours(entry):
                found.append(f"{part.path} has another server named `{SERVER}`; it was left as it is")
    return found


def _as_it_was(place: Place, agent: Agent, known: Record) -> Place:
    """The place with the variables that moved the agent's files when it was wired."""
    others = {name: value for name, value in place.env.items() if name not in agent.variables}
    return Place(home=place.home, user=place.user, env=others | known.env)


def _moved(hunk: re.Match[str], lines: int) -> str:
    """A hunk's head, for a text that begins so many lines earlier."""
    return f"@@ -{int(hunk[1]) + lines}{hunk[2] or ''} +{int(hunk[3]) + lines}{hunk[4] or ''} @@"


def _shown(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode("utf-8-sig", "replace").splitlines()
