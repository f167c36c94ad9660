"""What the rules look at: the text as ASCII, one byte a character, with all that hides the edge of a secret blanked.

Offsets in the image are offsets in the text. A letter of another script beside a secret, an escape of JSON, a colour of
the terminal or a control character is a space there, so that a rule which wants an edge finds one.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

MARKER: Final = "[redacted:{}]"
_TAKEN: Final = b"\x01"
"""Stands for each character of a marker: what has been redacted is neither found again nor an edge."""
PASSWORD_WORD: Final = b"\x02"
"""Stands for each character of a word for password in a script other than Latin."""

_PASSWORD_WORDS: Final = re.compile(
    "(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|المرور|السر|пароль|סיסמה|पासवर्ड|รหัสผ่าน)(?P<is>[是为為は])?",
    re.IGNORECASE,
)
_WIDE: Final = {ord("："): ":", ord("＝"): "=", ord("“"): '"', ord("”"): '"', ord("‘"): "'", ord("’"): "'"}
_SEEN: Final = re.compile("[：＝“”‘’\x02]")
"""What is left of a run when the rest is blanked."""

_MARKED: Final = re.compile(rb"\[redacted:[a-z0-9-]{1,60}\]")
_COLOUR: Final = re.compile(rb"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))")
_ESCAPE: Final = re.compile(
    rb"\\\\*(?:(?:u001[bB]|x1[bB]|033|e)\[[0-9;?]{0,20}[A-Za-z]|u[0-9a-fA-F]{4}|[nrtbf]|\r?\n|(?=[\"'`]))"
)
_USUAL_ESCAPE: Final = re.compile(rb"\\[nrtbf](?<!\\\\.)")
_ESCAPED_QUOTE: Final = re.compile(rb"\\(?=[\"'`])(?<!\\\\)")
"""Of those, the two that texts are full of, after no other backslash: of one length each, so that no call is made."""
_KEPT: Final = b"\t\n\r" + PASSWORD_WORD
_CONTROLS: Final = bytes(32 if (byte < 32 and byte not in _KEPT) or byte == 127 else byte for byte in range(256))


def image_of(text: str) -> bytes:
    """The image of a text: as many bytes as the text has characters, all of them ASCII."""
    image = text.encode("ascii", "everkept_blank")
    if b"\x1b" in image:
        image = _COLOUR.sub(_blank, image)
    if b"\\" in image:
        image = _ESCAPED_QUOTE.sub(b" ", _USUAL_ESCAPE.sub(b"  ", image))
        image = _ESCAPE.sub(_blank, image)
    image = image.translate(_CONTROLS)
    if b"[redacted:" in image:
        image = _MARKED.sub(_take, image)
    return image


def is_taken(part: bytes) -> bool:
    """True for a part of an image in which all is redacted already."""
    return not part.strip(_TAKEN)


def whole_markers(image: bytes, start: int, end: int) -> tuple[int, int]:
    """The span, widened so that it cuts no marker."""
    while start > 0 and image[start : start + 1] == _TAKEN and image[start - 1 : start] == _TAKEN:
        start -= 1
    while image[end - 1 : end] == _TAKEN and image[end : end + 1] == _TAKEN:
        end += 1
    return start, end


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " * (found.end() - found.start())


def _take(found: re.Match[bytes]) -> bytes:
    return _TAKEN * (found.end() - found.start())


def _blank_foreign(error: UnicodeError) -> tuple[str, int]:
    """What a run of characters beyond ASCII looks like in the image."""
    assert isinstance(error, UnicodeEncodeError)
    run = _PASSWORD_WORDS.sub(_mark_password, error.object[error.start : error.end])
    if _SEEN.search(run):
        run = "".join(char if char < "\x80" else " " for char in run.translate(_WIDE))
        return run, error.end
    return " " * (error.end - error.start), error.end


def _mark_password(word: re.Match[str]) -> str:
    return "\x02" * len(word[0]) if word["is"] is None else "\x02" * (len(word[0]) - 1) + ":"


codecs.register_error("everkept_blank", _blank_foreign)
