"""All rules, language by language; the first that reads a clause wins."""

from __future__ import annotations

from everkept.derive.offline.rule import Rule
from everkept.derive.offline.rules_english import ENGLISH
from everkept.derive.offline.rules_german import GERMAN
from everkept.derive.offline.rules_japanese import JAPANESE
from everkept.derive.offline.rules_portuguese import PORTUGUESE
from everkept.derive.offline.rules_spanish import SPANISH

RULES: tuple[Rule, ...] = (*ENGLISH, *GERMAN, *PORTUGUESE, *SPANISH, *JAPANESE)
