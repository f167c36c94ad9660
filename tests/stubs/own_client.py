"""A client of a storm that talks through the project's own library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from everkept import Memory
from everkept.domain.ids import parse_row_id
from everkept.errors import NotFound, Unavailable
from everkept.prove.storm.ways import Gone, Lost, Place

T = TypeVar("T")


class OwnClient:
    """`ways.Way`; asks the next server where one does not answer."""

    def __init__(self, urls: Sequence[str], project: str) -> None:
        self._memories = [Memory.connect(url, project=project) for url in urls]

    @property
    def _memory(self) -> Memory:
        return self._memories[0]

    def _ask(self, what: Callable[[], T]) -> T:
        try:
            return what()
        except Unavailable as error:
            self._memories.append(self._memories.pop(0))
            raise Lost from error
        except NotFound as error:
            raise Gone from error

    def append(self, thread: str, subject: str, texts: Sequence[str], key: str) -> list[Place]:
        def ask() -> list[Place]:
            if len(texts) == 1:
                told = [self._memory.add(texts[0], thread=thread, subject=subject, key=key)]
            else:
                handle = self._memory.thread(thread, subject=subject)
                told = handle.add_many([("user", text) for text in texts], key=key).receipts
            return [(each.event_id, each.seq) for each in told]

        return self._ask(ask)

    def receipt(self, event: str) -> str:
        return self._ask(lambda: self._memory.receipt(event).state)

    def recall(self, query: str, subject: str) -> list[str]:
        return self._ask(lambda: [result.text or "" for result in self._memory.recall(query, subject=subject).results])

    def remember(self, text: str, subject: str, key: str) -> int:
        return self._ask(lambda: parse_row_id("fct", self._memory.remember(text, subject=subject, key=key).id))

    def messages(self, thread: str) -> list[str]:
        return self._ask(lambda: [message.content or "" for message in self._memory.thread(thread).messages()])

    def end(self, thread: str) -> None:
        self._ask(lambda: self._memory.thread(thread).end())

    def erase(self, kind: str, id: str) -> None:
        named = {"thread": None, "subject": None, kind: id}
        self._ask(lambda: self._memory.erase(thread=named["thread"], subject=named["subject"]))

    def close(self) -> None:
        for memory in self._memories:
            memory.close()
