"""`doctor`: what is wrong with the store, why, and the command that mends it."""

from __future__ import annotations

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
    common: Common = COMMON,
) -> int:
    """Name what is wrong, why, and what mends it; exits with 5 if anything is, with 3 if it could not look."""
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
