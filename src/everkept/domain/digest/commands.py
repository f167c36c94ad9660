"""Command lines made comparable: `cd /repo && FORCE=1 python3 -m pytest -v tests 2>&1 | tail -5` is `pytest tests`.

Left out is what changes how a command is run or shown and not what it does: folders and variables set before it,
wrappers, verbosity, what its output is cut to. What is left is the same command if it is run again after a fix.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from everkept.domain.command_line import ASSIGNED, Redirect, Step, Word, folder_after, program_words, steps_of
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
)
from everkept.domain.digest.values import COMMAND_CHARS_MAX
from everkept.domain.shell import CHANGES, writes

_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|py")


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
    changes: bool
    """Files, maybe: most command lines change none, whatever else they do."""
    dress: tuple[str, ...]
    """Variables set for it and what runs it: left out of the key, and what may have mended it."""
    masked: bool
    """The exit code is not that of the work: it runs into a filter, or `|| true` follows."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A step in its common form."""

    step: Step
    program: str
    """`git diff`, `pytest`, `grep`: of git and the like with the verb."""
    full: str
    """All that makes it the command that it is."""
    shown: str
    dress: tuple[str, ...]

    @property
    def joined(self) -> str:
        return self.step.joined


@lru_cache(maxsize=1024)
def read_command(line: str, cwd: str | None, home: str | None) -> Command:
    """Take a command line apart. `cwd`: the folder it ran in; `home`: the session's own folder."""
    steps = tuple(steps_of(line))
    kept = [_part(step, home) for step in [step for step in steps if not _only_sets(step)] or steps]
    masked = _is_masked(kept)
    kept = _unmasked(kept)
    folder = _folder(steps, cwd, home)
    chain = _last_chain(kept, strict=_stops_at_errors(steps))
    singles = [" | ".join(part.full for part in pipe) for pipe in _pipes(chain)]
    whole = " ".join(_joined((part.joined, part.full) for part in kept).split())
    keys = [_key(folder, text) for text in singles]
    key = keys[0] if singles == [whole] else _key(folder, whole)
    shown = one_line(_joined((part.joined, part.shown) for part in kept) or line, COMMAND_CHARS_MAX)
    return Command(
        key=key,
        shown=clip(f"{shown}" + (f" (in {folder})" if folder else ""), COMMAND_CHARS_MAX),
        proves=tuple(dict.fromkeys([*keys, key])),
        needs=tuple(dict.fromkeys(keys)) or (key,),
        steps=steps,
        program=chain[-1].program if chain else "",
        looks=bool(kept) and all(map(_only_looks, kept)),
        changes=any(map(_may_change, steps)),
        dress=tuple(word for part in kept for word in part.dress),
        masked=masked,
    )


def _part(step: Step, home: str | None) -> _Part:
    words = program_words(step)
    arguments = _arguments(words, home)
    full, shown = _step_texts(step, arguments, home)
    return _Part(step, _program_of(arguments), full, shown, tuple(_dress(step, words)))


def _dress(step: Step, words: Sequence[Word]) -> list[str]:
    before = [word.raw for word in step.words[: len(step.words) - len(words)]]
    runs = [word.text for word in words[:2]]
    return [*before, *runs[:1]] if tuple(runs) in RUNNERS or (runs[:1] and runs[0] in RUN_PACKAGES) else before


def _program_of(arguments: Sequence[str]) -> str:
    if len(arguments) > 1 and arguments[0] in LOOKS_AT:
        verb = next((word for word in _git_verb(arguments[1:])), "")
        return f"{arguments[0]} {verb}".strip()
    return arguments[0] if arguments else ""


def _may_change(step: Step) -> bool:
    words = program_words(step)
    return bool(words and words[0].text.rpartition("/")[2] in CHANGES) or any(map(writes, step.redirects))


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
    if first in SETS or all(ASSIGNED.match(word.text) for word in words):
        return True
    return first in ("echo", "printf") and not step.redirects and step.joined != "" and step.joined != "|"


def _only_looks(part: _Part) -> bool:
    step = part.step
    if any(map(_keeps, step.redirects)):
        return False
    name, _, verb = part.program.partition(" ")
    if name in LOOKS_AT:
        return verb in LOOKS_AT[name]
    if name in ("sed", "perl") and any(word.text.startswith("-i") for word in step.words[1:]):
        return False
    if name == "find" and any(word.text in ("-delete", "-exec", "-execdir") for word in step.words):
        return False
    return name in LOOKS


def _keeps(redirect: Redirect) -> bool:
    """What is written stays: not `> /dev/null`."""
    return writes(redirect) and not redirect.target.text.startswith("/dev/")


def _is_masked(parts: Sequence[_Part]) -> bool:
    """A filter or `|| true` or `; echo …` stands after the work."""
    if len(parts) < 2:
        return False
    last = parts[-1]
    return (last.joined == "|" and (last.program in FILTERS or last.program in LOOKS)) or (
        last.joined == "||" and last.program in ("true", "echo", ":", "exit")
    )


def _unmasked(parts: list[_Part]) -> list[_Part]:
    while len(parts) > 1 and (
        (parts[-1].joined == "|" and parts[-1].program in FILTERS)
        or (parts[-1].joined == "||" and parts[-1].program in ("true", "echo", ":"))
    ):
        parts = parts[:-1]
    return parts


def _stops_at_errors(steps: Sequence[Step]) -> bool:
    """`set -e` stands before: every line of the text must come out well."""
    return any(
        step.arguments[:1] == ["set"] and any(re.match(r"-\w*e", word) for word in step.arguments[1:]) for step in steps
    )


def _last_chain(parts: Sequence[_Part], *, strict: bool) -> list[_Part]:
    """The steps after the last separator that lets errors pass: their exit code is the line's."""
    if any(part.joined in ("||", "&") for part in parts):
        return list(parts)
    starts = [0, *(i for i, part in enumerate(parts) if part.joined == ";" and not strict)]
    return list(parts[starts[-1] :])


def _pipes(chain: Sequence[_Part]) -> list[list[_Part]]:
    """Split at && (and, where errors stop the text, at line ends); a chain with || or & stays whole."""
    if any(part.joined in ("||", "&") for part in chain):
        return [list(chain)]
    pipes: list[list[_Part]] = []
    for part in chain:
        if pipes and part.joined == "|":
            pipes[-1].append(part)
        else:
            pipes.append([part])
    return pipes


def _folder(steps: Sequence[Step], cwd: str | None, home: str | None) -> str:
    """The folder the line ends in, relative to the session's own; empty where that is the same or not known."""
    folder: str | None = cwd or ""
    for step in steps:
        folder = folder_after(step, folder)
    if not folder or not home:
        return ""
    relative = below(posixpath.normpath(folder), home)
    return "" if relative == "." else relative


def below(path: str, home: str | None) -> str:
    """The path relative to the session's folder where it lies in it, else as it is."""
    if not home:
        return path
    home = home.rstrip("/") or "/"
    if path == home:
        return "."
    prefix = home if home == "/" else home + "/"
    return path.removeprefix(prefix)


def _arguments(words: Sequence[Word], home: str | None) -> list[str]:
    """The words of a step, from its program on, in their common form."""
    raw = [_raw(word, home) for word in words]
    if not raw:
        return []
    raw[0] = raw[0].rpartition("/")[2] or raw[0]
    if len(raw) > 2 and (raw[0], raw[1]) in RUNNERS:
        raw = raw[2:]
    elif len(raw) > 1 and raw[0] in RUN_PACKAGES:
        raw = [word for word in raw[1:] if word not in ("-y", "--yes")] or raw
    raw[0] = raw[0].rpartition("/")[2] or raw[0]
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


def _step_texts(step: Step, arguments: Sequence[str], home: str | None) -> tuple[str, str]:
    """(what makes the step the command that it is, how it is shown)."""
    told = _without_message(arguments) if arguments[:1] == ["git"] and "commit" in arguments[1:3] else arguments
    into = ""
    if step.redirects and (not arguments or arguments[0] in ("cat", "echo", "printf", "tee")):
        into = " ".join(f"{at.sign} {_raw(at.target, home)}" for at in step.redirects if _keeps(at))
    here, lines = (f"<<{_hash(step.here)}", f"<< [{step.here.count(chr(10))} lines]") if step.here else ("", "")
    full = " ".join(part for part in (" ".join(told), into, here) if part)
    return full, " ".join(part for part in (" ".join(arguments), into, lines) if part)


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


def _joined(steps: Iterable[tuple[str, str]]) -> str:
    """`steps`: (the separator before it, its text)."""
    text = ""
    for joined, step in steps:
        sign = {"": "", ";": "; "}.get(joined, f" {joined} ") if text else ""
        text += sign + step
    return text


def _key(folder: str, text: str) -> str:
    return _hash(f"{folder}\0{' '.join(text.split())}")


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()
