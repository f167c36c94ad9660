"""Secrets out of a text or a JSON value, before anything is kept of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from everkept.capture.redaction.assignments import ASSIGNMENT, is_secret_field
from everkept.capture.redaction.finding import Found, find_secrets
from everkept.capture.redaction.image import MARKER, image_of, is_taken
from everkept.capture.redaction.patterns import EngineName
from everkept.capture.redaction.private import strip_private
from everkept.domain.session import shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text with `[redacted:RULE]` in the place of each secret."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Secrets found, by rule."""


def redact(text: str, *, engine: EngineName | None = None) -> Redacted:
    """The text without its secrets. Redacting what was redacted changes nothing.

    It looks again until it finds nothing, because a marker may uncover what stood beside it; each round leaves less
    that is not a marker, so that it ends.
    """
    counts: Counter[str] = Counter()
    while found := find_secrets(text, engine=engine):
        counts.update(secret.rule for secret in found)
        text = _replaced(text, found)
    return Redacted(text=text, counts=dict(counts))


def cleaned(text: str) -> str:
    """What may be kept of a text, whoever wrote it and whatever the way in: no private part of it, and no secret."""
    return redact(strip_private(text)).text


def redacted_and_shortened(text: str) -> Redacted:
    """Redacted first, shortened then: no part of a secret is left at a cut."""
    redacted = redact(text)
    return Redacted(text=shortened(redacted.text), counts=redacted.counts)


def redact_json(value: Any) -> Any:
    """A JSON value with its strings redacted, also those that only the name of their field gives away."""
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, Mapping):
        return _redacted_object(value)
    if isinstance(value, list | tuple):
        return _redacted_items(value)
    return value


def _redacted_object(value: Mapping[Any, Any]) -> dict[Any, Any]:
    named = value.get("name", value.get("key"))  # {"name": "API_KEY", "value": "…"}
    fields: dict[Any, Any] = {}
    for key, item in value.items():
        name = named if key == "value" and isinstance(named, str) else key
        kept = redact(key).text if isinstance(key, str) else key
        fields[_free_name(kept, fields) if kept != key else kept] = _redacted_field(name, item)
    return fields


def _free_name(name: str, fields: Mapping[Any, Any]) -> str:
    """The name, or with a number after it: two secrets must not become one field."""
    number = 1
    free = name
    while free in fields:
        number += 1
        free = f"{name} ({number})"
    return free


def _redacted_field(name: Any, item: Any) -> Any:
    if not isinstance(name, str) or isinstance(item, bool) or not isinstance(item, str | int):
        return redact_json(item)
    written = image_of(str(item))
    if not is_taken(written) and is_secret_field(image_of(name), written):
        return MARKER.format(ASSIGNMENT)
    return redact_json(item)


def _redacted_items(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    """The items of a list; in one of arguments (`["--password", "…"]`) the one before names the next."""
    redacted = []
    before: Any = None
    for item in items:
        is_flag = isinstance(before, str) and before.startswith("-") and isinstance(item, str)
        redacted.append(_redacted_field(before.lstrip("-"), item) if is_flag else redact_json(item))
        before = item
    return redacted


def _replaced(text: str, found: list[Found]) -> str:
    parts, done = [], 0
    for secret in found:
        parts += [text[done : secret.start], MARKER.format(secret.rule)]
        done = secret.end
    return "".join([*parts, text[done:]])
