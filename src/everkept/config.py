"""Settings: one table, read once.

The table is the dataclasses below: each field is one setting `group.name`, with its default, range and meaning, and
everything else (parsing, `everkept config`, the docs) is generated from it. Where a value comes from, weakest first:
default, `config.toml` in the home, environment, project, thread. An unknown name or a value out of range is an
error everywhere, never ignored. The unit is in the name: `_s` seconds, `_days`, `_bytes`, `_tokens`, `_usd`; `_max`
is the largest number that is still allowed.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast

from everkept.errors import ConfigInvalid

T = TypeVar("T")
Secrecy = Literal["open", "url", "secret"]
"""Whether a value may be shown: `url` shows all but the password, `secret` shows nothing."""

MASK = "********"
_PREFIX = "EVERKEPT_"
_DAY_S = 86_400.0
_NATS_SERVER = r"(nats|tls)://([^:@/\s,]+:[^@/\s,]+@)?[^@/\s,]+"
_PORT = "([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a value must obey, and what it means; kept in the metadata of its field."""

    description: str
    least: float | None = None
    most: float | None = None
    pattern: str | None = None
    shape: str = ""
    """The pattern in words, for the error."""
    overridable: bool = False
    """Whether a project or a thread may have its own value."""
    secrecy: Secrecy = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table."""

    key: str
    type: str
    """`bool`, `int`, `float`, `str`, `list` or `path`."""
    nullable: bool
    default: Any
    rule: Rule

    @property
    def env(self) -> str:
        """Its name in the environment: `window.idle_s` is `EVERKEPT_WINDOW__IDLE_S`."""
        return _PREFIX + self.key.upper().replace(".", "__")

    @property
    def unit(self) -> str:
        """Read off the name; empty for a plain number, a switch or a text."""
        return next((unit for end, unit in _UNITS if self.key.endswith(end)), "")

    @property
    def limit(self) -> str:
        """What is accepted, in words."""
        words = {"bool": "true or false", "list": "a list of texts", "str": self.rule.shape or "a text"}
        text = words.get(self.type, "a path")
        if self.type in ("int", "float"):
            kind = "a whole number" if self.type == "int" else "a number"
            text = f"{kind} from {self.rule.least:.15g} to {self.rule.most:.15g}"
        return f"{text}, or null" if self.nullable else text


_UNITS = (
    ("_usd_max", "USD a day"), ("tokens_max", "tokens"), ("_seconds", "s"), ("_s", "s"), ("_days", "days"),
    ("_bytes", "bytes"), ("_cosine", "cosine"), ("contradiction_low", "cosine"),
)  # fmt: skip


def _number(default: float | None, least: float, most: float, description: str, *, overridable: bool = False) -> Any:
    rule = Rule(description=description, least=least, most=most, overridable=overridable)
    return field(default=default, metadata={"rule": rule})


def _value(
    default: Any,
    description: str,
    *,
    pattern: str | None = None,
    shape: str = "",
    overridable: bool = False,
    secrecy: Secrecy = "open",
) -> Any:
    rule = Rule(description=description, pattern=pattern, shape=shape, overridable=overridable, secrecy=secrecy)
    return field(default=default, metadata={"rule": rule}, repr=secrecy == "open")


def _nats_name(default: str, description: str) -> Any:
    return _value(default, description, pattern=r"[A-Za-z0-9_-]{1,64}", shape="letters, digits, - and _")


def _required(default: str, description: str, *, secrecy: Secrecy = "open") -> Any:
    """A setting without a constant default: `load` makes it from the machine; `default` is its text."""
    rule = Rule(description=description, secrecy=secrecy)
    return field(metadata={"rule": rule, "default": default}, repr=secrecy == "open")


# ---- the table


# Compared by identity, and each with a docstring: writing equality, hashes and signatures for 14 classes would double
# the time of the import, which every hook pays.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """Whether there is memory."""

    enabled: bool = _value(True, "Whether what is said is turned into episodes and facts.", overridable=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """When an episode opens, and how much it holds."""

    idle_s: float | None = _number(
        1800.0,
        1,
        30 * _DAY_S,
        "Quiet time before a window opens; null: no timer, only an explicit end.",
        overridable=True,
    )
    wait_max_s: float = _number(
        14_400.0, 1, 30 * _DAY_S, "Longest wait for a window while messages keep coming.", overridable=True
    )
    sibling_pull_s: float = _number(
        300.0,
        0,
        30 * _DAY_S,
        "A new thread pulls its subject's other timers to at most this far away.",
        overridable=True,
    )
    events_max: int = _number(100, 1, 10_000, "Messages in one window.", overridable=True)
    tokens_max: int = _number(12_000, 100, 1_000_000, "Tokens in one window.", overridable=True)
    abandoned_s: float = _number(
        86_400.0, 60, 365 * _DAY_S, "Quiet time after which uncaptured messages without a timer are picked up.",
        overridable=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """The job engine."""

    slots: int = _number(4, 1, 256, "Jobs that one worker runs at the same time.")
    tick_s: float = _number(5.0, 0.05, 300, "Longest time between two looks for due work.")
    episode_sweep_s: float = _number(120.0, 1, _DAY_S, "Time between two sweeps for episodes to try again.")
    fact_sweep_s: float = _number(120.0, 1, _DAY_S, "Time between two sweeps for windows without facts.")
    abandoned_sweep_s: float = _number(3600.0, 1, _DAY_S, "Time between two sweeps for abandoned threads.")
    claim_max: int = _number(20, 1, 1000, "Jobs claimed in one tick, never more than the free slots.")
    summary_retries_max: int = _number(3, 0, 100, "Retries of a summary after the first attempt.")
    fact_retries_max: int = _number(3, 0, 100, "Retries of an extraction after the first attempt.")
    crashes_max: int = _number(5, 1, 100, "Crashes of the process during one job before it is dead.")
    lease_s: float = _number(600.0, 5, _DAY_S, "How long a claim holds without a heartbeat.")
    heartbeat_s: float = _number(
        20.0,
        0.1,
        3600,
        "Time between two heartbeats. On PostgreSQL a writer that stands still is cut off after as long (2 to 20 s).",
    )
    backoff_first_s: float = _number(5.0, 0.01, 3600, "Wait before the first retry; it doubles from there.")
    backoff_max_s: float = _number(3600.0, 0.01, _DAY_S, "Longest wait before a retry.")
    job_retention_s: float = _number(30 * _DAY_S, 60, 3650 * _DAY_S, "How long finished jobs are kept.")
    drain_s: float = _number(5.0, 0, 3600, "How long a worker that stops finishes what it has begun.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Models:
    """Calls to language models and embedders."""

    text_timeout_s: float = _number(30.0, 1, 3600, "Limit of one call that answers in text.")
    structured_timeout_s: float = _number(90.0, 1, 3600, "Limit of one call that answers in a schema.")
    embedding_timeout_s: float = _number(30.0, 1, 3600, "Limit of one embedding call.")
    asks_max: int = _number(2, 1, 10, "Paid asks of one question while its replies cannot be used.")
    embedding_batch_max: int = _number(100, 1, 2048, "Texts in one embedding call.")
    permits_max: int = _number(8, 1, 1000, "Calls to one provider at the same time, over all workers.")
    probe_s: float = _number(60.0, 1, _DAY_S, "Time between two probes of a provider that is down.")
    daily_tokens_max: int | None = _number(
        None, 0, 1e12, "Tokens that a project may spend in a day (UTC); null: no limit.", overridable=True
    )
    daily_usd_max: float | None = _number(
        None, 0, 1e9, "Money that a project may spend in a day (UTC); null: no limit.", overridable=True
    )


# The weights are small rounded numbers of a linear model. They were fitted on the development conversations of LoCoMo
# (CC BY-NC; no text of it is here or anywhere in this project) and hold for two-person chat in English.
_WEIGHT = "Weight of "


def _weight(default: float, feature: str) -> Any:
    return _number(default, -20, 20, _WEIGHT + feature + ".")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recall:
    """How memory is searched and ranked."""

    facts_max: int = _number(8, 0, 100, "Facts in a context.", overridable=True)
    confidence_floor: float = _number(0.5, 0, 1, "Confidence under which a fact is held back.", overridable=True)
    entity_cosine: float = _number(0.88, 0, 1, "From here on two names mean the same entity.", overridable=True)
    contradiction_low: float = _number(
        0.80,
        0,
        1,
        "From here on two facts with other predicates may contradict each other; a judge reads both.",
        overridable=True,
    )
    candidates_lexical: int = _number(150, 1, 10_000, "Candidates by lexical score.")
    candidates_dense: int = _number(40, 0, 10_000, "Candidates by vector.")
    weight_bm: float = _weight(4.5, "the lexical score, with static vectors")
    weight_bm_lexical: float = _weight(7.5, "the lexical score, where there are no vectors")
    weight_bm_mini: float = _weight(3.5, "the lexical score, with a neural embedder")
    weight_static_turn: float = _weight(1.5, "the turn's static vector")
    weight_static_3: float = _weight(5.0, "the static vector of the turn and the two before it")
    weight_static_turn_mini: float = _weight(0.0, "the turn's static vector, with a neural embedder")
    weight_static_3_mini: float = _weight(2.5, "the static vector of three turns, with a neural embedder")
    weight_mini_turn: float = _weight(2.5, "the turn's neural vector")
    weight_mini_prev: float = _weight(4.0, "the neural vector of the turn and the one before it")
    weight_session_max: float = _weight(4.5, "the best lexical score in the same session")
    weight_speaker: float = _weight(1.5, "being said by the one participant whom the question names")
    weight_first_named: float = _weight(1.2, "being said by the participant named first, where two are named")
    weight_when_temporal: float = _weight(2.0, "a time expression, where the question asks when")
    weight_temporal: float = _weight(0.5, "a time expression")
    weight_month: float = _weight(2.5, "lying in the month or year that the question names")
    weight_opener: float = _weight(0.9, "opening a session")
    weight_prev_q: float = _weight(0.7, "following a question")
    weight_ends_q: float = _weight(-0.7, "being a question")
    weight_capitals: float = _weight(0.3, "each capitalised word, three at most")
    weight_bigram: float = _weight(0.3, "each pair of words that is adjacent in the question too")
    weight_fact: float = _weight(0.8, "being a fact: a tie-break")
    weight_maintained: float = _weight(0.8, "being part of a page that somebody keeps true: a tie-break")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Server:
    """The HTTP door."""

    bind: str = _value(
        "127.0.0.1:7411", "Address and port of HTTP; anything but loopback needs a key.",
        pattern=rf"(\[[0-9a-fA-F:.]+\]|[^:\s/]+):{_PORT}", shape="host:port",
    )  # fmt: skip
    allowed_hosts: tuple[str, ...] = _value((), "Host names accepted besides the address it listens on.")
    body_max_bytes: int = _number(32 * 2**20, 1024, 2**30, "Size of one request.")

    @property
    def address(self) -> tuple[str, int]:
        """`bind` as (host, port), an IPv6 host without its brackets."""
        host, _, port = self.bind.rpartition(":")
        return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intake:
    """How fast events come in."""

    events_per_s_max: float | None = _number(
        None, 0.001, 1_000_000, "New messages and events of a project that each process takes in a second; more is"
        " postponed, never dropped; null: no limit.", overridable=True,
    )  # fmt: skip
    burst_max: int = _number(
        1_000, 1, 1_000_000, "New messages and events that come in at once before `intake.events_per_s_max` holds.",
        overridable=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Store:
    """The database."""

    changes_retention_s: float = _number(30 * _DAY_S, 60, 3650 * _DAY_S, "How long changes are kept for consumers.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wiki:
    """Pages as files in a git repository, under `wiki` in the home."""

    enabled: bool = _value(True, "Whether pages are written to files, and edits of these files taken in.")
    interval_s: float = _number(5.0, 1, _DAY_S, "How often files and pages are compared.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Webhooks:
    """Changes that are sent to addresses of others."""

    allow_private: bool = _value(False, "Whether addresses of private networks and of this machine are sent to.")
    timeout_s: float = _number(15.0, 0.1, 600, "How long one delivery may take.")
    backoff_first_s: float = _number(5.0, 0.01, 3600, "Longest wait before the first retry; it doubles from there.")
    backoff_max_s: float = _number(3600.0, 0.01, _DAY_S, "Longest wait before a retry.")
    give_up_s: float = _number(3 * _DAY_S, 1, 365 * _DAY_S, "A webhook that fails for so long is paused as dead.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nats:
    """Events from, and changes to, streams of NATS JetStream."""

    url: str | None = _value(
        None, "Servers of NATS, with commas between them; null: none. A token goes into a credentials file.",
        pattern=rf"{_NATS_SERVER}(,{_NATS_SERVER})*", shape="nats://host:port or tls://host:port, with user:password@"
        " where that is needed", secrecy="url",
    )  # fmt: skip
    credentials: str | None = _value(None, "File of credentials (`.creds`) that NATS asks for.")
    take: bool = _value(True, "Whether events are taken from the stream of events.")
    drain: bool = _value(
        False, "Whether what hooks leave for a server elsewhere (`url`) is published as events, instead of sent to it."
    )
    publish: bool = _value(True, "Whether the changes of every project are published.")
    prefix: str = _value(
        "everkept", "How every subject begins; another one for each installation that shares an account of NATS.",
        pattern=r"[A-Za-z0-9_-]{1,64}", shape="letters, digits, - and _",
    )  # fmt: skip
    events_stream: str = _nats_name("EVERKEPT_EVENTS", "Stream from which events are taken.")
    changes_stream: str = _nats_name("EVERKEPT_CHANGES", "Stream to which changes are published.")
    durable: str = _nats_name("everkept", "Durable consumer by which all replicas take events.")
    replicas: int = _number(1, 1, 5, "Replicas of a stream that is made; 3 outlasts the loss of a server.")
    age_max_s: float = _number(30 * _DAY_S, 60, 3650 * _DAY_S, "How long a stream that is made keeps its messages.")
    duplicates_s: float = _number(120.0, 1, _DAY_S, "For how long a stream that is made knows a message's id.")
    ack_wait_s: float = _number(60.0, 1, 3600, "Without an acknowledgement for so long, a message is given again.")
    max_deliver: int = _number(
        10, 1, 10_000, "A message that was given more often becomes a job, which is tried as jobs are, and kept."
    )
    in_flight_max: int = _number(
        256, 1, 10_000, "Messages given and not yet acknowledged, over all replicas; 1 keeps their order strictly."
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workstreams:
    """Lines of work across several agents."""

    packet_tokens: int = _number(
        1_200, 300, 1_700, "Tokens of what a launch's agent is told of its workstream.", overridable=True
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scheduler:
    """Which finished sessions are reviewed by themselves, and when."""

    enabled: bool = _value(True, "Whether finished sessions are reviewed by themselves.", overridable=True)
    interval_seconds: float = _number(
        300.0, 1, 30 * _DAY_S, "Time between two looks for finished sessions of a project.", overridable=True
    )
    sessions_max: int = _number(10, 1, 50, "Sessions of a project under review at once.", overridable=True)
    age_min_s: float = _number(
        300.0, 0, 30 * _DAY_S, "How long ago a session was digested, at least: it may go on.", overridable=True
    )
    duration_min_s: float = _number(
        30.0, 0, 30 * _DAY_S, "A session that took less time is passed by, unless a hand asks for it.", overridable=True
    )
    observations_min: int = _number(
        1, 0, 10_000, "A session with fewer things to learn from is passed by, unless a hand asks for it.",
        overridable=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Review:
    """Reviews of finished sessions."""

    scheduler: Scheduler = Scheduler()


def _decision(kind: str) -> Any:
    text = f"What becomes of proposals for {kind} pages: approved at once, a person is asked, or none are made."
    return _value("ask", text, pattern="auto|ask|off", shape="auto, ask or off", overridable=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proposals:
    """What becomes of proposed improvements of pages."""

    rule: str = _decision("rule")
    procedure: str = _decision("procedure")
    skill: str = _decision("skill")
    gotcha: str = _decision("gotcha")
    expire_s: float = _number(30 * _DAY_S, 3600, 3650 * _DAY_S, "How long one waits for a decision.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Status:
    """From where on `status --check` asks for attention."""

    due_work_s: float = _number(300.0, 0, 30 * _DAY_S, "Work that is due for longer needs attention.")
    episode_failures_max: int = _number(0, 0, 1_000_000, "More failed summaries in an hour need attention.")
    fact_failures_max: int = _number(0, 0, 1_000_000, "More failed extractions in an hour need attention.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log:
    """What is logged, and how."""

    level: str = _value(
        "info", "Least severity that is logged.",
        pattern="debug|info|warning|error", shape="debug, info, warning or error",
    )  # fmt: skip
    format: str = _value(
        "auto", "Console lines, JSON lines, or by whether stderr is a terminal.",
        pattern="auto|console|json", shape="auto, console or json",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Secrets:
    """Never shown, not even in a repr; each may also come from a file (`…_FILE`) that not everybody may read."""

    api_key: str | None = _value(None, "Key that a client sends.", secrecy="secret")
    admin_key: str | None = _value(
        None, "Key that may do everything on this server. One from a file changes with the file.",
        pattern=r"[!-~]{16,256}", shape="16 to 256 visible ASCII characters without a space", secrecy="secret",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFile:
    """Where a secret is kept beside the environment."""

    variable: str
    """Which named it: `EVERKEPT_…_FILE`."""
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """Every setting, resolved. Immutable; a project's or a thread's view is made by `with_overrides`."""

    home: Path = _required("~/.everkept", "Folder of everything that is kept here.")  # noqa: RUF009 - it is a field
    database_url: str = _required("sqlite:///<home>/everkept.db", "Where the memory lives.", secrecy="url")
    database_direct_url: str | None = _value(
        None, "PostgreSQL itself, where database_url is a pooler's; what it tells of is heard there.", secrecy="url"
    )
    url: str | None = _value(
        None, "Server that the CLI talks to, instead of opening the store.",
        pattern=r"https?://\S+", shape="an http:// or https:// address", secrecy="url",
    )  # fmt: skip
    model: str | None = _value(
        None, "Language model; null: deterministic extraction, no calls.",
        pattern=r"[a-z][a-z0-9_-]*:\S+", shape="vendor:model, e.g. openai:gpt-5-mini",
    )  # fmt: skip
    embedder: str = _value(
        "wordllama", "Embedder: wordllama, minilm, e5, or vendor:model.",
        pattern=r"[a-z][a-z0-9_-]*(:\S+)?", shape="a name or vendor:model",
    )  # fmt: skip
    memory: Memory = Memory()
    window: Window = Window()
    work: Work = Work()
    models: Models = Models()
    recall: Recall = Recall()
    server: Server = Server()
    intake: Intake = Intake()
    store: Store = Store()
    wiki: Wiki = Wiki()
    webhooks: Webhooks = Webhooks()
    nats: Nats = Nats()
    proposals: Proposals = Proposals()
    review: Review = Review()
    workstreams: Workstreams = Workstreams()
    status: Status = Status()
    log: Log = Log()
    secrets: Secrets = field(default=Secrets(), repr=False)
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Key → where its value comes from, for every key that is not at its default."""
    files: Mapping[str, SecretFile] = field(default_factory=dict, repr=False)
    """Key → the file that it was read from, for every secret that was."""

    def get(self, key: str) -> Any:
        """The value of `group.name`. Raises ConfigInvalid for an unknown key."""
        return _read(self, _setting(key).key)

    def with_overrides(self, *layers: Mapping[str, Any]) -> Settings:
        """These settings as a project and then a thread see them; the last layer wins. Raises ConfigInvalid."""
        resolved, sources = self, dict(self.sources)
        for name, layer in zip(_layer_names(len(layers)), layers, strict=True):
            if layer:
                changes = validate_overrides(layer)
                resolved = _replace(resolved, changes)
                sources.update(dict.fromkeys(changes, name))
        if resolved is self:
            return self
        _check_order(resolved)
        return dataclasses.replace(resolved, sources=MappingProxyType(sources))

    def explain(self) -> list[SettingRow]:
        """Each setting with its value and where that comes from, in the order of the table; secrets are masked."""
        return [
            SettingRow(
                key=row.key,
                value=_shown(row, self.get(row.key)),
                source=self.sources.get(row.key, "default"),
                unit=row.unit,
                description=row.rule.description,
                limit=row.limit,
                env=row.env,
                overridable=row.rule.overridable,
            )
            for row in SETTINGS.values()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One line of `everkept config`."""

    key: str
    value: Any
    source: str
    """`default`, `config.toml`, `environment EVERKEPT_…`, `argument`, `project` or `thread`."""
    unit: str
    description: str
    limit: str
    env: str
    overridable: bool


def _table(cls: type[Any], prefix: str = "") -> Iterator[Setting]:
    for each in dataclasses.fields(cls):
        rule = each.metadata.get("rule")
        if rule is not None:
            kind, _, null = str(each.type).partition(" | ")
            kind = {"Path": "path", "tuple[str, ...]": "list"}.get(kind, kind)
            yield Setting(
                key=prefix + each.name,
                type=kind,
                nullable=bool(null),
                default=each.metadata.get("default", each.default),
                rule=rule,
            )
        elif dataclasses.is_dataclass(each.default):
            yield from _table(type(each.default), f"{prefix}{each.name}.")


SETTINGS: Mapping[str, Setting] = MappingProxyType({row.key: row for row in _table(Settings)})
"""Every setting by its key, in the order in which they are shown."""

SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "EVERKEPT_BIND": "server.bind",
        "EVERKEPT_API_KEY": "secrets.api_key",
        "EVERKEPT_ADMIN_KEY": "secrets.admin_key",
        "EVERKEPT_NATS_URL": "nats.url",
    }
)
"""Names in the environment that are shorter than the rule makes them."""

MARKERS = frozenset({"EVERKEPT_LAUNCH", "EVERKEPT_OFF"})
"""Names in the environment that are messages between processes or to the hooks, not settings."""

_ORDER = (
    ("work.heartbeat_s", "work.lease_s"),
    ("work.backoff_first_s", "work.backoff_max_s"),
    ("webhooks.backoff_first_s", "webhooks.backoff_max_s"),
    ("window.sibling_pull_s", "window.wait_max_s"),
)
"""Pairs of which the first must be smaller than, or as large as, the second."""


# ---- loading


def default_home(env: Mapping[str, str] | None = None) -> Path:
    """`~/.everkept`, or `%LOCALAPPDATA%\\everkept` on Windows."""
    env = os.environ if env is None else env
    if sys.platform == "win32" and env.get("LOCALAPPDATA"):
        return Path(env["LOCALAPPDATA"]) / "everkept"
    return Path.home() / ".everkept"


def load(env: Mapping[str, str] | None = None, home: Path | None = None) -> Settings:
    """Read the settings; nothing is created.

    `env` is the environment of the process where None; `home` wins over `EVERKEPT_HOME`.
    Raises ConfigInvalid for an unknown key, a value out of range, or a file that cannot be read.
    """
    env = os.environ if env is None else env
    home, home_source = _find_home(env, home)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, value, source in (*_from_file(home / "config.toml"), *_from_environment(env)):
        values[key], sources[key] = value, source
    if home_source:
        sources["home"] = home_source
    url, note = _place_database(values.pop("database_url", None), home)
    if note:
        sources["database_url"] += note
    base = Settings(home=home, database_url=url, sources=MappingProxyType(sources), files=MappingProxyType(_files(env)))
    settings = _replace(base, values)
    _check_order(settings)
    return settings


def read_again(settings: Settings, key: str) -> Any:
    """What the file of a secret says now, which may have been written since. Raises ConfigInvalid as `load` does."""
    file = settings.files[key]
    return _accept(SETTINGS[key], _read_secret(file), where=f" ({file.variable})")


def make_home(settings: Settings) -> Path:
    """Create the home if it is missing, readable by its owner only."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return settings.home


def validate_overrides(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Check settings meant for a project or a thread; keys may be flat (`window.idle_s`) or nested.

    Returns flat keys and typed values. Raises ConfigInvalid for an unknown key, a value out of range, or a setting
    that only the whole installation has.
    """
    checked = {}
    for key, value in _flatten(mapping):
        row = _setting(key)
        if not row.rule.overridable:
            raise ConfigInvalid(
                f"{key} belongs to the whole installation; a project or a thread can set {_list(_OVERRIDABLE)}",
                key=key,
            )
        checked[key] = _accept(row, value)
    return checked


_OVERRIDABLE = tuple(key for key, row in SETTINGS.items() if row.rule.overridable)


def _find_home(env: Mapping[str, str], given: Path | None) -> tuple[Path, str | None]:
    if given is not None:
        path, source = Path(given), "argument"
    elif env.get("EVERKEPT_HOME", "").strip():
        path, source = Path(env["EVERKEPT_HOME"].strip()), "environment EVERKEPT_HOME"
    else:
        return default_home(env), None
    path = path.expanduser()
    if given is None and not path.is_absolute():
        whole = os.path.abspath(path)
        raise ConfigInvalid(
            f"EVERKEPT_HOME is {str(path)!r}, another place in each folder; write it in full, e.g. {whole}", key="home"
        )
    return Path(os.path.abspath(path)), source


def _place_database(url: str | None, home: Path) -> tuple[str, str]:
    """The URL with an absolute path, and what to say if that had to be made: the current directory never matters."""
    if url is None:
        return f"sqlite:///{(home / 'everkept.db').as_posix()}", ""
    found = re.fullmatch(r"(sqlite(?:\+\w+)?:///)([^?]*)(\?.*)?", url)
    if found is None or found[2] in ("", ":memory:") or found[2].startswith("file:"):
        return url, ""
    path = Path(found[2]).expanduser()
    if path.is_absolute():
        return f"{found[1]}{path.as_posix()}{found[3] or ''}", ""
    return f"{found[1]}{(home / path).as_posix()}{found[3] or ''}", ", relative to the home"


def _from_file(path: Path) -> Iterator[tuple[str, Any, str]]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}", file=str(path)) from error
    import tomllib  # only where there is a file: it costs the start of every hook

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"{path} is not valid TOML: {error}", file=str(path)) from error
    for key, value in _flatten(content):
        row = _setting(key, where=f" in {path}")
        if key == "home":
            raise ConfigInvalid(f"home cannot be set in {path}, which lies in it; use EVERKEPT_HOME", key=key)
        yield key, _accept(row, value, where=f" in {path}"), "config.toml"


def _from_environment(env: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    chosen: dict[str, str] = {}
    for name in sorted(name for name in env if name.startswith(_PREFIX) and name not in MARKERS):
        key, from_file = _key_of(name)
        if key == "home" or not env[name].strip():  # an empty variable counts as not set, as in most shells
            continue
        if key in chosen:
            raise ConfigInvalid(f"{chosen[key]} and {name} both set {key}; keep one", key=key)
        chosen[key] = name
        text = _read_secret(_secret_file(name, env[name])) if from_file else env[name]
        yield key, _accept(SETTINGS[key], _parse(SETTINGS[key], text), where=f" ({name})"), f"environment {name}"


def _key_of(name: str) -> tuple[str, bool]:
    """The key that a variable sets, and whether its value is the path of a file that holds the secret."""
    names = _environment_names()
    if name in names:
        return names[name], False
    plain = name.removesuffix("_FILE")
    if plain != name and plain in names and SETTINGS[names[plain]].rule.secrecy != "open":
        return names[plain], True
    raise ConfigInvalid(f"{name} is not a setting{_nearest(name, names)}", key=name)


def _environment_names() -> dict[str, str]:
    return {row.env: row.key for row in SETTINGS.values()} | dict(SHORT_NAMES)


def _secret_file(name: str, path: str) -> SecretFile:
    return SecretFile(variable=name, path=Path(path.strip()).expanduser())


def _files(env: Mapping[str, str]) -> dict[str, SecretFile]:
    named = ((name, _key_of(name)) for name in env if name.startswith(_PREFIX) and name not in MARKERS)
    return {key: _secret_file(name, env[name]) for name, (key, is_file) in named if is_file and env[name].strip()}


def _read_secret(file: SecretFile) -> str:
    """One line. Raises ConfigInvalid where it cannot be read, or every user of the machine could read it."""
    name, path = file.variable, file.path
    try:
        text = path.read_text("utf-8").strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigInvalid(f"{name} names {path}, which cannot be read: {reason}", key=name) from error
    if os.name == "posix" and mode & stat.S_IROTH:
        raise ConfigInvalid(
            f"{name} names {path}, which everybody on this machine can read (mode {stat.S_IMODE(mode):04o}):"
            f" chmod o-rwx {path}",
            key=name,
        )
    if len(text.splitlines()) > 1:
        raise ConfigInvalid(f"{name} names {path}, which has more than one line", key=name)
    return text


def _flatten(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in mapping.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in SETTINGS:
            yield from _flatten(value, key + ".")
        else:
            yield key, value


# ---- one value


def _parse(row: Setting, text: str) -> Any:
    """Text from the environment → what a TOML file would hold; what cannot be read stays text, and is refused later."""
    text = text.strip()
    if row.type == "bool":
        return _SWITCHES.get(text.lower(), text)
    if row.type == "list":
        return [item.strip() for item in text.split(",") if item.strip()]
    if row.type in ("int", "float"):
        try:
            return int(text) if row.type == "int" else float(text)
        except ValueError:
            return text
    return text


_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _accept(row: Setting, value: Any, where: str = "") -> Any:
    """The value in the type of its setting. Raises ConfigInvalid that names the key, the limit and the place."""
    if row.nullable and (value is None or value in ("null", "none")):
        return None
    typed = _typed(row, value)
    if typed is None:
        shown = "the value" if row.rule.secrecy != "open" else repr(value)
        raise ConfigInvalid(f"{row.key} must be {row.limit}, not {shown}{where}", key=row.key, limit=row.limit)
    return typed


def _typed(row: Setting, value: Any) -> Any:
    """None where the value is of another type or out of range."""
    match row.type:
        case "bool":
            return value if isinstance(value, bool) else None
        case "int" | "float":
            return _typed_number(row, value)
        case "list":
            texts = isinstance(value, list | tuple) and all(isinstance(item, str) and item for item in value)
            return tuple(value) if texts else None
        case _:
            fits = isinstance(value, str) and bool(value.strip()) and "\0" not in value
            return value if fits and re.fullmatch(row.rule.pattern or r"[\s\S]+", value) else None


def _typed_number(row: Setting, value: Any) -> int | float | None:
    kinds = int if row.type == "int" else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        return None
    assert row.rule.least is not None
    assert row.rule.most is not None
    if not row.rule.least <= value <= row.rule.most:
        return None
    return value if row.type == "int" else float(value)


def _shown(row: Setting, value: Any) -> Any:
    if value is None or row.rule.secrecy == "open":
        return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
    if row.rule.secrecy == "secret":
        return MASK
    return re.sub(r"(://[^:/@\s]*):[^/\s]*@", rf"\1:{MASK}@", str(value))


# ---- names


def _setting(key: str, where: str = "") -> Setting:
    row = SETTINGS.get(key)
    if row is None:
        raise ConfigInvalid(f"{key} is not a setting{where}{_nearest(key, SETTINGS)}", key=key)
    return row


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib  # only for an error: it costs the start of every hook

    known = list(known)
    related = [each for each in known if each.startswith(f"{name}.") or each.endswith((f".{name}", f"__{name}"))]
    near = related[:3] or difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"; did you mean {_list(near)}?" if near else "; `everkept config` lists them all"


def _list(names: Iterable[str]) -> str:
    *head, last = names
    return f"{', '.join(head)} or {last}" if head else last


def _layer_names(count: int) -> list[str]:
    """Project, thread; a layer beyond those is called by its place."""
    return ["project", "thread", *(f"override {n}" for n in range(3, count + 1))][:count]


# ---- the tree


def _read(tree: Any, key: str) -> Any:
    for name in key.split("."):
        tree = getattr(tree, name)
    return tree


def _replace(tree: T, values: Mapping[str, Any]) -> T:
    """A copy of the tree with the flat `values` in it; what is not named is shared."""
    changes: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        name, _, rest = key.partition(".")
        if rest:
            below.setdefault(name, {})[rest] = value
        else:
            changes[name] = value
    for name, inner in below.items():
        changes[name] = _replace(getattr(tree, name), inner)
    return cast(T, dataclasses.replace(cast(Any, tree), **changes))


def _check_order(settings: Settings) -> None:
    for low, high in _ORDER:
        if settings.get(low) > settings.get(high):
            raise ConfigInvalid(
                f"{low} ({settings.get(low):.15g}) must not be larger than {high} ({settings.get(high):.15g})", key=low
            )
