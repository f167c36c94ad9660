"""What is remembered: subjects with their facts over time, entities, episodes, and where each thing comes from."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby

from starlette.responses import Response

from everkept.api import views as v
from everkept.doors.http.web.graphs import of_entities
from everkept.doors.http.web.timelines import Lifeline, first_day, lifelines
from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route
from everkept.errors import InvalidInput

FACTS_SHOWN = 200
BY = "a hand on the page"
DECIDED = {"forget": "retired", "believe": "believed", "pin": "pinned", "unpin": "unpinned"}


async def subjects(visit: Visit) -> Response:
    found = await visit.service.list_subjects(limit=PAGE_ITEMS, cursor=visit.asked("cursor"))
    return visit.show("subjects.html", subjects=found)


async def subject(visit: Visit) -> Response:
    name, past = visit.at("subject"), visit.asked("past") == "1"
    facts = await visit.service.list_facts(
        subject=name, as_of=moment_of(visit, "as_of"), include_retired=past, limit=FACTS_SHOWN,
        cursor=visit.asked("cursor"), query=visit.asked("q"),
    )  # fmt: skip
    threads = await visit.service.list_threads(subject=name, limit=10)
    entities = await visit.service.list_entities(subject=name, limit=PAGE_ITEMS)
    episodes = await visit.service.list_episodes(subject=name, limit=10)
    return visit.show(
        "subject.html", subject=name, facts=facts, groups=_by_slot(facts.items), threads=threads, entities=entities,
        episodes=episodes, graph=of_entities(facts.items, entities.items), past=past,
        as_of=visit.asked("as_of") or "", q=visit.asked("q") or "",
        since=first_day(fact.valid_from or fact.said_at for fact in facts.items),
    )  # fmt: skip


async def entities(visit: Visit) -> Response:
    """All that a subject's facts are about, and how they are related."""
    name = visit.at("subject")
    found = await visit.service.list_entities(subject=name, limit=PAGE_ITEMS, cursor=visit.asked("cursor"))
    facts = await visit.service.list_facts(subject=name, limit=FACTS_SHOWN)
    return visit.show("entities.html", subject=name, entities=found, graph=of_entities(facts.items, found.items))


def _by_slot(facts: list[v.Fact]) -> list[tuple[str, str, list[Lifeline]]]:
    """(entity, predicate, facts with their bars): what competes with each other stands together."""

    def slot(fact: v.Fact) -> tuple[str, str]:
        return fact.entity, fact.predicate

    bars = {line.fact.id: line for line in lifelines(facts)}
    return [
        (*key, [bars[fact.id] for fact in sorted(group, key=lambda f: f.valid_from or f.said_at)])
        for key, group in groupby(sorted(facts, key=slot), key=slot)
    ]


async def fact(visit: Visit) -> Response:
    found = await visit.service.get_fact(visit.at("fact"))
    said = await visit.service.list_facts(subject=found.subject, include_retired=True, limit=FACTS_SHOWN)
    same = [other for other in said.items if (other.entity, other.predicate) == (found.entity, found.predicate)]
    history = sorted(lifelines(same), key=lambda line: line.fact.valid_from or line.fact.said_at)
    return visit.show("fact.html", fact=found, history=history, why=await visit.service.why(found.id))


async def decide(visit: Visit) -> Response:
    """`forget` retires a fact and `believe` brings it back; `pin` and `unpin`."""
    name, verb, form = visit.at("fact"), visit.at("verb"), await visit.form()
    match verb:
        case "forget" | "believe":
            reason = form.get("reason", "").strip() or "by hand"
            await visit.service.forget(name, reason=reason, undo=verb == "believe")
        case "pin" | "unpin":
            await visit.service.pin_fact(name, pinned=verb == "pin", by=BY)
        case _:
            raise InvalidInput("a fact is forgotten, believed again, pinned or unpinned", field="verb")
    return visit.go(f"/facts/{name}", done=DECIDED[verb])


async def correct(visit: Visit) -> Response:
    """What is right becomes a fact of its own, and is shown."""
    form = await visit.form()
    made = await visit.service.correct_fact(
        visit.at("fact"), object=form.get("object", "").strip() or None, text=form.get("text", "").strip() or None,
        by=form.get("by", "").strip() or BY,
    )  # fmt: skip
    return visit.go(f"/facts/{made.id}", done="corrected")


async def remember(visit: Visit) -> Response:
    name, form = visit.at("subject"), await visit.form()
    await visit.service.remember(form.get("text", ""), subject=name, pinned="pinned" in form)
    return visit.go(f"/subjects/{visit.segment('subject')}", done="stated")


async def merge(visit: Visit) -> Response:
    """Two names of one thing."""
    form = await visit.form()
    await visit.service.merge_entities(form.get("entity", ""), into=form.get("into", ""), by=BY)
    return visit.go(f"/subjects/{visit.segment('subject')}", done="merged")


async def split(visit: Visit) -> Response:
    await visit.service.split_entity((await visit.form()).get("entity", ""))
    return visit.go(f"/subjects/{visit.segment('subject')}", done="split")


async def episodes(visit: Visit) -> Response:
    found = await visit.service.list_episodes(
        subject=visit.asked("subject"), query=visit.asked("q"), limit=PAGE_ITEMS, cursor=visit.asked("cursor")
    )
    return visit.show("episodes.html", episodes=found, q=visit.asked("q") or "", subject=visit.asked("subject"))


async def episode(visit: Visit) -> Response:
    found = await visit.service.get_episode(visit.at("episode"))
    messages = await visit.service.list_messages(found.thread, after_seq=found.start_seq - 1, limit=200)
    covered = [m for m in messages.items if m.seq <= found.end_seq]
    return visit.show("episode.html", episode=found, messages=covered)


async def retry_stage(visit: Visit) -> Response:
    form = await visit.form()
    await visit.service.retry_episode(visit.at("episode"), form.get("stage", ""))
    return visit.go(f"/episodes/{visit.at('episode')}", done="retried")


async def why(visit: Visit) -> Response:
    return visit.show("why.html", why=await visit.service.why(visit.at("id")))


def moment_of(visit: Visit, word: str) -> datetime | None:
    """A time of the query, written out with its zone. Raises InvalidInput."""
    given = visit.asked(word)
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given if len(given) > 10 else f"{given}T23:59:59+00:00")
    except ValueError as error:
        raise InvalidInput(f"{word} is a day or a time, e.g. 2026-05-01", field=word) from error
    if at.tzinfo is None:
        raise InvalidInput(f"{word} needs its zone, e.g. 2026-05-01T12:00:00Z", field=word)
    return at


ROUTES = [
    route("/subjects", subjects),
    route("/subjects/{subject:id}", subject),
    route("/subjects/{subject:id}/entities", entities),
    route("/subjects/{subject:id}/remember", remember, "POST"),
    route("/subjects/{subject:id}/merge", merge, "POST"),
    route("/subjects/{subject:id}/split", split, "POST"),
    route("/facts/{fact:id}", fact),
    route("/facts/{fact:id}/correct", correct, "POST"),
    route("/facts/{fact:id}/{verb}", decide, "POST"),
    route("/episodes", episodes),
    route("/episodes/{episode:id}", episode),
    route("/episodes/{episode:id}/retry", retry_stage, "POST"),
    route("/why/{id:id}", why),
]
