"""How a call ended, by which rule, and the line that says what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from everkept.domain.digest.clip import clean, one_line
from everkept.domain.digest.commands import Command, is_answer
from everkept.domain.digest.values import ERROR_CHARS_MAX
from everkept.domain.session import Outcome, ToolCall

_LINES_READ: Final = 300
"""Of an output, from its beginning and from its end each."""


BY_OUTPUT: Final = "the output says "
"""How the rule begins where the exit code does not tell the outcome."""


AN_ANSWER: Final = " is an answer"
"""How the rule ends where a program failed by its exit code alone: it told what it found."""


class Verdict(NamedTuple):
    outcome: Outcome
    rule: str


def judge(call: ToolCall, command: Command | None) -> Verdict:
    """The outcome as the agent gave it, unless the command line or its output tells better."""
    if call.outcome in ("denied", "interrupted"):
        return Verdict(call.outcome, call.decided_by or "the agent says so")
    if not call.ended:
        return Verdict("unknown", "no end was seen")
    if command is None:
        return Verdict(call.outcome, call.decided_by or "the agent says so")
    outcome, rule = _given(call)
    if outcome == "failed":
        return _answer(call, command) or Verdict("failed", rule)
    if (outcome == "unknown" or command.masked) and not command.looks and (mark := failure_mark(call.output)):
        return Verdict("failed", f"{BY_OUTPUT}{mark}")
    return Verdict(outcome, rule)


def _given(call: ToolCall) -> Verdict:
    if call.outcome == "unknown" and call.exit_code is not None:
        return Verdict("ok" if call.exit_code == 0 else "failed", "exit code")
    return Verdict(call.outcome, call.decided_by or "the agent says so")


def _answer(call: ToolCall, command: Command) -> Verdict | None:
    """A failure that is an answer: nothing found, not equal, nothing to commit."""
    output = _without_code_line(call.output)
    if command.program.startswith("git commit") and _NOTHING_TO_COMMIT.search(output):
        return Verdict("ok", f"nothing to commit{AN_ANSWER}")
    if is_answer(command.program) and call.exit_code in (1, None) and not _told_error(output):
        return Verdict("ok", f"exit code 1 of {command.program}{AN_ANSWER}")
    return None


_NOTHING_TO_COMMIT = re.compile(
    r"nothing (?:added )?to commit|no changes added to commit|nothing to commit", re.IGNORECASE
)
_CODE_LINE = re.compile(
    r"^\s*(?:(?:Error: )?Exit code:? -?\d+|Process exited with code -?\d+|Signal: (?:0|\(none\))|Error: \(none\)"
    r"|(?:Wall time|Command|Directory|Background PIDs|Process Group PGID|Chunk ID|Original token count"
    r"|Total output lines): ?.*|Output:)\s*$",
    re.IGNORECASE,
)
"""Lines that agents put around an output: codes, times, and the command once more."""
_COMPLAINT = re.compile(
    r"^(?:grep|rg|egrep|fgrep|diff|cmp|comm|pgrep|which|bash|sh|zsh|/bin/\w+|error|fatal|usage): ?", re.IGNORECASE
)  # fmt: skip


def _told_error(output: str) -> bool:
    """The program complained, rather than answered."""
    lines = output.strip().split("\n", 3)[:3]
    return any(_COMPLAINT.match(line) for line in lines)


def _without_code_line(output: str) -> str:
    first, _, rest = output.partition("\n")
    return rest if _CODE_LINE.match(first) else output


_FAILURE_MARKS: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"^=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$|^[1-9]\d* (?:failed|errors?)\b.* in [\d.]+s", "tests failed"),
        (r"^FAILED \S+::|^(?:FAIL|--- FAIL)[:\t ]|^FAIL$|^FAILURES!|^test result: FAILED", "tests failed"),
        (r"^Tests:.*\b[1-9]\d* failed|^\s*[1-9]\d* failing$", "tests failed"),
        (r"^Traceback \(most recent call last\):", "Traceback"),
        (r"^npm ERR!|^npm error", "npm error"),
        (r"^make(?:\[\d+\])?: \*\*\* ", "make stopped"),
        (r"^error(?:\[\w+\])?: |^ERROR: |^fatal: ", "error"),
        (r"^(?:panic: |thread '.*' panicked at)", "panic"),
        (r"^Found [1-9]\d* errors?\b", "errors found"),
        (r"^(?:BUILD FAILED|FAILURE: Build failed)", "build failed"),
        (r"^(?:/bin/)?(?:ba|z|da)?sh: .*(?:command not found|No such file|not found)$", "the shell could not run it"),
        (r"^(?:Exit Code|exit code|Process exited with code|exit status):? [1-9]\d*$", "the exit code"),
    )
)


_ANY_MARK = re.compile("|".join(pattern.pattern for pattern, _ in _FAILURE_MARKS))
_FAILURE_WORDS: Final = ("fail", "error", "err!", "traceback", "***", "panic", "fatal", "not found", "no such", "exit")
"""One of them stands in each of the marks: most outputs hold none, and are not searched further."""


def failure_mark(output: str) -> str | None:
    """What in an output tells beyond doubt that the work failed; None where nothing does."""
    text = _ends(output)
    low = text.casefold()
    if not any(word in low for word in _FAILURE_WORDS):
        return None
    lines = [line for line in clean(text).split("\n") if _ANY_MARK.match(line)]
    return next((name for pattern, name in _FAILURE_MARKS if any(map(pattern.match, lines))), None)


def _ends(text: str) -> str:
    return text if len(text) <= 16_000 else f"{text[:8_000]}\n{text[-8_000:]}"


_HARMLESS = re.compile(r"\b(?:0|no) (?:errors?|failures?|failed)\b|\berrors?[=:] ?0\b", re.IGNORECASE)
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Fault|Failure)?(?:: .+|$)"
)
_TOLD_BETTER: Final = (
    (re.compile(r"FAILED \S+|ERROR \S+::?"), ("FAILED ", "ERROR ")),  # pytest's summary names the test and the reason
    (re.compile(r"E {2,}\S"), ("E  ",)),
)
"""(how such a line begins, what an output that has one holds)."""
_TOLD: Final = re.compile(
    r"^\s*(?:fatal|error|err!|panic|failed|failure|fail|abort(?:ed)?)\b"
    r"|^--- FAIL|^\s*✗|^\s*✖|^\s*×|^not ok\b|^npm ERR!|^npm error"
    r"|(?<![\w./-])(?:error|fatal)(?:\[\w+\])?: |\b(?:error TS\d+|ERROR)\b|^make(?:\[\d+\])?: \*\*\*"
    r"|command not found|no such file or directory|permission denied|not recognized as|does not exist|not found\b"
    r"|\bcannot \w|\bcan't \w|\bcould not \w|\bunable to \w|\bfailed to \w|\bundefined:? |\bunexpected \w"
    r"|\b\w+(?:Error|Exception)\b|\binvalid \w|\bunknown (?:option|command|flag|argument)|\bpanicked at\b|\bUsage: ",
    re.IGNORECASE,
)


def error_line(output: str) -> str:
    """The first line that tells the error, at most 200 characters; empty where the output says nothing."""
    lines = _lines(output)
    for pattern, marks in _TOLD_BETTER:
        if any(mark in output for mark in marks) and (found := next(filter(pattern.match, lines), None)):
            return one_line(found, ERROR_CHARS_MAX)
    found = _raised(lines) if _TRACEBACK in output else None
    if found is None:
        at = next((at for at, line in enumerate(lines) if _tells(line)), 0)
        found = _with_reason(lines[at : at + 6]) if lines else ""
    return one_line(found, ERROR_CHARS_MAX)


_LEADS: Final = re.compile(r"^\s*--- FAIL|:\s*$|^\s*FAIL\b|^error\[\w+\]: ")
"""Lines that say that something failed and leave the reason to the next line."""


def _with_reason(lines: Sequence[str]) -> str:
    for line in lines[1:] if _LEADS.search(lines[0]) else ():
        if not line.lstrip().startswith("--- FAIL"):
            return f"{lines[0].strip()} {line.strip()}"
    return lines[0]


def _lines(output: str) -> list[str]:
    """Its lines that are not empty and no line about the exit code."""
    lines = _TAGS.sub("", clean(output)).split("\n")
    if len(lines) > 2 * _LINES_READ:
        lines = [*lines[:_LINES_READ], *lines[-_LINES_READ:]]
    lines = [line.rstrip().removeprefix("Output: ") for line in lines]
    return [line for line in lines if line and not (line[:1] in _CODE_LINE_STARTS and _CODE_LINE.match(line))]


_CODE_LINE_STARTS: Final = frozenset("ESPWCDBOT esp")


_TAGS = re.compile(r"</?(?:tool_use_error|error|stdout|stderr|system-reminder|output|result)>")


_TRACEBACK: Final = "Traceback (most recent call last)"


def _raised(lines: Iterable[str]) -> str | None:
    """Of a traceback: the line that names the exception."""
    inside = False
    for line in lines:
        if line.lstrip().startswith(_TRACEBACK):
            inside = True
        elif inside and _EXCEPTION.match(line.strip()) and not line.startswith("    "):
            return line
    return None


def _tells(line: str) -> bool:
    return bool(_TOLD.search(line)) and not _HARMLESS.search(line)
