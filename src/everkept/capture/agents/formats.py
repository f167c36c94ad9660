"""All transcripts that can be read. A new agent: one module with a `FORMAT`, and one line here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from everkept.capture.agents import claude_code, codex, cursor, gemini, opencode, others
from everkept.capture.agents.reading import Format, Reading
from everkept.errors import InvalidInput

FORMATS: Final[dict[str, Format]] = {
    form.agent: form
    for form in (
        claude_code.FORMAT,
        codex.FORMAT,
        gemini.FORMAT,
        opencode.FORMAT,
        cursor.FORMAT,
        *others.FORMATS,
    )
}
"""{agent: its format}; asked in this order whose a file is."""


def recognise(path: Path) -> Format | None:
    """The format of a file or folder by its content, None where it is none of them."""
    return next((form for form in FORMATS.values() if form.recognise(path)), None)


def read(path: Path, agent: str | None = None) -> Reading:
    """The transcript at `path`, as that agent keeps it; without `agent`, of whomever it is.

    Raises OSError where it cannot be opened, InvalidInput where nobody here can read it.
    """
    form = FORMATS.get(agent) if agent is not None else recognise(path)
    if form is None and not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if form is None:
        known = ", ".join(FORMATS)
        raise InvalidInput(
            f"{path} is not a transcript of {agent or 'an agent that is known'}: expected one of {known}"
        )
    return form.read(path)
