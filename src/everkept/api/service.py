"""The use cases, as one protocol. `api.local.LocalService` does the work; `doors.python.remote` speaks it over HTTP.

Every call is scoped to the project the service was opened with, unless it takes `project`. A subject that was never
seen is an empty memory for `recall` and `facts`; a thread, episode, fact or job that does not exist raises NotFound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from everkept.api import views as v
from everkept.api.context_ask import ContextAsk
from everkept.api.delivery_service import DeliveryService
from everkept.api.review_service import ReviewService
from everkept.api.workstream_service import WorkstreamService
from everkept.capture.identity import Checkout
from everkept.domain.session import AgentEvent


class Service(ReviewService, DeliveryService, WorkstreamService, Protocol):
    # ---- capture
    async def create_thread(self, thread: str | None, subject: str, settings: dict[str, Any] | None = None) -> v.Thread:
        """Create the thread, or return it if it exists with the same subject. Raises SubjectConflict otherwise.

        `None` as the id makes a new one. Creating one pulls the armed timers of the subject's other threads forward.
        """
        ...

    async def get_thread(self, thread: str) -> v.Thread: ...
    async def list_threads(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Thread]: ...
    async def set_thread_settings(self, thread: str, settings: dict[str, Any]) -> v.Thread:
        """Replace the thread's own settings (`memory.enabled`, `window.idle_s`, …); others come from the project."""
        ...

    async def append(
        self, thread: str, messages: Sequence[v.MessageIn], *, subject: str | None = None, key: str | None = None
    ) -> v.AppendResult:
        """Append a batch: every item is stored (or was before), or none is and the error names each item's fault.

        `subject` creates the thread if it does not exist yet; without it the thread must exist.
        Raises InvalidInput, KeyConflict, SubjectConflict, NotFound, StoreFull.
        """
        ...

    async def list_messages(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]: ...
    async def end_thread(self, thread: str) -> v.EndResult:
        """Open the window now. The thread stays writable; ending twice gives one window."""
        ...

    async def context(self, thread: str, question: str | None = None, *, tokens: int = 1200) -> v.ContextBlock:
        """Working memory of the thread (recent turns, rolling summary) together with recall for `question`."""
        ...

    async def receipt(self, event_id: str) -> v.Receipt: ...
    async def list_receipts(self, thread: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Receipt]:
        """Of each message of the thread after `after_seq`, oldest first."""
        ...

    # ---- memory
    async def recall(
        self,
        query: str,
        *,
        subject: str | None = None,
        thread: str | None = None,
        limit: int = 10,
        tokens: int | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        kinds: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        explain: bool = False,
        held_back: bool = False,
    ) -> v.RecallAnswer:
        """Search turns, facts and episodes of the scope. `as_of` asks about the world then, `known_at` what was
        believed then. `limit` 1 to 100, `tokens` 1 to 100,000. An empty query is an error."""
        ...  # fmt: skip

    async def remember(
        self,
        text: str,
        *,
        subject: str,
        predicate: str | None = None,
        object: str | None = None,
        entity: str | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        confidence: float = 1.0,
        pinned: bool = False,
        key: str | None = None,
    ) -> v.Remembered:
        """State a durable fact by hand, under the subject's lock. The same key and payload gives the same fact."""
        ...  # fmt: skip

    async def get_fact(self, fact_id: str) -> v.Fact: ...
    async def list_facts(
        self, *, subject: str | None = None, query: str | None = None, as_of: datetime | None = None,
        known_at: datetime | None = None, include_retired: bool = False, limit: int = 50, cursor: str | None = None,
    ) -> v.Page[v.Fact]: ...  # fmt: skip
    async def forget(self, fact_id: str, *, reason: str = "by hand", undo: bool = False) -> v.Fact:
        """Retire one fact (belief ends, evidence stays); `undo` brings it back."""
        ...

    async def pin_fact(self, fact_id: str, *, pinned: bool = True, by: str = "hand") -> v.Fact:
        """A pinned fact is changed by hands alone, and comes first in its subject's context. Raises NotFound."""
        ...

    async def correct_fact(
        self,
        fact_id: str,
        *,
        object: str | None = None,
        text: str | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        by: str = "hand",
        key: str | None = None,
    ) -> v.Remembered:
        """State what is right in its place: a fact of its own, that retires the wrong one and its repetitions.

        What is not given stays. Raises InvalidInput where nothing differs, Conflict where it is not believed any more.
        """
        ...  # fmt: skip

    async def list_subjects(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[v.Subject]:
        """Whose memory there is in the project, the newest first."""
        ...

    async def list_entities(
        self, *, subject: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Entity]: ...
    async def merge_entities(self, entity_id: str, *, into: str, by: str = "hand") -> v.Entity:
        """Two names of one thing: from now on it is shown as `into`, and what is said of either is said of both.

        Nothing moves: `split_entity` undoes it. Raises NotFound, InvalidInput, Conflict.
        """
        ...

    async def split_entity(self, entity_id: str) -> v.Entity:
        """It is a thing of its own again. Raises NotFound, Conflict where it is not merged."""
        ...

    async def list_episodes(
        self, *, thread: str | None = None, subject: str | None = None, query: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Episode]: ...  # fmt: skip
    async def get_episode(self, episode_id: str) -> v.Episode: ...
    async def retry_episode(self, episode_id: str, stage: str) -> v.Episode:
        """Give a failed or dead stage (`summary` or `facts`) a new budget, also beyond the limit."""
        ...

    async def reprocess(
        self,
        *,
        thread: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        fresh: bool = False,
        include_skipped: bool = False,
        dry_run: bool = False,
    ) -> v.ReprocessPlan:
        """Derive again from events and journaled replies. `fresh` asks the model again (paid; see `dry_run`)."""
        ...  # fmt: skip

    async def erase(
        self,
        *,
        event: str | None = None,
        thread: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        dry_run: bool = False,
    ) -> v.ErasePlan:
        """Destroy exactly one thing and everything that rests on it. Cannot be undone."""
        ...  # fmt: skip

    async def export(self, subject: str) -> dict[str, Any]:
        """All that is kept about a subject: threads with messages, episodes, facts."""
        ...

    async def why(self, any_id: str) -> v.Why:
        """Where a fact, episode, event, session, page or handoff comes from; a page may be named by its slug, too."""
        ...

    async def settle(self, *, timeout_s: float = 30.0) -> bool:
        """Open what is due now and wait until every receipt is final. False when time ran out."""
        ...

    # ---- coding agents
    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        """The project of a checkout, whatever project this is. Raises NotFound where nobody knows it yet.

        `create` makes it: for who is about to write, never for who only reads.
        """
        ...

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        """From now on the project that the checkout's marker file names is its project. Raises InvalidInput, NotFound.

        Until somebody says so a marker counts for nothing: a repository that was cloned could name any project.
        """
        ...

    async def list_sessions(
        self, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Session]: ...
    async def get_session(self, session_id: str) -> v.Session: ...
    async def session_events(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> v.Page[v.Message]:
        """Oldest first; `metadata` has the kind of each, and what came of a call."""
        ...

    async def end_session(self, session_id: str) -> v.EndResult:
        """Digest it now. It may go on afterwards; ending twice gives one digest."""
        ...

    async def list_pages(
        self, *, kind: str | None = None, superseded: bool = False, links_to: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.KnowledgePage]:  # fmt: skip
        """Newest first, without bodies; `superseded`: also those that another page took the place of.

        `links_to`: only those that link to this slug, whether or not there is such a page.
        """
        ...

    async def get_page(self, slug: str, *, version: int | None = None) -> v.KnowledgePage: ...
    async def page_history(self, slug: str, *, before: int | None = None, limit: int = 50) -> list[v.PageVersion]:
        """Newest first, older than the version `before`."""
        ...

    async def write_page(
        self,
        title: str,
        body: str,
        *,
        kind: str = "note",
        slug: str | None = None,
        base: int | None = None,
        reason: str | None = None,
        supersedes: str | None = None,
        author: str = "hand",
    ) -> v.KnowledgePage:
        """A new page, or the next version of one. Raises Conflict where `base` is not its newest version."""
        ...  # fmt: skip

    async def delete_page(self, slug: str) -> v.KnowledgePage:
        """Take it out of search and lists for good: nothing brings it back by itself. Its versions stay."""
        ...

    async def list_handoffs(
        self, *, state: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[v.Handoff]: ...
    async def get_handoff(self, handoff_id: str) -> v.Handoff: ...
    async def choose_handoff(self, *, worktree: str | None = None, branch: str | None = None) -> v.HandoffChoice:
        """Which handoff a session in this place is offered, and why. Takes nothing up."""
        ...

    async def acknowledge_handoff(self, handoff_id: str, *, by: str) -> v.Handoff:
        """Say that it was taken up. Doing so twice changes nothing."""
        ...

    async def timeline(
        self,
        *,
        kinds: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.TimelineItem]:
        """Sessions, versions of pages, handoffs, episodes and facts, newest first; `since` ≤ time < `until`."""
        ...  # fmt: skip

    # ---- operate
    async def status(self, *, project_only: bool = False) -> v.Status:
        """The state of the whole store, or what the holder of a project's key may know of it."""
        ...

    async def diagnose(self, *, subject: str | None = None, full: bool = False, rows_only: bool = False) -> v.Diagnosis:
        """Every cause of trouble in the whole store; of `subject`, also why each of its facts is held back.

        `rows_only` leaves out whether the file is whole, which reads all of it. Raises InvalidInput beside `full`.
        """
        ...

    async def list_jobs(
        self, *, state: str | None = None, kind: str | None = None, subject: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> v.Page[v.Job]:  # fmt: skip
        """Newest first; of `subject`, those in its lane: none where the subject was never seen."""
        ...

    async def dead_causes(self) -> list[v.DeadCause]:
        """What dead jobs died of, by kind and class of error, the most first; at most 100."""
        ...

    async def get_job(self, job_id: str) -> v.Job: ...
    async def retry_job(self, job_id: str) -> v.Job: ...
    async def retry_jobs(self, *, kind: str | None = None, cause: str | None = None) -> int:
        """Retry all dead jobs of a kind and/or an error class; the number that were dead."""
        ...

    async def pause_jobs(
        self, *, kind: str | None = None, provider: str | None = None, why: str = "by hand", by: str = "hand"
    ) -> v.Pause:
        """Begin no job of this kind, or none that asks this provider, in the whole store. What runs ends.

        Doing so again changes the reason. Raises NotFound where there is no such kind or provider.
        """
        ...

    async def resume_jobs(self, *, kind: str | None = None, provider: str | None = None) -> None:
        """Go on with it. Raises NotFound where it is not paused."""
        ...

    async def list_pauses(self) -> list[v.Pause]: ...
    async def discard_job(self, job_id: str, *, reason: str = "by hand") -> v.Job: ...
    async def release_job(self, job_id: str) -> v.Job:
        """End a lease now: the fence grows, so the old holder's finish is refused and counted."""
        ...

    async def list_projects(self) -> list[v.Project]: ...
    async def create_project(self, name: str, settings: dict[str, Any] | None = None) -> v.Project:
        """The project of this name, made if there is none: asked twice, the answer is the same.

        Raises Conflict where it is there and has other settings than those that are given.
        """
        ...

    async def update_project(
        self, name: str, *, new_name: str | None = None, settings: dict[str, Any] | None = None
    ) -> v.Project: ...
    async def merge_project(self, source: str, into: str, *, dry_run: bool = False) -> v.ProjectMerge:
        """From now on the source's name means the other one; what it has is brought in the background.

        `dry_run`: what would move. Raises NotFound, and Conflict where it cannot be (see the decision on merging).
        """
        ...

    async def move_project(self, name: str, *, workspace: str) -> v.Project:
        """Take a project to another workspace, made if there is none: it is then called `workspace/project`.

        Its keys go on. Raises NotFound, Conflict.
        """
        ...

    async def ensure_workspace(self, name: str) -> v.Workspace:
        """The workspace of this name, made if there is none: asked twice, the answer is the same."""
        ...

    async def ensure_project(
        self, name: str, *, workspace: str = "default", settings: dict[str, Any] | None = None
    ) -> v.Project:
        """The project of this name in that workspace, both made if there are none: asked twice, the answer is the same.

        `settings` are then its own; None leaves those it has. Raises Conflict where the name means another project.
        """
        ...

    async def find_merge(self, project: str) -> v.ProjectMerge | None:
        """The newest merge that a project had a part in."""
        ...

    async def create_key(self, name: str, *, project: str | None = None) -> v.KeyCreated: ...
    async def list_keys(self) -> list[dict[str, Any]]: ...
    async def revoke_key(self, key_id: str) -> None: ...
    async def usage(self, *, days: int = 30) -> list[v.UsageRow]: ...
    async def usage_by_project(self, *, days: int = 30) -> v.StoreUsage:
        """Of all projects together, and of each; for whoever may see all."""
        ...

    async def close(self) -> None: ...


class Ingest(Protocol):
    """Takes in what hooks, launches and other senders tell, for one caller. Sending again changes nothing."""

    async def record(self, name: str, fields: Mapping[str, Any]) -> list[v.SessionTaken]:
        """One record of a hook; `name` is its delivery key. Raises InvalidInput, NotFound."""
        ...

    async def events(
        self,
        events: Sequence[AgentEvent],
        *,
        checkout: Checkout | None = None,
        origin: Literal["hook", "import"] = "hook",
        ended: bool = False,
        titles: Mapping[str, str] | None = None,
    ) -> list[v.SessionTaken]:
        """Events in the order in which they happened. `ended`: nothing more will come, as far as anybody knows."""
        ...  # fmt: skip


class Contexts(Protocol):
    """Gives coding agents their context, for one caller. Nothing is used up by it."""

    async def give(self, ask: ContextAsk) -> v.AgentContext:
        """At a start, or with a prompt. Without a scope where nobody knows the place. Raises NotFound."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """The project that a key belongs to, and every name that means the same one since projects were merged."""

    project: str
    names: frozenset[str]


class Application(Protocol):
    """What a process holds: store, workers, and a service for each project. Made by `bootstrap.open_application`."""

    async def service(self, project: str = "default") -> Service:
        """The use cases in one project. Raises NotFound (with the known names) where there is no such project."""
        ...

    async def resolve_scope(self, checkout: Checkout, *, create: bool = False) -> v.Scope:
        """The project of a checkout. Raises NotFound where nobody knows it yet and it is not to be made."""
        ...

    async def trust_marker(self, checkout: Checkout) -> v.Scope:
        """The project that its marker file names is its project from now on. Raises InvalidInput, NotFound."""
        ...

    def ingest(self, *, project: str | None, confined: bool) -> Ingest:
        """For a caller that names `project` (None: each session's own), and may touch no other if it is `confined`."""
        ...

    def contexts(self, *, project: str | None, confined: bool) -> Contexts:
        """For a caller that names `project` (None: each session's own); `confined`: it may know of no other."""
        ...

    async def authenticate(self, token: str) -> KeyHolder | None:
        """Whose an API key is, or None where the key is unknown or revoked."""
        ...

    async def ready(self) -> dict[str, str]:
        """What keeps this replica from accepting and recalling, by name; empty when it is ready."""
        ...

    async def close(self, *, drain_s: float = 5.0) -> None:
        """Stop claiming, give running jobs `drain_s` to end, hand the rest back, close the store."""
        ...
