"""The last start context of each scope, for hooks that get no answer in time: `<home>/start/<scope key>.json`."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

from everkept.domain.context import unmarked


def write_pack(home: Path, scope: str, text: str) -> None:
    """Without its offer's mark: a file offers nothing to anybody. Raises OSError."""
    folder = home / "start"
    folder.mkdir(mode=0o700, exist_ok=True)
    half = folder / f".{scope}.{os.getpid()}"
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump({"text": unmarked(text), "offer": None, "made_at_us": time.time_ns() // 1000}, file)
    half.replace(folder / f"{scope}.json")


def forget_packs(home: Path) -> None:
    """What is erased must not be told from a file: packs are made again when they are asked for (G10)."""
    shutil.rmtree(home / "start", ignore_errors=True)
