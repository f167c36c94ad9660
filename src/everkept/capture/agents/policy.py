"""What the marker files of a folder keep out of what is read from transcripts: the same as the hook keeps out."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from everkept.domain.session import AgentEvent, Kind, ToolCall
from everkept.hook import hook_script
from everkept.hook.hook_script import Policy

NOT_KEPT: Final = "not kept"
"""Said in place of a prompt's words."""
_SAID_BY_THE_EVENT: Final[frozenset[Kind]] = frozenset(
    ["session_start", "session_end", "turn_end", "compaction", "clear", "subagent_start", "subagent_end", "other"]
)
"""Kinds whose `detail` is a word of the agent's program: why it started, how it ended."""
_EXTRA_KEPT: Final = frozenset(
    "native turn_id generation_id permission_mode agent_type status stage subagent forked_from version not_typed ours"
    " cursor_version stop_hook_active withheld".split()
)


def policy_at(folder: Path) -> Policy:
    """What the markers around a folder of this machine say, up to the top of its checkout. Reads those files."""
    _, markers = hook_script._walk_up(os.path.realpath(folder))
    return hook_script.policy_of(markers)


def narrowed(events: Iterable[AgentEvent], policy: Policy, folder: str = "") -> tuple[list[AgentEvent], Counter[str]]:
    """(the events without what the policy keeps out, {why: events that lost something or all}).

    `folder`: where they happened, resolved; the paths that they name are taken from there.
    """
    counts: Counter[str] = Counter()
    events = list(events)
    if policy.off or policy.ignores(folder):
        return [], Counter({"off = true" if policy.off else "ignored folder": len(events)} if events else {})
    if policy.is_open:
        return events, counts
    kept = [one for event in events if (one := _narrowed(event, policy, folder, counts)) is not None]
    return kept, counts


def _narrowed(event: AgentEvent, policy: Policy, folder: str, counts: Counter[str]) -> AgentEvent | None:
    if not policy.prompts:
        event = _without_title(event)
        if _has_prompts(event):
            counts["prompts = false"] += 1
            event = _without_prompt(event)
    reason = "metadata_only = true" if policy.metadata_only else _ignored(event, policy, folder)
    if reason is None:
        return event
    counts[reason] += 1
    return _metadata_of(event)


def _has_prompts(event: AgentEvent) -> bool:
    """A summary repeats what was typed."""
    return event.kind == "prompt" or (event.kind == "compaction" and bool(event.text))


def _without_title(event: AgentEvent) -> AgentEvent:
    """A title is mostly the first prompt, shortened."""
    if "title" not in event.extra:
        return event
    return replace(event, extra={name: value for name, value in event.extra.items() if name != "title"})


def _without_prompt(event: AgentEvent) -> AgentEvent:
    detail = NOT_KEPT if event.kind == "prompt" else event.detail
    return replace(event, text="", detail=detail, extra={**_small(event), "withheld": True})


def _ignored(event: AgentEvent, policy: Policy, folder: str) -> str | None:
    """Why, where its call names a path that is to be ignored."""
    if event.tool is None or not policy.ignore:
        return None
    words = (word for text in _asked(event.tool) for word in hook_script._words(text))
    if any(policy.ignores(os.path.join(folder, word)) for word in words):
        return "ignored paths"
    commands = (event.tool.command or "", *hook_script._commands(_loaded(event.tool.input)))
    return "ignored paths" if any(policy.may_reach_ignored(each, folder) for each in commands) else None


def _asked(call: ToolCall) -> Iterator[str]:
    """Every text of what a call was asked; what it printed does not count."""
    yield from (call.command or "", *call.paths)
    for path, change in call.changes:
        yield from (path, change)
    yield call.input
    yield from hook_script._texts(_loaded(call.input))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _metadata_of(event: AgentEvent) -> AgentEvent | None:
    """Who, when, which tool, and how it ended. Of words of the agent nothing is left, and a plan without its items
    would read as one that is done."""
    if event.kind in ("said", "plan"):
        return None
    call = event.tool
    detail = event.detail if event.kind in _SAID_BY_THE_EVENT else NOT_KEPT if event.kind == "prompt" else ""
    extra = {**_small(event), "withheld": True} if event.kind == "prompt" else _small(event)
    return replace(event, text="", detail=detail, items=(), extra=extra, tool=None if call is None else ToolCall(
        name=call.name, family=call.family, ended=call.ended, outcome=call.outcome, decided_by=call.decided_by,
    ))  # fmt: skip


def _small(event: AgentEvent) -> dict[str, Any]:
    return {name: value for name, value in event.extra.items() if name in _EXTRA_KEPT}
