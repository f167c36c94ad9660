"""A command line of a shell taken apart: steps with their words and redirections. Any text is accepted.

Only what a digest needs is understood: quotes, substitutions, here-documents, separators. Nothing is expanded; a word
that holds a variable, a substitution or a brace list is `dynamic`, its value is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

COMMAND_CHARS_MAX: Final = 16_384
"""A longer command line is read as far as this."""


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    """Without its quotes."""
    raw: str
    dynamic: bool


@dataclass(frozen=True, slots=True)
class Redirect:
    sign: str
    target: Word


@dataclass(slots=True)
class Step:
    """One simple command. `joined`: the separator before it: "", "&&", "||", "|", ";" (also a newline) or "&"."""

    joined: str
    at: int = 0
    """Where it begins in the text."""
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    here: str = ""
    """The text of its here-document."""

    @property
    def arguments(self) -> list[str]:
        return [word.text for word in self.words]


_BLANK = re.compile(r"(?:[^\S\n]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_HERE = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([\w.-]+))")
_REDIRECT = re.compile(r"(?:\d+|&)?>{1,2}\|?&?|\d*<<<|\d*<[&>]?")
_SEPARATOR = re.compile(r"&&|\|\||;;?&?|\|&?|&|\n|[()]")
_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>()]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_VARIABLE = re.compile(r"\$(?:\{[^}]*\}|\w+|[?!@*#$-])?")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_BRACES_READ: Final = 256
_KEYWORDS: Final = frozenset({"do", "then", "else", "elif", "if", "while", "until", "!", "{", "}", "time"})


def parse(command: str) -> list[Step]:
    return _Parser(command[:COMMAND_CHARS_MAX]).steps()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[Step] = [Step("")]
        self.heres: list[tuple[Step, str, bool]] = []

    def steps(self) -> list[Step]:
        while self.at < len(self.text):
            self._take()
        return [step for step in self.found if step.words or step.redirects]

    def _take(self) -> None:
        text, step = self.text, self.found[-1]
        if blank := _BLANK.match(text, self.at):
            self.at = blank.end()
        elif text[self.at] == "#" and (comment := _COMMENT.match(text, self.at)):
            self.at = comment.end()
        elif here := _HERE.match(text, self.at):
            self.at = here.end()
            self.heres.append((step, here[2] or here[3] or here[4] or "", bool(here[1])))
        elif redirect := _REDIRECT.match(text, self.at):
            self.at = redirect.end()
            self._take_blank()
            step.redirects.append(Redirect(redirect[0], self._word()))
        elif separator := _SEPARATOR.match(text, self.at):
            self.at = separator.end()
            self._separate(separator[0])
        else:
            self._add_word(step, self._word())

    def _take_blank(self) -> None:
        if blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()

    def _separate(self, sign: str) -> None:
        if sign == "\n":
            self._skip_heres()
        step = self.found[-1]
        joined = sign if sign in ("&&", "||", "&") else "|" if sign.startswith("|") else ";"
        if step.words or step.redirects:
            self.found.append(Step(joined, self.at))
        elif step.joined in ("", ";"):  # a newline after `&&` goes on with it
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
    return _here_document(text, line_end + 1, here[2] or here[3] or here[4] or "", indented=bool(here[1]))[1]
