"""The figures of the latest proof: docs/proof.json, and the part of docs/guarantees.md that is made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutation.planted import PLANTED

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIGURES = DOCS / "proof.json"
PAGE = DOCS / "guarantees.md"
BEGIN, END = "<!-- written by `make torture` -->\n", "<!-- end of what `make torture` wrote -->\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One layer's latest long run. `summary` is its own last line."""

    layer: str
    command: str
    summary: str
    held: bool
    seconds: int
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    machine: dict[str, str]
    runs: tuple[Run, ...]


def read_proof(file: Path) -> Proof:
    known = json.loads(file.read_text("utf-8"))
    return Proof(machine=known["machine"], runs=tuple(Run(**run) for run in known["runs"]))


def write_proof(file: Path, proof: Proof) -> None:
    file.write_text(json.dumps(asdict(proof), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_page(page: Path, proof: Proof) -> None:
    """Replace what stands between the marks."""
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{section(proof)}\n{END}{after}", encoding="utf-8")


def section(proof: Proof) -> str:
    """Markdown: a row a layer, then what was planted against each guarantee."""
    lines = ["| layer | latest run | found |", "|---|---|---|"]
    lines += [
        f"| {run.layer} | {run.at}, {_minutes(run.seconds)}: `{run.command}` | {_verdict(run)} |" for run in proof.runs
    ]
    lines += ["", f"On {', '.join(f'{name} {value}' for name, value in proof.machine.items())}.", ""]
    lines += ["| guarantee | bugs planted against it, and the layer that catches each |", "|---|---|"]
    for guarantee in sorted({bug.guarantee for bug in PLANTED}, key=lambda name: int(name[1:])):
        bugs = [f"{bug.name} ({bug.layer})" for bug in PLANTED if bug.guarantee == guarantee]
        lines.append(f"| {guarantee} | {'; '.join(bugs)} |")
    return "\n".join(lines) + "\n"


def _verdict(run: Run) -> str:
    return run.summary if run.held else f"**violated:** {run.summary}"


def _minutes(seconds: int) -> str:
    return f"{seconds} s" if seconds < 90 else f"{seconds / 60:.0f} min"
