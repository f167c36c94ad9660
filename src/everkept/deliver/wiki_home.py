"""The folder of all wikis: which one is whose, and what is left of projects that were erased."""

from __future__ import annotations

import configparser
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from everkept.deliver.git import make_repository
from everkept.deliver.work_tree import NotOurs
from everkept.domain.pages import slug_of

_PROJECT: Final = "project"
_GOING: Final = ".erased."


class WikiHome:
    """`<home>/wiki`, with one repository for each project that has pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, identity: str) -> Path | None:
        """The repository of a project, whatever the project is called by now."""
        return next((place for place, whose in self.repositories() if whose == identity), None)

    def make(self, identity: str, name: str, settings: dict[str, str], program: str) -> Path:
        """A new repository, called as the project where nothing of that name is there. Raises NotOurs, GitFailed."""
        slug = slug_of(name)[:100]
        for place in (self.folder / slug, self.folder / f"{slug}-{identity.partition('.')[0]}"):
            if not place.exists() or (place.is_dir() and not any(place.iterdir())):
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                make_repository(place, program, {f"everkept.{_PROJECT}": identity, **settings})
                return place
        raise NotOurs(f"{place} is there already and is not the wiki of this project; move it away")

    def repositories(self) -> Iterator[tuple[Path, str]]:
        """(folder, the project's identity)."""
        if not self.folder.is_dir():
            return
        for place in sorted(self.folder.iterdir()):
            identity = None if place.name.startswith(".") else _identity_of(place)
            if identity is not None:
                yield place, identity

    def remove_erased(self, is_erased: Callable[[str], bool]) -> int:
        """Remove the repositories of erased projects with all that is in their folders; how many."""
        for place, identity in list(self.repositories()):
            if is_erased(identity):
                place.replace(self.folder / f"{_GOING}{identity}")
        going = list(self.folder.glob(f"{_GOING}*"))
        for place in going:
            shutil.rmtree(place)
        return len(going)


def _identity_of(place: Path) -> str | None:
    """Read without git, which need not be installed to erase."""
    settings = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        settings.read_string((place / ".git" / "config").read_text("utf-8"))
    except (OSError, ValueError, configparser.Error):
        return None
    return settings.get("everkept", _PROJECT, fallback=None)
