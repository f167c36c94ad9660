"""Opening a memory: here, in this process, or over HTTP."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from everkept import config
from everkept.api.pacing import PATIENCE_S
from everkept.api.service import Service

DRAIN_S = 5.0
Close = Callable[[], Awaitable[None]]


class Closable(Protocol):
    async def close(self) -> None: ...


M = TypeVar("M", bound=Closable)


class Opening(Generic[M]):
    """`async with AsyncMemory.open() as memory:` and `memory = await AsyncMemory.open()` are both right."""

    def __init__(self, open_memory: Callable[[], Coroutine[Any, Any, M]]) -> None:
        self._open = open_memory
        self._memory: M | None = None

    async def opened(self) -> M:
        return await self._open()

    def __await__(self) -> Generator[Any, None, M]:
        return self._open().__await__()

    async def __aenter__(self) -> M:
        self._memory = await self._open()
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._memory is not None
        await self._memory.close()


async def open_embedded(
    home: str | os.PathLike[str] | None, project: str, overrides: Mapping[str, Any], *, worker: bool
) -> tuple[Service, Close]:
    """The use cases of a project over the store in `home`. Raises ConfigInvalid, NotFound, StoreUnavailable."""
    settings = config.load(_environment(overrides), None if home is None else Path(home))
    from everkept.bootstrap import open_application  # a remote memory needs none of what this pulls in

    application = await open_application(settings, worker=worker, patience_s=PATIENCE_S)
    try:
        service = await application.service(project)
    except BaseException:
        await application.close(drain_s=0)
        raise
    return service, lambda: application.close(drain_s=DRAIN_S)


async def open_remote(url: str, api_key: str | None, project: str) -> tuple[Service, Close]:
    from everkept.doors.python.remote import RemoteService  # an embedded memory needs no HTTP

    service = RemoteService(url, api_key=api_key, project=project)
    return service, service.close


def _environment(overrides: Mapping[str, Any]) -> dict[str, str]:
    """The environment as if it said so: `window__idle_s=60` is EVERKEPT_WINDOW__IDLE_S=60."""
    environment = dict(os.environ)
    for name, value in overrides.items():
        key = name.replace("__", ".")
        for short, meant in config.SHORT_NAMES.items():
            if meant == key:
                environment.pop(short, None)
        row = config.SETTINGS.get(key)
        # A name that is no setting is left for `load` to refuse, with the nearest one that is.
        environment[row.env if row else f"EVERKEPT_{name.upper()}"] = _text(value)
    return environment


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
