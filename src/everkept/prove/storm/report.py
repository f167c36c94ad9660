"""What a storm did and found, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class StormReport:
    database: str
    """As a reader is told where it was."""
    seconds: float
    """Of the storm itself."""
    servers: int
    workers: int
    clients: int
    answers: int
    repeats: int
    """Requests that were sent again, for want of an answer."""
    messages: int
    """That were acknowledged."""
    strikes: Mapping[str, int]
    weather: Mapping[str, int]
    """What became of the questions to the model."""
    append_s: Sequence[float]
    other_s: Sequence[float]
    longest_silence_s: float
    """In which no client had an answer."""
    longest_overdue_s: float
    """In which a lease that had ended was not taken back."""
    refused_finishes: int
    deadlocks: int
    changes: int
    """That followers were given, each with one effect."""
    given_again: int
    from_nats: int
    looked_for: int
    """Messages that were looked for at the end."""
    violations: Sequence[str]
    not_run: Sequence[str]
    """What could not be struck here, and why."""

    def sentence(self) -> str:
        return (
            f"{self.seconds / 60:.1f} minutes on {self.database} with {self.workers} workers and {self.clients}"
            f" clients: {sum(self.strikes.values())} strikes, {self.messages:,} messages acknowledged,"
            f" {self.changes:,} changes followed, {self.refused_finishes} refused finishes counted, a lease overdue"
            f" {self.longest_overdue_s:.1f} s at most, {len(self.violations)} violations"
        )

    def lines(self) -> list[str]:
        return [
            f"{self.seconds:.0f} s on {self.database}: {self.servers} servers, {self.workers} workers,"
            f" {self.clients} clients",
            f"{self.answers:,} answers, {self.repeats:,} sent again; {self.messages:,} messages acknowledged",
            f"append {percentiles(self.append_s)}; other requests {percentiles(self.other_s)}",
            f"longest time without any answer: {self.longest_silence_s:.1f} s",
            f"strikes: {counted(self.strikes)}",
            f"questions to the model: {counted(self.weather)}",
            f"longest time that an ended lease stood: {self.longest_overdue_s:.1f} s; {self.refused_finishes} refused"
            f" finishes, all counted; {self.deadlocks} deadlocks",
            f"{self.changes:,} changes followed, {self.given_again:,} given again; {self.from_nats:,} messages over"
            f" NATS; {self.looked_for:,} looked for at the end",
            *(f"not struck: {why}" for why in self.not_run),
            f"{len(self.violations)} violations",
            *(f"  {violation}" for violation in self.violations[:50]),
        ]


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def percentiles(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return "none"
    cuts = quantiles(seconds, n=20)
    return f"p50 {cuts[9] * 1e3:.0f} ms, p95 {cuts[18] * 1e3:.0f} ms"
