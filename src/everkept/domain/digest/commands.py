"""Command lines made comparable: `cd /repo && FORCE=1 python3 -m pytest -v tests 2>&1 | tail -5` is `pytest tests`.

Left out is what changes how a command is run or shown and not what it does: folders and variables set before it,
wrappers, verbosity, what its output is cut to. What is left is the same command if it is run again after a fix.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from everkept.domain.digest.clip import clip, one_line
from everkept.domain.digest.programs import (
    ANSWERS,
    FILTERS,
    GIT_ANSWERS,
    LOOKS,
    LOOKS_AT,
    QUIETS,
    RUN_PACKAGES,
    RUNNERS,
    SETS,
    WRAPS,
)
from everkept.domain.digest.shell import Step, Word, parse
from everkept.domain.digest.values import COMMAND_CHARS_MAX

_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|py")
_SHELL = frozenset({"bash", "sh", "zsh", "dash"})
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_HERE_SIGN = re.compile(r"<<-?\s*['\"]?\w+['\"]?")


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, taken apart and made comparable."""

    key: str
    shown: str
    """Normalised, on one line, at most `COMMAND_CHARS_MAX`."""
    proves: tuple[str, ...]
    """Keys of the commands that came out well if this one did: those joined by && at its end, and the whole."""
    needs: tuple[str, ...]
    """Keys of the commands that must come out well for it to be mended."""
    steps: tuple[Step, ...]
    program: str
    """The program whose exit code is the line's."""
    looks: bool
    dress: tuple[str, ...]
    """Variables set for it and what runs it: left out of the key, and what may have mended it."""
    masked: bool
    """The exit code is not that of the work: it runs into a filter, or `|| true` follows."""


@lru_cache(maxsize=1024)
def read_command(line: str, cwd: str | None, home: str | None) -> Command:
    """Take a command line apart. `cwd`: the folder it ran in; `home`: the session's own folder."""
    steps = tuple(unwrapped(line))
    kept = [step for step in steps if not _only_sets(step)] or list(steps)
    masked = _is_masked(kept)
    kept = _unmasked(kept)
    folder = _folder(steps, cwd, home)
    chain = _last_chain(kept, strict=_stops_at_errors(steps))
    singles = [_text(pipe, home, full=True) for pipe in _pipes(chain)]
    whole = _joined(kept, home, full=True)
    keys = [_key(folder, text) for text in singles]
    key = _key(folder, whole)
    last = chain[-1] if chain else None
    shown = _joined(kept, home, full=False) or one_line(line, COMMAND_CHARS_MAX)
    return Command(
        key=key,
        shown=clip(f"{shown}" + (f" (in {folder})" if folder else ""), COMMAND_CHARS_MAX),
        proves=tuple(dict.fromkeys([*keys, key])),
        needs=tuple(dict.fromkeys(keys)) or (key,),
        steps=steps,
        program=program_of(last) if last else "",
        looks=bool(kept) and all(_only_looks(step) for step in kept),
        dress=tuple(word for step in kept for word in _dress(step)),
        masked=masked,
    )


def unwrapped(line: str) -> list[Step]:
    """The steps of a line; of `bash -lc 'text'` those of the text."""
    steps = parse(line)
    if len(steps) == 1:
        words = steps[0].words
        if len(words) >= 3 and posixpath.basename(words[0].text) in _SHELL and _SHELL_TEXT.fullmatch(words[1].text):
            return parse(words[2].text)
    return steps


def program_words(step: Step) -> list[Word]:
    """The words of a step from its program on: without variables set for it and wrappers."""
    words = step.words
    while words:
        first = words[0].text
        if _ASSIGNED.match(first):
            words = words[1:]
            continue
        own = WRAPS.get(first)
        if own is None or len(words) == 1 or (first == "command" and words[1].text.startswith("-")):
            break
        words = _after_options(words[1:])[own:]
    return words


def _dress(step: Step) -> list[str]:
    words = program_words(step)
    before = [word.raw for word in step.words[: len(step.words) - len(words)]]
    runs = [word.text for word in words[:2]]
    return [*before, *runs[:1]] if tuple(runs) in RUNNERS or (runs[:1] and runs[0] in RUN_PACKAGES) else before


def _after_options(words: list[Word]) -> list[Word]:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        at += 1
    return words[at:]


def program_of(step: Step) -> str:
    """`git diff`, `pytest`, `grep`: the program, of git with its verb."""
    arguments = _arguments(step, None)
    if len(arguments) > 1 and arguments[0] in LOOKS_AT:
        verb = next((word for word in _git_verb(arguments[1:])), "")
        return f"{arguments[0]} {verb}".strip()
    return arguments[0] if arguments else ""


def _git_verb(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments from the verb on: `-C path`, `-c name=value` and switches stand before it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in ("-C", "-c") else 1
    return arguments[at:]


def is_answer(program: str) -> bool:
    """Whether exit code 1 of this program tells something rather than that it failed."""
    name, _, verb = program.partition(" ")
    return name in ANSWERS or (name == "git" and verb in GIT_ANSWERS)


def _only_sets(step: Step) -> bool:
    words = step.words
    if not words:
        return not step.redirects
    first = words[0].text
    if first in SETS or all(_ASSIGNED.match(word.text) for word in words):
        return True
    return first in ("echo", "printf") and not step.redirects and step.joined != "" and step.joined != "|"


def _only_looks(step: Step) -> bool:
    if any(_writes(redirect.sign, redirect.target.text) for redirect in step.redirects):
        return False
    program = program_of(step)
    name, _, verb = program.partition(" ")
    if name in LOOKS_AT:
        return verb in LOOKS_AT[name]
    if name in ("sed", "perl") and any(word.text.startswith("-i") for word in step.words[1:]):
        return False
    if name == "find" and any(word.text in ("-delete", "-exec", "-execdir") for word in step.words):
        return False
    return name in LOOKS


def _writes(sign: str, target: str) -> bool:
    return ">" in sign and not sign.endswith("&") and not target.startswith("/dev/")


def _is_masked(steps: Sequence[Step]) -> bool:
    """A filter or `|| true` or `; echo …` stands after the work."""
    if len(steps) < 2:
        return False
    last = steps[-1]
    return (last.joined == "|" and program_of(last) in FILTERS | LOOKS) or (
        last.joined == "||" and program_of(last) in ("true", "echo", ":", "exit")
    )


def _unmasked(steps: list[Step]) -> list[Step]:
    while len(steps) > 1 and (
        (steps[-1].joined == "|" and program_of(steps[-1]) in FILTERS)
        or (steps[-1].joined == "||" and program_of(steps[-1]) in ("true", "echo", ":"))
    ):
        steps = steps[:-1]
    return steps


def _stops_at_errors(steps: Sequence[Step]) -> bool:
    """`set -e` stands before: every line of the text must come out well."""
    return any(
        step.arguments[:1] == ["set"] and any(re.match(r"-\w*e", word) for word in step.arguments[1:]) for step in steps
    )


def _last_chain(steps: Sequence[Step], *, strict: bool) -> list[Step]:
    """The steps after the last separator that lets errors pass: their exit code is the line's."""
    if any(step.joined in ("||", "&") for step in steps):
        return list(steps)
    starts = [0, *(i for i, step in enumerate(steps) if step.joined == ";" and not strict)]
    return list(steps[starts[-1] :])


def _pipes(chain: Sequence[Step]) -> list[list[Step]]:
    """Split at && (and, where errors stop the text, at line ends); a chain with || or & stays whole."""
    if any(step.joined in ("||", "&") for step in chain):
        return [list(chain)]
    pipes: list[list[Step]] = []
    for step in chain:
        if pipes and step.joined == "|":
            pipes[-1].append(step)
        else:
            pipes.append([step])
    return pipes


def _folder(steps: Sequence[Step], cwd: str | None, home: str | None) -> str:
    """The folder the line ends in, relative to the session's own; empty where that is the same or not known."""
    folder = folder_after(steps, cwd)
    if not folder or not home:
        return ""
    relative = below(posixpath.normpath(folder), home)
    return "" if relative == "." else relative


def folder_after(steps: Sequence[Step], cwd: str | None) -> str | None:
    """Where a `cd` of the line leads; None where that is not known."""
    for step in steps:
        if step.words and step.words[0].text in ("cd", "pushd"):
            words = [word for word in step.words[1:] if not (word.text.startswith("-") and len(word.text) > 1)]
            if not words or words[0].dynamic or words[0].text.startswith(("~", "-")):
                return None
            cwd = posixpath.join(cwd or "", words[0].text)
    return cwd


def below(path: str, home: str | None) -> str:
    """The path relative to the session's folder where it lies in it, else as it is."""
    if not home:
        return path
    home = home.rstrip("/") or "/"
    if path == home:
        return "."
    prefix = home if home == "/" else home + "/"
    return path.removeprefix(prefix)


def _arguments(step: Step, home: str | None) -> list[str]:
    """The words of a step in their common form."""
    words = program_words(step)
    raw = [_raw(word, home) for word in words]
    if not raw:
        return []
    raw[0] = posixpath.basename(raw[0]) or raw[0]
    if len(raw) > 2 and (raw[0], raw[1]) in RUNNERS:
        raw = raw[2:]
    elif len(raw) > 1 and raw[0] in RUN_PACKAGES:
        raw = [word for word in raw[1:] if word not in ("-y", "--yes")] or raw
    raw[0] = posixpath.basename(raw[0]) or raw[0]
    if _PYTHON.fullmatch(raw[0]):
        raw = raw[2:] if len(raw) > 2 and raw[1] == "-m" else ["python", *raw[1:]]
    quiets = QUIETS.get(raw[0])
    return [raw[0], *(word for word in raw[1:] if not quiets.fullmatch(word))] if quiets else raw


def _raw(word: Word, home: str | None) -> str:
    """A word as written, its white space squeezed; paths in the session's folder are relative to it."""
    text = word.raw
    if "<<" in text:  # "$(cat <<'EOF' … )": the first line stands for all
        return word.text if "$(" not in text else f'"{_first_here_line(text)}"'
    if home and len(home) > 1 and home in text:
        text = text.replace(f"{home.rstrip('/')}/", "").replace(home.rstrip("/"), ".")
    return text


def _first_here_line(text: str) -> str:
    found = _LINE_WITHIN.search(text)
    return found[1].rstrip() if found else "…"


_LINE_WITHIN: Final = re.compile(r"\n\s*(\S[^\n]*)")


def _text(pipe: Sequence[Step], home: str | None, *, full: bool) -> str:
    return " | ".join(_step_text(step, home, full=full) for step in pipe)


def _step_text(step: Step, home: str | None, *, full: bool) -> str:
    arguments = _arguments(step, home)
    if full and arguments[:1] == ["git"] and "commit" in arguments[1:3]:
        arguments = _without_message(arguments)
    parts = [" ".join(arguments)]
    if not arguments or arguments[0] in ("cat", "echo", "printf", "tee"):
        parts += [
            f"{redirect.sign} {_raw(redirect.target, home)}"
            for redirect in step.redirects
            if _writes(redirect.sign, redirect.target.text)
        ]
    if step.here:
        parts.append(f"<<{_hash(step.here)}" if full else f"<< [{step.here.count(chr(10))} lines]")
    return " ".join(part for part in parts if part)


def _without_message(arguments: Sequence[str]) -> list[str]:
    """A commit that is tried again often has another message."""
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in ("-m", "-F", "-am", "--message"):
            skip = True
        else:
            kept.append(argument)
    return kept


def _joined(steps: Sequence[Step], home: str | None, *, full: bool) -> str:
    text = ""
    for step in steps:
        sign = {"": "", ";": "; "}.get(step.joined, f" {step.joined} ") if text else ""
        text += sign + _step_text(step, home, full=full)
    return " ".join(text.split()) if full else one_line(text, COMMAND_CHARS_MAX)


def _key(folder: str, text: str) -> str:
    return _hash(f"{folder}\0{' '.join(text.split())}")


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()
