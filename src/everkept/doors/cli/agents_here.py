"""What lies around the store for coding agents on this machine, for `doctor`: their wiring, the spool, this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everkept.store.diagnosis.look import AgentsAround, WiredAgent
    from everkept.wiring import Wiring


def agents_here(home: Path) -> AgentsAround:
    """Of the person who runs this, in the current folder."""
    from everkept.api.diagnosing import agents_around
    from everkept.wiring import AGENTS, wired

    looked = [wired(home, name) for name in AGENTS]
    return agents_around(home, Path.cwd(), [_seen(each, home) for each in looked if each.wired], Path.home())


def _seen(wiring: Wiring, home: Path) -> WiredAgent:
    from everkept.store.diagnosis.look import WiredAgent

    untrusted = tuple(event for event, state in wiring.trust.items() if state != "trusted")
    return WiredAgent(name=wiring.agent, problems=tuple(_problems(wiring, home)), untrusted=untrusted)


def _problems(wiring: Wiring, home: Path) -> Iterator[str]:
    """What keeps its hooks from running, or from being those of today."""
    missing = [event for event, state in wiring.hooks.items() if state == "missing"]
    other = [event for event, state in wiring.hooks.items() if state == "other"]
    if not wiring.hooks:
        yield "its settings cannot be read"
    if missing:
        yield f"no hook at {', '.join(missing)}"
    if other:
        yield f"another command than an install puts there at {', '.join(other)}"
    if not wiring.interpreter_exists:
        yield f"the hooks' Python {wiring.interpreter} is not there any more"
    if not wiring.hook_exists:
        yield f"{home / 'hook.py'} is missing"
    if not (home / "worker.json").is_file():
        yield f"{home / 'worker.json'} is missing: no worker starts to take in what the hooks leave"
    if wiring.switched_off:
        yield f"`{wiring.switched_off}` in its settings switches all hooks off"
