"""A secret by the name it is given to: `DB_PASSWORD=…`, `"apiKey": "…"`, `<password>…</password>`, `密码：…`.

A password may be any word; a token, a key or a secret has at least a digit and looks random.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from everkept.capture.redaction.patterns import EngineName, Match, compiled
from everkept.capture.redaction.values import (
    has_digit,
    is_code,
    is_identity,
    is_name_of_secret,
    is_path,
    is_placeholder,
    is_scrambled,
    is_words,
    looks_random,
)

ASSIGNMENT: Final = "assignment"
_PASSWORDS: Final = (
    r"[_.-]?pass(?:words?|wd|phrase|code)|passwort|kennwort|contrase.a|senha|mot de passe|pwd|[_.-]pass|\x02{1,20}"
)
_TOKEN_WORDS: Final = r"secrets?|tokens?|credentials?|[_-]pat|[_-]auth"
_TOKENS: Final = rf"{_TOKEN_WORDS}|key"
_QUALIFIES: Final = frozenset(
    b"api app access account admin auth aws azure client consumer crypto encryption deploy gcp hmac jwt license licence"
    b" master private priv secret service session shared sign signing signature ssh storage webhook wallet bot user"
    b" root db openai anthropic gemini google github gitlab slack stripe sendgrid twilio apikey".split()
)
"""Words before `key` that make it one that opens something."""
_SUFFIX: Final = r"(?:[_-]?(?:value|b64|base64|\d{1,2}))?"
_GIVEN: Final = (
    r"""\s{0,8}["'`]{0,3}\s?[\])]?"""  # the end of its name
    r"""(?:[ \t]{0,3}:[ \t]{0,3}[A-Za-z&][\w.\[\]| ?<>&']{0,40}?)?"""  # its type
    r"""([ \t]{0,20}(?:=>|[:?+]?={1,3}|:|>|\x20is\x20|\x20to\x20)|["'`][ \t]{0,3},)"""
)
_QUOTED_VALUE: Final = (
    r"""\s{0,20}(?:[brfuBRFU]{1,2}|!!str )?"""
    r"""(?:"([^"\r\n]{2,}?)\s{0,8}"|'([^'\r\n]{2,}?)\s{0,8}'|`([^`\r\n]{2,}?)\s{0,8}`)"""
)
_BARE_VALUE: Final = r"""(?:[ \t]?[|>][+-]?[ \t]{0,3}\r?\n)?[ \t]{0,20}([^\s"'`,;<>(){}\[\]|][^\s"'`,;<>(){}|]{2,})"""
_VALUE: Final = rf"(?:{_QUOTED_VALUE}|{_BARE_VALUE})"
_SEPARATOR: Final = 3
_QUOTED: Final = (4, 5, 6)
_BARE: Final = 7
_NAMES: Final = (
    rf"(?i)(?:{_PASSWORDS}|identified by|\bpass|{_TOKEN_WORDS}"
    rf"|(?:{b'|'.join(sorted(_QUALIFIES)).decode()})[\s\d_.-]{{0,60}}key){_SUFFIX}"
    r"""[\s"'`\])]{0,12}(?:[=:>,(?+"'`]|is |to )"""  # the rest is only tried where it may succeed
)
_WINDOW: Final = 8_192
"""Bytes after the start of a name in which its value must end."""
_LOOSE: Final = r"([ \t]{0,3}\([ \t]{0,3}|[ \t]{1,3})"
_AT_NAME: Final = tuple(
    re.compile(pattern.encode())
    for pattern in (
        rf"(?i)({_PASSWORDS}|pass|{_TOKENS})({_SUFFIX})" + _GIVEN + _VALUE,
        # A call or a pair without a sign between: `setPassword("…")`, `:password "…"`, IDENTIFIED BY '…'
        rf"(?i)({_PASSWORDS}|identified by|{_TOKENS})({_SUFFIX})" + _LOOSE + _QUOTED_VALUE,
    )
)
"""What makes a name and a value of what begins at a name. On a short window, Python's own engine is the faster."""
_ELSEWHERE: Final = (
    # A command that sets it: `setx API_KEY …`, `aws configure set aws_secret_access_key …`
    (
        ("set ", "setx ", "put ", "add ", "-gx "),
        rf"(?i)\b(?:setx?|put|add)\b(?: -\w+)?[ \t][\w./:@-]{{0,60}}?({_PASSWORDS}|{_TOKENS})({_SUFFIX})"
        rf"([ \t]{{1,3}}(?:--(?:body|value|data)[ =])?){_VALUE}",
    ),
    # A name and its value as a pair: `{{"name": "API_KEY", "value": "…"}}`
    (
        ("value",),
        rf"""(?i)\b(?:name|key|variable)["']?\s{{0,3}}[:=]\s{{0,3}}["']?[\w.-]{{0,60}}?({_PASSWORDS}|{_TOKENS})({_SUFFIX})"""
        rf"""["']?[\s,]{{1,80}}["']?value["']?(\s{{0,3}}[:=]){_VALUE}""",
    ),
)
"""Each with the keywords of its rule."""

_NAME_BYTES: Final = string.ascii_letters.encode() + string.digits.encode() + b"_.-"
_WORDS: Final = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DISQUALIFIES: Final = frozenset(
    b"public pub primary foreign sort partition cache idempotency unique row map dict object index idx group csrf xsrf"
    b" next page continuation pad eos bos unk mask sep cls stop special max min num total input output completion"
    b" prompt no has is reset change forgot confirm show hide toggle on invalid old".split()
)
"""Words before the name of a secret that make it no secret, or not one to keep."""
_REST: Final = re.compile(rb"[^\s\"'`,;<>(){}|]*")
_SHOUTED: Final = re.compile(rb"[A-Z][A-Z0-9_]*")


def _at_names(image: bytes, engine: EngineName) -> Iterator[Match]:
    for name in compiled(_NAMES, engine).finditer(image):
        start, end = name.span()
        key = image[start:end].lower().rfind(b"key")
        if key >= 0:
            start += key
            if not _opens_something(image, start):
                continue
        for pattern in _AT_NAME:
            match = pattern.match(image, start, start + _WINDOW)
            if match is not None:
                yield match


def _opens_something(image: bytes, key: int) -> bool:
    """True for `api_key` and its like, which end in the `key` at this place."""
    prefix = _name_before(image, key)
    return _names_a_token(prefix or _word_before(image, key), b"key")


def _name_before(image: bytes, start: int) -> bytes:
    """What the name has before this place, at most 60 bytes."""
    before = image[max(0, start - 60) : start]
    return before[len(before.rstrip(_NAME_BYTES)) :]


def _word_before(image: bytes, start: int) -> bytes:
    """The word before a name of two words: `API key`."""
    before = image[max(0, start - 12) : start]
    return before if before[-1:] == b" " and before.split()[-1:] and before.split()[-1].lower() in _QUALIFIES else b""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentRule:
    """Secrets that a name gives away, in one way to write name and value."""

    keywords: tuple[str, ...]
    matches: Callable[[bytes, EngineName], Iterator[Match]]
    """Group 1 is the name's last word, then suffix, separator, and the value in one of four."""
    id: str = ASSIGNMENT

    def find(self, image: bytes, engine: EngineName) -> list[tuple[int, int]]:
        """Where its secrets are."""
        return [span for match in self.matches(image, engine) if (span := self._secret(image, match)) is not None]

    def _secret(self, image: bytes, match: Match) -> tuple[int, int] | None:
        group = match.lastindex or _BARE
        start, end = match.span(group)
        if group == _BARE and end == match.start(1) + _WINDOW:
            end = _REST.match(image, end).end()  # type: ignore[union-attr]
        value, word = image[start:end], image[match.start(1) : match.end(1)]
        if not (has_digit(value) or _is_password(word)):
            return None
        prefix = _name_before(image, match.start(1))
        separator = image[match.start(_SEPARATOR) : match.end(_SEPARATOR)]
        first = match.start(1) - len(prefix)
        if image[first - 1 : first] == b"/" or image[first - 2 : first] == b"${":
            return None  # a path that ends in such a name; a variable with its default
        if not separator.strip(b" \t(,\"'`") and group in _QUOTED and _is_phrase(value):
            return None  # one of a list of names, or what a message quotes
        if separator.endswith(b",") and group == _BARE:
            return None
        if group == _BARE and _is_expression(image, prefix + word, separator, start, end):
            return None
        if word.lower() == b"pass" and not _is_pass(separator, value, quoted=group != _BARE):
            return None
        prefix = prefix or _word_before(image, first)
        return (start, end) if is_secret_value(prefix, word, value, quoted=group != _BARE) else None


def _everywhere(pattern: str) -> Callable[[bytes, EngineName], Iterator[Match]]:
    return lambda image, engine: compiled(pattern, engine).finditer(image)


ASSIGNMENT_RULES: Final = (
    AssignmentRule(
        keywords=(
            *"passw passphrase passcode kennwort contrase senha passe pwd pass secret token".split(),
            *"credential identified _pat -pat _auth -auth key \x02".split(),
        ),
        matches=_at_names,
    ),
    *(AssignmentRule(keywords=keywords, matches=_everywhere(pattern)) for keywords, pattern in _ELSEWHERE),
)


def _is_phrase(value: bytes) -> bool:
    return is_words(value) and not is_scrambled(value)


def _is_pass(separator: bytes, value: bytes, *, quoted: bool) -> bool:
    """`pass` alone is a password only right before its value: it is a verb and a result of tests, too."""
    return separator in (b"=", b":", b": ", b" = ") and (
        quoted or is_scrambled(value) or looks_random(value, bits_min=3.0)
    )


def _is_expression(image: bytes, name: bytes, separator: bytes, start: int, end: int) -> bool:
    """A value without quotes that a program would work out: but what a shell assigns, it takes as it is."""
    if _SHOUTED.fullmatch(name) and separator == b"=" and image[start - 1 : start] == b"=":
        return False
    return image[end : end + 1] == b"(" or is_code(image[start:end])


def is_secret_field(name: bytes, value: bytes) -> bool:
    """True for the value of a field of this name, both whole."""
    match = _WHOLE_NAME.fullmatch(name)
    return match is not None and is_secret_value(match[1], match[2], value, quoted=True)


_WHOLE_NAME: Final = re.compile(rf"(?i)([\w .-]{{0,60}}?)({_PASSWORDS}|pass|{_TOKENS}){_SUFFIX}".encode())


def is_secret_value(prefix: bytes, word: bytes, value: bytes, *, quoted: bool) -> bool:
    """True for a value that a name ending in `prefix` + `word` would hold as its secret."""
    if is_placeholder(value) or is_path(value) or _last_word(prefix) in _DISQUALIFIES:
        return False
    if _is_password(word):
        return _is_password_value(prefix, word, value, quoted=quoted)
    return _names_a_token(prefix, word) and _is_token_value(word, value)


def _is_password(word: bytes) -> bool:
    return _PASSWORD_WORD.fullmatch(word) is not None


_PASSWORD_WORD: Final = re.compile(rf"(?i)(?:{_PASSWORDS}|pass|identified by)".encode())


def _names_a_token(prefix: bytes, word: bytes) -> bool:
    """`key` alone names anything; an API key, a private key, a secret and a token do not."""
    return word.lower() != b"key" or _last_word(prefix) in _QUALIFIES


def _last_word(prefix: bytes) -> bytes:
    words = _WORDS.findall(prefix)
    return words[-1].lower() if words else b""


def _is_password_value(prefix: bytes, word: bytes, value: bytes, *, quoted: bool) -> bool:
    if b" " in value.strip():
        return word.lower().endswith(b"passphrase") and quoted
    if not _is_phrase(value):
        return len(value) >= 4
    shouted = _SHOUTED.fullmatch(prefix + word) is not None
    return len(value) >= 4 and (shouted or (quoted and not re.match(rb"[A-Z][a-z]", value)))


def _is_token_value(word: bytes, value: bytes) -> bool:
    if b" " in value or is_name_of_secret(value) or (word.lower() == b"key" and is_identity(value) and len(value) > 40):
        return False
    return has_digit(value) and looks_random(value)
