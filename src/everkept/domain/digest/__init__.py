"""The deterministic digest of a coding session: what was asked, done, decided, and what is left open."""

from everkept.domain.digest.build import content_hash, digest_session, trivial
from everkept.domain.digest.ends import merge_open_ends
from everkept.domain.digest.handoff import Handoff, to_handoff
from everkept.domain.digest.page import to_page
from everkept.domain.digest.values import Digest, OpenEnd, SessionEvent

__all__ = [
    "SessionEvent",
    "Digest",
    "digest_session",
    "trivial",
    "content_hash",
    "to_page",
    "OpenEnd",
    "Handoff",
    "to_handoff",
    "merge_open_ends",
]
