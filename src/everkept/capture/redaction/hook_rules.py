"""The hook's own rules, so that whatever it masks is masked on every other way in, too.

The hook has fewer and blunter ones, as it may only use the standard library: the shape or the place of a secret tells,
and never how random it looks. They run by Python's `re`, as there, and only where one of their markers occurs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from everkept.capture.redaction.patterns import EngineName
from everkept.capture.redaction.values import is_placeholder, is_scrambled, is_words
from everkept.hook.hook_script import RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRule:
    """One pattern. What is secret is its group, or all of it."""

    id: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[bytes]

    def find(self, image: bytes, engine: EngineName) -> list[tuple[int, int]]:
        """Where its secrets are, whichever engine the other rules run on."""
        spans = (match.span(match.lastindex or 0) for match in self.pattern.finditer(image))
        return [(start, end) for start, end in spans if _is_secret(image[start:end])]


def _is_secret(value: bytes) -> bool:
    """Neither a mere word nor what only stands where a secret would, as an example does."""
    return not is_placeholder(value) and (is_scrambled(value) or not is_words(value))


HOOK_RULES: Final = tuple(
    HookRule(id=name, keywords=markers, pattern=re.compile(pattern.encode())) for name, markers, pattern in RULES
)
