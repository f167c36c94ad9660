"""What Cursor's transcripts, its older text files and the database of its editor have in common: prompts and calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from everkept.capture.agents.building import REASON_CHARS_MAX, ReadingBuilder, Taken, Verdict
from everkept.capture.agents.drafts import CallDraft, family_of, paths_in, plan_items
from everkept.capture.agents.markers import heard
from everkept.capture.agents.reading import Line, Reading
from everkept.capture.agents.records import Record, arguments_in, exit_code_in, flag_in, records_in, text_in
from everkept.domain.session import Family
from everkept.domain.shell import Change, changes_of, changes_of_patch

AGENT: Final = "cursor"
_ROOT: Final = Path("/")
_NO_LETTER = re.compile(r"[^A-Za-z0-9]+")
_FAMILIES: Final[dict[str, Family]] = {
    "delete": "edit",
    "editnotebook": "edit",
    "semanticsearch": "search",
    "semanticsearchfull": "search",
    "codebasesearch": "search",
    "globfilesearch": "search",
    "ripgreprawsearch": "search",
    "callmcptool": "mcp",
    "calldynamictool": "mcp",
    "askquestion": "question",
    "createplan": "plan",
}
_PATHS: Final = ("relativeWorkspacePath", "relative_workspace_path", "targetFile", "target_notebook", "targetNotebook")
_EXIT_CODE: Final = "Exit code: "
_SAID_ELSEWHERE: Final = frozenset(
    "command path file_path target_file targetFile relativeWorkspacePath description is_background "
    "working_directory cwd required_permissions block_until_ms explanation".split()
)


def place_of(path: Path) -> tuple[str, str | None]:
    """(session, its parent) by a file's place: `<session>/<session>.jsonl` or `<session>/subagents/<child>.jsonl`."""
    return path.stem, path.parent.parent.name if path.parent.name == "subagents" else None


def project_folder(path: Path, root: Path = _ROOT) -> str | None:
    """The folder that a transcript is about: `…/projects/home-me-my-app/agent-transcripts/…` → `/home/me/my_app`.

    Cursor writes the path with a dash for whatever is no letter or digit, so that only looking below `root` can tell;
    None where no such folder is there (any more).
    """
    for folder, name in zip(path.parents, path.parents[1:], strict=False):
        if folder.name == "agent-transcripts":
            found = _folder_named(_NO_LETTER.sub("-", name.name).strip("-"), root)
            return str(found) if found is not None else None
    return None


def _folder_named(dashed: str, below: Path) -> Path | None:
    try:
        folders = [entry for entry in below.iterdir() if entry.is_dir()]
    except OSError:  # not ours to look into
        return None
    # The longest name first: `my-app` is meant before `my`.
    for folder in sorted(folders, key=lambda entry: (-len(entry.name), entry.name)):
        name = _NO_LETTER.sub("-", folder.name).strip("-")
        if name and dashed == name:
            return folder
        if name and dashed.startswith(f"{name}-") and (found := _folder_named(dashed[len(name) + 1 :], folder)):
            return found
    return None


def account(reading: Reading, line: Line, verdict: Verdict) -> None:
    """Counts a line, or a record, of what is no JSONL."""
    reading.lines += 1
    match verdict:
        case Taken.USED:
            reading.used += 1
        case Taken.MERGED:
            reading.merged += 1
        case Taken.UNREADABLE:
            reading.unreadable.append((line.number, line.raw))
        case str(reason):
            reading.passed_by[reason[:REASON_CHARS_MAX]] += 1


def take_prompt(built: ReadingBuilder, text: str, *, native: str = "") -> Verdict:
    """A text in the user's role, whoever it is from."""
    told = heard(AGENT, text)
    extra = {"not_typed": told.reason} if told.reason else {}
    return built.add("prompt", told.text, native=native, genuine=not told.reason, evidence=told.evidence, extra=extra)


class Calls:
    """The calls of one session. Results come by id, and where calls have none, in the order of the calls."""

    def __init__(self, built: ReadingBuilder) -> None:
        self._built = built
        self._by_id: set[str] = set()
        self._waiting: list[CallDraft] = []
        """Calls without an id that have no result yet, the oldest first."""
        self._todos: dict[str, Record] = {}

    def asked(self, name: str, given: Any, *, native: str = "") -> Verdict:
        name = name or "unknown"
        draft, verdict = self._built.call(native, sign=f"{name} {given}")
        ask(draft, name, given)
        if name.replace("_", "").lower() == "todowrite":
            draft.items = plan_items(self._todos_after(arguments_in(given)))
        if native:
            self._by_id.add(native)
        else:
            self._waiting.append(draft)
        return verdict

    def answered(self, output: str, told: Record, *, native: str = "") -> Verdict:
        """`told`: what else is known of the outcome, see `answer`."""
        if self._waiting and native not in self._by_id:
            answer(self._waiting.pop(0), output, told)
            return Taken.MERGED
        draft, verdict = self._built.call(native, sign=output)
        answer(draft, output, told)
        return verdict

    def _todos_after(self, arguments: Record) -> list[Record]:
        """The list after a call that sets it, or with `merge` changes some of it."""
        if arguments.get("merge") is not True:
            self._todos.clear()
        for nth, row in enumerate(records_in(arguments, "todos")):
            name = text_in(row, "id") or str(nth)
            self._todos[name] = {**self._todos.get(name, {}), **row}
        return list(self._todos.values())


def ask(draft: CallDraft, name: str, given: Any) -> None:
    """Fills in what a call asks for; `given` is an object, one written as JSON, or a patch."""
    arguments = arguments_in(given)
    bare = "".join(c for c in name.lower() if c.isalnum()).removesuffix("v2")
    family = "mcp" if name.startswith("mcp") else _FAMILIES.get(bare) or family_of(bare)
    paths = (*paths_in(arguments), *filter(None, (text_in(arguments, field) for field in _PATHS)))
    rest = {key: value for key, value in arguments.items() if key not in _SAID_ELSEWHERE}
    patch = given if isinstance(given, str) and not arguments else text_in(arguments, "patch")
    draft.ask(
        name,
        family=family,
        command=text_in(arguments, "command") or None,
        paths=tuple(dict.fromkeys(paths)),
        changes=tuple(_asked_changes(bare, family, arguments, paths, patch)),
        given=text_in(arguments, "plan", "description", "explanation") or rest or patch,
    )
    if bare == "createplan":
        draft.items = plan_items(records_in(arguments, "todos"))


def answer(draft: CallDraft, output: str, told: Record) -> None:
    """Fills in what came of it. `told`: `error` (the rule that says so), `exitCode`, `rejected`, `notInterrupted`.

    Cursor often tells no outcome: then it is unknown.
    """
    draft.answer(output)
    if told.get("rejected") is True:
        draft.decide(5, "denied", "rejected")
    if flag_in(told, "notInterrupted") is False:
        draft.decide(5, "interrupted", "notInterrupted is false")
    draft.decide_by_code(exit_code_in(told, "exitCode", "exitCodeV2"))
    if rule := text_in(told, "error"):
        draft.decide(4, "failed", rule)
    if output.startswith(_EXIT_CODE):
        digits = output[len(_EXIT_CODE) :][:10].partition("\n")[0].strip()
        if digits.isascii() and digits.isdigit():
            draft.decide_by_code(int(digits))
    if rule := text_in(told, "done"):
        draft.decide(2, "ok", rule)


def _asked_changes(
    tool: str, family: Family, arguments: Record, paths: tuple[str, ...], patch: str
) -> Iterator[Change]:
    if family == "shell":
        yield from changes_of(text_in(arguments, "command"))
    elif family == "edit":
        yield from changes_of_patch(patch)
        change = "deleted" if tool.startswith("delete") else "created" if tool.startswith("write") else "edited"
        yield from ((path, change) for path in paths[:1])
