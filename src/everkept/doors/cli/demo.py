"""`demo`: the bundled conversation goes in, is worked to the end, and is shown, in a store that is thrown away."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import DEFAULT_PROJECT, Json

if TYPE_CHECKING:
    from everkept.api import views as v
    from everkept.api.service import Service
    from everkept.capture.importers import ParsedImport
    from everkept.demo import DemoQuestion
    from everkept.doors.cli.intake import Intake

KEPT_SETTINGS = frozenset({"EVERKEPT_MODEL", "EVERKEPT_EMBEDDER", "EVERKEPT_LOG__LEVEL", "EVERKEPT_LOG__FORMAT"})
"""Settings of the environment that hold in the demo; all others could lead it to the reader's own memory."""
RESULTS = 3
RESULTS_BESIDE = 2
"""Of a question about the past, whose two answers are shown side by side."""
LISTED_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One question with its answers: now, and for a question about the past, then."""

    question: DemoQuestion
    now: v.RecallAnswer
    then: v.RecallAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All that the demo shows."""

    intake: Intake
    messages: int
    remembered: int
    work_s: float
    facts: list[v.Fact]
    episodes: list[v.Episode]
    recalls: list[Shown]
    status: v.Status


async def demo(
    *,
    home: Annotated[Path | None, Parameter(help="Keep the memory in this folder instead of throwing it away.")] = None,
    json: Json = False,
) -> int:
    """Show what Everkept does, offline, in a throw-away store; uses a model only where EVERKEPT_MODEL names one."""
    with _home_of(home) as place:
        settings = config.load(_environment(), home=place)
        if not json:
            _open_page(settings, kept=home is not None)
        async with backend.application(settings, worker=True) as application:
            played = await _play(await application.service(DEFAULT_PROJECT))
        if json:
            screen.emit(_as_json(played))
        else:
            from everkept.doors.cli.demo_pages import closing_page, played_page

            screen.show(*played_page(played))
            screen.show(*closing_page(played, kept_in=place if home else None))
    return 0 if played.remembered == played.messages else 1


@contextmanager
def _home_of(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given.expanduser().absolute()
        return
    with tempfile.TemporaryDirectory(prefix="everkept-demo-") as folder:
        yield Path(folder)


def _environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_") or name in KEPT_SETTINGS
    }


def _open_page(settings: config.Settings, *, kept: bool) -> None:
    from everkept.doors.cli.demo_pages import opening_page

    screen.show(*opening_page(settings.home, kept=kept))


async def _play(memory: Service) -> Played:
    from everkept.demo import SUBJECT, questions
    from everkept.doors.cli import intake

    parsed, before = _parse(), await memory.status()
    with screen.progress("importing  ") as bar:
        taken = await intake.take_in(memory, parsed, bar)
    began = time.monotonic()
    with screen.progress("remembering") as bar:
        await intake.settle(memory, before, len(taken.threads), bar)
    work_s = time.monotonic() - began
    return Played(
        intake=taken,
        messages=len(taken.event_ids),
        remembered=await intake.remembered(memory, taken.threads),
        work_s=work_s,
        facts=(await memory.list_facts(subject=SUBJECT, include_retired=True, limit=LISTED_MAX)).items,
        episodes=(await memory.list_episodes(subject=SUBJECT, limit=LISTED_MAX)).items,
        recalls=[await _ask(memory, SUBJECT, question) for question in questions()],
        status=await memory.status(),
    )


def _parse() -> ParsedImport:
    from everkept.capture.importers import parse_jsonl
    from everkept.demo import conversation

    with conversation() as path:
        return parse_jsonl(path)


async def _ask(memory: Service, subject: str, question: DemoQuestion) -> Shown:
    now = await memory.recall(
        question.text, subject=subject, limit=RESULTS if question.as_of is None else RESULTS_BESIDE
    )
    then = None
    if question.as_of is not None:
        then = await memory.recall(question.text, subject=subject, limit=RESULTS_BESIDE, as_of=question.as_of)
    return Shown(question=question, now=now, then=then)


def _as_json(played: Played) -> dict[str, object]:
    return {
        "import": played.intake.report.model_dump(mode="json"),
        "remembered": played.remembered,
        "facts": [fact.model_dump(mode="json") for fact in played.facts],
        "episodes": [episode.model_dump(mode="json") for episode in played.episodes],
        "recalls": [(shown.then or shown.now).model_dump(mode="json") for shown in played.recalls],
        "status": played.status.model_dump(mode="json"),
    }
