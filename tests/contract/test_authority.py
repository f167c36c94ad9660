"""What somebody keeps true is found before the logs of sessions with the same words, as a tie-break (F04)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_sessions import call, prompt, said
from tests.contract.test_wiki import Wikis

from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.recall.search import Query, Ranked, Searcher
from everkept.store.page_sections import sections_by_id

ASKS = "Which queue did we choose for the mail service?"
OUTPUT = "mail service: queue choose which queue: retry"


class Asked(Wikis):
    def search(self, question: str, searcher: Searcher | None = None) -> Ranked:
        scope = Scope(project=ProjectId(self.project))
        return self.store.read_now((searcher or Searcher(None)).search, scope, Query(text=question))

    def found(self, word: str) -> list[str]:
        """Slugs of pages and roles of events, best first."""
        hits = [one.hit for one in self.search(word).hits]
        sections = self.store.read_now(
            sections_by_id, self.project, [h.ref for h in hits if h.kind == "page" and h.ref is not None]
        )
        return [sections[h.ref].slug if h.kind == "page" and h.ref is not None else str(h.speaker) for h in hits]

    def logs(self, count: int, output: str = OUTPUT, session: str = "s1") -> None:
        calls: list[Any] = [
            call(session, f"{session}-{n}", f"make {n}", outcome="ok", output=output) for n in range(count)
        ]
        for at in range(0, count, 100):
            self.told(session, *calls[at : at + 100])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Asked]:
    made = Asked(tmp_path)
    yield made
    made.store.close()


def test_f04_a_decision_is_found_before_300_outputs_of_tools_with_the_same_words(world: Asked) -> None:
    world.write("queue", "We chose river as the queue of the mail service; which one to choose was open for long.",
                kind="decision")  # fmt: skip
    world.logs(300)
    assert world.found(ASKS)[0] == "queue"


def test_f04_a_page_that_says_less_of_what_is_asked_stays_behind_the_log(world: Asked) -> None:
    world.write("mail", "The mail service sends receipts and reminders to people.", kind="decision")
    world.told("s1", prompt("s1", ASKS), said("s1", "We choose river as the queue for the mail service."))
    found = world.found(ASKS)
    assert found.index("mail") > 0


def test_f04_a_page_about_something_else_is_not_lifted_past_any_log(world: Asked) -> None:
    world.write("colours", "Which colours the service has.", kind="decision")
    world.logs(20, "the mail arrives")
    ranked = world.search(ASKS)
    assert not ranked.features["maintained"].any()


def test_f04_of_two_pages_the_better_one_stays_the_first(world: Asked) -> None:
    world.write("worse", "The queue of the mail service was hard to choose. " + "Much else was said that day. " * 20)
    world.write("better", "The queue of the mail service: we choose river.")
    world.logs(200)
    assert world.found(ASKS)[:2] == ["better", "worse"]


def test_the_shares_of_a_lifted_page_are_still_its_score(world: Asked) -> None:
    world.write("queue", "We choose river as the queue of the mail service.")
    world.logs(50)
    ranked = world.search(ASKS)
    first = ranked.hits[0]
    assert first.score == pytest.approx(sum(ranked.signals(first).values()), abs=1e-4)
    assert ranked.signals(first)["maintained"] > 0
    assert [one.score for one in ranked.hits] == sorted((one.score for one in ranked.hits), reverse=True)
