"""Whether what a model costs is known: only then a limit in money holds."""

from __future__ import annotations

import asyncio
from typing import Final

from everkept.ports.models import LanguageModel

SOME_TOKENS: Final = 1_000


async def unpriced(model: LanguageModel | None) -> str | None:
    """The model's name where nobody knows its price; None where it is known, or no model is asked."""
    if model is None:
        return None
    price = await asyncio.to_thread(model.estimate_usd, SOME_TOKENS, SOME_TOKENS)  # it reads a list the first time
    return model.name if price is None else None
