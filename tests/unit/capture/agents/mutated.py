"""Genuine transcripts, and what may have become of them: cut, shuffled, doubled, of wrong types, or binary rubbish."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from everkept.capture.agents.reading import Format, Reading

DATA = Path(__file__).parents[3] / "data" / "transcripts"
FIXTURES = DATA / "agent-sessions-fixtures"

_ODD = ["\x00", "\ud800", "everkept:offer", "x" * 50_000, [[[]]], {}, [], {"text": 1}, [None, 3, "a"]]
rubbish = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(_ODD).map(deepcopy),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.sampled_from(["type", "text", "content", "id", "payload", "status"]), st.text(max_size=3)),
)
DEEP = "[" * 2_000
BINARY = bytes(range(256))


@st.composite
def mutated_lines(draw: st.DrawFn, lines: Sequence[str]) -> bytes:
    """A file of some of these lines, in any order and number, a few of them no longer what they were."""
    chosen = draw(st.lists(st.sampled_from(list(lines)), min_size=1, max_size=6))
    changed = [draw(mutated_line(line)) for line in chosen]
    return b"\n".join(changed) + draw(st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"]))


@st.composite
def mutated_line(draw: st.DrawFn, line: str) -> bytes:
    match draw(st.sampled_from(["as it is", "value", "value", "value", "cut", "binary", "deep"])):
        case "value":
            record = json.loads(line)
            for _ in range(draw(st.integers(1, 3))):
                _replace_somewhere(draw, record)
            return json.dumps(record).encode()
        case "cut":
            return line.encode()[: draw(st.integers(0, len(line)))]
        case "binary":
            at = draw(st.integers(0, len(line)))
            return line[:at].encode() + BINARY.replace(b"\n", b"") + line[at:].encode()
        case "deep":
            return line.encode() + DEEP.encode() if draw(st.booleans()) else DEEP.encode()
        case _:
            return line.encode()


def _replace_somewhere(draw: st.DrawFn, record: Any) -> None:
    """Puts rubbish in the place of one value, at any depth."""
    here = record
    while isinstance(here, dict | list) and here:
        place: Any = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        inside = here[place]
        if isinstance(inside, dict | list) and inside and draw(st.booleans()):
            here = inside
            continue
        here[place] = draw(rubbish)
        return


def read_bytes(form: Format, content: bytes, name: str = "rollout.jsonl") -> Reading:
    """What the format makes of a file with this content, whatever its name says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        form.recognise(path)
        return form.read(path)


def lines_of(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def as_file(*records: dict[str, Any]) -> bytes:
    """JSONL of these records."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def told(reading: Reading) -> list[tuple[str, str]]:
    """(kind, text or content of the call) of every event, for tests that look at the whole."""
    return [(e.kind, e.text if e.tool is None else e.tool.command or e.tool.name) for e in reading.events]
