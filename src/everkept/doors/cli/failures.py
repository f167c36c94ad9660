"""What a failure looks like on the command line: one line that says what, why and what to do next, and an exit code."""

from __future__ import annotations

import json
from typing import Any

from everkept.errors import EverkeptError, exit_code

USAGE = 2
NEEDS_ATTENTION = 5
INTERRUPTED = 130

NEXT_STEPS = {
    "store_unavailable": "nothing was looked up; try again, and see `everkept status`",
    "store_not_supported": "`everkept config database_url` shows which database is meant",
    "unavailable": "nothing was looked up; try again, and see `everkept status`",
    "unauthorized": "set EVERKEPT_API_KEY to a key of this server (`everkept keys create NAME` makes one there)",
}
"""What to do next, for codes whose message does not say it."""


def line_of(code: str, message: str) -> str:
    step = NEXT_STEPS.get(code)
    return f"error: {message.rstrip('.')}; {step}" if step else f"error: {message}"


def json_of(code: str, message: str, details: dict[str, Any]) -> str:
    """The error shape of HTTP."""
    return json.dumps(
        {"error": {"code": code, "message": message, "details": details}}, ensure_ascii=False, default=str
    )


def describe(error: EverkeptError, *, as_json: bool) -> tuple[str, int]:
    """(what to print on stderr, exit code)."""
    code = type(error).code
    text = json_of(code, error.message, error.details) if as_json else line_of(code, error.message)
    return text, exit_code(code)


def describe_usage(message: str, *, as_json: bool) -> tuple[str, int]:
    text = json_of("invalid_input", message, {}) if as_json else f"error: {message}"
    return text, USAGE
