"""The hook: appends one redacted record of what an agent tells to a local spool, and exits 0 whatever happens.

`everkept install` puts it into the home; agents run it as `<interpreter> -I -S <home>/hook.py --agent NAME` with the
event as JSON on stdin. So it is one file, needs nothing but the standard library, and imports next to nothing: on the
usual way neither `json` nor `re` (each costs as much as the start of the interpreter). Its patterns lie ready beside
it, made when it was installed.

The record: `format`, `agent`, `event` (its native name), `at_ns`, `cwd`, `place` (what git's files tell), `payload` as
the agent sent it or `raw` where that is no JSON; where they apply `launch`, `cut` ({field: characters}), `removed`
({what: times}), `policy`, `notes`; after context was printed, one of the event `shown` with its `offer`.
"""

# ruff: noqa: SIM105 - `contextlib` takes as long to import as all that a hook does

from __future__ import annotations

import os
import sys
import time
from itertools import pairwise

TYPE_CHECKING = False  # as in `typing`, whose import would cost more than all that this script does
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

FORMAT = 1
STDIN_WAIT_S, STDIN_OPEN_S = 5.0, 0.5
"""How long more is waited for; and after what may be all, because some agents leave stdin open."""
STDIN_BYTES_MAX = 32 * 2**20
FIELD_CHARS_MAX = 32_768
BEYOND_CHARS = 8_192
"""How far beyond a cut secrets are looked for."""
RECORD_CHARS_MAX = 2**20
"""When this much of a record is kept, each further field keeps little."""
CROWDED_CHARS_MAX = 1_000
CONTEXT_CHARS_MAX = 9_000
ANSWER_BYTES_MAX = 2**20
BUDGET_S = {"session_start": 1.5, "prompt": 0.3}
"""How long the agent is held for context, by kind of event; no other event asks for any."""
MARKER = ".everkept.toml"
LOCK_FD = "_EVERKEPT_WORKER_LOCK"
"""In the environment of a worker that a hook started: the descriptor under which it holds its lock already."""

KINDS = {
    "sessionstart": "session_start", "session.created": "session_start",
    "userpromptsubmit": "prompt", "beforesubmitprompt": "prompt", "userprompt": "prompt", "beforeagent": "prompt",
    "chat.message": "prompt",
    "pretooluse": "tool_announced", "beforetool": "tool_announced", "tool.execute.before": "tool_announced",
    "beforeshellexecution": "tool_announced", "beforemcpexecution": "tool_announced",
    "posttooluse": "tool", "aftertool": "tool", "tool.execute.after": "tool", "posttool": "tool",
    "aftershellexecution": "tool", "aftermcpexecution": "tool", "afterfileedit": "tool",
    "posttoolusefailure": "tool_failed",
    "precompact": "compaction", "precompress": "compaction", "experimental.session.compacting": "compaction",
    "postcompact": "compacted", "postcompaction": "compacted", "session.compacted": "compacted",
    "notification": "notification",
    "stop": "turn_end", "stopfailure": "turn_end", "afteragent": "turn_end", "session.idle": "turn_end",
    "interrupt": "turn_end", "afteragentresponse": "said",
    "subagentstart": "subagent_start", "subagentstop": "subagent_end", "subagentend": "subagent_end",
    "sessionend": "session_end", "session.deleted": "session_end",
}  # fmt: skip
"""Native name without case, `-` and `_` → what it is; any other name is `other`."""
DURABLE = frozenset(["prompt", "turn_end", "session_end"])
"""What is synced to the disk before the agent goes on: the words of a person, and ends."""

JSON_ONLY = frozenset(["codex", "cursor", "gemini"])
"""Agents that take nothing but JSON on stdout."""
SHAPES = {"claude-code": "envelope", "codex": "envelope", "gemini": "envelope", "cursor": "additional_context"}
"""How each agent takes context (`shaped`); any other gets the bare text."""
UNABLE = frozenset([("cursor", "prompt")])
"""(agent, kind) of events whose answer cannot carry context."""


# ---- the run


def main() -> None:
    """Run the hook on this process's stdin and stdout. Ends the process, always with 0."""
    agent, event = _arguments(sys.argv[1:])
    answered = False
    try:
        answered = hear(agent, event, _home())
    except BaseException as error:  # noqa: BLE001 - whatever went wrong, the agent must not feel it
        _complain(error)
    if not answered and agent in JSON_ONLY:
        _print("{}")
    os._exit(0)  # nothing is left to clean up, and tearing down the interpreter takes time


def hear(agent: str, event: str, home: str) -> bool:
    """Keep one event, wake the worker, and give context where the event asks for it. Whether anything was printed."""
    data = _read_stdin()
    if is_off(os.environ):
        note_off(home, heard(data, agent, event))
        return False
    record = record_of(data, agent, event)
    if record is None:
        return False
    note_on(home, record)
    kind = kind_of(record["event"])
    name = ""
    try:
        name = append(home, record, durable=kind in DURABLE)
    except OSError as error:
        _complain(error)
    awake = wake(home)
    if kind not in BUDGET_S or (record["agent"], kind) in UNABLE:
        return False
    return _give_context(home, record, name, kind, patient=awake and kind == "session_start")


def _arguments(words: Sequence[str]) -> tuple[str, str]:
    """(agent, event); the event is only told where the payload does not name it."""
    found = {"--agent": "unknown", "--event": ""}
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for option, value in pairwise(split):
        if option in found:
            found[option] = value
    return found["--agent"], found["--event"]


def _home() -> str:
    """As every part of Everkept finds it, but that a copy in a home knows its own."""
    given = os.environ.get("EVERKEPT_HOME", "").strip()
    if os.path.isabs(given):
        return given
    if os.path.basename(__file__) == "everkept_hook.py":
        return os.path.dirname(os.path.abspath(__file__))
    local = os.environ.get("LOCALAPPDATA")
    return os.path.join(local, "everkept") if os.name == "nt" and local else os.path.expanduser("~/.everkept")


def is_off(environment: Mapping[str, str]) -> bool:
    return environment.get("EVERKEPT_OFF", "").strip().lower() not in ("", "0", "false", "no", "off")


def kind_of(event: str) -> str:
    """What an event is, by its native name: a value of `KINDS`, or `other`."""
    return KINDS.get(event.lower().replace("-", "").replace("_", ""), "other")


def _complain(error: BaseException) -> None:
    try:
        os.write(2, f"everkept: this event may not have been kept: {str(error) or type(error).__name__}\n".encode())
    except OSError:
        pass


def _print(text: str) -> bool:
    """Whether all of it could be written to stdout."""
    data = text.encode("utf-8", "replace")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True


# ---- what the agent says


def _read_stdin() -> bytes:
    """All of it, or what came in time; what is over the limit is taken from the agent and dropped."""
    parts: list[bytes] = []
    size = 0
    try:
        if os.isatty(0):
            return b""
        _set_alarm(STDIN_WAIT_S)
        while part := os.read(0, 2**20):
            _set_alarm(STDIN_OPEN_S if part.rstrip().endswith(b"}") else STDIN_WAIT_S)
            if size < STDIN_BYTES_MAX:
                parts.append(part)
            size += len(part)
    except OSError:  # no stdin at all, or it took too long (TimeoutError)
        pass
    finally:
        _set_alarm(0)
    return b"".join(parts)


def _set_alarm(seconds: float) -> None:
    try:
        import _signal  # type: ignore[import-not-found]  # what `signal` wraps in enums

        _signal.signal(_signal.SIGALRM, _on_alarm)
        _signal.setitimer(_signal.ITIMER_REAL, seconds)
    except (ImportError, AttributeError, ValueError):  # Windows; not the main thread
        pass


def _on_alarm(*_: object) -> None:
    raise TimeoutError


def as_text(data: bytes) -> str:
    """Whatever encoding it is in; bytes that are no text become U+FFFD."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _whole_number(digits: str) -> int | str:
    """One that is too long to be read (4,300 digits) stays a text."""
    try:
        return int(digits)
    except ValueError:
        return digits


class _Plain:
    """How the scanner of `json` is set, written down without importing it."""

    strict = False
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_constant = float, str
    parse_int = staticmethod(_whole_number)
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own


def parse_json(text: str) -> Any:
    """Raises ValueError or RecursionError where it is no JSON."""
    text = text.strip()
    try:
        from _json import make_scanner

        value, end = make_scanner(_Plain())(text, 0)  # type: ignore[arg-type]
        if end == len(text):
            return value
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - an interpreter without it, or no JSON: `json` decides and says why
        pass
    import json

    return json.loads(text, strict=False, parse_int=_whole_number)


def to_json(value: Any) -> str:
    try:
        from _json import encode_basestring, make_encoder

        chunks = make_encoder(None, str, encode_basestring, None, ":", ",", False, False, True)(value, 0)
        return "".join(chunks)
    except (ImportError, AttributeError, TypeError):
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def find_text(payload: Any, names: Sequence[str]) -> str:
    """The first text that is not empty under one of the names; a dot leads into what is below, `0` to the first."""
    for name in names:
        value = payload
        for part in name.split("."):
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and part == "0":
                value = value[0] if value else None
            else:
                value = None
        if isinstance(value, str) and value.strip():
            return value
    return ""


EVENT_NAMES = ("hook_event_name", "hookEventName", "event_name", "event", "type", "event.type")
CWD_NAMES = (
    "cwd", "current_dir", "working_dir", "directory", "workspace_roots.0", "workspacePaths.0", "path.cwd",
    "info.directory", "event.cwd", "payload.cwd",
)  # fmt: skip


class Heard:
    """What came on stdin, read but not cleaned."""

    def __init__(self, text: str, payload: Any, agent: str, event: str, notes: list[str]) -> None:
        self.at_ns = time.time_ns()
        self.text = text
        self.payload = payload
        """None where the text is no JSON."""
        self.agent = agent
        self.event = event
        self.notes = notes


def heard(data: bytes, agent: str, event: str) -> Heard:
    text = as_text(data)
    notes = ["not all of it was UTF-8"] if "\ufffd" in text and data[:2] not in (b"\xff\xfe", b"\xfe\xff") else []
    payload: Any = None
    try:
        payload = parse_json(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        notes.append(f"not JSON: {error}"[:200])
    if find_text(payload, ("cursor_version",)):  # Cursor runs the hooks of Claude Code, too
        agent = "cursor"
    return Heard(text, payload, agent, find_text(payload, EVENT_NAMES) or event, notes)


def record_of(data: bytes, agent: str, event: str) -> dict[str, Any] | None:
    """The record of what came on stdin; None where the folder's policy keeps it out."""
    said = heard(data, agent, event)
    cwd, folder = _folder_of(said.payload)
    top, markers = _walk_up(folder)
    policy = policy_of(markers)
    if policy.off or policy.ignores(folder):
        return None
    content, tally = _content_of(said.text, said.payload, policy, said.event, folder)
    more = {
        "place": {**(place_of(top) if top else {}), **({"marker": policy.project} if policy.project else {})},
        "launch": os.environ.get("EVERKEPT_LAUNCH", ""),
        "policy": policy.words(),
        "notes": said.notes,
    }
    told = {"agent": said.agent, "event": said.event, "cwd": cwd}
    about: dict[str, Any] = {**told, **{name: value for name, value in more.items() if value}}
    if not _is_harmless(list(_texts(about))):
        about = _clean(about, "", tally)
    about["event"] = about["event"][:128]
    counts = {name: value for name, value in (("cut", tally.cut), ("removed", tally.removed)) if value}
    return {"format": FORMAT, "at_ns": said.at_ns, **about, **counts, **content}


def _folder_of(payload: Any) -> tuple[str, str]:
    """(where it happened, the same resolved): what the agent says, if a disk can have such a name."""
    told = find_text(payload, CWD_NAMES)
    if told:
        try:
            return told, os.path.realpath(told)
        except (OSError, ValueError):  # NUL, or half a character
            pass
    here = _working_folder()
    return here, os.path.realpath(here)


def _content_of(text: str, payload: Any, policy: Policy, event: str, folder: str) -> tuple[dict[str, Any], Tally]:
    tally = Tally()
    if payload is not None:
        try:
            return {"payload": _clean(policy.narrow(payload, event, folder, tally), "", tally)}, tally
        except RecursionError:  # nested deeper than we can follow
            tally = Tally()
    return {"raw": _clean_text(text, "raw", tally) if policy.is_open else ""}, tally


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return os.environ.get("PWD", "/")


# ---- what the folder's owner allows


def _walk_up(folder: str) -> tuple[str, list[str]]:
    """(top folder of the checkout or "", marker files from there down), looking upwards from the folder."""
    markers = []
    while True:
        marker = os.path.join(folder, MARKER)
        if os.path.exists(marker):
            markers.append(marker)
        if os.path.exists(os.path.join(folder, ".git")):
            return folder, markers[::-1]
        above = os.path.dirname(folder)
        if above == folder:
            return "", markers[::-1]
        folder = above


class Policy:
    """What marker files keep out. Several only ever narrow each other."""

    def __init__(self) -> None:
        self.off = False
        self.prompts = True
        self.metadata_only = False
        self.ignore: list[tuple[str, str]] = []
        """(folder of the marker, glob below it)"""
        self.project = ""
        """The project that the highest marker names."""

    @property
    def is_open(self) -> bool:
        return self.prompts and not self.metadata_only and not self.ignore

    def words(self) -> list[str]:
        """What is narrowed, as the record says it."""
        found = [] if self.prompts else ["prompts = false"]
        found += ["metadata_only = true"] if self.metadata_only else []
        return found + [f"ignore {glob} in {folder}" for folder, glob in self.ignore]

    def ignores(self, path: str) -> bool:
        return any(_matches(path, folder, glob) for folder, glob in self.ignore)

    def narrow(self, payload: Any, event: str, cwd: str, tally: Tally) -> Any:
        """The payload without what the policy keeps out. A transcript holds all of it, so that it is not named then."""
        if self.is_open:
            return payload
        if not isinstance(payload, dict):
            return None
        kept = {name: value for name, value in payload.items() if name not in TRANSCRIPT_NAMES}
        if not self.prompts:
            words = PROMPT_NAMES if kind_of(event) == "prompt" else PROMPT_NAMES[:2]
            tally.count("prompts", sum(name in kept for name in words))
            kept = {name: value for name, value in kept.items() if name not in words}
        if self.metadata_only or self._touches_ignored(payload, cwd):
            tally.count("content", 1)
            kept = {n: value for n, value in kept.items() if n in METADATA_NAMES and not isinstance(value, dict)}
        return kept

    def _touches_ignored(self, payload: dict[str, Any], cwd: str) -> bool:
        if not self.ignore:
            return False
        inputs = {name: value for name, value in payload.items() if name in INPUT_NAMES}
        if any(self.ignores(os.path.join(cwd, word)) for text in _texts(inputs) for word in _words(text)):
            return True
        return any(self.may_reach_ignored(command, cwd) for command in _commands(inputs))

    def may_reach_ignored(self, command: str, cwd: str) -> bool:
        """Whether a shell may make the name of an ignored file of a word of the command: `cat sec*/key.txt`."""
        loose = _loosened(command)
        paths = [os.path.normpath(os.path.join(cwd, word)) for word in _words(loose)[1:] if "*" in word or "?" in word]
        too_many = sum(map(len, paths)) > GLOB_CHARS_MAX or sum(map(loose.count, "*?")) > WILDCARDS_MAX
        return (bool(paths) and too_many) or any(
            may_meet(path, f"{folder.rstrip(os.sep)}/{wanted}")
            for path in paths for folder, glob in self.ignore for wanted in _wanted(glob)
        )  # fmt: skip


TRANSCRIPT_NAMES = frozenset(["transcript_path", "transcriptPath", "agent_transcript_path"])
PROMPT_NAMES = ("prompt", "user_prompt", "message", "text", "attachments", "parts", "output")
"""Where prompts stand; the first two in any event, the others in the event of a prompt."""
INPUT_NAMES = frozenset(
    ["tool_input", "toolInput", "args", "input", "toolCall", "file_path", "command", "cwd", "edits", "attachments"]
)
GLOB_CHARS_MAX, WILDCARDS_MAX = 4_096, 256
"""Of all globs of one command: one that has more may reach anything."""
COMMAND_NAMES = frozenset(["command", "cmd", "script", "glob", "pattern", "path", "file_path"])
"""Where words stand that a shell, or a tool that finds files, takes for globs."""
METADATA_NAMES = frozenset(
    "session_id sessionId sessionID session conversationId conversation_id generation_id turn_id hook_event_name"
    " hookEventName event_name event type cwd workspace_roots workspacePaths cursor_version model permission_mode"
    " source reason trigger status tool tool_name tool_use_id callID call_id duration duration_ms timestamp"
    " occurred_at agent_id agent_type stop_hook_active is_interrupt loop_count".split()
)
"""What a record of metadata only may have: who, when, which tool, and how it ended."""


def policy_of(markers: Sequence[str]) -> Policy:
    """What marker files (from the top folder down) say. One that cannot be read counts as `metadata_only = true`."""
    policy = Policy()
    for marker in markers:
        try:
            said = _settings_in(marker)
        except (OSError, ValueError):
            policy.metadata_only = True
            continue
        policy.off |= said.get("off", False) is not False
        policy.prompts &= said.get("prompts", True) is True
        policy.metadata_only |= said.get("metadata_only", False) is not False
        project = said.get("project", "")
        policy.project = policy.project or (project if isinstance(project, str) else "")
        globs = said.get("ignore", [])
        folder = os.path.dirname(marker)
        policy.ignore += [(folder, str(glob)) for glob in (globs if isinstance(globs, list) else [globs]) if glob]
    return policy


def _settings_in(marker: str) -> Mapping[str, Any]:
    """What a marker file says. Raises OSError, or ValueError where it is no TOML."""
    with open(_open_file(marker), "rb") as file:
        text = file.read().decode()
    said = plain_settings(text)
    if said is None:
        import tomllib  # takes longer than all the rest

        said = tomllib.loads(text)
    return said


def plain_settings(text: str) -> dict[str, bool | str | list[str]] | None:
    """TOML of the usual lines (`name = true`, `name = "text"`, `name = ["text"]`, comments); None if it has others."""
    usual = _compiled(SETTING)
    said: dict[str, bool | str | list[str]] = {}
    for line in text.split("\n"):
        match = usual.fullmatch(line)
        if match is None or match[1] in said:
            return None
        if match[1]:
            texts = match[2].split('"')[1::2]
            said[match[1]] = texts if match[2][0] == "[" else texts[0] if texts else match[2] == "true"
    return said


def _matches(path: str, folder: str, glob: str) -> bool:
    """Whether a path, or a folder that it lies in, is one that the glob names below the marker's folder."""
    below = os.path.normpath(path)
    if below == folder or not below.startswith(folder.rstrip(os.sep) + os.sep):
        return False
    below = below[len(folder.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
    return any(is_like(below, each) for each in _wanted(glob))


def _wanted(glob: str) -> list[str]:
    """The globs, below the marker's folder and with a `*` for anything, of the path and of what lies in it."""
    plain = glob.strip("/").removeprefix("**/").removesuffix("/**")
    anchored = "/" in plain or glob.startswith("/")
    if anchored and not glob.startswith("**/"):
        return [plain, f"{plain}/*"]
    return [plain, f"{plain}/*", f"*/{plain}", f"*/{plain}/*"]


def is_like(path: str, glob: str) -> bool:
    """As `fnmatch` decides, which is imported only for what has more than stars in it."""
    if "?" in glob or "[" in glob or os.name == "nt":
        from fnmatch import fnmatch

        return fnmatch(path, glob)
    begin, *rest = glob.split("*")
    if not rest:
        return path == glob
    at = len(begin)
    for part in rest[:-1]:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return path.startswith(begin) and path.endswith(rest[-1], at)


def may_meet(shell: str, glob: str) -> bool:
    """Whether some path is like both: what a shell may make of a word (its `*` names no `/`), and one of our globs."""
    glob = _loosened(glob)
    begin = min((at for at in (shell.find("*"), shell.find("?"), glob.find("*"), glob.find("?")) if at >= 0), default=0)
    if shell[:begin] != glob[:begin]:
        return False
    todo = [(begin, begin)]
    seen = set(todo)
    while todo:
        at, there = todo.pop()
        one, other = shell[at : at + 1], glob[there : there + 1]
        if not one and not other:
            return True
        steps = []
        if one == "*":
            steps += [(at + 1, there), *([(at, there + 1)] if other not in ("", "/") else [])]
        if other == "*":
            steps += [(at, there + 1), *([(at + 1, there)] if one else [])]
        if one and other and (one == other or "?" in (one, other)):
            steps.append((at + 1, there + 1))
        todo += [step for step in steps if step not in seen]
        seen.update(steps)
    return False


def _loosened(glob: str) -> str:
    """With `?` for `[abc]` and `*` for `{a,b}`: it names the same, and more."""
    for opening, closing, instead in (("[", "]", "?"), ("{", "}", "*")):
        first, *rest = glob.split(opening)
        pieces = [first]
        for part in rest:
            inside, ends, after = part.partition(closing)
            is_one = ends and inside and not any(mark in inside for mark in " \t\n\"'")
            pieces.append(instead + after if is_one else opening + part)
        glob = "".join(pieces)
    return glob


def _commands(value: Any, name: str = "") -> Iterator[str]:
    """Every text that a shell may get."""
    if isinstance(value, str):
        if name in COMMAND_NAMES:
            yield value
    elif isinstance(value, list):
        if name in COMMAND_NAMES and all(isinstance(item, str) for item in value):
            yield " ".join(value)
        else:
            for item in value:
                yield from _commands(item)
    elif isinstance(value, dict):
        for field, item in value.items():
            yield from _commands(item, field)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _words(text: str) -> list[str]:
    """The words of a command or patch that may be paths, and the text as a whole, which may be one with spaces."""
    return [text, *text.translate(_BETWEEN).split()]


_BETWEEN = {ord(mark): " " for mark in "\"'`=<>|&;(),:"}


# ---- secrets


class Tally:
    """What was cut and removed on the way into one record."""

    def __init__(self) -> None:
        self.cut: dict[str, int] = {}
        self.removed: dict[str, int] = {}
        self.kept_chars = 0
        self.harmless: set[str] = set()
        """Names of fields that are kept as they are."""
        self.lists = 0
        """How many lists lie around the text that is cleaned now."""
        self.private_depth = 0
        """How many private parts are open there, of texts before it in its list."""

    def count(self, what: str, times: int) -> None:
        if times:
            self.removed[what] = self.removed.get(what, 0) + times


Span = tuple[int, int, str]
"""(start, end, name of the rule)"""

_NAMES = "api_key api-key apikey access_key access-key secret secret_key secretkey token password passwd passphrase pwd"
_SEPARATORS = ("=", ":", '"', "'", "\\", " =", " :")
_ASSIGNED = tuple(name + mark for name in _NAMES.split() for mark in _SEPARATORS)
_NAME = r"(?i:api[_-]?key|access[_-]?key|secret(?:[_-]?key)?|token|passw(?:or)?d|passphrase|pwd)"
RULES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("aws-key", ("akia", "asia", "abia", "acca"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("github-token", ("github_pat_",), r"\bgithub_pat_\w{22,}"),
    ("gitlab-token", ("glpat-", "gldt-", "glrt-", "glptt-"), r"\bgl(?:pat|dt|rt|ptt)-[\w.-]{20,}"),
    ("model-key", ("sk-",), r"\bsk-(?=[\w-]{0,64}\d)[\w-]{20,}"),
    ("model-key", ("gsk_", "xai-", "pplx-", "r8_"), r"\b(?:gsk_|xai-|pplx-|r8_)[A-Za-z0-9]{30,}"),
    ("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("stripe-key", ("whsec_",), r"\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ("google-key", ("aiza",), r"\bAIza[\w-]{35}"),
    ("google-token", ("ya29.", "1//0", "gocspx-"), r"\b(?:ya29\.|1//0|GOCSPX-)[\w-]{20,}"),
    ("slack-token", ("xoxa-", "xoxb-", "xoxe", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
     r"\bx(?:ox[a-z]|app)[.-][\w.-]{10,}"),
    ("webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/-]{20,})"),
    ("webhook", ("/api/webhooks/",), r"/api/webhooks/(\d{10,}/[\w-]{30,})"),
    ("telegram-token", (":aa",), r"(?<!\w)\d{8,10}:AA[\w-]{33}"),
    ("package-token", ("npm_", "pypi-age"), r"\b(?:npm_[A-Za-z0-9]{36}|pypi-AgE[\w-]{50,})"),
    ("model-hub-token", ("hf_", "api_org_"), r"\b(?:hf|api_org)_[A-Za-z]{34}"),
    ("sendgrid-key", ("sg.",), r"\bSG\.[\w-]{16,32}\.[\w-]{16,64}"),
    ("hosting-token", ("dop_v1_", "doo_v1_", "dor_v1_", "hvs.", "hvb.", "dp.pt."),
     r"\b(?:do[opr]_v1_[a-f0-9]{64}|hv[sb]\.[\w-]{24,}|dp\.pt\.\w{40,})"),
    ("shop-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("work-token", ("lin_api_", "ntn_", "pmak-", "glsa_", "atatt3", "dapi", "nrak-", "sbp_"),
     r"\b(?:lin_api_|ntn_|PMAK-|glsa_|ATATT3|dapi|NRAK-|sbp_)[\w=.-]{27,}"),
    ("azure-key", ("accountkey=", "sharedaccesskey="), r"(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})"),
    ("age-key", ("age-secret-key-1",), r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    ("jwt", ("eyj",), r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]*)?"),
    ("authorization", ("bearer ", "authorization"),
     r"(?i)(?:\b(?:bearer|basic)\s{1,3}|authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:token\s{1,3})?)"
     r"((?=[\w+/.~=-]{0,64}\d)[\w+/.~=-]{16,})"),
    ("url-password", ("://",), r"://[^\s:/@\"'<>]{0,128}:([^\s/@\"'<>$\{]{1,256})@"),
    ("assigned", _ASSIGNED,
     _NAME + r"\\?[\"']?\s{0,3}[:=]{1,2}>?\s{0,3}\\?[\"'](?![$<{%])([^\s\"'\\]{6,512})(?=\\?[\"'])"),
    ("assigned", _ASSIGNED,
     _NAME + r"(?:=|:\s{1,3}|\s=\s)(?![$<{%])(?=[^\s\"'`]{0,64}\d)([^\s\"'`\\()\[\]{};,&|<>]{8,512})(?![\w.(\[])"),
    ("assigned", ("--password", "--token", "--secret", "--api-key", "--passwd"),
     r"(?i)--(?:password|token|secret|api-key|passwd)[\s=][\"']?([^\s\"'$<{-][^\s\"']{5,512})"),
)  # fmt: skip
"""(name, markers in lower case, pattern): a pattern runs only where one of its markers occurs. What is secret is its
group, or all of it. `\b` is that of ASCII, so that a secret is seen beside a character of another script, too."""

PRIVATE_MARK = r"(?i)(?:<|&lt;)\s{0,9}(/?)\s{0,9}private\b[^<>]{0,200}?(?:>|&gt;)"
KEY_EDGE = r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
KEY_BODY = r"[A-Za-z0-9+/]{24}|Proc-Type:"
_TEXT = r'"[^"\\\x00-\x1f\x7f]*"'
SETTING = (
    rf"[ \t]*(?:([A-Za-z0-9_-]+)[ \t]*=[ \t]*(true|false|{_TEXT}"
    rf"|\[[ \t]*(?:{_TEXT}[ \t]*(?:,[ \t]*{_TEXT}[ \t]*)*,?[ \t]*)?\])[ \t]*)?(?:#[^\x00-\x08\n-\x1f\x7f]*)?\r?"
)
"""A usual line of a marker file."""
PATTERNS = (*(pattern for _, _, pattern in RULES), PRIVATE_MARK, KEY_EDGE, KEY_BODY, SETTING)
"""All that is looked for."""

_SECRET_NAMES = (
    "password", "passwd", "passphrase", "secret", "api_key", "apikey", "api-key", "access_key", "accesskey",
    "private_key", "authorization", "access_token", "refresh_token", "auth_token",
)  # fmt: skip
"""Of a field that has one of these in its name, every text is removed."""
_PROGRAM_NAMES = frozenset(["type", "role", "id", "kind"])
"""Fields of a part that say what it is; without them nobody could read the part."""


def _clean(value: Any, where: str, tally: Tally) -> Any:
    """A JSON value without secrets, its long texts cut."""
    if isinstance(value, str):
        return _clean_text(value, where, tally)
    if isinstance(value, list):
        items = []
        depth = tally.private_depth
        tally.lists += 1
        for number, item in enumerate(value):
            items.append(_clean(item, f"{where}.{number}", tally))
        tally.lists -= 1
        tally.private_depth = depth
        return items
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        _look_at_names(value, tally)
        for name, item in value.items():
            clean = _clean_name(name, len(fields), where, tally)
            clean = clean if clean not in fields else f"{clean} {len(fields)}"
            fields[clean] = _clean_field(name, item, f"{where}.{clean}" if where else clean, tally)
        return fields
    return value


def _look_at_names(fields: dict[str, Any], tally: Tally) -> None:
    """Names are mostly the agent's own, but may be anything that a model thinks of. Looked at together, for speed."""
    new = [name for name in fields if name not in tally.harmless]
    if all(len(name) < 16 and name.isidentifier() for name in new) or _is_harmless(new):
        tally.harmless.update(new)


def _clean_name(name: str, number: int, where: str, tally: Tally) -> str:
    if name in tally.harmless:
        return name
    return _clean_apart(name, f"{where}.{number}" if where else str(number), tally)


def _is_harmless(texts: Sequence[str]) -> bool:
    """Whether there is nothing to be cleaned in any of some short texts."""
    if any(len(text) > CROWDED_CHARS_MAX for text in texts):
        return False
    together = "\n".join(texts)
    return "private" not in together.lower() and not secrets_in(together)


def _clean_apart(text: str, where: str, tally: Tally) -> str:
    """Cleaned as if it stood alone: it is in no private part of the texts around it, and opens or ends none."""
    depth, tally.private_depth = tally.private_depth, 0
    clean = _clean_text(text, where, tally)
    tally.private_depth = depth
    return clean


def _clean_field(name: str, value: Any, where: str, tally: Tally) -> Any:
    low = name.lower()
    if low == "token" or any(secret in low for secret in _SECRET_NAMES):
        value = _without_named(value, tally)
    if low in _PROGRAM_NAMES and isinstance(value, str):
        return _clean_apart(value, where, tally)
    return _clean(value, where, tally)


def _without_named(value: Any, tally: Tally) -> Any:
    """Every text that stands under a name of secrets goes; the short ones are words of a program."""
    if isinstance(value, list):
        return [_without_named(item, tally) for item in value]
    if isinstance(value, dict):
        return {name: _without_named(item, tally) for name, item in value.items()}
    if isinstance(value, str) and len(value) >= 6:
        tally.count("named", 1)
        return "[redacted:named]"
    return value


def _clean_text(text: str, where: str, tally: Tally) -> str:
    """Redacts, then cuts: a secret across a cut is seen, as it is looked for beyond the cut."""
    if len(text) < 8 and not tally.private_depth:
        return text
    low = text.lower()
    if tally.private_depth or ("private" in low and _is_marked(low)):
        text = _without_private(text, tally)
    if "private key" in low:
        text = _without_private_keys(text, tally)
    limit = FIELD_CHARS_MAX if tally.kept_chars < RECORD_CHARS_MAX else CROWDED_CHARS_MAX
    kept = _masked(text, tally) if len(text) <= limit else _shortened(text, limit // 2, where, tally)
    tally.kept_chars += len(kept)
    return kept


def _is_marked(low: str) -> bool:
    """Whether a text in lower case may mark something as private; code that is full of the word mostly does not."""
    parts = low.split("private")[:-1]
    return any(part[-24:].rstrip("/ \t\n\r\f\v").endswith(("<", "&lt;")) for part in parts)


def _without_private(text: str, tally: Tally) -> str:
    """Parts between `<private>` and `</private>` go, with what is nested in them; one that is not closed goes whole.

    In a list, as of the parts of a prompt, it goes on in the texts that follow there.
    """
    pieces: list[str] = []
    at = 0
    depth = tally.private_depth
    for mark in _compiled(PRIVATE_MARK).finditer(text):
        if mark[1]:
            at = mark.end() if depth else at
            depth = max(0, depth - 1)
            continue
        if depth == 0:
            pieces.append(text[at : mark.start()])
            tally.count("private", 1)
        depth += 1
    tally.private_depth = depth if tally.lists else 0
    return "".join([*pieces, "" if depth else text[at:]])


def _shortened(text: str, half: int, where: str, tally: Tally) -> str:
    left_out = len(text) - 2 * half
    tally.cut[where] = left_out
    head = _masked(text[: half + BEYOND_CHARS], tally, end=half)
    window = text[-(half + BEYOND_CHARS) :]
    tail = _masked(window, tally, start=len(window) - half)
    return f"{head}\n[… {left_out:,} characters cut …]\n{tail}"


def _masked(text: str, tally: Tally, start: int = 0, end: int | None = None) -> str:
    """The text from `start` to `end` without the secrets that lie in it or across its edges."""
    end = len(text) if end is None else end
    spans = secrets_in(text)
    if not spans:
        return text[start:end]
    pieces = []
    at = start
    for first, last, name in spans:
        if last <= at or first >= end:
            continue
        pieces += [text[at : max(first, at)], f"[redacted:{name}]"]
        tally.count(name, 1)
        at = last
    return "".join([*pieces, text[at:end]])


def secrets_in(text: str) -> list[Span]:
    """Where secrets are, in order; two may overlap."""
    low = text.lower()
    spans: list[Span] = []
    for name, markers, pattern in RULES:
        if not any(_occurs(low, marker, pattern) for marker in markers):
            continue
        spans += [(*match.span(match.lastindex or 0), name) for match in _compiled(pattern).finditer(text)]
    return sorted(spans)


def _compiled(pattern: str) -> Any:
    """One of `PATTERNS`, as `re.compile` gives it, with the rules of ASCII."""
    try:
        import everkept_hook_patterns as made  # type: ignore[import-not-found]  # what the installation put beside us

        if sys.hexversion == made.VERSION:
            import _sre  # type: ignore[import-not-found]  # what is under `re`

            return _sre.compile(pattern, *made.READY[pattern])
    except Exception:  # noqa: BLE001 - not put there, or not whole: `re` decides
        pass
    import re

    return re.compile(pattern, re.ASCII)


def _occurs(low: str, marker: str, pattern: str) -> bool:
    """Whether a marker is there so that its pattern may be: `task-` is no `sk-`, and most URLs name no user."""
    if marker == "://":
        return "@" in low and any("@" in part[:400].partition("/")[0] for part in low.split(marker)[1:])
    at = low.find(marker)
    if pattern.startswith("\\b"):
        while at > 0 and (low[at - 1] == "_" or (low[at - 1].isalnum() and low[at - 1].isascii())):
            at = low.find(marker, at + 1)
    return at >= 0


def _without_private_keys(text: str, tally: Tally) -> str:
    """Keys in PEM go whole: one without an end takes the rest of the text, one without a beginning its lines above."""
    edge = _compiled(KEY_EDGE)
    pieces: list[str] = []
    at = 0
    while match := edge.search(text, at):
        first, last = match.span()
        if match[1] == "END":
            first = _above(text, at, first)
        else:
            last = _end_of_key(text, last, edge)
        if (first, last) == match.span():  # only spoken of
            pieces.append(text[at:last])
        else:
            pieces += [text[at:first], "[redacted:private-key]"]
            tally.count("private-key", 1)
        at = last
    return "".join([*pieces, text[at:]])


def _end_of_key(text: str, begin: int, edge: Any) -> int:
    """Where the key ends that begins here. Without an end: here, if it is only spoken of, else all that follows."""
    following = edge.search(text, begin)
    if following and following[1] == "END":
        return int(following.end())
    near = text[begin : begin + 200]
    if not _compiled(KEY_BODY).search(near) and len(near.strip()) > 24:
        return begin
    return int(following.start()) if following else len(text)


def _above(text: str, least: int, end: int) -> int:
    """Where the lines of a key begin that stand above its last line: upwards as long as they are nothing but base64."""
    at = max(text.rfind("\n", least, end) + 1, least)
    before = text[at:end].rstrip(_BASE64 + "\\")
    if len(before) + 16 <= end - at:  # its lines end in an escaped `\n`
        return at + len(before)
    while at > least:
        line_start = max(text.rfind("\n", least, at - 1) + 1, least)
        line = text[line_start:at].replace("→", "\t").split("\t")[-1].strip()  # some tools number the lines
        if not line or line.strip(_BASE64):
            break
        at = line_start
    return at if at < max(text.rfind("\n", least, end) + 1, least) else end


_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


# ---- switched off


def note_off(home: str, said: Heard) -> None:
    """That the session is kept out from here on: its transcript, which may be read later, holds what is said now.

    Lines of a time (nanoseconds since 1970) and `off` or `on` in `<home>/off`, under a digest of the session's name.
    """
    session = find_text(said.payload, SESSION_NAMES)
    if session:
        begins = kind_of(said.event) == "session_start" and find_text(said.payload, ("source",)) in ("", "startup")
        _note_switch(off_file(home, said.agent, session), said.at_ns, "off", from_start=begins)


def note_on(home: str, record: Mapping[str, Any]) -> None:
    """That the session is kept again, if it was not."""
    session = find_text(record.get("payload"), SESSION_NAMES)
    if session and os.path.exists(os.path.join(home, "off")):
        _note_switch(off_file(home, record["agent"], session), record["at_ns"], "on")


def off_file(home: str, agent: str, session: str) -> str:
    return os.path.join(home, "off", _digest(f"{agent}/{session}"))


def _note_switch(path: str, at_ns: int, state: str, *, from_start: bool = False) -> None:
    before = _read(path)
    if before.endswith(f" {state}\n") or (state == "on" and not before):
        return
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        file = os.open(path, flags, 0o600)
        try:
            os.write(file, f"{0 if from_start and not before else at_ns} {state}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        _complain(error)


# ---- where it happened


def place_of(top: str) -> dict[str, str]:
    """What git's files tell of the checkout with this top folder; git itself is never run, and nothing is written."""
    gitdir = os.path.join(top, ".git")
    pointer = _read(gitdir)
    if pointer.startswith("gitdir:"):
        gitdir = os.path.normpath(os.path.join(top, pointer[7:].strip()))
    shared = _read(os.path.join(gitdir, "commondir")).strip()
    common = os.path.normpath(os.path.join(gitdir, shared)) if shared else gitdir
    head = _read(os.path.join(gitdir, "HEAD")).strip()
    place = {
        "top": top,
        "common_dir": common,
        "remote": without_credentials(_remote_in(_read(os.path.join(common, "config")))),
        "branch": head[16:] if head.startswith("ref: refs/heads/") else "",
        "worktree": os.path.basename(gitdir) if shared else "",
    }
    return {name: value for name, value in place.items() if value}


def _read(path: str) -> str:
    """The first 64 KB of a file; nothing where there is none."""
    try:
        file = _open_file(path)
    except (OSError, ValueError):  # ValueError: another file told a name that no disk can have
        return ""
    try:
        return os.read(file, 65_536).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def _open_file(path: str) -> int:
    """To be read. What is no plain file is none to us, and is not waited for. Raises OSError or ValueError."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    file = os.open(path, flags)
    if os.fstat(file).st_mode & 0o170000 != 0o100000:
        os.close(file)
        raise OSError(f"{path} is no file")
    return file


def _remote_in(config: str) -> str:
    """The URL of `origin`, else of the remote that stands first."""
    remotes: dict[str, str] = {}
    section = ""
    for line in config.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section.startswith('[remote "'):
            name, _, value = line.partition("=")
            if name.strip().lower() == "url":
                remotes.setdefault(section[9:].partition('"')[0], value.strip().strip('"'))
    return remotes.get("origin") or next(iter(remotes.values()), "")


def without_credentials(url: str) -> str:
    """A remote's URL, or its short form `host:path`, without user, password, query and fragment."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    host, slash, path = rest.partition("/")
    plain = scheme + mark + host.rpartition("@")[2] + slash + path
    return plain.partition("?")[0].partition("#")[0]


def normalised_remote(url: str) -> str:
    """`host/path` in lower case, the same for every way to write the remote: scheme, user, port, `.git` fall away.

    Nothing for a path on this machine. What is normalised already stays as it is.
    """
    url = without_credentials(url.strip()).replace("\\", "/")
    scheme, mark, rest = url.partition("://")
    if scheme == "file" or url.startswith(("/", ".", "~")) or url[1:3] == ":/":
        return ""
    if not mark:
        rest = url.replace(":", "/", 1) if ":" in url.partition("/")[0] else url
    host, _, path = rest.partition("/")
    port, _, below = path.partition("/")
    path = below if not mark and port.isdigit() and below else path
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host.partition(':')[0]}/{path}".lower() if host and path else ""


def scope_key(record: Mapping[str, Any]) -> str:
    """16 hex digits that name the record's project: by its remote, else its common dir, else its folder."""
    place = record.get("place") or {}
    if remote := normalised_remote(place.get("remote", "")):
        scope = f"remote:{remote}"
    elif common := place.get("common_dir"):
        scope = f"common:{common}"
    else:
        scope = f"path:{os.path.normpath(record.get('cwd') or '')}"
    return _digest(scope)


def _digest(text: str) -> str:
    try:
        from _blake2 import blake2b  # `hashlib` loads OpenSSL, too
    except ImportError:
        from hashlib import blake2b
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


# ---- the spool


def append(home: str, record: Mapping[str, Any], *, durable: bool, number: int = 0) -> str:
    """Write one record into the spool, whole or not at all. Its name there, which is its delivery key.

    `number` tells records of one process apart. Raises OSError.
    """
    spool = os.path.join(home, "spool")
    name = f"{record['at_ns']:020d}-{os.getpid()}-{number}.json"
    half, whole = os.path.join(spool, "tmp", name), os.path.join(spool, "new", name)
    data = to_json(record).encode("utf-8", "replace")
    file = _create(half)
    try:
        try:
            while data:
                data = data[os.write(file, data) :]
            if durable:
                os.fsync(file)
        finally:
            os.close(file)
        os.replace(half, whole)
    except OSError:
        os.unlink(half)
        raise
    if durable:
        _sync_folder(os.path.dirname(whole))
    return name


def _create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for optional in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, optional, 0)
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_spool(os.path.dirname(os.path.dirname(path)))
        return os.open(path, flags, 0o600)


def make_spool(spool: str) -> None:
    """Its folders, for their owner only; `tmp` last, as who finds it goes on to `new`. Raises OSError."""
    os.makedirs(os.path.dirname(spool), mode=0o700, exist_ok=True)
    for folder in (spool, os.path.join(spool, "new"), os.path.join(spool, "tmp")):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass


def _sync_folder(folder: str) -> None:
    if os.name == "nt":  # folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- the worker


def wake(home: str) -> bool:
    """See that a worker is awake; whether one is, or is being started.

    The lock goes over to the worker that is started, so that no second hook starts another.
    """
    command = os.path.join(home, "worker.json")
    if not os.path.exists(command):
        return False
    try:
        if sys.platform == "win32":
            return _wake_on_windows(home, parse_json(_read(command)))
        import fcntl

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(os.path.join(home, "worker.lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _start(parse_json(_read(command)), home, lock)
        except BlockingIOError:  # somebody holds it: a worker is awake
            pass
        finally:
            os.close(lock)
        return True
    except (OSError, ValueError) as error:
        _complain(error)
        return False


def _start(command: list[str], home: str, lock: int) -> None:
    if os.fork():
        return
    try:
        _detach(lock)
        os.chdir(home)
        os.execve(command[0], command, {**_worker_environment(home), LOCK_FD: "3"})
    finally:
        os._exit(127)


def _detach(lock: int) -> None:
    """Let go of all that is the agent's: who holds its stdout holds the agent."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.dup2(lock, 3) if lock != 3 else os.set_inheritable(3, True)
    os.closerange(4, 65_536)


def _worker_environment(home: str) -> dict[str, str]:
    """Ours, without what belongs to the agent's project."""
    left_out = ("EVERKEPT_LAUNCH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "EVERKEPT_HOME": home}


if sys.platform == "win32":

    def _wake_on_windows(home: str, command: list[str]) -> bool:
        """As `wake`; there, a lock cannot go over, and of two workers that are started one ends at once."""
        import msvcrt
        import subprocess

        with open(os.path.join(home, "worker.lock"), "a+b") as lock:
            try:
                lock.seek(0)
                msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                return True
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=_worker_environment(home),
            creationflags=0x00000008 | 0x00000200,  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
        )
        return True


# ---- context


def _give_context(home: str, record: dict[str, Any], name: str, kind: str, *, patient: bool) -> bool:
    """Print what the worker or server says, else, at a start, the last start pack; whether anything was printed."""
    answer = ask(home, record, name, BUDGET_S[kind], patient=patient)
    if answer is None:
        answer = start_pack(home, scope_key(record)) if kind == "session_start" else {}
    text = answer.get("text") or ""
    if not isinstance(text, str) or not text:
        return False
    printed = _print(shaped(record["agent"], record["event"], cap(text)))
    if printed and answer.get("offer"):
        kept = {each: value for each, value in record.items() if each in ("format", "agent", "cwd", "place", "launch")}
        session = find_text(record.get("payload"), SESSION_NAMES)
        shown = {**kept, "event": "shown", "at_ns": time.time_ns(), "session": session, "offer": answer["offer"]}
        append(home, shown, durable=False, number=1)
    return printed


SESSION_NAMES = (
    "session_id", "sessionId", "sessionID", "session", "conversationId", "conversation_id", "info.id",
    "properties.sessionID", "properties.info.id", "event.session_id", "event.sessionId", "event.sessionID",
    "event.properties.sessionID", "event.properties.info.id", "payload.session_id", "payload.sessionId",
    "payload.sessionID", "payload.conversation_id",
)  # fmt: skip


def ask(home: str, record: Mapping[str, Any], name: str, budget_s: float, *, patient: bool) -> dict[str, Any] | None:
    """The answer of the worker or server on `<home>/context.sock`; None where nobody answers in time.

    `patient`: one is being started, so that its socket is waited for.
    """
    path = os.path.join(home, "context.sock")
    end = time.monotonic() + budget_s
    while True:
        try:
            if os.path.exists(path):
                return _asked(path, record, name, end)
        except (FileNotFoundError, ConnectionRefusedError):  # one that ended left it behind
            pass
        except (OSError, ValueError, ImportError):
            return None
        if not patient or time.monotonic() + 0.02 >= end:
            return None
        time.sleep(0.02)


def _asked(path: str, record: Mapping[str, Any], name: str, end: float) -> dict[str, Any] | None:
    """One line of JSON there, one back. Raises OSError (TimeoutError where the time is over) or ValueError."""
    import _socket  # `socket` costs as much as the rest of the hook

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_left(end))
        connection.connect(path)
        question = {"hook": record, "name": name, "budget_ms": round(_left(end) * 1e3)}
        connection.sendall(to_json(question).encode("utf-8", "replace") + b"\n")
        data = b""
        while not data.endswith(b"\n") and len(data) < ANSWER_BYTES_MAX:
            connection.settimeout(_left(end))
            part = connection.recv(65_536)
            if not part:
                break
            data += part
        answer = parse_json(data.decode("utf-8", "replace"))
        return answer if isinstance(answer, dict) else None
    finally:
        connection.close()


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def start_pack(home: str, scope: str) -> dict[str, Any]:
    """The last start context on disk for this scope, its age said before its text; {} where there is none.

    The file is {"text", "offer", "made_at_us"}.
    """
    path = os.path.join(home, "start", f"{scope}.json")
    try:
        pack = parse_json(_read_whole(path))
        made_at_us = pack.get("made_at_us") or os.stat(path).st_mtime_ns // 1000
        age = in_words(time.time() - made_at_us / 1e6)
        return {**pack, "text": f"(As of {age} ago: Everkept did not answer in time.)\n\n{pack['text']}"}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}


def _read_whole(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(ANSWER_BYTES_MAX).decode("utf-8", "replace")


def in_words(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"


def cap(text: str) -> str:
    """At most what every agent takes whole."""
    return text if len(text) <= CONTEXT_CHARS_MAX else f"{text[: CONTEXT_CHARS_MAX - 1]}…"


def shaped(agent: str, event: str, text: str) -> str:
    """The context as the agent takes it."""
    match SHAPES.get(agent):
        case "envelope":
            return to_json({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
        case str(key):
            return to_json({key: text})
    return text
