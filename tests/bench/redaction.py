"""Redaction: its time on ordinary text, what it finds of a labelled corpus, and what it takes for a secret wrongly."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.bench.report import Figure, Goal
from tests.data.redaction.corpus import Sample, make_held_out, make_ordinary, make_secrets

from everkept.capture.redaction import EngineName, default_engine, find_secrets, redact

PIECE_CHARS = 10_240
_LIBRARY = Path(json.__file__).parents[1]
"""Where this interpreter's own library is: source code that anybody has."""


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    """Time of this thread alone, so that what else runs on the machine does not count."""
    library = _library(1_000_000 if quick else 4_000_000)
    ordinary = list(make_ordinary(chars=1_000_000 if quick else 4_000_000))
    yield from _times("source code", _pieces(library))
    yield from _times("logs, lock files, JSON, prose", _pieces(ordinary))
    yield _recall("recall, labelled corpus", list(make_secrets()), 0.98)
    yield _recall("recall, places kept out of the making", list(make_held_out()), None)
    yield _false_hits("false hits, text made for it", ordinary)
    yield _false_hits("hits in this Python's library", library)


def _library(chars: int) -> list[str]:
    texts, size = [], 0
    for path in sorted(_LIBRARY.glob("*.py")):
        texts.append(path.read_text(encoding="utf-8", errors="replace"))
        size += len(texts[-1])
        if size >= chars:
            break
    return texts


def _pieces(texts: Sequence[str]) -> list[str]:
    joined = "".join(texts)
    return [joined[n : n + PIECE_CHARS] for n in range(0, len(joined), PIECE_CHARS)]


def _times(what: str, pieces: Sequence[str]) -> Iterator[Figure]:
    """Milliseconds a piece of 10 KB, beside Python's `re` on some of them and a copy in lower case."""
    engine = default_engine()
    some = pieces[:: max(1, len(pieces) // 60)]
    fast = _ms_each(lambda text: find_secrets(text, engine=engine), pieces)
    yield Figure(
        name=f"10 KB of {what} ({engine})",
        value=fast,
        unit="ms",
        peer="Python's re",
        peer_value=_ms_each(lambda text: find_secrets(text, engine="re"), some),
        goal=Goal(of="value", sense="most", bound=1.5),
    )


def _ms_each(run: Callable[[str], object], pieces: Sequence[str]) -> float:
    run(pieces[0])  # patterns are compiled when they are first wanted
    start = time.thread_time()
    for piece in pieces:
        run(piece)
    return (time.thread_time() - start) * 1e3 / len(pieces)


def _recall(name: str, samples: Sequence[Sample], goal: float | None) -> Figure:
    return Figure(
        name=name,
        value=_share_gone(samples, default_engine()),
        unit="of 1",
        peer="Python's re",
        peer_value=_share_gone(samples, "re"),
        goal=None if goal is None else Goal(of="value", sense="least", bound=goal),
    )


def _share_gone(samples: Sequence[Sample], engine: EngineName) -> float:
    gone = [secret not in redact(s.text, engine=engine).text for s in samples for secret in s.secrets]
    return sum(gone) / len(gone)


def _false_hits(name: str, texts: Sequence[str]) -> Figure:
    megabytes = sum(map(len, texts)) / 1e6
    return Figure(
        name=name,
        value=sum(len(find_secrets(text)) for text in texts) / megabytes,
        unit="a MB",
        peer="Python's re",
        peer_value=sum(len(find_secrets(text, engine="re")) for text in texts) / megabytes,
        goal=Goal(of="value", sense="most", bound=1.0),
    )
