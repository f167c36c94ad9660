"""How background work is drawn for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everkept.api import views as v
from everkept.doors.cli import screen
from everkept.doors.cli.wording import ago, clean, clip, minute

STATE_STYLE = {"dead": "red", "leased": "cyan", "ready": "cyan", "done": "green", "discarded": "dim"}


def job_table(jobs: Iterable[v.Job]) -> Table:
    drawn = screen.table("Job", "Kind", "Works on", "State", "Tries", "Due", right=("Tries",))
    for job in jobs:
        body = Text(clean(job.input))
        if job.error:
            body.append(f"\n{job.error_class or 'error'}: {clip(job.error, 120)}", style="dim")
        state = Text(job.state, style=STATE_STYLE.get(job.state, ""))
        due = ago(job.finished_at) if job.finished_at else ago(job.due_at)
        drawn.add_row(job.id, job.kind, body, state, f"{job.attempts}", due)
    return drawn


def job_page(job: v.Job) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    lease = f"{job.lease_owner} until {minute(job.lease_until)}" if job.lease_owner else "–"
    for name, value in (
        ("kind", job.kind), ("works on", job.input), ("subject", job.subject or "–"), ("state", job.state),
        ("due", minute(job.due_at)), ("attempts", str(job.attempts)), ("crashes", str(job.crashes)), ("lease", lease),
        ("created", minute(job.created_at)), ("finished", minute(job.finished_at)),
        ("error", f"{job.error_class}: {job.error}" if job.error else "–"),
    ):  # fmt: skip
        rows.add_row(name, clean(value))
    parts: list[RenderableType] = [Text(job.id, style="bold"), Padding(rows, (0, 0, 0, 2))]
    if job.history:
        parts.append(Text("Earlier failures", style="bold"))
        parts.extend(Text(f"  {clip(' · '.join(str(value) for value in past.values()), 300)}") for past in job.history)
    return Group(*parts)
