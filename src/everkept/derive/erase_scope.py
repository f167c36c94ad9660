"""Destroy what an erase has hidden: by lineage, in short chunks, then prove that nothing is left.

Safe to repeat: a chunk takes what is left and commits with its place in the work, so that a crash at any point goes on
with the next one; a scope that is empty is found empty again.
"""

from __future__ import annotations

from dataclasses import dataclass

from everkept.domain.jobs import Discard, JobPolicy, Outcome, Snooze
from everkept.store.connection import Connection
from everkept.store.erase import clean_file, erase_chunk, find_erasure, finish_erase, residue
from everkept.work.job import Finished, JobContext, JobKind

CHUNKS_PER_RUN = 400
"""Then the job gives its slot back and waits its turn: about ten seconds of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseScope:
    erasure: int


async def run(args: EraseScope, ctx: JobContext) -> Outcome | Finished:
    erasure = await ctx.read(find_erasure, args.erasure)
    if erasure is None:
        return Discard("there is no such erase")
    for _ in range(CHUNKS_PER_RUN):
        if not await ctx.store.write(erase_chunk, ctx.lease, args.erasure):
            break
    else:
        return await ctx.finish(_go_on)
    left = await ctx.read(residue, erasure.project, erasure.target)
    cleaned: list[str] = []
    await ctx.store.write(clean_file, args.erasure, cleaned)
    return await ctx.finish(finish_erase, args.erasure, sum(left.values()), cleaned)


def _go_on(conn: Connection) -> Outcome:
    return Snooze(conn.now())


KIND = JobKind(
    name="erase_scope", policy=JobPolicy(attempts_max=20, timeout_s=300, estimate_s=1.0),
    read_args=lambda a: EraseScope(**a), run=run,
)  # fmt: skip
