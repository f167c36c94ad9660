"""Agents whose transcripts are read in the plain way: what was said, what was called, what came of it."""

from __future__ import annotations

from typing import Final

from everkept.capture.agents import copilot, grok, kimi, pi
from everkept.capture.agents.reading import Format

FORMATS: Final[tuple[Format, ...]] = (copilot.FORMAT, grok.FORMAT, kimi.FORMAT, pi.FORMAT)
