"""Checking what is appended: an error names the field and the limit, and a batch is accepted whole or not at all."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from everkept.domain.passage import analyse
from everkept.domain.transcript import estimate_tokens
from everkept.errors import InvalidInput
from everkept.store.streams import NewMessage

CONTENT_BYTES_MAX = 1 << 20
METADATA_BYTES_MAX = 16 << 10
NAME_CHARS_MAX = 255
KEY_CHARS_MAX = 255
BATCH_MAX = 1000
TIME_MIN, TIME_MAX = datetime(1000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Leaves room for any zone, and for reckoning with what "in a hundred years" means."""
ROLES = ("user", "assistant", "system", "tool")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The character, and not the six signs that write it."""
_KEY = re.compile(r"[\x21-\x7e]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One message as a door hands it over; `occurred_at` is aware or None."""

    role: str
    content: str
    name: str | None = None
    occurred_at: datetime | None = None
    metadata: dict[str, Any] | None = None
    tokens: int | None = None
    model: str | None = None
    key: str | None = None
    evidence: bool = True


def check_name(value: str, field: str) -> str:
    """A thread's, subject's or project's name: 1 to 255 characters, none of them a control character."""
    if not value.strip():
        raise InvalidInput(
            f"{field} is empty; 1 to {NAME_CHARS_MAX} characters are needed", field=field, limit=NAME_CHARS_MAX
        )
    if len(value) > NAME_CHARS_MAX:
        raise InvalidInput(
            f"{field} has {len(value)} characters; the limit is {NAME_CHARS_MAX}", field=field, limit=NAME_CHARS_MAX
        )
    if _CONTROL.search(value) or _SURROGATE.search(value):
        raise InvalidInput(f"{field} holds a control character or a lone surrogate", field=field)
    return value


def check_key(key: str, field: str = "key") -> str:
    """An idempotency key: 1 to 255 visible ASCII characters. A malformed one is an error, never ignored."""
    if len(key) > KEY_CHARS_MAX or not _KEY.fullmatch(key):
        raise InvalidInput(
            f"{field} must be 1 to {KEY_CHARS_MAX} visible ASCII characters", field=field, limit=KEY_CHARS_MAX
        )
    return key


def check_time(at: datetime, field: str) -> int:
    """An aware time in microseconds since 1970. Raises InvalidInput for one without a zone or out of range."""
    if at.tzinfo is None:
        raise InvalidInput(f"{field} has no zone; add one, e.g. 2026-05-01T12:00:00+02:00", field=field)
    if not TIME_MIN <= at < TIME_MAX:
        raise InvalidInput(
            f"{field} is {at.isoformat()}; the years {TIME_MIN.year} to {TIME_MAX.year - 1} are allowed", field=field
        )
    return (at - _EPOCH) // timedelta(microseconds=1)


def check_messages(
    messages: Sequence[Given], *, thread: str, key: str | None, secret: bytes, now_us: int, former: Sequence[bytes] = ()
) -> tuple[NewMessage, ...]:
    """Check and prepare a batch. Raises InvalidInput that lists the fault of each item.

    `former`: secrets of the projects that were merged into this one, in which a message may have been accepted before.
    """
    if not messages:
        raise InvalidInput(f"messages is empty; 1 to {BATCH_MAX} are needed", field="messages", limit=BATCH_MAX)
    if len(messages) > BATCH_MAX:
        raise InvalidInput(
            f"messages has {len(messages)} items; the limit is {BATCH_MAX}", field="messages", limit=BATCH_MAX
        )
    if key is not None:
        check_key(key)
    ready: list[NewMessage] = []
    faults: dict[int, InvalidInput] = {}
    for index, given in enumerate(messages):
        try:
            _check_one(given, f"messages[{index}]")
            ready.append(_prepare(given, thread, secret, now_us))
        except InvalidInput as error:
            faults[index] = error
    faults |= _repeated_keys(ready) if not faults else {}
    if faults:
        _refuse(faults, len(messages))
    keyed = tuple(ready if key is None else _keyed(ready, key, secret))
    before = [check_messages(messages, thread=thread, key=key, secret=other, now_us=now_us) for other in former]
    return tuple(_known_as(*of_one) for of_one in zip(keyed, *before, strict=True)) if before else keyed


def _known_as(message: NewMessage, *before: NewMessage) -> NewMessage:
    return replace(message, former=tuple((m.key_hash, m.payload_hash) for m in before if m.key_hash is not None))


def _refuse(faults: dict[int, InvalidInput], total: int) -> None:
    first = faults[min(faults)]
    if total == 1:
        raise first
    items = [
        {"index": i, "outcome": "invalid", "message": faults[i].message, **faults[i].details} if i in faults
        else {"index": i, "outcome": "not_stored", "message": "another item of the batch is invalid"}
        for i in range(total)
    ]  # fmt: skip
    message = f"{first.message} ({len(faults)} of {total} items are invalid; none was stored)"
    raise InvalidInput(message, field=first.details.get("field"), items=items)


def _keyed(ready: Sequence[NewMessage], key: str, secret: bytes) -> list[NewMessage]:
    """The batch's key given to the items that have none of their own.

    Each of these carries the hash of the whole batch, so that another batch under the same key contradicts it. They
    are counted from 0, so that any two batches have the first in common, and no caller's key can hold the control
    character. The hashes of a batch stand side by side in the index: one leaf is written, not one a message.
    """
    whole = _digest("".join(f"{m.key_hash or ''}:{m.payload_hash};" for m in ready), secret)
    of_batch = key_hash(f"{key}\x1f", secret)
    keyed: list[NewMessage] = []
    count = 0
    for message in ready:
        if message.key_hash is None:
            payload = _digest(f"{whole}{message.payload_hash}", secret)
            message = replace(message, key_hash=f"{of_batch}{count:05x}", payload_hash=payload)
            count += 1
        keyed.append(message)
    return keyed


def _repeated_keys(ready: Sequence[NewMessage]) -> dict[int, InvalidInput]:
    seen: dict[str, int] = {}
    faults: dict[int, InvalidInput] = {}
    for index, message in enumerate(ready):
        if message.key_hash is None:
            continue
        first = seen.setdefault(message.key_hash, index)
        if ready[first].payload_hash != message.payload_hash:
            field = f"messages[{index}].key"
            faults[index] = InvalidInput(
                f"{field} is that of messages[{first}], which says something else", field=field
            )
    return faults


def _check_one(given: Given, at: str) -> None:
    if given.role not in ROLES:
        raise InvalidInput(
            f"{at}.role {given.role[:40]!r} is not one of {', '.join(ROLES)}", field=f"{at}.role", allowed=list(ROLES)
        )
    _check_text(given.content, f"{at}.content")
    if given.name is not None:
        check_name(given.name, f"{at}.name")
    if given.model is not None:
        check_name(given.model, f"{at}.model")
    if given.key is not None:
        check_key(given.key, f"{at}.key")
    if given.occurred_at is not None:
        check_time(given.occurred_at, f"{at}.occurred_at")
    if given.tokens is not None and not 0 <= given.tokens <= 10_000_000:
        raise InvalidInput(
            f"{at}.tokens is {given.tokens}; 0 to 10,000,000 are allowed", field=f"{at}.tokens", limit=10_000_000
        )
    if given.metadata is not None:
        _check_metadata(given.metadata, f"{at}.metadata")


def _check_text(content: str, field: str) -> None:
    if not content.strip():
        raise InvalidInput(f"{field} is empty", field=field)
    if "\x00" in content:
        raise InvalidInput(f"{field} holds a NUL character", field=field)
    if _SURROGATE.search(content):
        raise InvalidInput(f"{field} holds a lone surrogate: the text was cut inside a character", field=field)
    size = len(content.encode())
    if size > CONTENT_BYTES_MAX:
        raise InvalidInput(
            f"{field} has {size:,} bytes; the limit is {CONTENT_BYTES_MAX:,} (1 MiB)",
            field=field,
            limit=CONTENT_BYTES_MAX,
        )


def _check_metadata(metadata: dict[str, Any], field: str) -> None:
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{field} is not JSON: {error}", field=field) from error
    if _NUL_IN_JSON.search(text) or _SURROGATE.search(text):
        raise InvalidInput(f"{field} holds a NUL character or a lone surrogate", field=field)
    if len(text.encode()) > METADATA_BYTES_MAX:
        raise InvalidInput(
            f"{field} has {len(text.encode()):,} bytes; the limit is {METADATA_BYTES_MAX:,}",
            field=field,
            limit=METADATA_BYTES_MAX,
        )


def key_hash(key: str, secret: bytes) -> str:
    """What is stored of an idempotency key: keyed, so that after an erase it tells nothing."""
    return _digest(key, secret)


def _digest(text: str, secret: bytes) -> str:
    return hashlib.blake2b(text.encode(), key=secret[:64], digest_size=16).hexdigest()


def _prepare(given: Given, thread: str, secret: bytes, now_us: int) -> NewMessage:
    occurred_us, zone_min = now_us, None
    if given.occurred_at is not None:
        offset = given.occurred_at.utcoffset()
        zone_min = None if offset is None else int(offset.total_seconds() // 60)
        occurred_us = check_time(given.occurred_at, "occurred_at")
    metadata = None if not given.metadata else json.dumps(given.metadata, ensure_ascii=False, sort_keys=True)
    said = None if given.occurred_at is None else occurred_us
    payload = json.dumps(
        [thread, given.role, given.name, given.content, said, metadata, given.tokens, given.model, given.evidence],
        ensure_ascii=False,
    )
    return NewMessage(
        role=given.role,
        name=given.name,
        content=given.content,
        occurred_at_us=occurred_us,
        zone_min=zone_min,
        key_hash=None if given.key is None else key_hash(given.key, secret),
        payload_hash=_digest(payload, secret),
        evidence=given.evidence,
        metadata=metadata,
        tokens=max(given.tokens or 0, estimate_tokens(given.content)),
        model=given.model,
        analysed=analyse(
            given.content, speaker=given.name or given.role, occurred_at_us=occurred_us, zone_min=zone_min
        ),
    )
