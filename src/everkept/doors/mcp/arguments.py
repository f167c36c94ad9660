"""What a client sent to a tool, checked against the schema that the tool shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from everkept.doors.invalid import unknown_word
from everkept.errors import InvalidInput


def checked(schema: Mapping[str, Any], arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments with the defaults filled in; null counts as left out. Raises InvalidInput naming the field."""
    properties: Mapping[str, Any] = schema["properties"]
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    for name, value in given.items():
        if name not in properties:
            raise unknown_word(name, list(properties))
        _check(name, value, properties[name])
    for name in schema.get("required", ()):
        if name not in given:
            raise InvalidInput(f"{name} is needed", field=name)
    return {name: each["default"] for name, each in properties.items() if "default" in each} | given


def _check(name: str, value: Any, expected: Mapping[str, Any]) -> None:
    match expected["type"]:
        case "string":
            _check_text(name, value, expected.get("enum"))
        case "boolean":
            if not isinstance(value, bool):
                raise InvalidInput(f"{name} is true or false", field=name)
        case "integer":
            _check_number(name, value, expected)
        case "array":
            if not isinstance(value, list) or not value:
                raise InvalidInput(f"{name} is a list with something in it", field=name)
            for one in value:
                _check_text(name, one, expected["items"].get("enum"))
        case other:
            raise AssertionError(other)


def _check_text(name: str, value: Any, allowed: list[str] | None) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is a text that is not empty", field=name)
    if allowed is not None and value not in allowed:
        raise InvalidInput(f"{name} is one of {', '.join(allowed)}", field=name, known=allowed)


def _check_number(name: str, value: Any, expected: Mapping[str, Any]) -> None:
    low, high = expected["minimum"], expected.get("maximum")
    # JSON has one kind of number: a client may send 8.0 for 8, and no client means `true` by it.
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not whole or value < low or (high is not None and value > high):
        limit = f"{low:,} or more" if high is None else f"{low:,} to {high:,}"
        raise InvalidInput(f"{name} is a whole number, {limit}", field=name, limit=limit)


def moment(name: str, text: str | None) -> datetime | None:
    """Raises InvalidInput for what is not a time with a zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidInput(f"{name} is a time with its zone, e.g. 2026-05-01T12:00:00Z", field=name)
    return found
