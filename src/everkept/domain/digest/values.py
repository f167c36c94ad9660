"""What a digest holds. Texts are one line and bounded unless said otherwise; `seq` is the event that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from everkept.domain.session import AgentEvent, Outcome

PROMPT_CHARS_MAX: Final = 200
QUOTE_CHARS_MAX: Final = 300
COMMAND_CHARS_MAX: Final = 160
ERROR_CHARS_MAX: Final = 200
SAID_CHARS_MAX: Final = 1200

Effect = Literal["created", "edited", "moved", "deleted"]
DecisionKind = Literal["statement", "answer", "plan", "refusal"]
EndKind = Literal["plan", "interrupted", "unanswered", "question", "failed"]


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """An event at its place in its stream. Events of sub-agents keep the seq of their own stream."""

    seq: int
    event: AgentEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    seq: int
    text: str
    chars: int
    """Of the whole prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What became of one file over the whole session."""

    path: str
    """Relative to the session's folder where it is below it."""
    effect: Effect
    """`created` also where a redirection began a file of which nothing tells whether it was there before."""
    edits: int = 0
    moved_from: str | None = None
    restored: bool = False
    """Its last change was to be put back from git."""
    sure: bool = True
    """False where the call that changed it did not say how it ended, or failed in a later part."""

    @property
    def words(self) -> str:
        head = f"moved from {self.moved_from}" if self.moved_from and self.effect == "moved" else self.effect
        times = "" if self.edits < 2 else f" {self.edits} times"
        if self.effect == "edited":
            head += times
        elif self.edits and self.effect != "deleted":
            head += f", edited{times}"
        return head + (", then restored from git" if self.restored else "") + ("" if self.sure else " (not confirmed)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """The next success of a command that had failed, and what was changed between the two."""

    seq: int
    command: str
    """As it was run this time, where that differs in more than what it shows; else empty."""
    files: tuple[str, ...]
    commands: tuple[str, ...]
    """Commands that came out well in between, other than those that only look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCommand:
    seq: int
    key: str
    """Hash of the normalised command: the same in every session."""
    command: str
    """Normalised."""
    exit_code: int | None
    error: str
    times: int
    """How often it failed with this error before it came out well."""
    decided_by: str
    looks: bool = False
    """It only shows what is there: its failure leaves nothing open."""
    fix: Fix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    """A normalised command that never failed, with the last outcome that it had."""

    seq: int
    key: str
    command: str
    outcome: Outcome
    times: int
    decided_by: str
    looks: bool
    """It only shows what is there: ls, cat, git status, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedCall:
    """A call that the user refused or broke off: an answer of the user, no failure of the call."""

    seq: int
    what: str
    outcome: Outcome
    decided_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMet:
    """A call of a tool other than the shell that failed, or an error that the agent itself reported."""

    seq: int
    what: str
    error: str
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    seq: int
    id: str
    branch: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Words of the user that decide something, verbatim but for white space."""

    seq: int
    kind: DecisionKind
    quote: str
    about: str = ""
    """What was asked, planned or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEnd:
    kind: EndKind
    text: str
    key: str
    """Equal for the same end in another session."""
    seq: int = 0
    carried: int = 0
    """Through how many later sessions it has stayed open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The last message of the agent in one turn. May have several lines."""

    seq: int
    turn: int
    """From 1: which prompt it answers; 0 before the first."""
    text: str
    chars: int
    """Of the whole message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A session in brief: complete by rule, whatever the length. Lists are in the order of the session."""

    agent: str
    session: str
    goal: str
    prompts: tuple[Prompt, ...]
    decisions: tuple[Decision, ...]
    files: tuple[FileChange, ...]
    read: tuple[str, ...]
    """Files that were read and not changed, the most often read first."""
    failed: tuple[FailedCommand, ...]
    commands: tuple[CommandRun, ...]
    stopped: tuple[StoppedCall, ...]
    errors: tuple[ErrorMet, ...]
    commits: tuple[Commit, ...]
    open_ends: tuple[OpenEnd, ...]
    done: tuple[str, ...]
    """Keys of what this session settled: finished plan items, and commands that came out well."""
    said: tuple[Said, ...]
    next_step: str
    """As the agent named it in its last message; empty where it named none."""
    outcomes: tuple[tuple[Outcome, str, int], ...]
    """(outcome, the rule that decided, calls), most frequent first."""
    models: tuple[str, ...]
    branches: tuple[str, ...]
    cwd: str | None
    started_at_us: int | None
    ended_at_us: int | None
    active_us: int
    """Time in which something happened: pauses of more than 10 minutes do not count."""
    left_out: tuple[tuple[str, int], ...]
    """(what, how many) of the events that nothing here rests on."""

    @property
    def duration_us(self) -> int:
        if self.started_at_us is None or self.ended_at_us is None:
            return 0
        return self.ended_at_us - self.started_at_us
