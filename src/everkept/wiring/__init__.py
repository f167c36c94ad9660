"""How agents are wired to Everkept: hooks, server and instructions in their own files, put in and taken out again."""

from __future__ import annotations

from everkept.errors import CannotWire
from everkept.wiring.agents import AGENTS, agent_named, found_agents, here
from everkept.wiring.apply import apply, put_hook
from everkept.wiring.command import find_interpreter
from everkept.wiring.plan import Plan, plan_install, plan_uninstall, wired_agents
from everkept.wiring.plugin import write_plugin
from everkept.wiring.state import Wiring, wired

__all__ = [
    "AGENTS", "CannotWire", "Plan", "Wiring", "agent_named", "apply", "find_interpreter", "found_agents", "here",
    "plan_install", "plan_uninstall", "put_hook", "wired", "wired_agents", "write_plugin",
]  # fmt: skip
