"""A page of a list that the store gives whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from everkept.doors.http.web.visit import PAGE_ITEMS
from everkept.errors import InvalidInput

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Generic[T]):
    items: Sequence[T]
    word: str
    """Of the address: it says where the slice begins."""
    following: int | None
    """Where the next one begins; None: this is the last."""


def slice_of(whole: Sequence[T], word: str, begin: str | None) -> Slice[T]:
    """The items from the place `begin` on, as many as a page shows. Raises InvalidInput for what is no place."""
    text = begin or "0"
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise InvalidInput(f"{word} is the place where a page of the list begins", field=word)
    end = int(text) + PAGE_ITEMS
    return Slice(items=whole[int(text) : end], word=word, following=end if end < len(whole) else None)
