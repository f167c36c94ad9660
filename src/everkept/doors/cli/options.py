"""Options that several commands share, with one meaning and one line of help each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import App, Parameter

from everkept.domain.scope import SYNONYMS

Json = Annotated[bool, Parameter(help="Print JSON, in the shapes of HTTP.", negative="", show_default=False)]

DEFAULT_PROJECT = "default"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every command that looks into the memory takes."""

    project: Annotated[str, Parameter(help="The body of memory to use.")] = DEFAULT_PROJECT
    json: Json = False


COMMON = Common()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class OfFolder:
    """What every command takes that looks into the memory of the folder it is called in."""

    project: Annotated[
        str | None, Parameter(help="The body of memory to use; without it, that of the folder you are in.")
    ] = None
    json: Json = False


OF_FOLDER = OfFolder()
OWNER = "me"
"""The subject where none is named."""

Subject = Annotated[str | None, Parameter(help="Whose memory: a user id, a customer, `me`.")]
Thread = Annotated[str | None, Parameter(help="The id of a conversation.")]
Limit = Annotated[int, Parameter(help="At most so many.")]
Cursor = Annotated[str | None, Parameter(help="Go on where an earlier page ended.")]
Switch = Parameter(negative="", show_default=False)
"""An option without a value."""


def parse_time(_type: type[Any], tokens: Sequence[Any]) -> datetime:
    """An ISO date or time; without a zone it is UTC. Raises ValueError for what is not one."""
    text = tokens[0].value
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date or time such as 2026-03-01 or 2026-03-01T18:30+02:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def time_option(help_text: str) -> Parameter:
    return Parameter(help=f"{help_text} (ISO; UTC unless it names a zone).", converter=parse_time)


AsOf = Annotated[datetime | None, time_option("What holds in the world at this time")]
KnownAt = Annotated[datetime | None, time_option("What was believed at this time")]


def key_or_new(key: str | None) -> str:
    """The caller's idempotency key, or one made for this request, so that it can be sent again safely.

    Only None is none: an empty key is a malformed one, and is refused (A03).
    """
    import uuid

    return f"cli-{uuid.uuid4().hex}" if key is None else key


def plain_words(arguments: Sequence[str]) -> list[str]:
    """The arguments with scope options of other systems (`--user-id`, `--session-id`, …) in our words."""
    known = {f"--{word.replace('_', '-')}": f"--{ours}" for word, ours in SYNONYMS.items()}
    plain: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*plain, *arguments[place:]]
        name, equals, value = argument.partition("=")
        ours = known.get(name.replace("_", "-")) if name.startswith("--") else None
        plain.append(f"{ours}{equals}{value}" if ours else argument)
    return plain


def command_group(name: str) -> App:
    """An app for a command that has commands of its own."""
    return App(name=name, group_commands="Commands", help_epilogue="")
