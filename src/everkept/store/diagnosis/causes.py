"""Every cause that doctor can name, as one table: docs/doctor.md is made from it, and each has a planted case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    id: str
    title: str
    means: str
    """What it means for memory: what is lost (nearly always nothing) and what waits."""
    mends: str
    """In general; a finding has the exact command."""
    explained_by: tuple[str, ...] = ()
    """Where one of these was found, this is only its symptom, and is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause, found."""

    cause: str
    what: str
    since: int | None
    """Microseconds since 1970; None where nobody knows."""
    evidence: Mapping[str, int | float | str | None] = field(default_factory=dict)
    mend: str
    """The command or setting to use, exactly."""
    blind: bool = False
    """Nothing behind it could be looked at."""
    chosen: bool = False
    """Somebody's decision about one thread: worth telling, not worth attention."""


WEATHER = (
    "provider_slow", "provider_limiting", "provider_down", "key_refused", "quota_exhausted", "model_unknown",
    "budget_spent",
)  # fmt: skip
_STORE = ("memory_moved", "writes_fail", "disk_full", "store_locked")

_TABLE = (
    # ---- the file and its machine
    Cause(
        id="store_missing", title="There is no store",
        means="Nothing was kept here yet, or another home is meant.",
        mends="Look at `everkept config database_url`; the first `everkept add` makes the store.",
    ),
    Cause(
        id="store_newer", title="The store was made by a newer Everkept",
        means="Nothing is lost, and nothing is touched: this version refuses to open it.",
        mends="Install that version again: `pip install --upgrade everkept`.",
    ),
    Cause(
        id="schema_newer", title="The schema is newer than this program",
        means="Nothing is lost: the schema was made so that this version goes on with it, until all are upgraded.",
        mends="Finish the upgrade: `pip install --upgrade everkept`, and restart each process that is older.",
    ),
    Cause(
        id="store_foreign", title="The file is a database of something else",
        means="Nothing of Everkept is in it.",
        mends="Set `EVERKEPT_DATABASE_URL` to another file.",
    ),
    Cause(
        id="store_corrupt", title="The file is damaged",
        means="What stands on the damaged pages may be lost; everything else can be read.",
        mends="Stop every process, then `everkept restore FILE` with the newest backup.",
    ),
    Cause(
        id="store_locked", title="Another process holds the file's lock",
        means="Nothing is lost: writers wait, and are told so when they waited too long.",
        mends="Find it with `fuser FILE` and end it; a file manager's or an editor's lock counts too.",
    ),
    Cause(
        id="store_unreachable", title="The database server does not answer",
        means="Nothing is lost: what was accepted is in it, and hooks and clients keep what they could not send.",
        mends="See that the server runs, and that `everkept config database_url` names it.",
    ),
    Cause(
        id="connections_short", title="The database server has hardly a connection left",
        means="Nothing is lost; a process that starts or reconnects may be turned away and tries again.",
        mends="Raise `max_connections` by as many as it says, run fewer processes, or put a pooler before the server.",
    ),
    Cause(
        id="transaction_idle", title="A transaction stands idle on the database server",
        means="Nothing is lost; others may wait for it, and no space that was freed since can be used.",
        mends="End the program that holds it.",
    ),
    Cause(
        id="server_unsafe", title="The database server is told not to keep what it confirmed",
        means="What was accepted last can be lost when the server's machine goes down.",
        mends="Switch `fsync`, `full_page_writes` and `synchronous_commit` on.",
    ),
    Cause(
        id="role_too_mighty", title="The program's role is above row-level security",
        means="Nothing is lost; that one project never sees another is then kept by this program alone.",
        mends="Let it connect as a role of its own: `everkept db sql` prints how.",
    ),
    Cause(
        id="references_broken", title="Rows refer to nothing",
        means="Something other than Everkept changed the file; what refers to nothing may not be shown.",
        mends="Restore the newest backup: `everkept restore FILE`.",
    ),
    Cause(
        id="full_text_broken", title="The full-text index does not agree with its text (`--full`)",
        means="No message is lost; recall may miss some of them.",
        mends="Restore the newest backup: `everkept restore FILE`.",
        explained_by=("store_corrupt",),
    ),
    Cause(
        id="migration_pending", title="The store waits for an upgrade",
        means="Nothing is lost: the next start upgrades it, and keeps a copy beside it.",
        mends="`everkept db upgrade`",
    ),
    Cause(
        id="library_old", title="SQLite is too old for its fast journal",
        means="Nothing is at risk: the slower journal is used, because this version's WAL has a bug.",
        mends="`pip install pysqlite3`, or a Python with SQLite 3.51.3 or newer.",
    ),
    Cause(
        id="network_disk", title="The file lies on a network file system",
        means="Its locks cannot be trusted: two machines can damage the file.",
        mends="Move the home to a local disk and set `EVERKEPT_HOME`.",
    ),
    Cause(
        id="several_machines", title="Processes of several machines work on one file",
        means="SQLite's locks do not reach across machines: they can damage the file.",
        mends="Stop all but one, and let the others use `EVERKEPT_URL`.",
    ),
    Cause(
        id="open_to_others", title="Other users of this machine can read the file",
        means="Nothing is lost, but it may be read.",
        mends="`chmod 600 FILE`",
    ),
    Cause(
        id="disk_full", title="The disk is nearly full",
        means="What was accepted is safe; new messages are refused with an error once it is full.",
        mends="Free space on the disk of the home.",
    ),
    Cause(
        id="writes_fail", title="The store cannot be written",
        means="What was accepted is safe; nothing new is accepted, and clients get an error.",
        mends="Free space, or give the file's owner the right to write; the next write tries again by itself.",
        explained_by=("memory_moved", "disk_full", "store_locked"),
    ),
    Cause(
        id="memory_moved", title="The memory has moved to another database",
        means="Nothing is lost: all of it is there. Here it is only read, and hooks keep what they could not deliver.",
        mends="Set `EVERKEPT_DATABASE_URL` to where it is, and start again what uses the memory.",
    ),
    Cause(
        id="move_unfinished", title="A move to another database was begun and is not finished",
        means="Nothing is lost: the memory is used where it was, and keeps a list of what is written meanwhile.",
        mends="`everkept move --to …` finishes it, `everkept move --cancel` ends it.",
    ),
    Cause(
        id="copies_kept", title="Copies beside the store hold what was erased since",
        means="Erased words can still be read there.",
        mends="Delete the copies that are no longer needed.",
    ),
    Cause(
        id="clock_moved", title="Rows were written by a clock that ran ahead of this one",
        means="Nothing is lost; what waits is moved back with the clock as soon as a worker notices.",
        mends="Set the clock (NTP) on every machine that uses the store.",
    ),
    # ---- the work
    Cause(
        id="no_worker", title="No worker is alive",
        means="Nothing is lost: what was said can be found, and waits to be remembered.",
        mends="`everkept serve` has a worker inside, `everkept worker` is one.",
        explained_by=("memory_moved", "writes_fail"),
    ),
    Cause(
        id="lease_of_dead_worker", title="A dead or frozen worker still holds leases",
        means="Nothing is lost: any live worker takes the jobs back.",
        mends="Start a worker: `everkept worker`; or give the job back at once: `everkept jobs release JOB`.",
        explained_by=_STORE,
    ),
    Cause(
        id="worker_too_old", title="Jobs wait for a newer worker",
        means="Nothing is lost: a worker of the version that made them does them.",
        mends="Upgrade and restart the workers that are older.",
    ),
    Cause(
        id="sweep_failing", title="A backstop fails",
        means="Nothing is lost by itself; what the backstop would repair stays as it is.",
        mends="The error names what is wrong; `everkept status` shows when it runs again.",
        explained_by=_STORE,
    ),
    Cause(
        id="backlog_growing", title="More work comes in than is done",
        means="Nothing is lost: what was said is remembered later and later.",
        mends="Raise `EVERKEPT_WORK__SLOTS`, or start another `everkept worker`.",
        explained_by=("no_worker", "lease_of_dead_worker", "sweep_failing", "clock_moved", "paused", *_STORE, *WEATHER),
    ),
    Cause(
        id="paused", title="A kind of work or a provider is paused",
        means="Nothing is lost: what is due of it waits until somebody resumes it.",
        mends="`everkept jobs resume KIND`, or `everkept jobs resume --provider NAME`",
    ),
    Cause(
        id="input_kills_worker", title="An input ends the process that works it",
        means="The message is kept and found; what would be made of it is not there.",
        mends="`everkept jobs show JOB`, then retry or discard it.",
    ),
    Cause(
        id="dead_letters", title="Jobs were given up",
        means="The messages are kept and found; what would be made of them is not there.",
        mends="Mend what the error names, then `everkept jobs retry-all --cause CLASS`.",
    ),
    Cause(
        id="facts_failing", title="Facts fail after the summary succeeded",
        means="Messages and summary are kept and found; the facts of these episodes are not there.",
        mends="`everkept jobs retry EPISODE --stage facts`; another model where its replies cannot be used.",
    ),
    Cause(
        id="no_vectors", title="Passages have no vectors",
        means="Nothing is lost: they are found by their words, not yet by their meaning.",
        mends="The error names what is wrong; `everkept jobs retry-all --kind embed_passages`.",
        explained_by=("no_worker", "embedder_down", *_STORE),
    ),
    Cause(
        id="conflict_unjudged", title="A contradiction is not judged",
        means="Nothing is lost: both statements are kept, and marked as unsettled.",
        mends="`everkept jobs retry-all --kind judge_conflicts`",
        explained_by=("no_worker", *WEATHER),
    ),
    Cause(
        id="erase_unfinished", title="An erase has not come to its end",
        means="What it names is hidden already, and not destroyed yet.",
        mends="Start a worker, or retry its job: `everkept jobs retry JOB`.",
        explained_by=("no_worker",),
    ),
    Cause(
        id="erase_residue", title="An erase left something behind",
        means="Words that should be gone are still in a table.",
        mends="Erase the same scope again.",
    ),
    Cause(
        id="erase_unclean", title="The file may still hold erased words",
        means="They are in no table any more, but may be read off the file's free pages or its log.",
        mends="End what keeps the file open for reading; it is tried every hour by itself.",
    ),
    # ---- the provider
    Cause(
        id="provider_slow", title="The provider is too slow for the timeout",
        means="Nothing is lost: questions that got no reply in time are asked again.",
        mends="Raise `EVERKEPT_MODELS__STRUCTURED_TIMEOUT_S` and `…_TEXT_TIMEOUT_S`, or use a faster model.",
    ),
    Cause(
        id="provider_limiting", title="The provider limits the rate",
        means="Nothing is lost and no attempt is spent: questions wait until it may be asked again.",
        mends="Nothing to do; a higher tier at the provider, or fewer `EVERKEPT_MODELS__PERMITS_MAX`.",
    ),
    Cause(
        id="key_refused", title="The provider refuses the key",
        means="Nothing is lost and no attempt is spent: questions wait for a key that works.",
        mends="Set the provider's key and restart.",
    ),
    Cause(
        id="quota_exhausted", title="The account at the provider has no quota or money left",
        means="Nothing is lost and no attempt is spent: questions wait until it is paid.",
        mends="Pay, or use another key; it is probed by itself.",
    ),
    Cause(
        id="model_unknown", title="The provider does not know the model or the address",
        means="Nothing is lost and no attempt is spent: questions wait.",
        mends="Set `EVERKEPT_MODEL` or the provider's base URL and restart.",
    ),
    Cause(
        id="provider_down", title="The provider does not answer",
        means="Nothing is lost and no attempt is spent: questions wait, and go on by themselves.",
        mends="Nothing to do, unless the address is wrong.",
    ),
    Cause(
        id="embedder_down", title="The embedder does not answer",
        means="Nothing is lost: passages are found by their words and static vectors meanwhile.",
        mends="Nothing to do, unless its key or address is wrong; `EVERKEPT_EMBEDDER=wordllama` does without.",
    ),
    Cause(
        id="budget_spent", title="The project's own budget for today is spent",
        means="Nothing is lost and no attempt is spent: questions wait for midnight (UTC).",
        mends="`everkept projects set PROJECT models.daily_tokens_max=…` (or `models.daily_usd_max`).",
    ),
    Cause(
        id="price_unknown", title="A limit in money holds nothing back",
        means="Nothing is lost, and nothing stops either: calls whose price nobody knows count for no dollar.",
        mends="Limit tokens too, `models.daily_tokens_max`, or take a model whose price is known.",
    ),
    # ---- deliveries
    Cause(
        id="webhook_dead", title="A webhook is dead",
        means="Nothing is lost: it waits at its cursor, for as long as changes are kept.",
        mends="Mend the receiver, `everkept webhooks test ID`, then `everkept webhooks resume ID`.",
    ),
    Cause(
        id="webhook_failing", title="A webhook's receiver fails",
        means="Nothing is lost: changes wait in order, and are tried again with growing waits for days.",
        mends="Mend the receiver; it goes on by itself.",
    ),
    Cause(
        id="webhook_rejected", title="A webhook's receiver rejected changes",
        means="They are parked, and were passed by; what followed was delivered.",
        mends="`everkept webhooks show ID` tells why; `everkept webhooks retry ID` or `drop ID`.",
    ),
    Cause(
        id="consumer_behind", title="A consumer is behind what is kept",
        means="Changes that it never acknowledged are gone from the outbox; memory itself has lost nothing.",
        mends="Take a snapshot of what it mirrors, then `everkept consumers replay NAME --after N`.",
    ),
    Cause(
        id="nats_unreachable", title="NATS cannot be reached",
        means="Nothing is lost: events wait in their stream, or with their senders, and changes at their cursor.",
        mends="Start it, or correct `nats.url` and `nats.credentials`; everything goes on by itself.",
    ),
    Cause(
        id="nats_stream_differs", title="A stream of NATS does not keep what it is asked to keep",
        means="What it acknowledged may be gone before it was taken in; changes can be replayed, events cannot.",
        mends="Set it up as docs/nats.md says; Everkept makes streams that are missing, and alters none.",
    ),
    Cause(
        id="nats_one_replica", title="The streams of NATS have one replica",
        means="A power cut may lose what the server acknowledged in the last two minutes, unless it syncs always.",
        mends="Three replicas in a cluster, or `sync_interval: always` in the server's `jetstream` block.",
    ),
    Cause(
        id="nats_stream_lost", title="The stream of changes was made anew",
        means="Memory has lost nothing; who reads the stream misses what was published before.",
        mends="`everkept consumers replay nats --after N`: they are published again, each under its id.",
    ),
    # ---- nothing scheduled
    Cause(
        id="memory_off", title="Memory is off",
        means="What was said is kept and found, and never remembered by itself.",
        mends="Set `memory.enabled` where it is off, then `everkept reprocess --include-skipped`.",
    ),
    Cause(
        id="idle_null", title="No idle time is set: no timer opens an episode",
        means="What was said is kept and found, and remembered when the thread is ended.",
        mends="`everkept threads end THREAD`, or set `window.idle_s` where it is null.",
    ),
    Cause(
        id="timer_missing", title="A thread's timer is gone",
        means="What was said is kept and found; the sweep for abandoned threads picks it up later.",
        mends="`everkept threads end THREAD`",
    ),
    # ---- coding agents
    Cause(
        id="hooks_broken", title="An agent's hooks cannot run as they are installed",
        means="What the agent does is not captured; its transcripts can be imported later.",
        mends="`everkept install AGENT` puts right what is missing or differs.",
    ),
    Cause(
        id="hooks_untrusted", title="An agent passes its hooks by, because nobody trusted them",
        means="What the agent does is not captured; its transcripts can be imported later.",
        mends="Trust them in the agent: `/hooks` in Codex.",
    ),
    Cause(
        id="hooks_silent", title="An agent is at work, and its hooks are not heard",
        means="What it did since is not captured; its transcripts can be imported.",
        mends="Restart the agent, which reads its settings at the start; `everkept import AGENT`.",
    ),
    Cause(
        id="spool_waiting", title="Records of hooks wait to be taken in",
        means="Nothing is lost: they lie on the disk, and are not yet found or told.",
        mends="`everkept worker --until-idle`; its error says what keeps the store from taking them.",
        explained_by=_STORE,
    ),
    Cause(
        id="records_aside", title="Records of hooks could not be taken in",
        means="They are kept beside the spool, and are not in memory.",
        mends="The file beside each says why; move it back to try again, or delete it.",
    ),
    Cause(
        id="rules_unusable", title="Some redaction rules do not run here",
        means="A secret of their kind may be kept as it was said.",
        mends="`pip install google-re2`",
    ),
    Cause(
        id="marker_untrusted", title="This folder's marker names a project, and is not trusted",
        means="The project is found by the repository or the folder instead.",
        mends="`everkept projects trust`, if it is to be this folder's project; else take `project` out of"
        " `.everkept.toml`.",
    ),
    Cause(
        id="folder_unknown", title="Nobody knows this folder yet",
        means="Nothing was captured in it, so an agent that starts here is told nothing.",
        mends="Work in it with a wired agent, or `everkept import`.",
    ),
    # ---- facts there but not recallable
    Cause(
        id="fact_below_floor", title="Facts are below the confidence floor",
        means="They are kept, and held back from recall.",
        mends="Lower `recall.confidence_floor` of the project, or state the fact: `everkept remember`.",
    ),
    Cause(
        id="fact_retired", title="Facts were retired",
        means="They are kept, and not believed any more.",
        mends="`everkept forget FACT --undo`",
    ),
    Cause(
        id="fact_superseded", title="Facts were replaced by later statements",
        means="They are kept; the later statement speaks for them.",
        mends="`everkept forget` the later statement if it is wrong.",
    ),
    Cause(
        id="fact_not_yet_valid", title="Facts hold only from a later day on",
        means="They are kept, and recalled from that day on.",
        mends="Ask with `everkept recall … --as-of DAY`.",
    ),
    Cause(
        id="fact_no_longer_valid", title="Facts have ended",
        means="They are kept, and recalled for the time in which they held.",
        mends="Ask with `everkept recall … --as-of DAY`.",
    ),
    Cause(
        id="fact_unsettled", title="Facts wait for the verdict on a contradiction",
        means="They are kept; the later statement is recalled meanwhile.",
        mends="Nothing to do: the judge is on its way (without a model, `everkept forget` the wrong one).",
        explained_by=("conflict_unjudged",),
    ),
    Cause(
        id="fact_erased", title="Facts are being erased",
        means="They are hidden at once, and destroyed next.",
        mends="Nothing to do; an erase cannot be undone.",
        explained_by=("erase_unfinished",),
    ),
    Cause(
        id="fact_not_indexed", title="Facts are missing from the index",
        means="They are kept and listed, and no search finds them.",
        mends="`everkept reprocess --subject SUBJECT` writes them again; costs nothing.",
        explained_by=("store_corrupt",),
    ),
    Cause(
        id="facts_elsewhere", title="The facts are another subject's, or in another project",
        means="They are kept, and found under that name.",
        mends="Ask with that `--subject` and `--project`.",
    ),
)  # fmt: skip
CAUSES: Mapping[str, Cause] = {cause.id: cause for cause in _TABLE}


def without_symptoms(findings: list[Finding]) -> list[Finding]:
    """Findings that no other one explains, in the order of the table."""
    found = {finding.cause for finding in findings}
    order = list(CAUSES)
    causes = [f for f in findings if found.isdisjoint(CAUSES[f.cause].explained_by)]
    return sorted(causes, key=lambda f: order.index(f.cause))
