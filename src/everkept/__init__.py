"""Everkept: durable memory for AI agents. Nothing lost, nothing twice, nothing hidden."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everkept.api.views import MessageIn
    from everkept.domain.signatures import verify_webhook
    from everkept.doors.python.async_memory import AsyncMemory, AsyncThread
    from everkept.doors.python.inbox import Inbox
    from everkept.doors.python.sync_memory import Memory, Thread
    from everkept.errors import (
        ConfigInvalid,
        Conflict,
        CursorExpired,
        EverkeptError,
        Forbidden,
        InvalidInput,
        KeyConflict,
        NotFound,
        SignatureInvalid,
        StoreFull,
        StoreUnavailable,
        SubjectConflict,
        Unauthorized,
        Unavailable,
        UnknownScope,
    )

__version__ = "0.1.0"
__all__ = [
    "AsyncMemory", "AsyncThread", "ConfigInvalid", "Conflict", "CursorExpired", "EverkeptError", "Forbidden",
    "Inbox", "InvalidInput", "KeyConflict", "Memory", "MessageIn", "NotFound", "SignatureInvalid", "StoreFull",
    "StoreUnavailable", "SubjectConflict", "Thread", "Unauthorized", "Unavailable", "UnknownScope", "__version__",
    "verify_webhook",
]  # fmt: skip
_MODULES = {
    "AsyncMemory": "doors.python.async_memory",
    "AsyncThread": "doors.python.async_memory",
    "Inbox": "doors.python.inbox",
    "Memory": "doors.python.sync_memory",
    "MessageIn": "api.views",
    "Thread": "doors.python.sync_memory",
    "verify_webhook": "domain.signatures",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: the import of the package costs next to nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"everkept.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
