"""Is a value a secret, or does it only stand where one would? Placeholders, masks, code, and how random it looks."""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final

_PLACEHOLDER: Final = re.compile(
    rb"""(?ix)
    \$\w+ | \$\{.* | \$\(.* | \$\[.* | %\w*%? | %\(.* | @\w+@ | \#\{.* | :\w+
  | <.* | \{.* | \[.* | \(.* | \\.* | &\w+;?
  | .*(?:\*{3}|\.{3}|x{4}|X{4}|_{3}|<|\$\{|\{\{).*
  | (.)\1*
  | (?:your|my-?your|insert|enter|replace|put)[-_ ].*
  | (?:pass(?:word|wd|phrase)?|pwd|secret|token|key|api[-_]?key|credentials?|auth|bearer|basic|value|user(?:name)?)s?
  | (?:string|str|bytes|text|bool(?:ean)?|int(?:eger)?|number|any|object|none|null|nil|undefined|true|false|self|this)
  | (?:required|optional|default|unset|empty|missing|invalid|valid|expired|hidden|masked|redacted|removed|example|prompt
      |env|stdin|file|plain(?:text)?|disabled|enabled|foo|bar|baz|todo|unknown|placeholder|function|return|async|await)
    """
)
_PATH: Final = re.compile(rb"(?:~|\.{1,2})?/[\w.@/+-]*|[A-Za-z]:[\\/].*|[a-z][a-z0-9+.-]*://.*")
_ATTRIBUTES: Final = re.compile(rb"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+[.?!:]?")
_ITEM: Final = re.compile(rb"[A-Za-z_][\w.]*\[.*", re.DOTALL)
_KEYWORD: Final = re.compile(rb"[a-z_][a-z0-9_]*=[A-Za-z_][\w.]*")
_NAME_OF_SECRET: Final = re.compile(
    rb"[A-Za-z_][\w.]*(?:_|[a-z0-9](?=[A-Z]))(?i:token|key|secret|password|credential)s?"
)
_DIGIT: Final = re.compile(rb"\d")
_TWO_DIGITS: Final = re.compile(rb"\d\d")
_LETTERS: Final = re.compile(rb"[A-Za-z_.:\\/-]*")
_UUID: Final = re.compile(rb"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_DIGEST: Final = re.compile(rb"(?i)(?:(?:md5|sha\d{1,3})[-:])?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64})")


def is_placeholder(value: bytes) -> bool:
    """It stands for a secret: a variable, a mask, a word for what belongs there."""
    return _PLACEHOLDER.fullmatch(value) is not None


def is_path(value: bytes) -> bool:
    """The path or the address of something, unless it could as well be base64."""
    if _PATH.fullmatch(value) is None:
        return False
    upper, digits = sum(65 <= byte <= 90 for byte in value), sum(48 <= byte <= 57 for byte in value)
    return not (len(value) >= 24 and b"." not in value and min(upper, digits) >= 3)


def is_code(value: bytes) -> bool:
    """What a program would look a secret up with: a chain of attributes, an item, the name of a variable.

    Two digits in a row are hardly an attribute's.
    """
    chain = _ATTRIBUTES.fullmatch(value) is not None and not _TWO_DIGITS.search(value)
    return chain or bool(_ITEM.fullmatch(value)) or is_name_of_secret(value)


def is_name_of_secret(value: bytes) -> bool:
    """It names a secret, or passes one on: `session_token`, `challengePassword`, `flag=True`."""
    return bool(_NAME_OF_SECRET.fullmatch(value) or _KEYWORD.fullmatch(value))


def is_words(value: bytes) -> bool:
    """Nothing but letters and what joins words."""
    return _LETTERS.fullmatch(value) is not None


def is_scrambled(value: bytes) -> bool:
    """Letters of both cases in such a mixture as no name has."""
    letters = value.translate(None, b"_.-")
    upper, lower = sum(65 <= byte <= 90 for byte in letters), sum(97 <= byte <= 122 for byte in letters)
    mixed = upper + lower == len(letters) and min(upper, lower) * 4 >= len(letters)
    return mixed and len(letters) >= 8 and len(value) - len(letters) <= 1


def is_identity(value: bytes) -> bool:
    """A UUID or a digest: random, but what names a thing more often than what opens one."""
    return bool(_UUID.fullmatch(value) or _DIGEST.fullmatch(value))


def has_digit(value: bytes) -> bool:
    return _DIGIT.search(value) is not None


def entropy(value: bytes) -> float:
    """Shannon's, in bits a character."""
    shares = [value.count(byte) / len(value) for byte in dict.fromkeys(value)]
    return -sum([share * math.log2(share) for share in shares]) if shares else 0.0


def is_more_random(value: bytes, bits: float) -> bool:
    """More bits a character than these: which takes more different characters than that, to begin with."""
    return len(set(value)) > 2**bits and entropy(value) > bits


def looks_random(value: bytes, *, chars_min: int = 8, bits_min: float = 2.7) -> bool:
    """Long enough, with a digit, not a placeholder, and as many bits a character as asked for."""
    return len(value) >= chars_min and has_digit(value) and not is_placeholder(value) and entropy(value) >= bits_min


def is_basic_auth(value: bytes) -> bool:
    """It decodes to `user:password` in printable characters."""
    try:
        decoded = base64.b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4))
    except (binascii.Error, ValueError):
        return False
    user, colon, password = decoded.partition(b":")
    return bool(colon and (user or password)) and all(byte >= 32 for byte in decoded)
