"""Every kind of job there is, and every backstop. To add a job: one file here, one line in each list that it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from everkept.config import Settings
from everkept.derive import (
    apply_proposal,
    digest_session,
    distil_session,
    embed_passages,
    embed_words,
    erase_scope,
    extract_facts,
    fold_summary,
    judge_conflicts,
    merge_projects,
    open_window,
    review_session,
    schedule_reviews,
    summarise_episode,
)
from everkept.models.word_vectors import WordllamaVectors
from everkept.store.changes import prune_changes
from everkept.store.connection import Connection
from everkept.store.decisions import expire_proposals
from everkept.store.erase import clean_again, note_cleaned
from everkept.store.facts import sweep_conflicts
from everkept.store.handoffs import expire_handoffs
from everkept.store.jobs import prune_jobs
from everkept.store.leases import expire_leases, prune_workers
from everkept.store.offers import expire_offers
from everkept.store.outcomes import propose_retirements
from everkept.store.review_schedule import sweep_reviews
from everkept.store.streams import embed_words_meanwhile, sweep_unembedded
from everkept.store.windows import EXTRACT, SUMMARISE, sweep_abandoned, sweep_windows
from everkept.work.job import JobKind
from everkept.work.maintenance import PeriodicTask

KINDS: dict[str, JobKind[Any]] = {
    module.KIND.name: module.KIND
    for module in (
        open_window,
        digest_session,
        distil_session,
        apply_proposal,
        summarise_episode,
        extract_facts,
        judge_conflicts,
        fold_summary,
        embed_passages,
        embed_words,
        erase_scope,
        merge_projects,
        schedule_reviews,
        review_session,
    )
}


def job_kinds(settings: Settings) -> dict[str, JobKind[Any]]:
    """The kinds with the retries that the settings allow."""
    retries = {SUMMARISE: settings.work.summary_retries_max, EXTRACT: settings.work.fact_retries_max}
    return {
        name: replace(kind, policy=replace(kind.policy, attempts_max=1 + retries[name])) if name in retries else kind
        for name, kind in KINDS.items()
    }


PRUNE_S = 3600.0
EMBED_WORDS_S = 30.0
OUTCOMES_S = 86_400.0
OUTCOMES_PER_CHUNK = 5
"""Each counts over all sessions of its project that were looked at."""
UNSEEN_BEATS = 3.5
"""Heartbeats that a worker may miss before its jobs are taken up by others."""


def periodic_tasks(settings: Settings) -> list[PeriodicTask]:
    """The backstops. Each goes on from where its last chunk ended: what cannot be served hides nothing else (B07)."""
    work = settings.work

    def expire(conn: Connection, _after: int, limit: int) -> tuple[int, int]:
        gone = expire_leases(conn, work.crashes_max, limit, UNSEEN_BEATS * work.heartbeat_s)
        return len(gone), 1 if len(gone) == limit else 0

    def windows(kind: str) -> Any:
        def chunk(conn: Connection, after: int, limit: int) -> tuple[int, int]:
            repaired, go_on = sweep_windows(conn, kind, after, limit)
            return len(repaired), go_on

        return chunk

    def abandoned(conn: Connection, after: int, limit: int) -> tuple[int, int]:
        repaired, go_on = sweep_abandoned(conn, settings, after, limit)
        return len(repaired), go_on

    def conflicts(conn: Connection, after: int, limit: int) -> tuple[int, int]:
        repaired, go_on = sweep_conflicts(conn, after, limit)
        return len(repaired), go_on

    def reviews(conn: Connection, after: int, limit: int) -> tuple[int, int]:
        return sweep_reviews(conn, settings, after, limit)

    def prune(conn: Connection, _after: int, limit: int) -> tuple[int, int]:
        prune_workers(conn)
        gone = prune_jobs(conn, work.job_retention_s, limit) + prune_changes(
            conn, settings.store.changes_retention_s, limit
        )
        return gone, 1 if gone >= limit else 0

    cleaned: list[str] = []

    def clean(conn: Connection, after: int, _limit: int) -> tuple[int, int]:
        """Two chunks: the file is cleaned between their transactions."""
        if after:
            return note_cleaned(conn, cleaned), 0
        cleaned.clear()
        return 0, int(clean_again(conn, cleaned))

    def retirements(conn: Connection, after: int, _limit: int) -> tuple[int, int]:
        return propose_retirements(conn, settings, after, OUTCOMES_PER_CHUNK)

    def words(conn: Connection, after: int, limit: int) -> tuple[int, int]:
        return embed_words_meanwhile(conn, WordllamaVectors.name, after, limit)

    return [
        PeriodicTask(name="expire_leases", every_s=work.tick_s, chunk=expire),
        PeriodicTask(name="sweep_summaries", every_s=work.episode_sweep_s, chunk=windows(SUMMARISE)),
        PeriodicTask(name="sweep_facts", every_s=work.fact_sweep_s, chunk=windows(EXTRACT)),
        PeriodicTask(name="sweep_abandoned", every_s=work.abandoned_sweep_s, chunk=abandoned),
        PeriodicTask(name="sweep_conflicts", every_s=work.fact_sweep_s, chunk=conflicts),
        PeriodicTask(name="sweep_reviews", every_s=settings.review.scheduler.interval_seconds, chunk=reviews),
        PeriodicTask(name="sweep_unembedded", every_s=work.fact_sweep_s, chunk=sweep_unembedded),
        PeriodicTask(name="embed_words", every_s=EMBED_WORDS_S, chunk=words, expected=True),
        PeriodicTask(name="clean_file", every_s=PRUNE_S, chunk=clean, expected=True),
        PeriodicTask(name="expire_handoffs", every_s=PRUNE_S, chunk=expire_handoffs, expected=True),
        PeriodicTask(name="expire_offers", every_s=PRUNE_S, chunk=expire_offers, expected=True),
        PeriodicTask(name="expire_proposals", every_s=PRUNE_S, chunk=expire_proposals, expected=True),
        PeriodicTask(name="count_outcomes", every_s=OUTCOMES_S, chunk=retirements, expected=True),
        PeriodicTask(name="prune", every_s=PRUNE_S, chunk=prune, expected=True),
    ]
