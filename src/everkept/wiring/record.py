"""What an install changed, so that an uninstall can leave the files as they were.

One JSON file for each agent and folder, under `<home>/wiring`. It holds fingerprints and paths, never content: the
content of before is in the backup beside the file. Without a record an uninstall still finds what is ours by its
signature; it only cannot know an empty container of ours from one that was there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from everkept.wiring import files

FOLDER: Final = "wiring"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    path: str
    existed: bool
    before: str | None
    """Fingerprint of the content without us; None: there was no file, or it is not kept anywhere."""
    after: str
    """Fingerprint of what we wrote."""
    kept: tuple[str, ...] = ()
    """Containers that were there before us."""
    backups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    agent: str
    folder: str
    interpreter: str
    env: dict[str, str]
    """The variables that moved the agent's files then."""
    files: tuple[FileRecord, ...] = ()
    made_folders: tuple[str, ...] = ()

    def file(self, path: Path) -> FileRecord | None:
        return next((each for each in self.files if each.path == str(path)), None)


def path_of(home: Path, agent: str, folder: Path) -> Path:
    mark = hashlib.blake2b(str(folder).encode(errors="surrogateescape"), digest_size=4).hexdigest()
    return home / FOLDER / f"{agent}-{mark}.json"


def load(path: Path) -> Record | None:
    """The record, or None where there is none that can be read: then signatures must do."""
    content = files.read_bytes(path)
    if content is None:
        return None
    try:
        fields: dict[str, Any] = json.loads(content)
        each = tuple(
            FileRecord(**{**one, "kept": tuple(one["kept"]), "backups": tuple(one["backups"])})
            for one in fields.pop("files")
        )
        return Record(**{**fields, "files": each, "made_folders": tuple(fields["made_folders"])})
    except (ValueError, TypeError, KeyError):
        return None


def records(home: Path, agent: str) -> Iterator[tuple[Path, Record]]:
    for path in sorted((home / FOLDER).glob(f"{agent}-*.json")):
        found = load(path)
        if found is not None and found.agent == agent:
            yield path, found


def encoded(record: Record) -> bytes:
    return (json.dumps(asdict(record), indent=2, ensure_ascii=True) + "\n").encode()
