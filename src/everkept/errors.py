"""Every error Everkept raises, each with a stable code.

The docstring of a class is the first sentence its reader sees; facts are fields of `details`.
`HTTP_STATUS` and `EXIT_CODE` below are the only tables that map a code to a door's own language.
"""

from __future__ import annotations

from typing import Any, ClassVar


class EverkeptError(Exception):
    """Something went wrong inside Everkept."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str | None = None, **details: Any) -> None:
        self.message = message or (self.__doc__ or self.code).splitlines()[0]
        self.details: dict[str, Any] = details
        super().__init__(self.message)


class InvalidInput(EverkeptError):
    """The request has a field that cannot be accepted."""

    code = "invalid_input"


class UnknownScope(InvalidInput):
    """The request names a scope word that does not exist."""

    code = "unknown_scope"


class ConfigInvalid(InvalidInput):
    """A setting is unknown or out of range."""

    code = "config_invalid"


class NotFound(EverkeptError):
    """There is no such thing in this project."""

    code = "not_found"


class Conflict(EverkeptError):
    """The request contradicts what is already stored."""

    code = "conflict"


class KeyConflict(Conflict):
    """This idempotency key was used before with another payload."""

    code = "idempotency_conflict"


class SubjectConflict(Conflict):
    """This thread belongs to another subject."""

    code = "subject_conflict"


class Unauthorized(EverkeptError):
    """An API key is needed, and the one given (or none) is not valid."""

    code = "unauthorized"


class Forbidden(EverkeptError):
    """The Host or Origin of the request is not allowed here."""

    code = "forbidden"


class SignatureInvalid(EverkeptError):
    """A webhook is not signed as its secret asks; nothing of it may be believed."""

    code = "signature_invalid"


class CursorExpired(EverkeptError):
    """The consumer is behind what is kept; start again from a snapshot."""

    code = "cursor_expired"


class PacketGone(EverkeptError):
    """Something that the packet told of was erased; `successor` is the packet of what remains."""

    code = "packet_gone"


class LeaseLost(EverkeptError):
    """The lease ended or was taken over; nothing was written."""

    code = "lease_lost"


class SubjectMoved(EverkeptError):
    """The subject changed while the job ran; it runs again on its journaled replies."""

    code = "subject_moved"


class Unavailable(EverkeptError):
    """Everkept could not look; this is not an empty answer."""

    code = "unavailable"


class StoreUnavailable(Unavailable):
    """The database cannot be read or written right now."""

    code = "store_unavailable"


class StoreFull(StoreUnavailable):
    """The disk is full or read-only; nothing of this request was kept."""

    code = "store_full"


class StoreMoved(StoreUnavailable):
    """The memory has moved to another database; here it is only read."""

    code = "store_moved"
    told: ClassVar[str] = "this memory has moved to "
    """How the database itself begins to say so."""


class StoreNotSupported(EverkeptError):
    """The database cannot be used by this program."""

    code = "store_not_supported"


class ExtraMissing(EverkeptError):
    """An optional part of Everkept is not installed."""

    code = "extra_missing"


class EmbedderMismatch(Unavailable):
    """The vectors in the store were made by another model or dimension; they are being made again."""

    code = "embedder_mismatch"


# What a model call can end in (G7). The engine reads the class, never the text.


class ModelError(EverkeptError):
    """A model call failed."""

    code = "model_error"


class Transient(ModelError):
    """The call failed in a way that may pass by itself."""

    code = "transient"


class RateLimited(ModelError):
    """Whoever was asked asks to wait (`retry_after_s`, seconds, may be None)."""

    code = "rate_limited"

    def __init__(self, message: str | None = None, *, retry_after_s: float | None = None, **details: Any) -> None:
        super().__init__(message, retry_after_s=retry_after_s, **details)
        self.retry_after_s = retry_after_s


class ProviderDown(ModelError):
    """The provider, the key or the account is unusable for everybody; the circuit opens."""

    code = "provider_down"


class OverBudget(ModelError):
    """The project has spent its tokens or money for today; its questions wait for tomorrow."""

    code = "over_budget"

    def __init__(self, message: str | None = None, *, retry_after_s: float | None = None, **details: Any) -> None:
        super().__init__(message, retry_after_s=retry_after_s, **details)
        self.retry_after_s = retry_after_s


class InvalidOutput(ModelError):
    """The reply could not be used, and every allowed ask has been spent."""

    code = "invalid_output"


class Refused(ModelError):
    """The model refused to answer."""

    code = "refused"


class Permanent(ModelError):
    """Asking again cannot help."""

    code = "permanent"


class CannotWire(EverkeptError):
    """The files of a coding agent cannot be changed; nothing was written."""

    code = "cannot_wire"


HTTP_STATUS: dict[str, int] = {
    "invalid_input": 422, "unknown_scope": 422, "config_invalid": 422, "not_found": 404, "conflict": 409,
    "idempotency_conflict": 409, "subject_conflict": 409, "unauthorized": 401, "forbidden": 403, "cursor_expired": 410,
    "packet_gone": 410,
    "signature_invalid": 401, "lease_lost": 409, "subject_moved": 409, "unavailable": 503, "store_unavailable": 503,
    "store_full": 507, "store_moved": 503, "store_not_supported": 503, "extra_missing": 501, "embedder_mismatch": 503,
    "rate_limited": 429,
}  # fmt: skip
"""Code → HTTP status; every other code is a 500."""

EXIT_CODE: dict[str, int] = {
    "invalid_input": 2, "unknown_scope": 2, "config_invalid": 2, "extra_missing": 2,
    "unavailable": 3, "store_unavailable": 3, "store_full": 3, "store_moved": 3, "store_not_supported": 3,
    "embedder_mismatch": 3,
    "not_found": 4, "conflict": 4, "packet_gone": 4, "idempotency_conflict": 4, "subject_conflict": 4,
    "unauthorized": 3, "forbidden": 3,
}  # fmt: skip
"""Code → exit code of the CLI; every other code is 1."""


def http_status(code: str) -> int:
    return HTTP_STATUS.get(code, 500)


def exit_code(code: str) -> int:
    return EXIT_CODE.get(code, 1)
