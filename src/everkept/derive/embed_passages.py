"""Give a project's passages their vectors, a batch at a time.

Safe to repeat: a vector is one row per passage and model, and a paid embedding is kept by the hash of its text.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from everkept.derive.tools import ORDINARY, Tools
from everkept.domain.ids import ProjectId
from everkept.domain.jobs import Done, JobPolicy, Outcome, Snooze
from everkept.domain.text import stem
from everkept.errors import InvalidOutput, ModelError, Permanent, Transient
from everkept.models.pooling import Pooling, content_words, int8_bytes, names_of
from everkept.ports.embedder import Embedder, WordVectors
from everkept.store.connection import Connection
from everkept.store.embeddings import (
    around_input,
    find_embeddings,
    forget_other_embeddings,
    keep_embeddings,
    last_erasure,
    own_input,
)
from everkept.store.search import (
    NewVectors,
    Pending,
    corpus_size,
    document_frequencies,
    forget_other_vectors,
    mark_embedded,
    pending_embeddings,
    write_vectors,
)
from everkept.work.job import Finished, JobContext, JobKind

FORGET_MAX = 500
"""Embeddings of an earlier embedder that one run forgets."""
SUSPECTED_FROM = 2
"""From so many spent attempts on, one of the texts may be what the embedder always fails at."""


async def run(_args: Mapping[str, object], ctx: JobContext) -> Outcome | Finished:
    tools: Tools = ctx.tools
    project = ProjectId(ctx.lease.project)
    limit = ctx.settings.models.embedding_batch_max
    pending, erasure = await ctx.read(_read, project, limit)
    if not pending:
        return Done()
    made: dict[str, list[NewVectors]] = {}
    if tools.words is not None:
        made[tools.words.name] = await static_vectors(ctx, tools.words, pending)
    if tools.embedder is not None:
        made[tools.embedder.name] = await _neural(ctx, tools.embedder, project, pending, erasure)
    ids = [p.id for p in pending]
    neural = "" if tools.embedder is None else tools.embedder.name
    return await ctx.finish(_write, project, ids, made, tools.embedder_label, neural, limit)


def _read(conn: Connection, project: ProjectId, limit: int) -> tuple[list[Pending], int]:
    return pending_embeddings(conn, project, limit), last_erasure(conn, project)


async def static_vectors(ctx: JobContext, words: WordVectors, pending: Sequence[Pending]) -> list[NewVectors]:
    passages, frequencies = await ctx.read(_frequencies, await asyncio.to_thread(_stems_of, pending))
    names = names_of(speaker for p in pending for speaker in [p.speaker, *(s for s, _ in p.before)])
    pooling = Pooling(words, passages=passages, frequencies=frequencies, names=names)
    return await asyncio.to_thread(
        lambda: [
            NewVectors(p.id, *pooling.passage(p.text, [b for _, b in p.before])) for p in pending if p.text is not None
        ]
    )


def _stems_of(pending: Sequence[Pending]) -> list[str]:
    texts = [text for p in pending for text in [p.text or "", *(before for _, before in p.before)]]
    return sorted({stem(word) for text in texts for word in content_words(text)})


def _frequencies(conn: Connection, stems: Sequence[str]) -> tuple[int, dict[str, int]]:
    return corpus_size(conn).passages, document_frequencies(conn, stems)


async def _neural(
    ctx: JobContext, embedder: Embedder, project: int, pending: Sequence[Pending], erasure: int
) -> list[NewVectors]:
    """The turn's own text, and the turn with the one before it, each embedded once for its text.

    A text that the embedder refuses leaves its passage with the static vectors alone.
    """
    own = {p.id: own_input(p.text) for p in pending if p.text}
    around = {
        p.id: around_input(*(f"{s}: {b}" for s, b in p.before[-1:]), f"{p.speaker}: {p.text}")
        for p in pending
        if p.text
    }
    texts = list(dict.fromkeys([*own.values(), *around.values()]))
    hashes = {text: hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts}
    known = await ctx.read(find_embeddings, project, embedder.name, embedder.dim, list(hashes.values()))
    missing = [text for text in texts if hashes[text] not in known]
    batch = ctx.settings.models.embedding_batch_max
    for at in range(0, len(missing), batch):
        some = missing[at : at + batch]
        faults = (Permanent, Transient) if ctx.lease.attempts >= SUSPECTED_FROM else (Permanent,)
        vectors = await _embed_what_is_taken(embedder, some, ctx.settings.models.embedding_timeout_s, faults)
        ctx.heard()
        new = {hashes[text]: vector.astype(np.float32).tobytes() for text, vector in vectors.items()}
        await ctx.store.write(keep_embeddings, project, embedder.name, embedder.dim, new, erasure)
        known |= new
    return [
        NewVectors(id_, _packed(known, hashes, own[id_]), _packed(known, hashes, around[id_]))
        for id_ in own
        if hashes[own[id_]] in known and hashes[around[id_]] in known
    ]


async def _embed_what_is_taken(
    embedder: Embedder, texts: Sequence[str], timeout_s: float, faults: tuple[type[ModelError], ...]
) -> dict[str, npt.NDArray[np.float32]]:
    """{text: vector}, without the texts at which the embedder always fails: found by halving the batch.

    `faults` are the failures that may be a text's. Raises one where an ordinary word fails too: then no text is to
    blame, and none is given up.
    """
    try:
        return dict(zip(texts, await _embed(embedder, texts, timeout_s), strict=True))
    except faults:
        if len(texts) == 1:
            await _embed(embedder, [ORDINARY], timeout_s)
            return {}
        half = len(texts) // 2
        first = await _embed_what_is_taken(embedder, texts[:half], timeout_s, faults)
        return first | await _embed_what_is_taken(embedder, texts[half:], timeout_s, faults)


async def _embed(embedder: Embedder, texts: Sequence[str], timeout_s: float) -> npt.NDArray[np.float32]:
    """One call. No text is to blame for an answer that is no vectors: the provider failed, and that is waited out."""
    try:
        async with asyncio.timeout(timeout_s):
            return await embedder.embed_passages(texts)
    except TimeoutError as error:
        raise Transient(f"the embedder did not answer within {timeout_s:g} s") from error
    except InvalidOutput as error:
        raise Transient(f"the embedder's answer cannot be used: {error}") from error


def _packed(known: Mapping[str, bytes], hashes: Mapping[str, str], text: str) -> bytes:
    return int8_bytes(np.frombuffer(known[hashes[text]], np.float32))


def _write(
    conn: Connection,
    project: ProjectId,
    ids: Sequence[int],
    made: Mapping[str, Sequence[NewVectors]],
    label: str,
    neural: str,
    limit: int,
) -> Outcome:
    """The vectors, in place of those of an earlier embedder; where these were the last, what it computed goes too."""
    for model, vectors in made.items():
        write_vectors(conn, project, model, vectors)
    forget_other_vectors(conn, ids, list(made))
    mark_embedded(conn, project, ids, label)
    more = len(ids) == limit or forget_other_embeddings(conn, project, neural, FORGET_MAX) == FORGET_MAX
    return Snooze(conn.now()) if more else Done()


KIND = JobKind(
    name="embed_passages",
    policy=JobPolicy(attempts_max=10, timeout_s=300, estimate_s=0.2),
    read_args=lambda a: a,
    run=run,
)
