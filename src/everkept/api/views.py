"""What every door answers with: one frozen model per thing, the same in Python, over HTTP and in `--json`.

Times are aware `datetime`s in UTC; `occurred_at` keeps the sender's offset. Ids are opaque strings.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")
Role = Literal["user", "assistant", "system", "tool"]
StageState = Literal["pending", "processing", "completed", "failed", "dead", "skipped"]
JobState = Literal["waiting", "ready", "leased", "done", "dead", "discarded"]


def written_out(given: object) -> object:
    """A time as it may be given: `2026` is no count of seconds since 1970. Raises ValueError for a bare number."""
    text = given.strip().lstrip("+-").replace(".", "") if isinstance(given, str) else ""
    if isinstance(given, int | float) or text.isdigit():
        raise ValueError("a time is written out, e.g. 2026-05-01T12:00:00Z")
    return given


class View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


# ---- capture


class MessageIn(BaseModel):
    """One message to append. `occurred_at` without a zone is an error; without a value it is the time of acceptance."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: str = "user"
    content: str
    name: str | None = None
    occurred_at: Annotated[datetime | None, BeforeValidator(written_out)] = None
    metadata: dict[str, Any] | None = None
    tokens: int | None = None
    model: str | None = None
    key: str | None = None
    """Idempotency key of this message; a batch's key gives each item `<key>/<index>`."""
    evidence: bool = True
    """False for compaction summaries and recalled context: kept, searchable by hand, never extracted from."""


class Receipt(View):
    """Where one message is.

    `state` is the furthest of accepted → searchable → embedded → remembered, or skipped/failed.
    """

    event_id: str
    thread: str
    seq: int
    state: Literal["accepted", "searchable", "embedded", "remembered", "skipped", "failed", "erased"]
    reason: str | None = None
    """Why it is not remembered yet, or never will be."""
    next_try_at: datetime | None = None
    episode_id: str | None = None
    summary: StageState | None = None
    facts: StageState | None = None
    recorded_at: datetime
    outcome: Literal["stored", "replayed"] | None = None
    """Only in the answer to an append."""


class AppendResult(View):
    """Receipts in the order of the batch. `replayed` is true when every item had been accepted before."""

    thread: str
    receipts: list[Receipt]
    replayed: bool


class Message(View):
    event_id: str
    seq: int
    role: str
    name: str | None
    content: str | None
    """None once the message has been erased."""
    occurred_at: datetime
    recorded_at: datetime
    metadata: dict[str, Any]
    tokens: int
    model: str | None
    evidence: bool


class Thread(View):
    id: str
    subject: str
    created_at: datetime
    last_message_at: datetime | None
    messages: int
    """How many messages were appended (seq of the last one)."""
    captured: int
    """How many of them lie in an episode."""
    summary: str | None
    window_due_at: datetime | None
    """When the next episode opens if nothing more is said; None where no timer is armed."""
    settings: dict[str, Any]


class EndResult(View):
    episode_queued: bool
    reason: str


class ContextBlock(View):
    """Prompt-ready memory: `text` is what to put into a prompt; the parts it was made of stand beside it."""

    text: str
    tokens: int
    recent: list[Message]
    summary: str | None
    results: list[RecallResult]


# ---- memory


class Episode(View):
    id: str
    thread: str
    subject: str
    start_seq: int
    end_seq: int
    opened_at: datetime
    opened_because: str
    archived: bool
    """True once a later episode of the thread exists."""
    summary: str | None
    learnings: list[str]
    stages: dict[str, Stage]
    """Keys `summary` and `facts`."""


class Stage(View):
    state: StageState
    attempts: int = 0
    error: str | None = None
    next_try_at: datetime | None = None
    reason: str | None = None
    job_id: str | None = None
    completed_at: datetime | None = None


class Fact(View):
    id: str
    subject: str
    """Whose memory it is in (the scope)."""
    entity: str
    """What the statement is about (the grammatical subject)."""
    predicate: str
    object: str
    text: str
    """The whole statement as a sentence."""
    quote: str | None
    confidence: float
    valid_from: datetime | None
    valid_until: datetime | None
    said_at: datetime
    recorded_at: datetime
    retired_at: datetime | None
    retired_because: str | None
    superseded_by: str | None
    duplicate_of: str | None = None
    """The earlier statement that this one repeats; both are kept."""
    pinned: bool
    unsettled: bool
    """A contradiction with another statement has not been judged yet."""
    live: bool
    """Believed, and valid at the time asked about."""
    source: Literal["window", "hand"]
    stated_by: str | None = None
    """Whose hand put another fact right with it."""
    corrects: str | None = None
    """That other fact."""
    episode_id: str | None
    event_ids: list[str]


class Remembered(Fact):
    """A fact stated by hand, as it stands."""

    replayed: bool = False
    """The key and this statement were sent before; nothing was written."""


class Subject(View):
    """Whose memory it is. Counts end at 10,000."""

    name: str
    threads: int
    facts: int
    """That are believed."""
    created_at: datetime


class MergedEntity(View):
    """Shown as another entity, until it is split from it."""

    id: str
    name: str
    by: str
    at: datetime


class Entity(View):
    id: str
    name: str
    type: str
    aliases: list[str]
    facts: int
    merged: list[MergedEntity] = []
    """What a hand said is this same thing under another name."""


class RecallResult(View):
    """One hit. `score` is comparable within one answer; `signals` say how it came about (with `explain`)."""

    kind: Literal["turn", "fact", "episode", "page"]
    id: str
    """The id of the event, fact, episode or page."""
    text: str
    score: float
    subject: str
    thread: str | None
    seq: int | None
    speaker: str | None
    occurred_at: datetime | None
    quote: str | None = None
    unsettled: bool = False
    event_ids: list[str] = Field(default_factory=list)
    page: str | None = None
    """Of a section: the slug of its page, with `#` and its anchor."""
    heading: str | None = None
    signals: dict[str, float] | None = None


class HeldBack(View):
    """Something that matched and was left out, with the reason."""

    id: str
    text: str
    reason: Literal[
        "below_confidence_floor", "not_yet_valid", "no_longer_valid", "retired", "not_yet_known", "over_budget"
    ]


class RecallAnswer(View):
    query: str
    results: list[RecallResult]
    held_back: list[HeldBack] | None
    """None unless asked for."""
    text: str
    """A prompt-ready block with dates and sources, within the token budget."""
    tokens: int
    lexical_only: bool
    """True where vectors could not be used; `note` says why."""
    note: str | None = None
    """What found no room within the budget, and why vectors had no say; None where there is nothing to say."""


# ---- operate


class Job(View):
    id: str
    kind: str
    key: str
    project: str
    subject: str | None
    state: JobState
    due_at: datetime | None
    attempts: int
    crashes: int
    error: str | None
    error_class: str | None
    input: str
    """What the job works on, e.g. an episode id or a thread."""
    lease_owner: str | None
    lease_until: datetime | None
    fence: int
    created_at: datetime
    finished_at: datetime | None
    history: list[dict[str, Any]]
    """Earlier failures, oldest first: at, class, error."""
    paused: str | None = None
    """Why it is not begun although it could be: a hand has paused its kind or its provider."""


class Pause(View):
    """A kind of work or a provider that a hand has stopped, for the whole store."""

    what: Literal["kind", "provider"]
    name: str
    why: str
    by: str
    since: datetime


class DeadCause(View):
    """Dead jobs of one kind that failed in the same way."""

    kind: str
    cause: str
    """The class of their error; `unknown` where none was booked."""
    jobs: int


class StageTiming(View):
    stage: str
    completed: int
    p50_s: float | None
    p95_s: float | None


class StuckItem(View):
    id: str
    subject: str | None
    stage: str
    attempts: int
    error: str | None
    since: datetime


class Periodic(View):
    name: str
    every_s: float
    last_start_at: datetime | None
    last_success_at: datetime | None
    last_error: str | None
    next_due_at: datetime | None
    rows_repaired: int
    degraded: bool


class Worker(View):
    id: str
    slots: int
    running: int
    last_seen_at: datetime
    leases: list[str]


class Provider(View):
    name: str
    circuit: Literal["closed", "open", "limited"]
    reason: str | None
    since: datetime | None
    next_probe_at: datetime | None
    permits: int
    in_flight: int
    waiting: int


class Check(View):
    """One of the three thresholds of `status --check`."""

    name: Literal["due_work_old", "episode_failures", "fact_failures"]
    ok: bool
    value: float
    threshold: float
    message: str


class ReviewProgress(View):
    """How far the finished sessions of one project have been looked at."""

    project: str
    watermark: int
    """Every finished session up to this number has been reviewed, or passed by with a reason."""
    reached_at: datetime | None
    """When that session ended."""
    woke_at: datetime | None
    """When the scheduler last looked."""
    waiting: int
    reviewing: int
    dead: int
    """Passed by because their review failed for good; asked for by hand, it is tried again."""


class Consumer(View):
    """Somebody who must get every change, and how far they have acknowledged."""

    project: str
    name: str
    """`webhook:<name>` and `wiki` are Everkept's own."""
    cursor: int
    head: int
    """The newest change there is."""
    lag: int
    """Changes that are not acknowledged, also those that a filter passes by."""
    oldest_at: datetime | None
    """When the oldest of them was made; null where there is none, or it is no longer kept."""
    kept: bool
    """False where it is behind what is kept: it needs a snapshot, then a replay from what is left."""
    held_by: str | None
    held_until: datetime | None
    acked_at: datetime | None
    created_at: datetime
    state: Literal["active", "paused", "dead"] | None
    """Of a webhook."""
    trouble: str | None
    """Why a webhook fails, or waits for a hand."""
    parked: int
    """Changes that a webhook's receiver rejected."""


class Renamed(View):
    """Something that a merge had to call otherwise, because the target has something of its name."""

    kind: str
    """thread, session, page, webhook or workstream."""
    name: str
    """In the project that was merged."""
    now: str


class ProjectMerge(View):
    """A project that is merged into another one, or would be."""

    source: str
    into: str
    state: Literal["planned", "running", "done"]
    rows: dict[str, int]
    """What moves (`planned`), or has moved so far, by kind."""
    alike: dict[str, int]
    """Of a plan: names that both have. Subjects are joined; all else is kept under a name of its own."""
    renamed: list[Renamed]
    asked_at: datetime | None
    done_at: datetime | None


class NatsStream(View):
    name: str
    replicas: int
    messages: int
    differs: list[str]
    """How it is set up otherwise than Everkept would have made it, where that voids what is promised."""


class Nats(View):
    """NATS as this process sees it."""

    server: str
    connected: bool
    trouble: str | None
    since: datetime | None
    """When the trouble began."""
    streams: list[NatsStream]
    pending: int
    """Events that were not given to anybody yet."""
    unacknowledged: int
    redelivered: int
    """Among those: given more than once."""


class Unpublished(View):
    """Changes that NATS does not have yet, of all projects."""

    projects: int
    changes: int
    oldest_s: float | None
    """For how long the oldest of them has waited."""


class DatabaseServer(View):
    """The database server that holds the store, and this process's part in it."""

    connections: int
    connections_max: int
    """What it takes from whoever is no administrator."""
    ours: int
    """Connections of this program to this database."""
    processes: int
    """Of this program, on this database."""
    each_max: int
    """Connections that one process opens at most."""
    deadlocks: int
    """In this database, since the server began to count; there should be none."""
    conflicts: int
    """Transactions of this process that the server ended because of another one; there should be none."""
    deaf: str | None
    """Why this process does not hear of commits of others; it polls meanwhile."""


class Status(View):
    version: str
    store: dict[str, Any]
    """path, library version, journal mode, size_bytes, degraded (with the reason)."""
    messages: int
    episodes: int
    facts: int
    backlog_due: int
    backlog_armed: int
    oldest_due_s: float | None
    stages: dict[str, int]
    """`<summary>/<facts>` → number of episodes."""
    stuck: list[StuckItem]
    given_up: list[StuckItem]
    """Newest first, errors cut to 120 characters."""
    timings: list[StageTiming]
    workers: list[Worker]
    periodic: list[Periodic]
    providers: list[Provider]
    checks: list[Check]
    model: str
    """`none (deterministic extraction)` or `vendor:name`."""
    embedder: str
    refused_finishes: int
    asked_again: int
    lanes: list[dict[str, Any]]
    """Lanes with due work: project, subject, ready, running, oldest_due_s."""
    reviews: list[ReviewProgress]
    """Of the project; of the whole store, of the projects in which a review waits or died."""
    pauses: list[Pause] = []
    """What a hand has stopped."""
    consumers: list[Consumer] = []
    """Who follows the changes, and how far each is."""
    merges: list[ProjectMerge] = []
    """Projects that are being merged now: what has not come yet is not found in the other one."""
    nats: Nats | None = None
    """None where this process does not attend to NATS."""
    unpublished: Unpublished | None = None
    """None where no change is published to NATS."""
    server: DatabaseServer | None = None
    """None where the store is a file."""
    price_unknown: str | None = None
    """Why a limit in money holds nothing back, or None."""


class Finding(View):
    """One cause of trouble, as `doctor` found it."""

    cause: str
    """Its name in docs/doctor.md."""
    title: str
    what: str
    since: datetime | None
    evidence: dict[str, Any]
    means: str
    """What it means for memory."""
    mend: str
    """The command or setting that mends it."""
    chosen: bool
    """Somebody's decision about one thread: told, and no reason for attention."""


class Diagnosis(View):
    """What `doctor` found, and the figures beside it."""

    ok: bool
    """Nothing needs attention."""
    looked: bool
    """False where the store could not be looked at."""
    at: datetime
    version: str
    store: dict[str, Any]
    """path, library, degraded, journal_mode, sync, size_bytes, wal_bytes, free_bytes, mode, failing."""
    findings: list[Finding]
    lanes: list[dict[str, Any]]
    """The lanes with due work that wait longest: project, subject, ready, running, oldest_due_s."""
    workers: list[Worker]
    expired_leases: int
    refused_finishes: int
    dead_letters: dict[str, int]
    """By class of error."""
    erases_unfinished: int
    held_back: dict[str, int]
    """Facts that recall holds back, by reason; most of them are no fault."""
    nats: Nats | None = None
    """None where no server of it is set."""


class Workspace(View):
    """What holds projects."""

    name: str
    created_at: datetime


class Project(View):
    id: str
    name: str
    created_at: datetime
    settings: dict[str, Any]
    messages: int
    facts: int


class ReprocessPlan(View):
    """What a reprocess did or (with `dry_run`) would do."""

    windows: int
    calls: int
    """Questions a model has to be paid for: those that no journaled reply of it answers, or all with `fresh`."""
    estimated_usd: float | None
    scheduled: int
    dry_run: bool


class ErasePlan(View):
    """What an erase did or (with `dry_run`) would do: rows per kind, and the residue found afterwards (0 is proof)."""

    scope: str
    rows: dict[str, int]
    residue: int | None
    dry_run: bool
    unclean: str | None = None
    """Why the file may still hold erased words outside every table; None where it was cleaned."""
    set_aside: int = 0
    """Records of hooks that could not be taken in and may hold words of it: `everkept erase --set-aside`."""


class Change(View):
    id: str
    """Of this change for ever: over replays, merges and restored backups. What a receiver that keeps marks keeps."""
    seq: int
    """Its place among the project's changes: what cursors count."""
    kind: str
    subject: str | None
    thread: str | None
    ref: str
    at: datetime
    data: dict[str, Any]


class ChangePage(View):
    changes: list[Change]
    next_after: int
    """Acknowledge up to here once the changes have been worked: what was filtered out counts as worked."""
    head: int


class Why(View):
    """Where a thing comes from: the events it rests on, the question that was asked, and what came of it."""

    id: str
    kind: str
    text: str
    events: list[Message]
    steps: list[dict[str, Any]]


class Page(View, Generic[T]):
    items: list[T]
    next_cursor: str | None = None


class KeyCreated(View):
    id: str
    name: str
    project: str
    token: str
    """Shown once; only its hash is stored."""


class UsageRow(View):
    day: str
    project: str
    stage: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    """US dollars of the calls whose price is known."""
    unpriced: int
    """Calls whose price is unknown: their tokens are counted, their money is not."""


class ProjectUsage(View):
    """What the models cost one project; the fields are those of UsageRow."""

    project: str
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    unpriced: int


class StoreUsage(View):
    """What the models cost all projects together."""

    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    unpriced: int
    projects: list[ProjectUsage]
    """The dearest first, at most 500."""
    left_out: int
    """Projects that are in the sums only."""


class ImportReport(View):
    """What an import did. `lines` = stored + replayed + passed_by + unreadable."""

    path: str
    threads: int
    lines: int
    stored: int
    replayed: int
    passed_by: dict[str, int]
    unreadable: list[str]


for _model in (ContextBlock, Episode):
    _model.model_rebuild()


# ---- coding agents


class Scope(View):
    """Whose memory answers, and how that was found."""

    project: str
    found_by: Literal["named", "marker", "remote", "root", "common_dir", "path", "session"]
    value: str
    """What it was found by: the remote's address, the path, …"""


class AgentContext(View):
    """What a coding agent is given at its start or with a prompt. Nothing is used up by it."""

    text: str
    """Empty where there is nothing to tell."""
    tokens: int
    """About how many the text costs."""
    offer: str | None
    """What is in the text, under one id: a record `shown` with it says that the agent has seen it."""
    scope: Scope | None
    """None where nobody knows the place."""
    because: str
    """Why this handoff, or why there is nothing."""


class Session(View):
    """A coding agent at work. A phantom did nothing; a trivial one made no page, and its events stay searchable."""

    id: str
    agent: str
    native_id: str
    parent: str | None
    title: str | None
    worktree: str | None
    branch: str | None
    model: str | None
    started_at: datetime | None
    last_event_at: datetime | None
    events: int
    state: Literal["open", "digested", "trivial", "phantom"]
    """`open`: it has events that no digest has seen yet."""
    trivial_because: str | None
    page: str | None
    """Slug of the page that tells of it."""
    finished_seq: int | None


class KnowledgePage(View):
    """A page as it stands; in lists without its body."""

    id: str
    slug: str
    kind: str
    title: str
    version: int
    body: str | None
    author: str
    reason: str | None
    source: str | None
    """The file that it came from."""
    session_id: str | None
    superseded: bool
    pinned: bool = False
    """No proposal changes it."""
    created_at: datetime
    updated_at: datetime


class PageVersion(View):
    version: int
    base: int | None
    title: str
    body: str
    author: str
    reason: str | None
    created_at: datetime


class Handoff(View):
    """Where a session left off. Reading it takes nothing up; working on after it was shown does."""

    id: str
    session_id: str
    agent: str
    worktree: str | None
    branch: str | None
    title: str
    body: str
    open_ends: list[str]
    state: Literal["open", "acknowledged", "replaced", "expired"]
    acknowledged_by: str | None
    left_at: datetime
    expires_at: datetime


class HandoffChoice(View):
    """The handoff that a session in this place is offered, and why this one."""

    chosen: Handoff | None
    because: str
    others: list[Handoff]


class TimelineItem(View):
    """Something that happened in the project, newest first in a timeline."""

    at: datetime
    kind: Literal["session", "page", "handoff", "episode", "fact", "proposal"]
    id: str
    title: str
    detail: str


class EventTaken(View):
    """What became of one event."""

    key: str
    outcome: Literal["stored", "revised", "replayed", "ignored"]
    """`revised`: stored in place of a poorer telling of it. `replayed`: it was there already."""
    reason: str | None
    """Why it was ignored."""
    event_id: str | None
    """None of what was ignored."""


class SessionTaken(View):
    """What became of the events of one session: new, in place of a poorer telling, or there already."""

    agent: str
    session: str
    """The agent's own id of it."""
    stored: int
    revised: int
    known: int
    project: str
    found_by: str
    """What decided the project: the session itself or a name (`named`), `remote`, `root`, `common_dir`, `path`."""
    events: list[EventTaken] = []
    """One for each event, in the order sent."""


class Refusal(View):
    code: str
    message: str


class Postponement(View):
    code: str
    message: str
    retry_after_s: float


class RecordTaken(View):
    """What became of one record: `taken` by session, `refused` for good, or `postponed`: to be sent again.

    A record behind a postponed one of its session is postponed too, so that a session's events keep their order.
    """

    name: str
    taken: list[SessionTaken] | None
    refused: Refusal | None
    postponed: Postponement | None = None


class Ingested(View):
    """In the order of what was sent: `records` answers records, `taken` answers events."""

    records: list[RecordTaken] | None
    taken: list[SessionTaken] | None
