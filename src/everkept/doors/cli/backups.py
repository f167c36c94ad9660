"""`backup` and `restore`: one file that holds a whole store, and its way back."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import screen
from everkept.doors.cli.database import store_file
from everkept.doors.cli.options import Json, Switch
from everkept.doors.cli.wording import clean, count, minute, size

if TYPE_CHECKING:
    from everkept.store.backup import ErasedSince, Restored, Verified

_OPTION = {"event": "event", "stream": "thread", "subject": "subject"}


def back_up(
    file: Annotated[Path, Parameter(help="Where to write it; its folder must exist.")],
    /,
    *,
    force: Annotated[bool, Switch, Parameter(help="Replace a file that exists.")] = False,
    json: Json = False,
) -> None:
    """Write the whole store to one file, also while it is in use.

    It is one instant, and it is read from end to end before it gets its name. It still holds what is erased later.
    """
    from everkept.store import backup

    verified = backup.back_up(store_file(config.load()), file, force=force)
    if json:
        screen.emit({"path": str(file), **_verified(verified)})
    else:
        print(f"{file}  {size(verified.size_bytes)}  {_holds(verified)}; verified")


def restore(
    file: Annotated[Path, Parameter(help="A backup.")],
    /,
    *,
    json: Json = False,
) -> None:
    """Put a backup in the place of the store; the store that was there is kept beside it.

    Everything that has the store open must be stopped first. What was erased after the backup was made is back, and
    is listed, so that it can be erased again.
    """
    from everkept.store import backup

    path = store_file(config.load())
    done = backup.restore(file, path, datetime.now(UTC))
    if json:
        screen.emit(_restored(path, done))
    else:
        print(f"{path}  {size(done.verified.size_bytes)}  {_holds(done.verified)}; verified")
    _tell(done)


def _tell(done: Restored) -> None:
    if done.replaced is not None:
        screen.say(f"the store that was there is {done.replaced}; delete it when it is no longer needed")
    if not done.erasures_known:
        screen.warn("the store that was there cannot be read: erase again what was erased after the backup was made")
    if done.erased_since:
        screen.warn(f"{count(len(done.erased_since), 'erase')} came after the backup; what they erased is back:")
    for erased in done.erased_since:
        screen.warn(f"  {minute(erased.asked_at)}  {_command(erased)}")


def _command(erased: ErasedSince) -> str:
    """What erases it again."""
    if not erased.name:
        return f"a {_OPTION.get(erased.kind, erased.kind)} that this backup does not know: nothing to do"
    project = f"--project {shlex.quote(clean(erased.project))}"
    option = _OPTION.get(erased.kind)
    return f"everkept erase {project}" + (f" --{option} {shlex.quote(clean(erased.name))}" if option else "")


def _holds(verified: Verified) -> str:
    return ", ".join(count(number, kind.removesuffix("s")) for kind, number in verified.counts.items())


def _verified(verified: Verified) -> dict[str, Any]:
    return {"schema": verified.schema, "size_bytes": verified.size_bytes, "counts": verified.counts}


def _restored(path: Path, done: Restored) -> dict[str, Any]:
    replaced = None if done.replaced is None else str(done.replaced)
    return {
        "path": str(path), **_verified(done.verified), "replaced": replaced,
        "erased_since": [_erased(each) for each in done.erased_since], "erasures_known": done.erasures_known,
    }  # fmt: skip


def _erased(erased: ErasedSince) -> dict[str, Any]:
    kind = _OPTION.get(erased.kind, erased.kind)
    return {"asked_at": erased.asked_at.isoformat(), "kind": kind, "project": erased.project, "name": erased.name}
