"""A rule of the deterministic extractor: one kind of sentence, as data.

A rule is precise before it is broad: what it matches must be a statement about somebody known. Predicates, and so the
sentences made of them, stay in the language in which they were said (D08).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from everkept.domain.facts import EntityType, FactKind

_OPENERS = (
    "I|He|She|It|They|We|You|This|That|These|Those|And|But|So|Also|Then|Oh|Yes|Yeah|No|Well|When|If|Since|Because|Now|"
    "Just|Still|Maybe|Und|Aber|Ja|Nein|Mas|Sim|Pero"
)
"""Written with a capital at the head of a sentence, and no name."""
_WORD = rf"(?!(?:{_OPENERS})\b)[A-ZÀ-ÖØ-Þ][\w'’-]+"
_LINK = r"(?:(?:de|da|do|dos|das|von|van|der|of|the)\s){0,2}"
NAME = rf"(?-i:{_WORD}(?:\s{_LINK}{_WORD}){{0,3}})"
ONE_NAME = rf"(?-i:{_WORD}(?:\s{_WORD})?)"
REST = r"(?P<object>[^,;:!?()\"“”„–—\n]+)"
ROLE = r"(?P<object>[^,;:!?()\"“”„–—\n]+?)(?=\s(?:at|for|in|with|bei|beim|im|am|na|no|em|en)\s|[,;]|$)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of statement.

    Groups: `object`; `topic` fills the predicate; `who` names another entity; `kin` is a relative or an animal of the
    speaker, without a name.
    """

    source: str
    """The regular expression, caseless; it is compiled when it is first used, because all of them take a second."""
    predicate: str
    """`{topic}` in it is replaced by that group."""
    text: str = "{entity} {predicate} {object}"
    """The sentence. `{object}` has its article, `{bare}` has none, `{a}` is the English article of `{bare}`."""
    object: str = ""
    """The object where the words are not it."""
    lead: str = ""
    """What the object begins with, and is not said in that form ("fly" of "I'm flying")."""
    tail: str = ""
    """What the object ends with ("zu fliegen" of "ich fliege")."""
    kin: str = "{speaker}'s {kin}"
    """What the entity of a `kin` group is called."""
    closes: bool = False
    event: bool = False
    """Tells of a change: a date in the sentence is its date. Of a state, only `since` and `until` are."""
    ahead: bool = False
    """Counts only with a date that is still to come; it holds for that time."""
    needs: str = ""
    """`since`, `until` or `on`: counts only together with such a date."""
    listed: bool = False
    """Several objects may be listed."""
    beside: bool = False
    """May be read from a clause that another rule has already read."""
    names: bool = False
    """Only tells what somebody is called, which stays true in a doubt ("my sister Ana might come")."""
    now_replaces: bool = False
    """Said with "now" or "new", it takes the place of what was before."""
    taste: bool = False
    """What is liked must be a thing of the world: not "the second option", not "to hear that"."""
    confidence: float = 0.9
    kind: FactKind = "literal"
    object_type: EntityType = "other"

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.source)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


def rule(pattern: str, predicate: str, **fields: Any) -> Rule:
    return Rule(source=pattern, predicate=predicate, **fields)


PERSON: Mapping[str, Any] = {"kind": "entity", "object_type": "person"}
PLACE: Mapping[str, Any] = {"kind": "entity", "object_type": "place"}
ORGANISATION: Mapping[str, Any] = {"kind": "entity", "object_type": "organisation"}
ANIMAL: Mapping[str, Any] = {"kind": "entity", "object_type": "animal"}
PLAN: Mapping[str, Any] = {"ahead": True, "confidence": 0.7}
