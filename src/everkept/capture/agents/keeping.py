"""From what a reader found to what the store keeps: cleaned, redacted, shortened, hashed, analysed, in that order."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from everkept.capture.agents.markers import is_no_news
from everkept.capture.redaction import redacted_and_shortened, strip_private
from everkept.domain.context import OFFER_MARK, OPENING
from everkept.domain.passage import analyse
from everkept.domain.session import AgentEvent, Kind, ToolCall, content_of, kept, shortened
from everkept.domain.transcript import estimate_tokens
from everkept.store.session_keys import NewSessionEvent

ROLES: Final[dict[Kind, str]] = {"prompt": "user", "said": "assistant", "tool": "tool"}
"""Whatever else happens is told by the `system`."""
INDEXED_CHARS_MAX: Final = 4_000
"""Of a long output its head and tail are searched."""
_UNFIT = re.compile("[\ud800-\udfff\x00]")
_SPACE = re.compile(r"\s+")
_OUR_BLOCK = re.compile(
    rf"(<!-- {OFFER_MARK}[^>\n]*>)\s*{OPENING}(?:.*?^\(about [\d,]+ tokens[^\n]*\)|.*)", re.DOTALL | re.MULTILINE
)
"""As `domain.context` composes it, to its last line, or to the end where it was cut. The mark alone is anybody's."""


def prepare(
    events: Iterable[AgentEvent], *, secret: bytes, now_us: int, former: Sequence[bytes] = ()
) -> tuple[NewSessionEvent, ...]:
    """Ready for `append_session`. An event without a time has that of the one before it, the first one `now_us`.

    `secret` is the project's: what is kept of keys and payloads tells nothing without it. `former`: those of the
    projects that were merged into it, in which an event may have been told before.
    """
    ready = []
    at: int | None = None
    for event in events:
        at = at if event.occurred_at_us is None else event.occurred_at_us
        ready.append(_prepare(event, at, now_us, secret, former))
    return tuple(ready)


def _hashes(event: AgentEvent, secret: bytes) -> tuple[str, str]:
    """(key, payload)."""
    return _digest(f"natural:{event.key}", secret), _digest(_payload(event), secret)


def _prepare(
    event: AgentEvent, told_at: int | None, now_us: int, secret: bytes, former: Sequence[bytes]
) -> NewSessionEvent:
    at = now_us if told_at is None else told_at
    clean = without_ours(redacted(event))
    content, metadata = kept(clean)
    name = clean.tool.name if clean.tool is not None else None
    key_hash, payload_hash = _hashes(event, secret)
    return NewSessionEvent(
        kind=event.kind,
        role=ROLES.get(event.kind, "system"),
        name=name,
        content=content,
        metadata=metadata,
        occurred_at_us=at,
        key_hash=key_hash,
        payload_hash=payload_hash,
        source=event.source,
        rank=_rank(event),
        evidence=event.evidence,
        counts=(event.kind == "prompt" and event.genuine) or (event.tool is not None and event.tool.ended),
        tokens=estimate_tokens(content),
        analysed=analyse(_searched(clean, content), speaker=name, occurred_at_us=at),
        dated=told_at is not None,
        former=tuple(_hashes(event, other) for other in former),
    )


def _searched(event: AgentEvent, content: str) -> str:
    """What it is found by. The name of an event in which nothing was said or done is nothing to be found by, and
    neither is what an agent puts into the user's role around the words of people.
    """
    told = event.text or event.items or event.tool
    no_news = is_no_news(event.text, str(event.extra.get("not_typed", "")))
    return shortened(content, INDEXED_CHARS_MAX) if told and not no_news else ""


def _payload(event: AgentEvent) -> str:
    """What it says, whatever the spaces; of what a hook tells that nobody said also what it is."""
    words = _SPACE.sub(" ", content_of(event)).strip()
    if event.source != "hook" or event.tool is not None or event.kind == "prompt":
        return words
    return f"{event.kind}:{str(event.extra.get('native', '')).lower()}:{words}"


def without_ours(event: AgentEvent) -> AgentEvent:
    """Without what we told the agent ourselves, which would be found twice; its place says that it was there (D07)."""
    call = event.tool
    if call is not None and call.output and (event.extra.get("ours") or OFFER_MARK in call.output):
        answer = f"[what Everkept answered, {len(call.output):,} characters]"
        call = replace(call, output=answer if event.extra.get("ours") else _without_block(call.output))
    return replace(event, text=_without_block(event.text), tool=call)


def _without_block(text: str) -> str:
    return _OUR_BLOCK.sub(r"\1 [what Everkept gave]", text) if OFFER_MARK in text else text


def _rank(event: AgentEvent) -> int:
    """How much this telling has: what came of a call before what it printed, a transcript before a hook."""
    call = event.tool
    told = 0 if call is None else 4 * call.ended + 2 * bool(call.output)
    return told + (event.source == "transcript")


def redacted(event: AgentEvent) -> AgentEvent:
    """Without secrets, without what was marked private, and without characters that no database keeps."""
    return replace(
        event,
        text=_fit(event.text),
        detail=_fit(event.detail),
        items=tuple((_fit(item), state) for item, state in event.items),
        tool=None if event.tool is None else _fit_call(event.tool),
        cwd=fit(event.cwd),
        branch=fit(event.branch),
        model=fit(event.model),
        extra=_fit_json(event.extra),
    )


def _fit_call(call: ToolCall) -> ToolCall:
    return replace(
        call,
        name=_fit(call.name),
        command=None if call.command is None else _fit(call.command),
        paths=tuple(_fit(path) for path in call.paths),
        changes=tuple((_fit(path), _fit(change)) for path, change in call.changes),
        input=_fit(call.input),
        output=_fit(call.output),
    )


def _fit(text: str) -> str:
    return redacted_and_shortened(strip_private(_UNFIT.sub("\ufffd", text))).text if text else text


def _fit_json(value: Any) -> Any:
    if isinstance(value, str):
        return _fit(value)
    if isinstance(value, Mapping):
        return {_fit(str(name)): _fit_json(item) for name, item in value.items()}
    return [_fit_json(item) for item in value] if isinstance(value, list | tuple) else value


def fit(text: str | None) -> str | None:
    """A title, a folder or the name of an agent, as safe as what is kept of an event."""
    return _fit(text) if text else None


def session_mark(agent: str, native: str, secret: bytes) -> str:
    """What is kept of a session's own name for good."""
    return _digest(f"session:{agent}/{native}", secret)


def _digest(text: str, secret: bytes) -> str:
    return hashlib.blake2b(text.encode(errors="replace"), key=secret[:64], digest_size=16).hexdigest()


def batches(events: Sequence[NewSessionEvent], size: int = 100) -> list[Sequence[NewSessionEvent]]:
    """In pieces that one commit takes in its time."""
    return [events[at : at + size] for at in range(0, len(events), size)]
