"""Who asks for context, as a hook's record tells it. Nothing that the record names is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everkept.capture.identity import Checkout, checkout_of
from everkept.domain.launch import launch_number
from everkept.domain.session import session_identity
from everkept.hook.hook_script import SESSION_NAMES, find_text, kind_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAsk:
    """`source` of a start: startup, resume, clear or compact. `prompt`: only where it is a prompt's context."""

    agent: str
    session: str
    checkout: Checkout
    source: str = "startup"
    prompt: str | None = None
    launch: int | None = None
    """The launch that the agent was started by."""

    @property
    def identity(self) -> str:
        """The session as its events are kept; empty where none asks."""
        return session_identity(self.session, within=self.checkout.repository_here) if self.session else ""


def ask_of(record: Mapping[str, Any]) -> ContextAsk | None:
    """None where the record does not say who asks, or where."""
    place, cwd, payload = record.get("place"), record.get("cwd"), record.get("payload")
    checkout = checkout_of(place if isinstance(place, dict) else {}, cwd if isinstance(cwd, str) else None)
    session = find_text(payload, SESSION_NAMES)
    if checkout is None or not session:
        return None
    typed = kind_of(str(record.get("event", ""))) == "prompt"
    return ContextAsk(
        agent=str(record.get("agent", "")), session=session, checkout=checkout,
        launch=launch_number(record.get("launch")),
        source=find_text(payload, ("source", "trigger")) or "startup",
        prompt=find_text(payload, ("prompt", "user_prompt", "message", "text")) if typed else None,
    )  # fmt: skip
