"""A stream's timer fired: open the windows that are due.

Safe to repeat: the decision is made in the finishing transaction from the stream itself, so a second run finds the
events covered and opens nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from everkept.domain.jobs import JobPolicy, Outcome
from everkept.store.windows import open_windows
from everkept.work.job import Finished, JobContext, JobKind


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWindow:
    stream: int


async def run(args: OpenWindow, ctx: JobContext) -> Outcome | Finished:
    return await ctx.finish(open_windows, args.stream, ctx.settings)


KIND = JobKind(
    name="open_window",
    policy=JobPolicy(attempts_max=10, timeout_s=60, estimate_s=0.01),
    read_args=lambda a: OpenWindow(**a),
    run=run,
)
