"""What the jobs work with besides the store."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from everkept.config import Settings
from everkept.domain.facts import FactDraft
from everkept.domain.passage import Analysed, analyse
from everkept.domain.predicates import normalise_predicate
from everkept.domain.transcript import Turn, slices
from everkept.errors import ModelError
from everkept.models.journaled import JournaledModel
from everkept.ports.embedder import Embedder, WordVectors
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.journal import subject_epoch
from everkept.store.streams import EVIDENCE, get_stream, list_events
from everkept.store.windows import WindowRow, find_window, rests
from everkept.work.job import JobContext

ORDINARY = "hello"
"""What every embedder takes: the question whether a failure was the text's or the provider's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """`model` None: the deterministic extractor and summariser do the work. `embedder` None: static vectors only."""

    model: JournaledModel | None
    words: WordVectors | None
    embedder: Embedder | None

    async def close(self) -> None:
        """Close the connections that the running event loop has made."""
        if self.model is not None:
            await self.model.model.close()

    async def answer_ordinary(self, ctx: JobContext) -> bool:
        """Whether the provider of this job answers what every model can, though it fails this job's question."""
        models = ctx.settings.models
        if ctx.lease.uses == "embedder" and self.embedder is not None:
            try:
                async with asyncio.timeout(models.embedding_timeout_s):
                    await self.embedder.embed_passages([ORDINARY])
            except (ModelError, TimeoutError):
                return False
            return True
        if ctx.lease.uses != "model" or self.model is None:
            return False
        return await self.model.answers_ordinary(
            project=ctx.lease.project, subject=ctx.lease.subject,
            epoch=await ctx.read(subject_epoch, ctx.lease.subject), timeout_s=models.text_timeout_s,
        )  # fmt: skip

    @property
    def embedder_label(self) -> str:
        """Names the vectors that a passage has when it is fully embedded."""
        names = [e.name for e in (self.words, self.embedder) if e is not None]
        return "+".join(names) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceArgs:
    """One slice of one window; `fresh` leaves out journaled replies up to that ask.

    `by_hand`: somebody asked for it, also where memory is off by now.
    """

    window: int
    slice: int = 0
    fresh: int = 0
    by_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTurns:
    window: WindowRow
    turns: Sequence[Turn]
    """Of the slice."""
    names: dict[str, str]
    """Role → whose words they are, where a turn carries no name."""
    epoch: int
    """Of the subject, in the same snapshot."""
    settings: Settings
    """Those of the thread: what the window was counted and is worked with."""
    opted_out: bool
    """Memory was switched off since the window opened: nothing more is made of it (B06)."""


def read_slice(conn: Connection, args: SliceArgs, base: Settings) -> WindowTurns | None:
    """The turns of one slice, or None where the window was erased or is not to be worked, or not now."""
    window = find_window(conn, args.window)
    if window is None or window.skipped_because is not None or rests(conn, window):
        return None
    stream = get_stream(conn, window.stream)
    settings = effective(base, stream.project_settings, stream.settings)
    turns = window_turns(conn, window)
    if window.slices > 1:
        turns = _part(turns, args.slice, window.slices, settings.window.tokens_max)
    return WindowTurns(
        window=window, turns=turns, names={"user": window.subject_name}, epoch=subject_epoch(conn, window.subject),
        settings=settings, opted_out=not settings.memory.enabled and not args.by_hand,
    )  # fmt: skip


def window_turns(conn: Connection, window: WindowRow) -> list[Turn]:
    """The events of a window that were not erased; `evidence` says what an extractor may see."""
    limit = window.end_seq - window.start_seq + 1
    events = list_events(conn, window.stream, window.start_seq, window.end_seq, limit)
    return [
        Turn(stream=e.stream, seq=e.seq, role=e.role, name=e.name, content=e.content, occurred_at_us=e.occurred_at,
             zone_min=e.zone_min, evidence=e.evidence == EVIDENCE, tokens=e.tokens)
        for e in events if e.content is not None
    ]  # fmt: skip


def _part(turns: Sequence[Turn], part: int, parts: int, tokens_max: int) -> list[Turn]:
    """Piece `part` of `parts`; should there be more pieces than that, the last one holds the rest."""
    pieces = _pieces(tuple(turns), tokens_max)
    if part == parts - 1:
        return [turn for piece in pieces[part:] for turn in piece]
    return list(pieces[part]) if part < len(pieces) else []


@lru_cache(maxsize=2)
def _pieces(turns: tuple[Turn, ...], tokens_max: int) -> list[list[Turn]]:
    """The two jobs of each piece all cut the same text; cutting a megabyte takes longer than working a piece of it."""
    return slices(turns, tokens_max)


def pieces_hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def analyse_fact(draft: FactDraft, said_at_us: int) -> Analysed:
    """A fact as the index wants it: its sentence and the common word for its predicate ("moved to" → "lives in").

    The quote is left out: it is found as the turn it comes from.
    """
    return analyse(
        f"{draft.text} {normalise_predicate(draft.predicate)}", speaker=draft.entity, occurred_at_us=said_at_us
    )
