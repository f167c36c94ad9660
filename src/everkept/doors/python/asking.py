"""What every group of remote use cases stands on: the wire, and how a request is written and an answer read."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from everkept.doors.python.wire import Wire
from everkept.errors import InvalidInput, Unavailable

T = TypeVar("T")


class Asking:
    """One project of a server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _read(self, kind: type[T], raw: bytes) -> T:
        try:
            return TypeAdapter(kind).validate_json(raw)
        except ValidationError as error:
            raise Unavailable(
                f"could not look: {self._wire.url} did not answer as this version of Everkept does", url=self._wire.url
            ) from error


def path_of(kind: str, id: str, *rest: str) -> str:
    """`/v1/threads/a%2Fb/messages`. Raises InvalidInput for an id that cannot stand in a path."""
    if not id or id in (".", ".."):
        raise InvalidInput(f"{id!r} cannot be an id", field=kind)
    try:
        segment = quote(id, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInput("the id is not valid Unicode", field=kind) from error
    return "/".join(("/v1", kind, segment, *rest))


def given(**fields: Any) -> dict[str, Any]:
    """A body without what is not set."""
    return {name: value for name, value in fields.items() if value is not None}


def time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
