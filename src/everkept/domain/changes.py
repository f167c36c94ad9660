"""What a change in the outbox can be, who may follow it, and how a filter on kinds is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from everkept.errors import InvalidInput

CHANGE_KINDS: Final = (
    "messages.appended", "session.appended", "session.digested", "session.reviewed",
    "episode.opened", "episode.summarised", "fact.added", "fact.changed", "fact.erased",
    "page.written", "page.deleted", "page.restored", "page.moved", "handoff.left", "handoff.acknowledged",
    "proposal.staged", "proposal.approved", "proposal.rejected", "proposal.rolled_back",
    "workstream.created", "workstream.renamed", "workstream.linked", "launch.prepared", "launch.finished",
    "launch.cancelled", "launch.lost", "launch.accepted", "memory.erased", "project.merged",
)  # fmt: skip
FAMILIES: Final = tuple(dict.fromkeys(kind.partition(".")[0] for kind in CHANGE_KINDS))
ERASED: Final = "memory.erased"
"""Given whatever subject is asked for: what was erased has no name any more, and whoever copied it must hear of it."""
WEBHOOK: Final = "webhook:"
RESERVED: Final = (WEBHOOK, "wiki")
"""How the names of Everkept's own consumers begin."""
NATS_CONSUMER: Final = "nats"
"""Publishes the changes to NATS: nobody else leases or acknowledges it, and an operator may let it go back."""


def expand_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """`fact.added`, or `fact` for all of its family → kinds, each once. Raises InvalidInput for an unknown one."""
    found: dict[str, None] = {}
    for word in kinds:
        meant = [kind for kind in CHANGE_KINDS if word in (kind, kind.partition(".")[0])]
        if not meant:
            raise InvalidInput(f"{word!r} is not a kind of change", field="kinds", known=[*FAMILIES, *CHANGE_KINDS])
        found |= dict.fromkeys(meant)
    return tuple(found)


def change_id(name: str) -> str:
    """Public, of what the store names a change by."""
    return f"chg_{name}"


def webhook_consumer(name: str) -> str:
    """The consumer that a webhook is."""
    return WEBHOOK + name


def is_reserved(consumer: str) -> bool:
    """Whether a consumer is one of Everkept's own, which nobody else leases, moves or removes."""
    return consumer.startswith(RESERVED) or consumer == NATS_CONSUMER
