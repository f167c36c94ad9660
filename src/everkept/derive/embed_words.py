"""Give new passages their static vectors while the embedder's provider may not be asked: they need none.

Safe to repeat: a vector is one row per passage and model. `embed_passages` makes them all again, with the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everkept.derive.embed_passages import static_vectors
from everkept.derive.tools import Tools
from everkept.domain.ids import ProjectId
from everkept.domain.jobs import Done, JobPolicy, Outcome, Snooze
from everkept.store.connection import Connection
from everkept.store.search import NewVectors, Pending, last_vector, pending_embeddings, write_vectors
from everkept.work.job import Finished, JobContext, JobKind


async def run(_args: Mapping[str, object], ctx: JobContext) -> Outcome | Finished:
    tools: Tools = ctx.tools
    project = ProjectId(ctx.lease.project)
    limit = ctx.settings.models.embedding_batch_max
    if tools.words is None or tools.embedder is None:
        return Done()
    pending = await ctx.read(_read, project, tools.words.name, limit)
    vectors = await static_vectors(ctx, tools.words, pending)
    return await ctx.finish(_write, project, tools.words.name, vectors, len(pending), limit)


def _read(conn: Connection, project: ProjectId, model: str, limit: int) -> list[Pending]:
    return pending_embeddings(conn, project, limit, last_vector(conn, project, model))


def _write(
    conn: Connection, project: ProjectId, model: str, vectors: Sequence[NewVectors], read: int, limit: int
) -> Outcome:
    write_vectors(conn, project, model, vectors)
    return Snooze(conn.now()) if vectors and read == limit else Done()


KIND = JobKind(
    name="embed_words", policy=JobPolicy(attempts_max=10, timeout_s=300, estimate_s=0.2), read_args=lambda a: a, run=run
)
