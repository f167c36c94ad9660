"""`status`: how this memory is doing, and what needs a hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from everkept.doors.cli import backend, failures, screen
from everkept.doors.cli.options import COMMON, Common, Switch

if TYPE_CHECKING:
    from everkept.api import views as v


async def status(
    *,
    check: Annotated[bool, Switch, Parameter(help="Exit with 5, and say why, if something needs attention.")] = False,
    common: Common = COMMON,
) -> int:
    """Show health, backlog and what needs attention."""
    async with backend.memory(common.project) as memory:
        now = await memory.status()
    if common.json:
        screen.emit(now)
    elif check:
        print("\n".join(_check_line(each) for each in now.checks))
    else:
        from everkept.doors.cli.status_page import status_page

        screen.show(status_page(now))
    return _verdict(now) if check else 0


def _check_line(check: v.Check) -> str:
    return f"{'ok  ' if check.ok else 'TRIP'}  {check.name.replace('_', ' ')}: {check.message}"


def _verdict(now: v.Status) -> int:
    wrong = [check.message for check in now.checks if not check.ok]
    if now.store.get("failing"):
        wrong.append(f"writes fail: {now.store['failing']}")
    for each in wrong:
        screen.warn(f"needs attention: {each}")
    return failures.NEEDS_ATTENTION if wrong else 0
