"""Whose memory a checkout is: what its git files say, from the strongest sign to the weakest.

A clone has the same remote wherever it lies, a worktree the same common folder, a sub-folder the same top. The path
alone decides where there is no git. A marker file `.everkept.toml` names a project outright, where it is trusted.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

FoundBy = Literal["named", "marker", "remote", "root", "common_dir", "path"]
MARKER: Final = ".everkept.toml"
GIT_S: Final = 2.0
_SCP = re.compile(r"^(?:[^@/\\]+@)?([A-Za-z0-9][A-Za-z0-9.-]+):(?!//)(.+)$")
_DEFAULT_PORTS: Final = {"ssh": 22, "http": 80, "https": 443, "git": 9418}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What is known of the folder that an agent works in. Paths are absolute."""

    cwd: str
    top: str | None = None
    """Of the worktree; None outside git."""
    common_dir: str | None = None
    remote: str | None = None
    """Normalised, without credentials."""
    root: str | None = None
    """The first commit's hash, where git was asked and the clone is not shallow."""
    branch: str | None = None
    marker: str | None = None
    """The project that a marker file names."""

    @property
    def place(self) -> str:
        return self.top or self.cwd

    @property
    def repository_here(self) -> str:
        """The place with what lies in it: containers have other repositories in the same folder."""
        return f"{self.remote or ''} {self.place}"

    def signs(self) -> list[tuple[FoundBy, str]]:
        """(kind, value), strongest first. The root decides only where there is no remote.

        A marker is trusted together with the place that it lies in: no other repository may name the same project.
        """
        where = self.remote or self.root or self.common_dir or self.place
        found: list[tuple[FoundBy, str | None]] = [
            ("marker", self.marker and f"{self.marker} in {where}"),
            ("remote", self.remote),
            ("root", None if self.remote else self.root),
            ("common_dir", self.common_dir),
            ("path", self.place),
        ]
        return [(kind, value) for kind, value in found if value]


def normalise_remote(url: str) -> str | None:
    """`git@github.com:Acme/App.git` and `https://u:p@github.com/Acme/App/` → `github.com/acme/app`.

    A local path is no remote that two machines share: None. Case is folded, as the large hosts do.
    """
    url = url.strip()
    if "://" in url:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return None
        if parts.scheme not in ("ssh", "http", "https", "git", "git+ssh", "ssh+git") or not parts.hostname:
            return None
        host = parts.hostname
        if port is not None and port != _DEFAULT_PORTS.get(parts.scheme.replace("git+", "").replace("+git", "")):
            host = f"{host}:{port}"
        path = parts.path
    else:
        match = _SCP.match(url)
        if match is None or len(match[1]) < 2:  # a drive letter
            return None
        host, path = match[1], match[2]
    path = unquote(path).strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}".lower() if path else None


def checkout_of(told: Mapping[str, Any], cwd: str | None) -> Checkout | None:
    """From what a hook's record or a transcript tells: {"top", "common_dir", "remote", "root", "branch", "marker"}."""
    place = cwd or told.get("top")
    if not isinstance(place, str) or not place:
        return None
    remote = _text(told, "remote")
    return Checkout(
        cwd=place, top=_text(told, "top"), common_dir=_text(told, "common_dir"),
        remote=None if remote is None else normalise_remote(remote), root=_text(told, "root"),
        branch=_text(told, "branch"), marker=_text(told, "marker"),
    )  # fmt: skip


def _text(told: Mapping[str, Any], name: str) -> str | None:
    value = told.get(name)
    return value if isinstance(value, str) and value else None


def look_at(cwd: Path) -> Checkout:
    """The checkout around a folder of this machine, read off git's files; nothing is run, and nothing raised."""
    for folder in (cwd, *cwd.parents):
        git = folder / ".git"
        if git.exists():
            found, top = _read_git(cwd, folder, git), folder
            break
    else:
        found, top = Checkout(cwd=str(cwd)), Path(cwd.anchor)
    return replace(found, marker=_marker_between(top, cwd))


def _read_git(cwd: Path, top: Path, git: Path) -> Checkout:
    folder = git
    if git.is_file():
        pointer = _first_line(git).removeprefix("gitdir:").strip()
        folder = (top / pointer).resolve() if pointer else git
    common = (folder / _first_line(folder / "commondir")).resolve() if (folder / "commondir").is_file() else folder
    head = _first_line(folder / "HEAD")
    return Checkout(
        cwd=str(cwd), top=str(top), common_dir=str(common), remote=_remote_in(common / "config"),
        branch=head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None,
    )  # fmt: skip


def _first_line(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").partition("\n")[0].strip()
    except OSError:
        return ""


def with_root(checkout: Checkout) -> Checkout:
    """With the hash of the first commit, where there is no remote to tell the repository by. Runs git, at most 2 s.

    A shallow clone does not have its first commit, and git may be missing: then nothing is added.
    """
    if checkout.top is None or checkout.remote is not None or checkout.root is not None:
        return checkout
    if checkout.common_dir is None or (Path(checkout.common_dir) / "shallow").exists():
        return checkout
    try:
        command = ["git", "-C", checkout.top, "rev-list", "--max-parents=0", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return checkout
    roots = sorted(done.stdout.split()) if done.returncode == 0 else []
    return replace(checkout, root=roots[0]) if roots else checkout


_SECTION = re.compile(r'^\s*\[\s*remote\s+"([^"]*)"\s*\]')
_URL = re.compile(r"^\s*url\s*=\s*(.+?)\s*$")


def _remote_in(config: Path) -> str | None:
    """`origin`, else the first remote there is."""
    try:
        lines = config.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    urls: dict[str, str] = {}
    name: str | None = None
    for line in lines:
        section = _SECTION.match(line)
        if section is not None:
            name = section[1]
        elif line.lstrip().startswith("["):
            name = None
        elif name is not None and (url := _URL.match(line)):
            urls.setdefault(name, url[1])
    chosen = urls.get("origin") or next(iter(urls.values()), None)
    return None if chosen is None else normalise_remote(chosen)


def _marker_between(top: Path, cwd: Path) -> str | None:
    """The project that the highest marker from the top folder down names, as the hook has it.

    Whether it is to be trusted is decided where the aliases are kept.
    """
    for folder in reversed((cwd, *cwd.parents)):
        if folder == top or top in folder.parents:
            try:
                marker = (folder / MARKER).read_text("utf-8")
            except (OSError, ValueError):
                continue
            if (project := _project_of(marker)) is not None:
                return project
    return None


def _project_of(marker: str) -> str | None:
    import tomllib

    try:
        project = tomllib.loads(marker).get("project")
    except ValueError:
        return None
    return project if isinstance(project, str) and project.strip() else None


def name_for(signs: Sequence[tuple[str, str]]) -> str:
    """What the new project of a checkout is called: as its remote, else as its folder with a few signs of its first
    commit or its whole path. A marker that nobody trusted names none.
    """
    kind, value = next(sign for sign in signs if sign[0] != "marker")
    if kind == "remote":
        return value[:255]
    place = next(((k, v) for k, v in signs if k in ("common_dir", "path")), (kind, value))
    folder = _folder_name(*place)
    return f"{folder}-{value[:8]}" if kind == "root" else f"{folder}-{_digest(value)}"


def _folder_name(kind: str, value: str) -> str:
    folder = Path(value).parent if kind == "common_dir" and Path(value).name == ".git" else Path(value)
    return folder.name[:200] or "root"


def _digest(value: str) -> str:
    import hashlib

    return hashlib.blake2b(value.encode(errors="replace"), digest_size=4).hexdigest()
