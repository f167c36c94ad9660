"""What the bench says: figures, each beside its floor or peer, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a figure should reach: its value or its ratio, at least or at most `bound`."""

    of: Literal["value", "ratio"]
    sense: Literal["least", "most"]
    bound: float

    def text(self) -> str:
        sign = "≥" if self.sense == "least" else "≤"
        return f"{self.of} {sign} {self.bound:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measurement and what it stands beside. Medians over the rounds of one run, unless the name says otherwise."""

    name: str
    value: float
    unit: str
    peer: str
    """What it is compared with, measured in the same run with the same client, disk and load."""
    peer_value: float
    goal: Goal | None = None

    @property
    def ratio(self) -> float:
        return self.value / self.peer_value if self.peer_value else 0.0

    @property
    def met(self) -> bool | None:
        """None where there is no goal."""
        if self.goal is None:
            return None
        reached = self.value if self.goal.of == "value" else self.ratio
        return reached >= self.goal.bound if self.goal.sense == "least" else reached <= self.goal.bound


def print_section(title: str, figures: Sequence[Figure]) -> None:
    print(f"\n{title}")
    rows = [_row(f) for f in figures]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    for name, value, peer, peer_value, ratio, goal in rows:
        left = f"  {name:{widths[0]}}  {value:>{widths[1]}}   {peer:{widths[2]}}  {peer_value:>{widths[3]}}"
        print(f"{left}   {ratio:>{widths[4]}}   {goal}".rstrip(), flush=True)


def _row(f: Figure) -> tuple[str, str, str, str, str, str]:
    goal = "" if f.goal is None else f"{f.goal.text()}: {'met' if f.met else 'MISSED'}"
    return (
        f.name,
        f"{_number(f.value)} {f.unit}",
        f"beside {f.peer}",
        f"{_number(f.peer_value)} {f.unit}",
        f"× {f.ratio:.2f}",
        goal,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def write_json(path: Path, sections: Sequence[tuple[str, Sequence[Figure]]], machine: dict[str, object]) -> None:
    figures = [
        {"section": title, **asdict(f), "ratio": f.ratio, "met": f.met} for title, found in sections for f in found
    ]
    path.write_text(
        json.dumps({"machine": machine, "figures": figures}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
