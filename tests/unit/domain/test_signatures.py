"""Signatures of webhooks: the Standard Webhooks convention, to the byte."""

from __future__ import annotations

import pytest

from everkept import SignatureInvalid, verify_webhook
from everkept.domain.signatures import secret_of, sign
from everkept.errors import InvalidInput

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {"Webhook-Id": ID, "webhook-timestamp": str(AT), "webhook-signature": SIGNATURE}


def test_the_convention_s_own_example_has_its_signature() -> None:
    assert sign(SECRET, ID, AT, BODY) == SIGNATURE
    assert verify_webhook(SECRET, HEADERS, BODY, now=AT) == {"test": 2432232314}


@pytest.mark.parametrize("changed", [
    {"body": BODY + b" "}, {"secret": secret_of(b"x" * 32)}, {"Webhook-Id": "msg_other"},
    {"webhook-timestamp": str(AT + 1)}, {"webhook-signature": "v1,AAAA"}, {"webhook-signature": "v1,é"},
    {"webhook-signature": ""}, {"webhook-signature": SIGNATURE.replace("v1,", "v2,")}, {"webhook-timestamp": "now"},
])  # fmt: skip
def test_whatever_was_changed_is_not_believed(changed: dict[str, str | bytes]) -> None:
    body = bytes(changed.get("body", BODY))  # type: ignore[arg-type]
    secret = str(changed.get("secret", SECRET))
    headers = {**HEADERS, **{name: str(value) for name, value in changed.items() if name not in ("body", "secret")}}
    with pytest.raises(SignatureInvalid):
        verify_webhook(secret, headers, body, now=AT)


@pytest.mark.parametrize("missing", list(HEADERS))
def test_a_request_without_one_of_the_headers_is_not_believed(missing: str) -> None:
    with pytest.raises(SignatureInvalid):
        verify_webhook(SECRET, {name: value for name, value in HEADERS.items() if name != missing}, BODY, now=AT)


def test_an_old_request_that_somebody_kept_is_not_believed() -> None:
    for late_s in (301, -301):
        with pytest.raises(SignatureInvalid):
            verify_webhook(SECRET, HEADERS, BODY, now=AT + late_s)
    assert verify_webhook(SECRET, HEADERS, BODY, now=AT + 301, tolerance_s=600)


def test_one_of_several_signatures_is_enough() -> None:
    headers = {**HEADERS, "webhook-signature": f"v1,AAAA {SIGNATURE}"}
    assert verify_webhook(SECRET, headers, BODY, now=AT)


def test_what_is_no_secret_is_said_so() -> None:
    with pytest.raises(InvalidInput):
        sign("whsec_not base64!", ID, AT, BODY)
