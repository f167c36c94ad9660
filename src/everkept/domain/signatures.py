"""Signatures of webhooks, after the Standard Webhooks convention (https://www.standardwebhooks.com).

The sender signs `<webhook-id>.<webhook-timestamp>.<body>` with HMAC-SHA256 under the bytes that a secret
`whsec_<base64>` stands for; while a secret is being replaced, the header carries a signature of each.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from everkept.errors import InvalidInput, SignatureInvalid

PREFIX: Final = "whsec_"
KEY_BYTES: Final = 32
TOLERANCE_S: Final = 300.0
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def secret_of(key: bytes) -> str:
    """A key as people copy it."""
    return PREFIX + base64.b64encode(key).decode()


def sign(secret: str, delivery: str, timestamp: int, body: bytes) -> str:
    """`v1,<base64>`; `timestamp` in seconds since 1970. Raises InvalidInput for what is no secret."""
    signed = b".".join((delivery.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, tolerance_s: float = TOLERANCE_S, now: float | None = None
) -> dict[str, Any]:
    """What a webhook tells: {"type", "timestamp", "project", "data"}, once its signature and its age are right.

    `headers` of the request, in any case; `body` exactly as received. Raises SignatureInvalid where it is not ours, was
    changed, or is older (or newer) than `tolerance_s`: an old request that somebody kept proves nothing.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        delivery, sent, signatures = (given[name] for name in (ID, TIMESTAMP, SIGNATURE))
        timestamp = int(sent)
    except (KeyError, ValueError) as error:
        raise SignatureInvalid(f"the request lacks {ID}, {TIMESTAMP} or {SIGNATURE}") from error
    expected = sign(secret, delivery, timestamp, body).encode()
    if not any(hmac.compare_digest(expected, each.encode()) for each in signatures.split()):
        raise SignatureInvalid("the signature is not that of this body under this secret")
    if abs((time.time() if now is None else now) - timestamp) > tolerance_s:
        raise SignatureInvalid(f"the request was not signed within {tolerance_s:.0f} s of now")
    told: dict[str, Any] = json.loads(body)
    return told


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"a secret is {PREFIX} and base64", field="secret") from error
