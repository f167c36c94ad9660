"""`doctor`: what is wrong with the store, why, and the command that mends it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from everkept.doors.cli import backend, failures, screen
from everkept.doors.cli.options import COMMON, Common, Switch

if TYPE_CHECKING:
    from everkept.api import views as v

COULD_NOT_LOOK = 3


async def doctor(
    *,
    subject: Annotated[str | None, Parameter(help="Whose facts: say why each one is held back from recall.")] = None,
    full: Annotated[bool, Switch, Parameter(help="Read the file from end to end, and its full-text index.")] = False,
    secrets: Annotated[
        bool, Switch, Parameter(help="Only look for secrets, in every text that the store keeps; none is shown.")
    ] = False,
    common: Common = COMMON,
) -> int:
    """Name what is wrong, why, and what mends it; exits with 5 if anything is, with 3 if it could not look."""
    if secrets:
        return _secrets(json=common.json)
    found = await backend.diagnosis(common.project, subject=subject, full=full)
    if common.json:
        screen.emit(found)
    else:
        from everkept.doors.cli.doctor_page import doctor_page

        screen.show(doctor_page(found))
    return _verdict(found)


def _verdict(found: v.Diagnosis) -> int:
    if not found.looked:
        return COULD_NOT_LOOK
    return 0 if found.ok else failures.NEEDS_ATTENTION


def _secrets(*, json: bool) -> int:
    scan = backend.secrets()
    if json:
        screen.emit(asdict(scan))
    else:
        from everkept.doors.cli.doctor_page import secrets_page

        screen.show(secrets_page(scan))
    return failures.NEEDS_ATTENTION if scan.places else 0
