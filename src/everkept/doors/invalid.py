"""What pydantic found wrong with an input, as one InvalidInput that names the field and its limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everkept.errors import InvalidInput, UnknownScope

_LIMITS = ("le", "lt", "ge", "gt", "max_length", "min_length", "expected", "pattern")
_PLACES = frozenset({"body", "query", "path", "header"})


def invalid_input(faults: Iterable[Mapping[str, Any]], *, known: Sequence[str] = ()) -> InvalidInput:
    """`faults` as in `ValidationError.errors()`; `known` are the accepted fields, listed where one is unknown."""
    found = [_fault(each) for each in faults]
    first = found[0]
    message = "; ".join(f"{each['field']}: {each['message']}" for each in found[:5])
    details: dict[str, Any] = {**first, "errors": found}
    del details["message"]
    if known and any(each["type"] == "extra_forbidden" for each in found):
        message += f"; known: {', '.join(known)}"
        details["known"] = list(known)
    return InvalidInput(message, **details)


def unknown_word(word: str, known: Sequence[str]) -> InvalidInput:
    """A field or parameter that does not exist. A word that reads like a scope (`…_id`) is an UnknownScope."""
    kind = UnknownScope if word.endswith("_id") else InvalidInput
    return kind(f"{word!r} is not known here; use: {', '.join(known) or 'nothing'}", field=word, known=list(known))


def _fault(fault: Mapping[str, Any]) -> dict[str, Any]:
    place = [str(part) for part in fault["loc"]]
    if place and place[0] in _PLACES:
        place = place[1:]
    context = fault.get("ctx") or {}
    field = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in place).removeprefix(".")
    found = {"field": field or "body", "message": _message(fault, context), "type": fault["type"]}
    limit = next((context[name] for name in _LIMITS if name in context), None)
    return found if limit is None else {**found, "limit": limit}


def _message(fault: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    if fault["type"] == "json_invalid":
        return f"this is not JSON: {context.get('error', fault['msg'])}"
    if fault["type"] == "extra_forbidden":
        return "this field is not known"
    return str(fault["msg"])
