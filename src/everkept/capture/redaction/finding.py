"""Where the secrets of a text are, by all rules together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Protocol

from everkept.capture.redaction.assignments import ASSIGNMENT_RULES
from everkept.capture.redaction.credentials import CREDENTIAL_RULES
from everkept.capture.redaction.hook_rules import HOOK_RULES
from everkept.capture.redaction.image import image_of, is_taken, whole_markers
from everkept.capture.redaction.patterns import EngineName, NotTranslatable, compiled, default_engine, word_finder
from everkept.capture.redaction.private_keys import find_private_keys
from everkept.capture.redaction.vendored import GENERIC, VendoredRule, rules_without_pattern, vendored_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A secret: the rule that found it, and where it is (characters). Never the secret."""

    rule: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A rule that does not run here, and why."""

    rule: str
    reason: str


class Rule(Protocol):
    """What every rule can do."""

    @property
    def id(self) -> str: ...
    @property
    def keywords(self) -> tuple[str, ...]: ...
    def find(self, image: bytes, engine: EngineName) -> list[tuple[int, int]]: ...


class _PrivateKeyRule:
    id: Final = "private-key"
    keywords: Final = ("private key",)

    def find(self, image: bytes, engine: EngineName) -> list[tuple[int, int]]:
        return list(find_private_keys(image))


def find_secrets(text: str, *, engine: EngineName | None = None) -> list[Found]:
    """All secrets of a text, in order, none overlapping. What is redacted already is not found again."""
    image = image_of(text)
    return _merged(_spans(image, engine or default_engine()))


def unusable_rules(engine: EngineName | None = None) -> tuple[Unusable, ...]:
    """Vendored rules that do not run here: none with google-re2 but those that look at names of files."""
    engine = engine or default_engine()
    without = [Unusable(rule=rule, reason="it looks at names of files alone") for rule in rules_without_pattern()]
    broken = []
    for rule in vendored_rules():
        for pattern in (rule.regex, *(regex for allowlist in rule.allowed for regex in allowlist.regexes)):
            try:
                compiled(pattern, engine)
            except NotTranslatable as error:
                broken.append(Unusable(rule=rule.id, reason=str(error)))
    return (*without, *broken)


def _spans(image: bytes, engine: EngineName) -> Iterator[tuple[int, int, int, str]]:
    """(start, end, rank, rule) of all hits; a lower rank says more about what was found."""
    rules, ranks_of, find_words = _rules(engine)
    for rank in {rank for word in find_words(image) for rank in ranks_of[word]}:
        for found in rules[rank].find(image, engine):
            start, end = whole_markers(image, *found)
            if not is_taken(image[start:end]):
                yield start, end, rank, rules[rank].id


def _merged(spans: Iterator[tuple[int, int, int, str]]) -> list[Found]:
    """Hits that overlap are one, named by the rule that says most."""
    merged: list[Found] = []
    best = 0
    for start, end, rank, rule in sorted(spans):
        last = merged[-1] if merged else None
        if last is None or start >= last.end:
            merged.append(Found(rule=rule, start=start, end=end))
            best = rank
        else:
            name, best = (rule, rank) if rank < best else (last.rule, best)
            merged[-1] = Found(rule=name, start=last.start, end=max(last.end, end))
    return merged


@cache
def _rules(engine: EngineName) -> tuple[list[Rule], list[list[int]], Callable[[bytes], set[int]]]:
    """The rules that run on this engine, those of each keyword, and what finds the keywords of an image; by number."""
    unusable = {rule.rule for rule in unusable_rules(engine)}
    vendored: list[VendoredRule] = [rule for rule in vendored_rules() if rule.id not in unusable]
    rules: list[Rule] = [_PrivateKeyRule(), *(rule for rule in vendored if rule.id != GENERIC)]
    rules += [*CREDENTIAL_RULES, *ASSIGNMENT_RULES, *(rule for rule in vendored if rule.id == GENERIC), *HOOK_RULES]
    words = sorted({word for rule in rules for word in rule.keywords})
    ranks_of = [[rank for rank, rule in enumerate(rules) if word in rule.keywords] for word in words]
    return rules, ranks_of, word_finder(words, engine)
