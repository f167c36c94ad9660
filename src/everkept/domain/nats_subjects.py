"""Subjects of NATS: `<prefix>.<workspace>.<project>.events` in, the same with `changes` out."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import quote, unquote

from everkept.errors import InvalidInput

Direction = Literal["events", "changes"]
FIRST_WORKSPACE: Final = "default"
"""What stands for the workspace that nobody has to name."""
ANY_PROJECT: Final = "%"
"""What stands for whichever project a session belongs to; no name is written so."""


def subject_of(prefix: str, project: str | None, direction: Direction) -> str:
    """`project` as everybody names it: its name, or `workspace/project`. None: whichever a session belongs to.

    Whatever is not a letter, a digit, `-` or `_` of ASCII is written as in a URL (`%2E` for a dot): a name with a dot,
    a space or a wildcard in it is still one token.
    """
    if project is None:
        return f"{prefix}.{FIRST_WORKSPACE}.{ANY_PROJECT}.{direction}"
    workspace, slash, name = project.partition("/")
    if not slash:
        workspace, name = FIRST_WORKSPACE, project
    return f"{prefix}.{_token(workspace)}.{_token(name)}.{direction}"


def all_subjects(prefix: str, direction: Direction) -> str:
    """The subject of the stream of every project."""
    return f"{prefix}.*.*.{direction}"


def project_of(prefix: str, subject: str) -> str | None:
    """The name of the project that a subject is of, as `subject_of`. Raises InvalidInput for one of another shape."""
    head, _, rest = subject.partition(f"{prefix}.")
    tokens = rest.split(".")
    if head or len(tokens) != 3:
        raise InvalidInput(f"{subject!r} is not {prefix}.<workspace>.<project>.<events or changes>", field="subject")
    if tokens[1] == ANY_PROJECT:
        return None
    workspace, name = unquote(tokens[0]), unquote(tokens[1])
    return name if workspace == FIRST_WORKSPACE else f"{workspace}/{name}"


def _token(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E")
