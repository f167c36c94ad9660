"""Lists that page through by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from everkept.api.views import Page
from everkept.doors.python.loop_thread import LoopThread

T = TypeVar("T")
FetchPage = Callable[[str | None], Awaitable[Page[T]]]
"""Cursor (None: from the start) → one page."""


class AsyncItems(Generic[T]):
    """`async for item in items`, or `await items` for all of them as a list. Nothing is asked before."""

    def __init__(self, fetch: FetchPage[T]) -> None:
        self._fetch = fetch

    async def __aiter__(self) -> AsyncIterator[T]:
        cursor: str | None = None
        while True:
            page = await self._fetch(cursor)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    def __await__(self) -> Generator[Any, None, list[T]]:
        return self._all().__await__()

    async def page(self, cursor: str | None = None) -> Page[T]:
        """One page, for a list of one's own that goes on later."""
        return await self._fetch(cursor)

    async def _all(self) -> list[T]:
        return [item async for item in self]


class Items(Generic[T]):
    """`for item in items`, or `list(items)`. Nothing is asked before."""

    def __init__(self, loop: LoopThread, items: AsyncItems[T]) -> None:
        self._loop = loop
        self._items = items

    def __iter__(self) -> Iterator[T]:
        cursor: str | None = None
        while True:
            page = self.page(cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def page(self, cursor: str | None = None) -> Page[T]:
        """One page, for a list of one's own that goes on later."""
        return self._loop.wait(self._items.page(cursor))
