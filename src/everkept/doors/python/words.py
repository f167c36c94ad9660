"""What a caller may write in place of our words, and how a message may be given."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import ValidationError

from everkept.api.views import MessageIn
from everkept.domain.scope import scope_words
from everkept.doors.invalid import invalid_input
from everkept.errors import InvalidInput, UnknownScope

GivenMessage: TypeAlias = MessageIn | Mapping[str, Any] | tuple[str, str]
"""A MessageIn, the same as a dict, or `(role, content)`."""
ME = "me"
"""Whose memory it is where nobody is named."""


def find_scope(
    thread: str | None, subject: str | None, words: Mapping[str, Any]
) -> tuple[str | None, str | None, dict[str, str]]:
    """(thread, subject, metadata filter) from arguments and synonyms. Raises UnknownScope for any other word."""
    scope, metadata = scope_words({"thread": thread, "subject": subject, **words})
    if "project" in scope:
        raise UnknownScope("the project is chosen when the memory is opened: Memory.open(project=…)", field="project")
    return scope.get("thread"), scope.get("subject"), metadata


def find_subject(subject: str | None, words: Mapping[str, Any]) -> str | None:
    """The subject, where neither a thread nor metadata can be meant. Raises UnknownScope for any other word."""
    thread, found, metadata = find_scope(None, subject, words)
    if thread is not None or metadata:
        raise UnknownScope("only a subject (or user_id, dataset) can be named here", field=next(iter(words)))
    return found


def as_message(given: GivenMessage) -> MessageIn:
    """Raises InvalidInput that names the field."""
    if isinstance(given, MessageIn):
        return given
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InvalidInput("a message given as a tuple is (role, content)", field="messages")
        given = {"role": given[0], "content": given[1]}
    try:
        return MessageIn.model_validate(given)
    except ValidationError as error:
        raise invalid_input(error.errors(), known=list(MessageIn.model_fields)) from error


def subject_or_me(subject: str | None) -> str:
    """Only None is nobody: an empty name is refused where it arrives, and never ends in the memory of "me"."""
    return ME if subject is None else subject


def key_or_new(key: str | None) -> str:
    """The caller's idempotency key, or one made for this call and kept over all its retries.

    Only None is none: an empty key is a malformed one, and is refused (A03).
    """
    return f"py-{uuid.uuid4().hex}" if key is None else key
