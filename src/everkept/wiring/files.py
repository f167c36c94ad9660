"""Files of other programs, read and replaced whole: the mode kept, links followed, never half written."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from everkept.errors import CannotWire

BOM: Final = b"\xef\xbb\xbf"
BACKUP_MARK: Final = ".bak-everkept-"


def read_bytes(path: Path) -> bytes | None:
    """The content, or None where there is no file. Raises CannotWire where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotWire(f"{path} cannot be read: {error.strerror}", path=str(path)) from error


def decoded(content: bytes, path: Path) -> tuple[bytes, str]:
    """(byte order mark, text). Raises CannotWire with the line that is not UTF-8."""
    mark = BOM if content.startswith(BOM) else b""
    try:
        return mark, content[len(mark) :].decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, len(mark) + error.start) + 1
        raise CannotWire(
            f"{path}, line {line}: not UTF-8; save it as UTF-8 first", path=str(path), line=line
        ) from error


def check_writable(path: Path) -> None:
    """Raises CannotWire where the file, or the folder that it would be made in, must not be written.

    Root may write anything, but a file that was made read-only is meant to stay as it is, whoever asks.
    """
    target = path.resolve()
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and (not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(target, os.W_OK)):
        raise CannotWire(f"{path} is read-only; make it writable (`chmod u+w`) and run this again", path=str(path))
    folder = next(parent for parent in target.parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise CannotWire(f"nothing can be written in {folder}", path=str(path))


def replace(path: Path, content: bytes | None) -> None:
    """Put this content in the place of the file, in one step; None deletes it. Raises OSError."""
    target = path.resolve()
    if content is None:
        target.unlink(missing_ok=True)
        return
    old = target.stat() if target.exists() else None
    draft = target.with_name(f".{target.name}.everkept-{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(stat.S_IMODE(old.st_mode) if old else 0o666 & ~_umask())
        if old is not None and os.name != "nt" and (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
            with suppress(PermissionError):  # only root can give files away; the content matters more
                os.chown(draft, old.st_uid, old.st_gid)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def back_up(path: Path, folder: Path | None = None) -> Path:
    """A copy beside the file (or in `folder`), with its mode. Raises OSError."""
    target = path.resolve()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    names = (f"{target.name}{BACKUP_MARK}{stamp}{'' if nth == 0 else f'-{nth}'}" for nth in range(1000))
    copy = next(each for each in ((folder or target.parent) / name for name in names) if not each.exists())
    handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(target.read_bytes())
    copy.chmod(stat.S_IMODE(target.stat().st_mode))
    return copy


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
