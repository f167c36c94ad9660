"""Redaction: secrets are replaced before anything is kept, whatever the way in.

gitleaks' rules and our own, run by google-re2 where it is installed and by Python's `re` where it is not.
"""

from __future__ import annotations

from everkept.capture.redaction.finding import Found, Unusable, find_secrets, unusable_rules
from everkept.capture.redaction.patterns import EngineName, default_engine
from everkept.capture.redaction.private import strip_private
from everkept.capture.redaction.redacting import Redacted, cleaned, redact, redact_json, redacted_and_shortened

__all__ = [
    "Redacted", "cleaned", "redact", "redact_json", "redacted_and_shortened",
    "Found", "find_secrets",
    "strip_private",
    "EngineName", "Unusable", "default_engine", "unusable_rules",
]  # fmt: skip
