"""Move what a merged project has to the project that it was merged into: in short chunks, subject by subject.

Safe to repeat: a chunk takes what is left and commits with its place in the work, so that a crash at any point goes on
with the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

from everkept.domain.jobs import Discard, Done, JobPolicy, Outcome, Snooze
from everkept.store.connection import Connection
from everkept.store.merge import MERGE, merge_chunk
from everkept.store.merging import find_merge
from everkept.store.reach import Across
from everkept.work.job import Finished, JobContext, JobKind

CHUNKS_PER_RUN = 400
"""Then the job gives its slot back and waits its turn: about ten seconds of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProjects:
    merge: int


async def run(args: MergeProjects, ctx: JobContext) -> Outcome | Finished:
    if await ctx.read(find_merge, args.merge) is None:
        return Discard("there is no such merge")
    both = ctx.store.reaching(Across.EVERYTHING)
    for _ in range(CHUNKS_PER_RUN):
        if not await both.write(merge_chunk, ctx.lease, args.merge):
            return await ctx.finish(_done)
    return await ctx.finish(_go_on)


def _done(_conn: Connection) -> Outcome:
    return Done()


def _go_on(conn: Connection) -> Outcome:
    return Snooze(conn.now())


KIND = JobKind(
    name=MERGE, policy=JobPolicy(attempts_max=20, timeout_s=300, estimate_s=1.0),
    read_args=lambda a: MergeProjects(**a), run=run,
)  # fmt: skip
