"""Literals of a text (paths, commands, versions, numbers, identifiers) and whether a session has them. Pure.

A model that writes about a session gets words right and literals wrong: these can be looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from everkept.domain.predicates import normalise_text

_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TRIM: Final = "\"'“”‘’«»()[]{}<>,;:!?*_…"
_FLAG = re.compile(r"--?[a-z][\w-]*(?:=\S+)?", re.IGNORECASE)
_FILE = re.compile(r"\w[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,5}", re.IGNORECASE)
_NAME = re.compile(
    r"\w+(?:(?:::|\.)\w+)*\(\)|\w+(?:::\w+)+|[^\W_]+(?:_+[^\W_]+)+"  # now(), std::vec, HTTP_PORT
    r"|[^\W\d]\w+(?:\.[^\W\d]\w+)+|[A-Za-z]*[a-z][A-Z]\w*"  # memory.enabled, TokenStore
    r"|(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}"  # the id of a commit
)
_VARIABLE = re.compile(r"\$\{?(\w*[^\W\d]\w*)\}?")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_WRITTEN_SO: Final = frozenset(
    "devops github gitlab graphql ios javascript linkedin macos mongodb mysql openai postgresql powershell typescript "
    "youtube".split()
)
"""Common names with a capital in the middle: a text may call them so whatever the session calls them."""
_NUMBER = re.compile(r"v?\d+(?:[.:/-]\d+)*", re.IGNORECASE)
_THOUSANDS = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")
"""The comma of `1,000`. It begins with the comma itself, so that megabytes without one are passed over fast."""
_TWO_WORDS = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)+")
_DOTTED_WORDS: Final = frozenset({"e.g", "i.e", "a.m", "p.m", "n.b"})


class Said:
    """What a session said, as normalised texts; answers whether a literal stands in it as a whole word."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = _THOUSANDS.sub("", "\n".join(texts))

    def has(self, literal: str) -> bool:
        wanted = _THOUSANDS.sub("", normalise_text(literal))
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            if self._is_whole(wanted, at):
                return True
            at = self._text.find(wanted, at + 1)
        return not wanted

    def _is_whole(self, wanted: str, at: int) -> bool:
        """Not the tail or head of a longer word; `3.11` is no part of `3.11.4`, nor `5` of `1.5`."""
        before, after = self._text[max(0, at - 2) : at], self._text[at + len(wanted) : at + len(wanted) + 2]
        if wanted[0].isdigit() and re.search(r"\d[.,]?$", before):
            return False
        if wanted[-1].isdigit() and re.match(r"[.,]?\d", after):
            return False
        if wanted[0].isalpha() and before and _is_word(before[-1]):
            return False
        return not (wanted[-1].isalpha() and after and _is_word(after[0]))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def missing_literal(text: str, said: Said) -> str | None:
    """The sort of the first literal that was not said ("a path", "a number"); None where all were."""
    return next((sort for sort, literal in literals_of(text) if not _was_said(sort, literal, said)), None)


def _was_said(sort: str, literal: str, said: Said) -> bool:
    if said.has(literal):
        return True
    # Two words with a slash between them are rarely a path: "client/server", "and/or".
    return sort == "a path" and _TWO_WORDS.fullmatch(literal) is not None and all(map(said.has, _words(literal)))


def _words(literal: str) -> list[str]:
    return [word for word in literal.split("/") if word.casefold() not in ("and", "or")]


def literals_of(text: str) -> Iterator[tuple[str, str]]:
    """(sort, literal) of each, code spans first, as written."""
    for found in _CODE.finditer(text):
        yield "code", found[2].strip()
    for token in _CODE.sub(" ", text).split():
        bare = token.strip(_TRIM).rstrip(".")
        if bare.casefold() in _DOTTED_WORDS or not bare:
            continue
        whole = token.strip("\"'“”‘’«»,;:!?…").rstrip(".")
        bare = bare.removesuffix("'s").removesuffix("’s")
        if ("/" in bare or "\\" in bare) and re.search(r"[^\W\d]", bare):
            yield "a path", bare
        elif _FLAG.fullmatch(bare):
            yield "an option", bare
        elif _FILE.fullmatch(bare) and not _NUMBER.fullmatch(bare):
            yield "a file", bare
        elif _ADDRESS.fullmatch(bare):
            yield "an address", bare
        elif variable := _VARIABLE.fullmatch(token.strip("\"'“”‘’«»,;:!?….")):
            yield "an identifier", variable[1]
        elif bare.casefold() in _WRITTEN_SO:
            continue
        elif _NAME.fullmatch(whole) or _NAME.fullmatch(bare):
            yield "an identifier", whole if _NAME.fullmatch(whole) else bare
        else:
            yield from (("a number", found[0]) for found in _NUMBER.finditer(bare))
