"""The table of results: made from runs of the bench, never typed."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.faults.catalogue import KINDS, cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fault-bench.md"
RESULTS = ROOT / "docs" / "fault_bench_results.json"
BEGIN, END = "<!-- results: made by python -m tests.faults --report -->", "<!-- end of results -->"
OBSERVED_CHARS = 220
_NOISE = re.compile(r"(/[\w.-]+){2,}/|0x[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One case with all its ways: how many of them held, failed, or did not apply, and what was observed."""

    held: int = 0
    failed: int = 0
    not_applicable: int = 0
    observed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One system's run of the bench."""

    version: str
    date: str
    command: str
    outcomes: Mapping[str, Outcome]
    """By the name of the test."""


ON_POSTGRES = " on PostgreSQL"
"""What a system's name ends with where it kept its memory there."""


def read_junit(path: Path, *, on_postgres: bool = False) -> dict[str, Outcome]:
    """What a run of pytest came to, by test: of the cases tried on PostgreSQL, or of all others."""
    found: dict[str, Outcome] = {}
    for case in ET.parse(path).iter("testcase"):
        name, _, ways = str(case.get("name")).partition("[")
        if ("postgresql" in re.split(r"[-\]]", ways)) != on_postgres:
            continue
        before = found.get(name, Outcome())
        broken = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
        skipped = case.find("skipped")
        observed = before.observed
        if broken is not None:
            observed = observed or _short(str(broken.get("message")))
        elif skipped is not None:
            observed = observed or _short(str(skipped.get("message")))
        found[name] = Outcome(
            held=before.held + (broken is None and skipped is None),
            failed=before.failed + (broken is not None),
            not_applicable=before.not_applicable + (broken is None and skipped is not None),
            observed=observed,
        )
    return found


def _short(text: str) -> str:
    """Its first words, without what differs from run to run."""
    line = " ".join(_NOISE.sub("", text).split())
    return line[:OBSERVED_CHARS] + ("…" if len(line) > OBSERVED_CHARS else "")


def load_runs() -> dict[str, Run]:
    """The latest run of each system."""
    if not RESULTS.exists():
        return {}
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {
        name: Run(**{**run, "outcomes": {test: Outcome(**each) for test, each in run["outcomes"].items()}})
        for name, run in kept.items()
    }


def merged(before: Run | None, run: Run) -> Run:
    """A run of some cases over the one before it, if that was of the same version; cases that are gone are left out."""
    kept = {} if before is None or before.version != run.version else before.outcomes
    outcomes = {**kept, **run.outcomes}
    return replace(run, outcomes={name: outcomes[name] for _, name in cases() if name in outcomes})


def save_runs(runs: Mapping[str, Run]) -> None:
    text = json.dumps({name: asdict(run) for name, run in runs.items()}, indent=1, ensure_ascii=False, sort_keys=True)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def write_page(runs: Mapping[str, Run]) -> None:
    """Put the table into the page, between its two marks."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{render(runs)}\n{END}{after}", encoding="utf-8")


def render(runs: Mapping[str, Run]) -> str:
    names = sorted(runs, key=lambda name: (name != "everkept", name))
    head = [f"- **{name} {runs[name].version}**, {runs[name].date}: `{runs[name].command}`" for name in names]
    rows = ["| id | kind of failure | cases | " + " | ".join(names) + " |", "|---" * (3 + len(names)) + "|"]
    by_id: dict[str, list[str]] = {}
    for kind, test in cases():
        by_id.setdefault(kind, []).append(test)
    for kind, tests in by_id.items():
        cells = [_cell(runs[name].outcomes.get(test) for test in tests) for name in names]
        rows.append(f"| {kind} | {KINDS[kind]} | {len(tests)} | " + " | ".join(cells) + " |")
    parts = ["\n".join(head), "\n".join(rows)]
    for name in names:
        lines = [
            f"- {kind} `{test}`: {_quoted(outcome.observed)}"
            for kind, tests in by_id.items()
            for test in tests
            if (outcome := runs[name].outcomes.get(test)) is not None and outcome.failed
        ]
        if lines:
            parts.append(f"What was observed where {name} failed:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _cell(outcomes: Iterable[Outcome | None]) -> str:
    """`held`, `failed`, or how many of each; cases that do not apply are named only where none does.

    A dash where none of them is tried at all.
    """
    outcomes = list(outcomes)
    if not any(outcomes):
        return "–"
    words = Counter(
        "not run" if o is None else "failed" if o.failed else "held" if o.held else "not applicable" for o in outcomes
    )
    applied = {word: n for word, n in words.items() if word != "not applicable"}
    if not applied:
        return "not applicable"
    return ", ".join(f"{n} {word}" for word, n in sorted(applied.items(), reverse=True))


def _quoted(text: str) -> str:
    return text.replace("|", "¦").replace("`", "'").replace("<", "‹").replace(">", "›")
