"""A command line of a shell taken apart: steps with their words and redirections. Any text is accepted.

Understood are quotes, substitutions, here-documents, separators, `cd`, and what stands before a program. Nothing is
expanded; a word that holds a variable, a substitution or a brace list is `dynamic`, its value is not known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

LINE_CHARS_MAX: Final = 32_768
"""A longer command line is read as far as this."""
SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
WRAPS: Final = {"sudo": 0, "env": 0, "command": 0, "nice": 0, "nohup": 0, "stdbuf": 0, "exec": 0, "timeout": 1}
"""Programs that run another one: {name: how many arguments of its own stand before it}."""
ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")


class Word(NamedTuple):
    text: str
    """Without its quotes."""
    raw: str
    dynamic: bool


class Redirect(NamedTuple):
    sign: str
    target: Word


@dataclass(slots=True)
class Step:
    """One simple command. `joined`: the separator before it: "", "&&", "||", "|", ";" (also a newline) or "&"."""

    joined: str
    within: int = 0
    """How many parentheses it stands in: a `cd` in them leads nowhere beyond."""
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    here: str = ""
    """The text of its here-document."""

    @property
    def arguments(self) -> list[str]:
        return [word.text for word in self.words]


_HERE = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([\w.-]+))")
_BLANK = re.compile(r"(?:[^\S\n]|\\\n)+")
_TOKEN = re.compile(
    rf"(?:{_BLANK.pattern})?(?:(?P<here>{_HERE.pattern})|(?P<redirect>(?:\d+|&)?>{{1,2}}\|?&?|\d*<<<|\d*<[&>]?)"
    r"|(?P<separator>&&|\|\||;;?&?|\|&?|&|\n|[()])|(?P<comment>\#[^\n]*)"
    r"|(?P<plain>[^\s'\"\\$`;&|<>(){}]++)(?![{}'\"\\$`])|)"
)
"""What comes next. A number belongs to the redirection right behind it; a word that is not plain is read in pieces."""
_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>()]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_VARIABLE = re.compile(r"\$(?:\{[^}]{0,200}\}|\w+|[?!@*#$-])?")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_BRACES_READ: Final = 256
_KEYWORDS: Final = frozenset({"do", "then", "else", "elif", "if", "while", "until", "!", "{", "}", "time"})


def steps_of(line: str) -> list[Step]:
    """The steps of a command line; of `bash -lc 'text'` those of the text."""
    steps = _Parser(line[:LINE_CHARS_MAX]).steps()
    script = script_of(steps[0].words) if len(steps) == 1 else ""
    if not script:
        return steps
    inner = _Parser(script).steps()
    for step in inner[-1:]:
        step.redirects += steps[0].redirects
    return inner


def script_of(words: Sequence[Word]) -> str:
    """What `bash -lc SCRIPT` runs; empty for any other words."""
    if not words or posixpath.basename(words[0].text) not in SHELLS:
        return ""
    at = 1
    while at + 1 < len(words) and (option := words[at].text).startswith("-"):
        if _RUNS_TEXT.fullmatch(option):
            return words[at + 1].text
        at += 2 if _NAMES_OPTION.fullmatch(option) else 1
    return ""


def program_words(step: Step) -> list[Word]:
    """The words of a step from its program on: without variables set for it and wrappers."""
    words = step.words
    while words:
        first = words[0].text
        if ASSIGNED.match(first):
            words = words[1:]
            continue
        own = WRAPS.get(first)
        if own is None or len(words) == 1 or (first == "command" and words[1].text.startswith("-")):
            break
        words = _after_options(words[1:])[own:]
    return words


def _after_options(words: list[Word]) -> list[Word]:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        at += 1
    return words[at:]


def folder_after(step: Step, folder: str | None) -> str | None:
    """Where the next step runs, if this one runs in `folder`; None where that is not known."""
    words = step.words
    if not words or words[0].text not in _LEADS:
        return folder
    to = [word for word in words[1:] if len(word.text) == 1 or not word.text.startswith("-")]
    if words[0].text == "popd" or (to and (to[0].dynamic or to[0].text == "-")):
        return None
    target = to[0].text if to else "~"
    if target.startswith(("/", "~")):
        return target
    return None if folder is None else posixpath.join(folder, target)


_LEADS: Final = frozenset({"cd", "pushd", "popd"})
_RUNS_TEXT = re.compile(r"-[a-z]*c")
_NAMES_OPTION = re.compile(r"-[a-z]*[oO]")
"""Of a shell: `-o pipefail`."""


_INTO: Final = {"(": 1, ")": -1}


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[Step] = [Step("")]
        self.within = 0
        self.heres: list[tuple[Step, str, bool]] = []

    def steps(self) -> list[Step]:
        while self.at < len(self.text):
            self._take()
        return [step for step in self.found if step.words or step.redirects]

    def _take(self) -> None:
        step = self.found[-1]
        token = _TOKEN.match(self.text, self.at)
        assert token is not None
        self.at = token.end()
        match token.lastgroup:
            case "plain":
                raw = token["plain"]
                self._add_word(step, Word(raw, raw, False))
            case "separator":
                self._separate(token["separator"])
            case "redirect":
                self._take_blank()
                step.redirects.append(Redirect(token["redirect"], self._word()))
            case "here":
                self.heres.append((step, *_end_of(token["here"])))
            case None if self.at < len(self.text):
                self._add_word(step, self._word())

    def _take_blank(self) -> None:
        if blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()

    def _separate(self, sign: str) -> None:
        if sign == "\n":
            self._skip_heres()
        self.within = max(0, self.within + _INTO.get(sign, 0))
        step = self.found[-1]
        joined = sign if sign in ("&&", "||", "&") else "|" if sign.startswith("|") else ";"
        if step.words or step.redirects:
            self.found.append(Step(joined, self.within))
            return
        step.within = self.within
        if step.joined in ("", ";"):  # a newline after `&&` goes on with it
            step.joined = joined if len(self.found) > 1 else ""

    def _skip_heres(self) -> None:
        for step, end, indented in self.heres:
            step.here, self.at = _here_document(self.text, self.at, end, indented=indented)
        self.heres.clear()

    def _add_word(self, step: Step, word: Word) -> None:
        if step.words or word.raw not in _KEYWORDS:
            step.words.append(word)

    def _word(self) -> Word:
        """From here to the next blank or sign outside of quotes."""
        start, parts, dynamic = self.at, [], False
        while self.at < len(self.text):
            part, expands = self._part()
            if part is None:
                break
            parts.append(part)
            dynamic = dynamic or expands
        raw = self.text[start : self.at]
        value = "".join(parts)
        return Word(value, raw, dynamic or ("{" in raw and bool(_BRACES.search(raw[:_BRACES_READ]))))

    def _part(self) -> tuple[str | None, bool]:
        """The next piece of a word, and whether it is expanded by the shell; None at the word's end."""
        text, at = self.text, self.at
        if plain := _PLAIN.match(text, at):
            self.at = plain.end()
            return plain[0], False
        char = text[at]
        if char == "'":
            end = text.find("'", at + 1)
            end = len(text) if end < 0 else end
            self.at = min(end + 1, len(text))
            return text[at + 1 : end], False
        if char == '"':
            self.at = at + 1
            return self._quoted()
        if char == "\\":
            self.at = min(at + 2, len(text))
            return text[at + 1 : at + 2].replace("\n", ""), False
        if char in "$`":
            self.at = _substitution_end(text, at)
            return text[at : self.at], True
        return None, False

    def _quoted(self) -> tuple[str, bool]:
        parts, dynamic, text = [], False, self.text
        while self.at < len(text) and text[self.at] != '"':
            at = self.at
            if plain := _IN_QUOTES.match(text, at):
                self.at = plain.end()
                parts.append(plain[0])
            elif text[at] == "\\":
                self.at = min(at + 2, len(text))
                parts.append(text[at + 1 : at + 2])
            else:
                self.at = _substitution_end(text, at)
                parts.append(text[at : self.at])
                dynamic = True
        self.at = min(self.at + 1, len(text))
        return "".join(parts), dynamic


def _end_of(here: str) -> tuple[str, bool]:
    """The word that ends a here-document, and whether its lines may be indented."""
    found = _HERE.match(here)
    assert found is not None
    return found[2] or found[3] or found[4] or "", bool(found[1])


def _here_document(text: str, at: int, end: str, *, indented: bool) -> tuple[str, int]:
    """The body that begins at `at`, and where the text goes on after its last line."""
    last = re.compile(rf"^{_TABS if indented else ''}{re.escape(end)}$", re.MULTILINE).search(text, at)
    if last is None:
        return text[at:], len(text)
    return text[at : last.start()], min(last.end() + 1, len(text))


_TABS: Final = r"\t*"


def _substitution_end(text: str, at: int) -> int:
    """Behind the variable or substitution that begins at `at` with `$` or a back tick."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        return len(text) if end < 0 else end + 1
    if text.startswith("$(", at):
        return _closing(text, at + 2)
    variable = _VARIABLE.match(text, at)
    return variable.end() if variable else at + 1


_INSIDE = re.compile(r"[^()'\"\\<]+")


def _closing(text: str, at: int) -> int:
    """Behind the parenthesis that closes the one before `at`; quotes and here-documents in between are passed over."""
    depth = 1
    while at < len(text) and depth:
        if plain := _INSIDE.match(text, at):
            at = plain.end()
        elif (char := text[at]) in "()":
            depth += 1 if char == "(" else -1
            at += 1
        elif char == "\\":
            at += 2
        elif char in "'\"":
            at = _quote_end(text, at)
        else:
            at = _after_here(text, at)
    return min(at, len(text))


def _quote_end(text: str, at: int) -> int:
    end = at + 1
    while end < len(text) and text[end] != text[at]:
        end += 2 if text[end] == "\\" and text[at] == '"' else 1
    return min(end + 1, len(text))


def _after_here(text: str, at: int) -> int:
    here = _HERE.match(text, at)
    line_end = text.find("\n", at)
    if here is None or line_end < 0:
        return at + 1
    end, indented = _end_of(here[0])
    return _here_document(text, line_end + 1, end, indented=indented)[1]
