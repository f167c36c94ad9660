"""Fields of one item of a model's reply, read strictly: what is missing or of another type is told, never guessed."""

from __future__ import annotations

import math
import re
from typing import Any

from everkept.domain.replies import InvalidReply

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def fields_of(item: object) -> dict[str, Any]:
    """Raises InvalidReply, as all here do."""
    if not isinstance(item, dict):
        raise InvalidReply("it is not an object")
    return item


def text_of(fields: dict[str, Any], key: str) -> str:
    """Every key is required; null is read as nothing said."""
    value = fields.get(key, ...)
    if value is ...:
        raise InvalidReply(f"{key} is missing")
    if value is not None and not isinstance(value, str):
        raise InvalidReply(f"{key} is not text")
    if value and _UNSTORABLE.search(value):
        raise InvalidReply(f"{key} holds a NUL character or a lone surrogate")
    return (value or "").strip()


def choice_of(fields: dict[str, Any], key: str, allowed: tuple[Any, ...]) -> Any:
    said = "_".join(text_of(fields, key).lower().split())
    if said not in allowed:
        raise InvalidReply(f"{key} is not one of {', '.join(allowed)}")
    return said


def number_of(fields: dict[str, Any], key: str) -> float:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidReply(f"{key} is missing or no finite number")
    return float(value)


def texts_of(fields: dict[str, Any], key: str) -> tuple[str, ...]:
    value = fields.get(key)
    if not isinstance(value, list):
        raise InvalidReply(f"{key} is missing or no list")
    return tuple(text_of({key: one}, key) for one in value)
