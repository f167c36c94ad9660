"""The status page: one screen, the state of things first, then only the sections that have something to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everkept.api import views as v
from everkept.doors.cli import screen
from everkept.doors.cli.history_pages import STAGE_STYLE
from everkept.doors.cli.wording import ago, clean, clip, count, size, span

STATES = ("completed", "processing", "pending", "failed", "dead", "skipped")
CIRCUIT_STYLE = {"closed": "green", "open": "red", "limited": "yellow"}
LISTED = 10
"""At most so many stuck, given-up and waiting things are shown; `everkept jobs` has them all."""


def status_page(now: v.Status, *, at: datetime | None = None) -> RenderableType:
    moment = at or datetime.now(UTC)
    return Group(*_head(now), *(Padding(part, (1, 0, 0, 0)) for part in _sections(now, moment)))


def _head(now: v.Status) -> Iterator[Text]:
    tripped = [check for check in now.checks if not check.ok]
    failing = now.store.get("failing")
    troubles = list(_troubles(now))
    ill = tripped or failing or troubles
    line = Text("● needs attention" if ill else "● healthy", style="bold yellow" if ill else "bold green")
    yield line.append(f"  Everkept {now.version}", style="default not bold")
    if failing:
        yield Text(f"  writes fail: {clean(str(failing))}", style="yellow")
    for check in tripped:
        yield Text(f"  {check.message}", style="yellow")
    for trouble in troubles:
        yield Text(f"  {clean(trouble)}", style="yellow")
    yield Text(f"  model {now.model} · embedder {now.embedder}", style="dim")
    yield Text(f"  {_store_line(now.store)}", style="dim")
    if now.store.get("degraded"):
        yield Text(f"  store degraded: {clean(str(now.store['degraded']))}", style="yellow")
    for each in now.pauses:
        words = f"  {each.what} {each.name} is paused by {each.by}: {each.why}"
        yield Text(clean(words), style="yellow")
    if slow := now.store.get("slow_ms"):
        yield Text(f"  slow in the store: {', '.join(f'{clean(f)} {ms} ms' for f, ms in slow.items())}", style="dim")


def _troubles(now: v.Status) -> Iterator[str]:
    """What loses nothing, and wants a hand all the same."""
    if now.price_unknown is not None:
        yield now.price_unknown
    if now.nats is not None and not now.nats.connected:
        yield f"NATS at {now.nats.server}: {now.nats.trouble}"
    if now.server is not None and now.server.deaf is not None:
        yield f"other processes are not heard, and polled instead: {now.server.deaf}"


def _store_line(store: dict[str, object]) -> str:
    """The path and the size, then whatever else the store says about itself."""
    parts = [f"store {clean(str(store.get('path', 'unknown')))}"]
    if isinstance(size_bytes := store.get("size_bytes"), int | float):
        parts.append(size(size_bytes))
    said = {"path", "size_bytes", "degraded", "failing", "slow_ms"}
    parts += [clean(str(value)) for name, value in store.items() if name not in said and value]
    return " · ".join(parts)


def _sections(now: v.Status, moment: datetime) -> Iterator[RenderableType]:
    yield _numbers(now)
    for merge in now.merges:
        moved = " · ".join(f"{number:,} {kind}" for kind, number in merge.rows.items()) or "nothing yet"
        yield Text(f"merging {clean(merge.source)} into {clean(merge.into)}: {moved} moved so far", style="yellow")
    if now.stages:
        yield _stages(now.stages)
    if now.given_up:
        yield _items("Given up", now.given_up, moment, "red")
    if now.stuck:
        yield _items("Stuck", now.stuck, moment, "yellow")
    if any(timing.completed for timing in now.timings):
        yield _timings(now.timings)
    if any(found.waiting or found.reviewing or found.dead for found in now.reviews):
        yield _reviews(now.reviews, moment)
    if now.lanes:
        yield lanes_table(now.lanes)
    yield workers_table(now.workers, moment)
    if now.providers:
        yield _providers(now.providers, moment)
    if now.periodic:
        yield _periodic(now.periodic, moment)
    if now.refused_finishes or now.asked_again:
        yield Text(
            f"{count(now.refused_finishes, 'finish', 'finishes')} refused after a lost lease · "
            f"{count(now.asked_again, 'question')} asked again because the reply never reached us",
            style="dim",
        )


def _numbers(now: v.Status) -> Table:
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim")
    drawn.add_column()
    kept = (count(now.messages, "message"), count(now.episodes, "episode"), count(now.facts, "fact"))
    oldest = f" (the oldest for {span(now.oldest_due_s)})" if now.oldest_due_s else ""
    drawn.add_row("kept", " · ".join(kept))
    drawn.add_row("backlog", f"{count(now.backlog_due, 'job')} due{oldest} · {now.backlog_armed:,} armed for later")
    if now.nats is not None:
        drawn.add_row("NATS", clean(nats_words(now.nats)))
    if now.unpublished is not None:
        drawn.add_row("to publish", unpublished_words(now.unpublished))
    if now.server is not None:
        drawn.add_row("server", clean(server_words(now.server)))
    return drawn


def unpublished_words(behind: v.Unpublished) -> str:
    """What NATS does not have yet."""
    if not behind.changes:
        return "nothing: NATS has every change"
    oldest = f", the oldest for {span(behind.oldest_s)}" if behind.oldest_s is not None else ""
    return f"{count(behind.changes, 'change')} of {count(behind.projects, 'project')}{oldest}"


def server_words(server: v.DatabaseServer) -> str:
    """A database server's connections, and what there should be none of."""
    used = f"{server.connections} of {server.connections_max} connections, {server.ours} of them ours"
    each = f"{count(server.processes, 'process', 'processes')} of at most {server.each_max} each"
    parts = [f"{used} ({each})"]
    if server.deadlocks:
        parts.append(f"{count(server.deadlocks, 'deadlock')} since it counts")
    if server.conflicts:
        parts.append(f"{count(server.conflicts, 'transaction')} of this process ended because of another")
    return " · ".join(parts)


def nats_words(nats: v.Nats) -> str:
    if not nats.connected:
        return f"{nats.server}: {nats.trouble}"
    waiting = f"{nats.pending:,} pending, {nats.unacknowledged:,} given and not acknowledged"
    return f"{nats.server}: {waiting}, {nats.redelivered:,} of them more than once"


def _stages(stages: dict[str, int]) -> Table:
    """Episodes by the state of their summary (down) and of their facts (across)."""
    cells = {tuple(key.split("/", 1)): number for key, number in stages.items()}
    down = [state for state in STATES if any(key[0] == state for key in cells)]
    across = [state for state in STATES if any(key[1] == state for key in cells)]
    drawn = screen.table("Episodes: summary ↓ facts →", *across, right=across)
    for summary in down:
        numbers = (cells.get((summary, facts), 0) for facts in across)
        drawn.add_row(
            Text(summary, style=STAGE_STYLE.get(summary, "cyan")),
            *(f"{number:,}" if number else Text("·", style="dim") for number in numbers),
        )
    return drawn


def _items(title: str, items: list[v.StuckItem], moment: datetime, style: str) -> Table:
    drawn = screen.table(Text(title, style=f"bold {style}"), "Stage", "Tries", "Since", "Why", right=("Tries",))
    for item in items[:LISTED]:
        owner = Text(item.id).append(f"\n{clean(item.subject)}" if item.subject else "", style="dim")
        drawn.add_row(owner, item.stage, f"{item.attempts}", ago(item.since, moment), clip(item.error or "–", 120))
    if len(items) > LISTED:
        drawn.caption = f"and {len(items) - LISTED} more: everkept jobs --state dead"
    return drawn


def _timings(timings: Iterable[v.StageTiming]) -> Table:
    drawn = screen.table("Stage", "Done", "p50", "p95", right=("Done", "p50", "p95"))
    for timing in timings:
        drawn.add_row(timing.stage, f"{timing.completed:,}", span(timing.p50_s), span(timing.p95_s))
    return drawn


def _reviews(projects: Iterable[v.ReviewProgress], moment: datetime) -> Table:
    """How far the finished sessions of each project have been looked at."""
    counts = ("Waiting", "Reviewing", "Dead")
    drawn = screen.table("Reviews", "Reviewed through", *counts, right=counts)
    for found in projects:
        reached = f" ({ago(found.reached_at, moment)})" if found.reached_at else ""
        numbers = (found.waiting, found.reviewing, found.dead)
        drawn.add_row(clean(found.project), f"{found.watermark}{reached}", *(f"{n:,}" for n in numbers))
    return drawn


def lanes_table(lanes: list[dict[str, object]]) -> Table:
    drawn = screen.table("Whose turn", "Ready", "Running", "Oldest due", right=("Ready", "Running", "Oldest due"))
    for lane in lanes[:LISTED]:
        oldest = lane.get("oldest_due_s")
        drawn.add_row(
            clean(" / ".join(str(lane[word]) for word in ("project", "subject") if lane.get(word))),
            str(lane.get("ready", 0)), str(lane.get("running", 0)),
            span(float(oldest)) if isinstance(oldest, int | float) else "–",
        )  # fmt: skip
    return drawn


def workers_table(workers: list[v.Worker], moment: datetime) -> RenderableType:
    if not workers:
        return Text("no worker is running: `everkept serve` has one, `everkept worker` is one", style="dim")
    drawn = screen.table("Worker", "Running", "Seen", "Leases", right=("Running",))
    for worker in workers:
        leases = ", ".join(worker.leases[:4]) or "–"
        drawn.add_row(clean(worker.id), f"{worker.running} of {worker.slots}", ago(worker.last_seen_at, moment), leases)
    return drawn


def _providers(providers: Iterable[v.Provider], moment: datetime) -> Table:
    drawn = screen.table("Provider", "Circuit", "Calls", "Waiting", "Why", right=("Calls", "Waiting"))
    for provider in providers:
        probe = f"; next probe {ago(provider.next_probe_at, moment)}" if provider.next_probe_at else ""
        drawn.add_row(
            clean(provider.name), Text(provider.circuit, style=CIRCUIT_STYLE[provider.circuit]),
            f"{provider.in_flight} of {provider.permits}", f"{provider.waiting}",
            clip(provider.reason or "–", 120) + probe,
        )  # fmt: skip
    return drawn


def _periodic(tasks: Iterable[v.Periodic], moment: datetime) -> Table:
    drawn = screen.table("Periodic", "Every", "Last done", "Next", "Repaired", right=("Every", "Repaired"))
    for task in tasks:
        name = Text(task.name, style="yellow" if task.degraded else "")
        if task.last_error:
            name.append(f"\n{clip(task.last_error, 120)}", style="yellow")
        drawn.add_row(
            name, span(task.every_s), ago(task.last_success_at, moment), ago(task.next_due_at, moment),
            f"{task.rows_repaired:,}",
        )  # fmt: skip
    return drawn
