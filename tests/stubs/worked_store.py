"""A real store on a virtual clock, with the few hands a test needs to bring its jobs into any state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import text

from everkept.config import Settings, load
from everkept.domain.ids import ProjectId
from everkept.domain.jobs import Done, GiveUp, Lease, Outcome, Retry
from everkept.domain.passage import analyse
from everkept.ports.clock import VirtualClock
from everkept.store.claims import ClaimRequest, claim
from everkept.store.connection import Connection
from everkept.store.facts import FactsOf, write_facts
from everkept.store.jobs import promote_due
from everkept.store.leases import finish, renew_leases
from everkept.store.projects import ensure_project
from everkept.store.search import mark_embedded, pending_embeddings
from everkept.store.store import Store
from everkept.store.streams import Append, Appended, NewMessage, append_events, request_end, set_thread_settings
from everkept.store.windows import get_window, open_windows, write_slice_summary

MINUTE_S = 60.0


class WorkedStore:
    """One project, `default`; everything happens in the caller's thread."""

    def __init__(self, path: Path, *, env: Mapping[str, str] | None = None) -> None:
        self.clock = VirtualClock()
        self.settings: Settings = load(env or {}, path)
        self.store = Store(path / "everkept.db", clock=self.clock, threads=False)
        self.store.open()
        self.project = self.store.write_now(ensure_project, "default", b"s" * 32).id
        self.owner = "worker-1"
        self._held: list[Lease] = []
        self._said = 0

    def close(self) -> None:
        self.store.close()

    def sql(self, statement: str, **params: Any) -> list[tuple[Any, ...]]:
        return self.store.write_now(lambda conn: conn.rows(text(statement), params))

    # ---- what a user does

    def say(
        self, thread: str, *said: str, subject: str = "user_42", evidence: bool = True, tokens: int = 5
    ) -> list[tuple[int, int]]:
        """Append; the places of the messages."""
        messages = tuple(self._message(content, evidence, tokens) for content in said)
        append = Append(project=self.project, thread=thread, subject=subject, messages=messages, base=self.settings)
        accepted = self.store.writer.submit(append_events, append)
        self.store.writer.step()
        rows: list[Appended] = accepted.result()
        return [(a.stream, a.seq) for a in rows]

    def _message(self, content: str, evidence: bool, tokens: int) -> NewMessage:
        self._said += 1
        now = self.clock.now_us()
        return NewMessage(
            role="user", name=None, content=content, occurred_at_us=now, zone_min=0, key_hash=f"key-{self._said}",
            payload_hash="same", evidence=evidence, metadata=None, tokens=tokens, model=None,
            analysed=analyse(content, speaker="user", occurred_at_us=now, zone_min=0),
        )  # fmt: skip

    def end(self, thread: str) -> None:
        """Ask for the thread's window, and open it."""
        self.store.write_now(request_end, self.project, thread, self.settings)
        self.open_due()

    def set_thread(self, thread: str, **settings: Any) -> None:
        self.store.write_now(set_thread_settings, self.project, thread, json.dumps(settings), self.settings)

    # ---- what a worker does

    def beat(self) -> None:
        self.store.write_now(renew_leases, self.owner, 4, self.settings.work.lease_s)

    def take(self, kind: str) -> Lease:
        """A lease on the next due job of a kind; what else is claimed on the way stays held."""
        found = next((lease for lease in self._held if lease.kind == kind), None)
        if found is None:
            self._held += self.store.write_now(self._claim)
            found = next((lease for lease in self._held if lease.kind == kind), None)
        assert found is not None, f"no job of kind {kind} is due"
        self._held.remove(found)
        return found

    def hold(self, lease: Lease) -> None:
        """Hand a taken lease back to whoever takes next."""
        self._held.append(lease)

    def _claim(self, conn: Connection) -> list[Lease]:
        promote_due(conn, 1000)
        request = ClaimRequest(
            owner=self.owner, free=200, slots=1000, lease_s=self.settings.work.lease_s,
            uses={"local": 200, "model": 200, "embedder": 200}, idle=True, estimates_s={},
        )  # fmt: skip
        return claim(conn, request).leases

    def open_due(self) -> None:
        """Run one due timer."""
        lease = self.take("open_window")

        def run(conn: Connection) -> None:
            finish(conn, lease, open_windows(conn, lease.args["stream"], self.settings), 0.01)

        self.store.write_now(run)

    def book(self, lease: Lease, outcome: Outcome) -> None:
        self.store.write_now(finish, lease, outcome, 0.01)

    def fail(
        self, lease: Lease, error: str = "the model hung up", *, error_class: str = "transient", after_s: float = 60
    ) -> None:
        at = self.clock.now_us() + int(after_s * 1e6)
        self.book(lease, Retry(at, error_class, error, spend=True))

    def give_up(self, lease: Lease, error: str = "nonsense again", *, error_class: str = "invalid_output") -> None:
        self.book(lease, GiveUp(error_class, error))

    def summarise(self) -> int:
        """Run one summary to its end; its window."""
        lease = self.take("summarise_episode")

        def run(conn: Connection) -> None:
            write_slice_summary(conn, get_window(conn, lease.args["window"]), lease.args["slice"], "They talked.", [])
            finish(conn, lease, Done(), 0.01)

        self.store.write_now(run)
        window: int = lease.args["window"]
        return window

    def extract(self) -> int:
        """Run one extraction that finds nothing; its window."""
        lease = self.take("extract_facts")
        window, part = lease.args["window"], lease.args["slice"]
        of = FactsOf(project=self.project, subject=lease.subject, window=window, slice=part, revision=None)

        def run(conn: Connection) -> None:
            write_facts(conn, of, [], "[]")
            finish(conn, lease, Done(), 0.01)

        self.store.write_now(run)
        return int(window)

    def embed(self) -> None:
        """Mark every passage as embedded, as the embedder's job does with its last batch."""
        project = ProjectId(self.project)
        self.store.write_now(
            lambda conn: mark_embedded(conn, project, [p.id for p in pending_embeddings(conn, project, 1000)], "static")
        )
