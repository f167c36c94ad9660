"""gitleaks' rules: what each looks for, and what it lets pass. The data is beside this file, with its licence.

Made by scripts/make_redaction_rules.py. Where the rules were written for files of code, they are read a little wider
here: a token may end at any sign that cannot be part of it, and one that is longer than its rule knows goes whole.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from everkept.capture.redaction.patterns import EngineName, Match, NotTranslatable, Pattern, compiled, word_finder
from everkept.capture.redaction.values import is_identity, is_more_random, is_name_of_secret

GENERIC: Final = "generic-api-key"
_END: Final = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_WIDER_END: Final = r"""(?:[\x60'"\s;,)\]}<>&|?]|\\[nr]|$)"""
_ANY_END: Final = r"(?:\W|$)"
_NAME_BEFORE: Final = r"[\w.-]{0,50}?"
_NAME_BYTES: Final = string.ascii_letters.encode() + string.digits.encode() + b"_.-"
_REST_OF_TOKEN: Final = re.compile(rb"[\w+/=-]*")
_INSTEAD: Final = {"sourcegraph-access-token": (r"|[a-fA-F0-9]{40})\b)", r")\b)")}
"""Parts of a pattern taken out: forty hexadecimal digits in a text that names Sourcegraph are a commit."""
OWN_INSTEAD: Final = {"private-key", "curl-auth-header", "curl-auth-user"}
"""Rules that `credentials` and `private_keys` have, and do better or faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowlist:
    """What a rule lets pass: patterns that its target matches, words that the secret contains."""

    target: str
    """What the patterns look at: secret, match or line."""
    regexes: tuple[str, ...]
    stopwords: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendoredRule:
    """One rule of gitleaks."""

    id: str
    regex: str
    group: int
    """The group that holds the secret; 0: the first that took part, or the whole match."""
    entropy: float
    keywords: tuple[str, ...]
    """In lower case; one of them is in every text that the rule can match."""
    allowed: tuple[Allowlist, ...]

    def find(self, image: bytes, engine: EngineName) -> list[tuple[int, int]]:
        """Where its secrets are."""
        spans = []
        pattern = compiled(self.regex, engine)
        for match in pattern.finditer(image):
            start, end = self._secret(match, pattern)
            if not self._passes(image, match, start, end, engine):
                spans.append((start, end if self.id == GENERIC else _REST_OF_TOKEN.match(image, end).end()))  # type: ignore[union-attr]
        return spans

    def _secret(self, match: Match, pattern: Pattern) -> tuple[int, int]:
        if self.group:
            return match.span(self.group)
        taken = (match.span(number) for number in range(1, pattern.groups + 1))
        return next((span for span in taken if span[1] > span[0]), match.span())

    def _passes(self, image: bytes, match: Match, start: int, end: int, engine: EngineName) -> bool:
        """True for what is no secret after all."""
        secret = image[start:end]
        if (self.id == GENERIC and is_identity(secret)) or is_name_of_secret(secret.strip(b"\"'`")):
            return True
        if self.entropy and not is_more_random(secret, self.entropy):
            return True
        return any(_lets_pass(allowlist, image, match, secret, engine) for allowlist in (*self.allowed, *everywhere()))


def _lets_pass(allowlist: Allowlist, image: bytes, match: Match, secret: bytes, engine: EngineName) -> bool:
    if allowlist.stopwords and _words(allowlist.stopwords, engine)(secret):
        return True
    target = secret if allowlist.target == "secret" else _context(image, match, line=allowlist.target == "line")
    return any(_matches(pattern, target, engine) for pattern in allowlist.regexes)


@cache
def _words(words: tuple[str, ...], engine: EngineName) -> Callable[[bytes], set[int]]:
    return word_finder(words, engine)


def _matches(pattern: str, target: bytes, engine: EngineName) -> bool:
    try:
        return compiled(pattern, engine).search(target) is not None
    except NotTranslatable:
        return False  # what cannot be checked is not let pass


def _context(image: bytes, match: Match, *, line: bool) -> bytes:
    """The match with the whole name before it, or its line."""
    start, end = match.span()
    if line:
        after = image.find(b"\n", end)
        return image[image.rfind(b"\n", 0, start) + 1 : len(image) if after < 0 else after]
    before = image[max(0, start - 50) : start]
    return before[len(before.rstrip(_NAME_BYTES)) :] + image[start:end]


@cache
def vendored_rules() -> tuple[VendoredRule, ...]:
    """All that look at text, in the order of their file, those of our own instead left out."""
    return tuple(_rule(rule) for rule in _data()["rules"] if rule["regex"] and rule["id"] not in OWN_INSTEAD)


@cache
def everywhere() -> tuple[Allowlist, ...]:
    """What every rule lets pass."""
    return _allowlists(_data()["allowed"])


def source() -> str:
    """Where the rules come from, with their version."""
    return str(_data()["source"])


def rules_without_pattern() -> tuple[str, ...]:
    """Rules that look at names of files alone."""
    return tuple(rule["id"] for rule in _data()["rules"] if not rule["regex"])


@cache
def _data() -> dict[str, Any]:
    file = resources.files("everkept.capture.redaction") / "gitleaks.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def _rule(fields: dict[str, Any]) -> VendoredRule:
    return VendoredRule(
        id=fields["id"],
        regex=_wider(fields["id"], fields["regex"]),
        group=fields["group"],
        entropy=fields["entropy"],
        keywords=tuple(fields["keywords"]),
        allowed=_allowlists(fields["allowed"]),
    )


def _allowlists(fields: Sequence[dict[str, Any]]) -> tuple[Allowlist, ...]:
    return tuple(
        Allowlist(
            target=allowlist["target"],
            regexes=tuple(allowlist["regexes"]),
            stopwords=tuple(allowlist["stopwords"]),
        )
        for allowlist in fields
    )


def _wider(rule: str, regex: str) -> str:
    """The pattern as it is run: without the name before its keyword, which only costs time, and with a wider end."""
    names_something = _NAME_BEFORE in regex
    regex = regex.replace(*_INSTEAD.get(rule, ("", ""))).replace(_NAME_BEFORE, "")
    if not regex.endswith(_END):
        return regex
    return regex.removesuffix(_END) + (_WIDER_END if names_something else _ANY_END)
