"""What a failed call means (G7): vendor and library errors, mapped to the classes that the engine reads.

The library is imported only here and in `language.py`, when a model is in use.
"""

from __future__ import annotations

import re

from pydantic_ai import exceptions as lib

from everkept.errors import ModelError, Permanent, ProviderDown, RateLimited, Refused, Transient

_REFUSAL = re.compile(r"content[_ ]?(?:filter|policy)|safety|moderation|flagged", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|billing|credit balance|quota exceeded", re.IGNORECASE)
_KEY = re.compile(r"api[_ ]?key|permission|unauthor|credential|account|billing|organi[sz]ation", re.IGNORECASE)
MESSAGE_CHARS_MAX = 500
SECRET_CHARS_MIN = 8
"""A shorter "key" is a placeholder of a local server, and striking it out would garble the text."""


def model_error(error: Exception, *, secret: str | None = None) -> ModelError:
    """The error of this house for an error of the library; the secret is struck from its text."""
    text = " ".join(_words(error).split()) or type(error).__name__
    if secret and len(secret) >= SECRET_CHARS_MIN:
        text = text.replace(secret, "[key]")
    text = text[:MESSAGE_CHARS_MAX]
    if isinstance(error, lib.ModelHTTPError):
        return _http_error(error, text)
    if isinstance(error, lib.ModelQuotaExceededError | lib.ModelAuthenticationError):
        return ProviderDown(text)
    if isinstance(error, lib.ModelRateLimitError):
        return RateLimited(text, retry_after_s=error.retry_after)
    if isinstance(error, lib.ContentFilterError):
        return Refused(text)
    if isinstance(error, lib.ModelRequestRejectedError | lib.UserError):
        return Permanent(text)
    return Transient(text if isinstance(error, lib.AgentRunError) else f"{type(error).__name__}: {text}")


def _words(error: Exception) -> str:
    """What the provider says, where it says it in words."""
    if not isinstance(error, lib.ModelHTTPError) or not isinstance(error.body, dict):
        return str(error)
    inner = error.body.get("error", error.body)
    message = inner.get("message") if isinstance(inner, dict) else inner
    if not isinstance(message, str) or not message:
        return str(error)
    return f"the provider answered {error.status_code}: {message}"


def _http_error(error: lib.ModelHTTPError, text: str) -> ModelError:
    status = error.status_code
    said = f"{error.provider_error_code} {error.provider_error_type} {error.body}"
    details = {"status": status}
    no_quota = isinstance(error, lib.ModelQuotaExceededError) or (status == 429 and _QUOTA.search(said) is not None)
    if no_quota or status in (401, 402):
        return ProviderDown(text, **details)
    if status == 403:
        return Refused(text, **details) if _is_refusal(error, said) else ProviderDown(text, **details)
    # Wrong for every question alike, and mended in the settings: a bad key (Google says 400), model or base URL.
    if isinstance(error, lib.ModelAuthenticationError | lib.ModelNotFoundError) or status == 404:
        return ProviderDown(text, **details)
    wait_s = retry_after_s(error)
    if status == 429 or (wait_s is not None and status in (503, 529)):
        return RateLimited(text, retry_after_s=wait_s, **details)
    if status >= 500 or status in (408, 409, 425):
        return Transient(text, **details)
    if _is_refusal(error, said):
        return Refused(text, **details)
    return Permanent(text, **details)


def _is_refusal(error: lib.ModelHTTPError, said: str) -> bool:
    if isinstance(error, lib.ModelContextWindowExceededError):
        return False
    return _REFUSAL.search(said) is not None and _KEY.search(said) is None


def retry_after_s(error: lib.ModelHTTPError) -> float | None:
    """How long the provider asks to wait, None where it does not say; the library knows whole seconds and dates."""
    raw = (error.headers or {}).get("retry-after", "").strip()
    if error.retry_after is None and re.fullmatch(r"\d+\.\d+", raw):
        return float(raw)
    return error.retry_after
