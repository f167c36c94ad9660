"""What the bundled conversation gives without a model: most of what a careful person would keep, and nothing wrong."""

from __future__ import annotations

import re
from functools import cache

from everkept import demo
from everkept.capture.importers import parse_jsonl
from everkept.derive.offline.extract import extract_offline
from everkept.domain.dates import to_us
from everkept.domain.facts import FactDraft, check_drafts
from everkept.domain.transcript import Turn


@cache
def facts() -> list[FactDraft]:
    found: list[FactDraft] = []
    with demo.conversation() as path:
        threads = parse_jsonl(path).threads
    for stream, thread in enumerate(threads, 1):
        turns = [
            Turn(
                stream=stream, seq=seq, role=said.role, name=said.name, content=said.content, evidence=True, tokens=1,
                occurred_at_us=to_us(said.occurred_at) if said.occurred_at else 0, zone_min=60,
            )
            for seq, said in enumerate(thread.messages, 1)
        ]  # fmt: skip
        drafts = extract_offline(turns, subject="marta", known_names={})
        assert check_drafts(turns, drafts).rejected == ()
        found += drafts
    return found


def test_demo_gives_what_is_durable_in_three_languages() -> None:
    texts = {fact.text for fact in facts()}
    assert {
        "Marta works as a nurse", "Marta works at the Lindenhof clinic", "Marta has a dog named Bolota",
        "Marta has a sister named Ana", "Ana is married to Rui", "Leo is five years old", "Marta's mother likes fish",
        "Marta singt in einem Chor in Plagwitz", "Der Vermieter von Marta heißt Herr Brandt",
        "A senhoria de Marta chama-se dona Graça", "Bolota odeia as escadas", "Marta bought a second-hand e-bike",
        "Marta starts at Hospital de São Bento", "Marta has a home in Rua do Heroísmo",
    } <= texts  # fmt: skip
    assert len(texts) >= 38


def test_demo_facts_read_well() -> None:
    for fact in facts():
        assert re.search(r"\b(?:my|our|meine?|minha|this|yesterday|tomorrow)\b", fact.text) is None
        assert len(fact.text) <= 80
