"""One call of a tool while its lines are being read: each line tells a part, in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from everkept.capture.agents.markers import is_our_tool, is_ours
from everkept.capture.agents.records import Record, as_json, bounded, text_in, texts_in
from everkept.domain.session import AgentEvent, Family, Outcome, ToolCall

_FAMILIES: Final[dict[Family, str]] = {
    "shell": "bash shell sh exec execcommand localshell localshellcall containerexec runshellcommand runterminalcmd "
    "runterminalcommand runinterminal writestdin powershell runcommand terminal execute writebash readbash",
    "edit": "applypatch patch write writefile createfile create edit editfile multiedit replace strreplace "
    "strreplacefile strreplaceeditor searchreplace deletefile insert notebookedit move rename",
    "read": "read readfile readmanyfiles readmediafile view viewimage viewfile cat",
    "search": "grep grepfiles grepsearch glob searchfilecontent list listdir listdirectory ls find rg codebasesearch "
    "filesearch search",
    "web": "websearch webfetch googlewebsearch fetch fetchurl searchweb webrun browse openpage",
    "task": "task agent agentswarm spawnagent waitagent wait sendinput closeagent resumeagent delegatetoagent subagent "
    "spawnsubagent collabagent",
    "plan": "updateplan todowrite writetodos settodolist todolist todoread updatetodo exitplanmode",
    "question": "question askuser askuserquestion requestuserinput",
}
_FAMILY_OF: Final = {name: family for family, names in _FAMILIES.items() for name in names.split()}
_PATHS: Final = (
    "file_path filePath absolute_path target_file filename file path notebook_path dir_path directory target_directory"
).split()
_STATES: Final = {
    "pending": "pending",
    "todo": "pending",
    "not_started": "pending",
    "in_progress": "in_progress",
    "inprogress": "in_progress",
    "active": "in_progress",
    "doing": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}


def family_of(name: str) -> Family:
    """What a tool does, by its name; an unknown one is `other`."""
    if name.startswith(("mcp__", "mcp_")):
        return "mcp"
    bare = "".join(c for c in name.lower() if c.isalnum())
    return _FAMILY_OF.get(bare, "other")


def paths_in(arguments: Record) -> tuple[str, ...]:
    """Files that a call names, in the order of its arguments."""
    single = [text_in(arguments, name) for name in _PATHS]
    return tuple(dict.fromkeys(path for path in (*single, *texts_in(arguments, "paths", "files")) if path))


def plan_items(rows: Any) -> tuple[tuple[str, str], ...]:
    """(text, state) of a todo list or a plan, whatever its agent calls the two."""
    if not isinstance(rows, list):
        return ()
    named = [
        (text_in(row, "step", "content", "description", "title", "text"), text_in(row, "status", "state"))
        for row in rows
        if isinstance(row, dict)
    ]
    return tuple((bounded(text), _STATES.get(state.lower(), "pending")) for text, state in named if text)


@dataclass(slots=True, kw_only=True)
class CallDraft:
    """What is known of one call. Of two that tell the same, the first is kept; of two verdicts, the surer one."""

    event: AgentEvent
    """Where and when it was first heard of."""
    name: str = ""
    family: Family | None = None
    command: str | None = None
    paths: tuple[str, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()
    changes_seen: bool = False
    """The changes are what was done, rather than what was asked."""
    input: str = ""
    output: str = ""
    ended: bool = False
    items: tuple[tuple[str, str], ...] | None = None
    """Of a plan or a todo list: the call is then an event of its own kind."""
    extra: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome = "unknown"
    decided_by: str = ""
    exit_code: int | None = None
    sureness: int = 0

    def ask(
        self,
        name: str,
        *,
        family: Family | None = None,
        command: str | None = None,
        paths: tuple[str, ...] = (),
        changes: tuple[tuple[str, str], ...] = (),
        given: Any = None,
    ) -> None:
        """What the call was asked; `given` is a text or JSON."""
        self.name = self.name or name
        self.family = self.family or family
        self.command = self.command or command
        self.paths = self.paths or paths
        self.changes = self.changes or changes
        self.input = self.input or bounded(as_json(given))

    def answer(self, output: str = "") -> None:
        """What came of it; an empty output ends the call all the same."""
        if self.sureness == 1 and output:  # it did come to an end, however its turn ended
            self.sureness, self.outcome, self.decided_by = 0, "unknown", ""
        self.output = self.output or bounded(output)
        self.ended = True

    def changed(self, changes: tuple[tuple[str, str], ...]) -> None:
        """What was really done to files."""
        if changes and not self.changes_seen:
            self.changes, self.changes_seen = changes, True

    def decide(self, sureness: int, outcome: Outcome, rule: str, exit_code: int | None = None) -> None:
        """A verdict; the surest stands: 6 a refusal, 5 an exit code, 4 a flag, 3 words, 2 a status, 1 a turn's end."""
        if sureness > self.sureness:
            self.sureness, self.outcome, self.decided_by = sureness, outcome, rule
        if self.exit_code is None:
            self.exit_code = exit_code

    def decide_by_code(self, code: int | None) -> None:
        if code is not None:
            self.decide(5, "ok" if code == 0 else "failed", "exit code", code)

    def finished(self) -> AgentEvent:
        """The event, complete as far as its lines were found."""
        fields = self.event
        if self.items is not None:
            return _with(fields, kind="plan", text=self.input, items=self.items, extra=self.extra)
        family = self.family or family_of(self.name)
        paths = self.paths or tuple(dict.fromkeys(path for path, _ in self.changes))
        call = ToolCall(
            name=self.name or "unknown",
            family=family,
            command=None if self.command is None else bounded(self.command),
            paths=paths,
            changes=self.changes,
            input=self.input,
            output=self.output,
            ended=self.ended,
            outcome=self.outcome,
            decided_by=self.decided_by,
            exit_code=self.exit_code,
        )
        told = (self.command or "", self.input, self.output)
        ours = self.extra.get("ours") is True or is_our_tool(self.name) or any(map(is_ours, told))
        return _with(fields, kind="tool", tool=call, extra=self.extra, evidence=not ours)


def _with(event: AgentEvent, **fields: Any) -> AgentEvent:
    extra = {**event.extra, **fields.pop("extra")}
    values = {name: getattr(event, name) for name in AgentEvent.__slots__}
    return AgentEvent(**{**values, **fields, "extra": extra})
