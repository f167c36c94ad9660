"""What each tool does: from checked arguments to the use cases, and from their views to an answer."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from everkept.api import views as v
from everkept.api.service import Service
from everkept.capture.redaction import cleaned
from everkept.domain.digest.page import counted
from everkept.doors.mcp.answers import UNTRUSTED, Answer, answer, failure, notes
from everkept.doors.mcp.arguments import checked, moment
from everkept.doors.mcp.place import Memories, Place, Waiting, scope_of
from everkept.doors.mcp.reading import fact_about, read, slug_meant
from everkept.doors.mcp.tools import BY_NAME
from everkept.errors import EverkeptError, InvalidInput, NotFound, UnknownScope

Arguments = Mapping[str, Any]
OWNER: Final = "me"
"""Whom a fact is about where nobody is named."""
PROPOSALS_MAX: Final = 20
_WORDS_KEPT: Final = frozenset({"text", "subject", "title", "body", "reason"})
"""Arguments whose words are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Whose memory a call is about, and what is not in it yet."""

    scope: v.Scope
    service: Service
    waiting: Waiting

    def answer(self, lines: Iterable[str], data: Mapping[str, Any]) -> Answer:
        """Says so where the newest may be missing: it was written by a hook, and no store has it yet."""
        late = self.waiting.records
        told = [f"{counted(late, 'record')} of hooks not taken in yet; ask again for the newest"] if late else []
        return answer(self.scope, [*told, *lines], {**data, "records_waiting": late})


class Calls:
    """The tools over one memory."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._tools: dict[str, Callable[[Place, Arguments], Awaitable[Answer]]] = {
            "remember": self._remember, "recall": self._recall, "read": self._read, "forget": self._forget,
            "handoff": self._handoff, "timeline": self._timeline, "review": self._review, "status": self._status,
        }  # fmt: skip

    async def call(self, name: str, arguments: Arguments | None, place: Place) -> Answer:
        """Run one tool. What goes wrong in Everkept is an answer, too: the model is to read it."""
        try:
            tool = self._tools.get(name)
            if tool is None:
                raise NotFound(f"there is no tool {name!r}; there are: {', '.join(self._tools)}", tool=name)
            given = checked(BY_NAME[name]["inputSchema"], arguments)
            return await tool(place, {word: _kept(word, value) for word, value in given.items()})
        except EverkeptError as error:
            return failure(error)

    async def _asked(self, place: Place, given: Arguments, *, create: bool = False) -> _Asked:
        waiting = await self._memories.waiting()
        scope = await scope_of(self._memories, place, given.get("project"), create=create)
        return _Asked(scope=scope, service=await self._memories.service(scope.project), waiting=waiting)

    # ---- writing

    async def _remember(self, place: Place, given: Arguments) -> Answer:
        is_page = "title" in given or "body" in given
        if is_page == ("text" in given) or (is_page and not ("title" in given and "body" in given)):
            raise InvalidInput("give either `text`, for a fact, or `title` and `body`, for a page", field="text")
        if not is_page and (extra := sorted(given.keys() & {"slug", "base"})):
            raise InvalidInput(f"{extra[0]} belongs to a page; a fact has only `text` and `subject`", field=extra[0])
        if is_page and "subject" in given:
            raise InvalidInput("a page has no subject; a fact (`text`) has one", field="subject")
        asked = await self._asked(place, given, create=True)
        return await (self._page if is_page else self._fact)(asked, place, given)

    async def _fact(self, asked: _Asked, place: Place, given: Arguments) -> Answer:
        fact = await asked.service.remember(
            given["text"], subject=given.get("subject", OWNER), key=f"mcp-{uuid.uuid4().hex}"
        )
        repeats = f"; it repeats {fact.duplicate_of}" if fact.duplicate_of else ""
        return asked.answer(
            [f"remembered fact {fact.id}, about {fact.subject}{repeats}"],
            {"id": fact.id, "kind": "fact", "text": fact.text, **fact_about(fact)},
        )

    async def _page(self, asked: _Asked, place: Place, given: Arguments) -> Answer:
        page = await asked.service.write_page(
            given["title"], given["body"], kind=given["kind"], slug=given.get("slug"), base=given.get("base"),
            author=place.agent,
        )  # fmt: skip
        return asked.answer(
            [f"wrote {page.kind} page {page.slug}, version {page.version}"],
            page.model_dump(mode="json", exclude={"body"}, exclude_none=True),
        )

    async def _forget(self, place: Place, given: Arguments) -> Answer:
        name, undo = given["id"], given.get("undo", False)
        asked = await self._asked(place, given)
        if name.startswith("fct_"):
            fact = await asked.service.forget(name, reason=given.get("reason", f"by {place.agent}"), undo=undo)
            done = "brought back" if undo else "retired; `forget` with undo=true brings it back:"
            return asked.answer([f"{done} fact {fact.id}"], {"id": fact.id, "kind": "fact", **fact_about(fact)})
        if undo:
            raise InvalidInput("a deleted page is not brought back by undo; write it again", field="undo")
        if name[:4] in ("ses_", "hnd_", "epi_", "evt_"):
            raise InvalidInput(
                f"{name} is neither a fact nor a page; `everkept erase` destroys sessions and messages", field="id"
            )
        page = await asked.service.delete_page(await slug_meant(asked.service, name))
        return asked.answer([f"deleted page {page.slug}"], {"id": page.id, "kind": "page", "slug": page.slug})

    # ---- reading

    async def _recall(self, place: Place, given: Arguments) -> Answer:
        asked = await self._asked(place, given)
        found = await asked.service.recall(
            given["query"], subject=given.get("subject"), limit=given["limit"], tokens=given["tokens"],
            kinds=given.get("kinds"),
        )  # fmt: skip
        items = [_hit(result) for result in found.results]
        note = [found.note] if found.note else []
        nothing = found.text or "nothing found: Everkept looked, and knows nothing of it"
        head = f"{len(items)} found" if items else nothing
        lines = [head, *note, *(notes(items) if items else [])]
        return asked.answer(lines, {"untrusted": UNTRUSTED, "results": items, "note": found.note})

    async def _read(self, place: Place, given: Arguments) -> Answer:
        asked = await self._asked(place, given)
        part = await read(asked.service, given["id"], offset=given["offset"], limit=given["limit"])
        unit = "events" if part.kind == "session" else "characters"
        more = f"; go on with offset={part.next_offset}" if part.next_offset is not None else ", to its end"
        head = f"{part.kind} {part.id}, {unit} from {part.offset:,} of {part.total:,}{more}"
        return asked.answer([head, *notes(part.items)], {
            "untrusted": UNTRUSTED, "id": part.id, "kind": part.kind, "title": part.title, "offset": part.offset,
            "total": part.total, "next_offset": part.next_offset, "items": part.items, "about": part.about,
        })  # fmt: skip

    async def _handoff(self, place: Place, given: Arguments) -> Answer:
        asked = await self._asked(place, given)
        if given.get("id", "").startswith("off_"):
            return await self._offer(asked, given)
        here = place.checkout if "project" not in given else None
        choice = await asked.service.choose_handoff(
            worktree=None if here is None else here.place, branch=None if here is None else here.branch
        )
        chosen = await asked.service.get_handoff(given["id"]) if "id" in given else choice.chosen
        if given["take"]:
            if chosen is None:
                raise NotFound(f"there is no handoff to take up: {choice.because}")
            chosen = await asked.service.acknowledge_handoff(chosen.id, by=place.agent)
        because = "named by its id" if "id" in given else choice.because
        others = [_brief(each) for each in choice.others if chosen is None or each.id != chosen.id]
        return asked.answer(_handoff_lines(chosen, because, others, taken=given["take"]), {
            "untrusted": UNTRUSTED, "chosen": None if chosen is None else chosen.model_dump(mode="json"),
            "because": because, "taken": given["take"], "others": others,
        })  # fmt: skip

    async def _offer(self, asked: _Asked, given: Arguments) -> Answer:
        """What a session was given at its start: its packet and its handoff, taken up both or neither."""
        if not given["take"]:
            raise InvalidInput("an offer can only be taken up: say take=true", field="take")
        offer = await asked.service.accept_offer(given["id"])
        return asked.answer([f"{offer.id} is taken up"], {
            "untrusted": UNTRUSTED, "offer": offer.model_dump(mode="json"), "taken": True,
        })  # fmt: skip

    async def _timeline(self, place: Place, given: Arguments) -> Answer:
        asked = await self._asked(place, given)
        page = await asked.service.timeline(
            kinds=given.get("kinds"), since=moment("since", given.get("since")),
            until=moment("until", given.get("until")), limit=given["limit"], cursor=given.get("cursor"),
        )  # fmt: skip
        items = [item.model_dump(mode="json") for item in page.items]
        more = [f"more with cursor={page.next_cursor}"] if page.next_cursor else []
        lines = [f"{len(items)} things, newest first", *more, *notes(items)] if items else ["nothing happened there"]
        return asked.answer(lines, {"untrusted": UNTRUSTED, "items": items, "next_cursor": page.next_cursor})

    async def _review(self, place: Place, given: Arguments) -> Answer:
        asked = await self._asked(place, given)
        if "id" not in given:
            if extra := sorted(given.keys() & {"decision", "reason"}):
                raise InvalidInput(f"{extra[0]} needs the `id` of a proposal", field=extra[0])
            if given["report"]:
                return await _report(asked)
            return await _awaiting(asked, await _started(asked) if given["run"] else [])
        if "decision" in given:
            return await _decided(asked, place, given)
        found = await asked.service.get_proposal(given["id"])
        head = f"proposal {found.id}, {found.state.replace('_', ' ')}" + (f": {found.reason}" if found.reason else "")
        shown = found.model_dump(mode="json", exclude_none=True)
        return asked.answer([head, *notes([shown])], {"untrusted": UNTRUSTED, "proposals": [shown], "more": False})

    async def _status(self, place: Place, given: Arguments) -> Answer:
        """Also where the folder is unknown: that is what it is asked for then."""
        waiting = await self._memories.waiting()
        scope, unknown = None, None
        try:
            scope = await scope_of(self._memories, place, given.get("project"))
        except UnknownScope as error:
            unknown = error.message
        service = await self._memories.service("default" if scope is None else scope.project)
        now = await service.status(project_only=scope is not None or not self._memories.whole_store)
        attention = len(now.given_up) + len(now.stuck)
        lines = [
            *([f"no project: {unknown}"] if unknown else []),
            f"{counted(waiting.records, 'record')} of hooks not taken in yet; "
            f"{waiting.aside} that could not be read, kept",
            f"{counted(now.messages, 'message')}, {counted(now.episodes, 'episode')}, {counted(now.facts, 'fact')}; "
            f"{counted(now.backlog_due, 'job')} due, {attention} in need of attention",
            *([f"degraded: {now.store['degraded']}"] if now.store.get("degraded") else []),
        ]  # fmt: skip
        return answer(scope, lines, {
            "unknown_because": unknown, "spool_waiting": waiting.records, "spool_aside": waiting.aside,
            "version": now.version, "messages": now.messages, "episodes": now.episodes, "facts": now.facts,
            "jobs_due": now.backlog_due, "need_attention": attention, "degraded": now.store.get("degraded"),
            "model": now.model, "embedder": now.embedder,
        })  # fmt: skip


def _kept(word: str, value: Any) -> Any:
    """An argument as it may be kept. Raises InvalidInput where nothing of it may."""
    if word not in _WORDS_KEPT or not value.strip():
        return value
    kept = cleaned(value)
    if not kept.strip():
        raise InvalidInput(f"{word} is private from its first word to its last: nothing of it is kept", field=word)
    return kept


async def _started(asked: _Asked) -> list[str]:
    """Through the same claim as the scheduler's; the reviews themselves are background work."""
    found = await asked.service.run_reviews()
    return [f"{counted(found.opened, 'review')} started; {found.reviewing} under way, {found.waiting} to come"]


async def _report(asked: _Asked) -> Answer:
    found = await asked.service.proposal_report(limit=PROPOSALS_MAX)
    outcomes = [one.model_dump(mode="json", exclude_none=True) for one in found.outcomes]
    lines = [f"{found.open} open; of the approved:", *notes(outcomes)] if outcomes else ["nothing is approved"]
    return asked.answer(lines, {"untrusted": UNTRUSTED, "outcomes": outcomes, "open": found.open,
                                "decided": found.decided})  # fmt: skip


async def _awaiting(asked: _Asked, before: list[str]) -> Answer:
    page = await asked.service.list_proposals(limit=PROPOSALS_MAX)
    items = [
        one.model_dump(mode="json", include={"id", "action", "kind", "slug", "title", "why", "confidence", "state",
                                             "reason", "created_at"}, exclude_none=True)
        for one in page.items
    ]  # fmt: skip
    more = page.next_cursor is not None
    head = f"{len(items)}{' or more' if more else ''} proposals await a decision; `id` shows one whole"
    lines = [head, *notes(items)] if items else ["nothing awaits a decision"]
    return asked.answer([*before, *lines], {"untrusted": UNTRUSTED, "proposals": items, "more": more})


async def _decided(asked: _Asked, place: Place, given: Arguments) -> Answer:
    if given["decision"] == "approve":
        found = await asked.service.approve_proposal(given["id"], by=place.agent)
        done = f"approved {found.id}: page {found.slug}"
    elif given["decision"] == "rollback":
        found = await asked.service.roll_back_proposal(given["id"], by=place.agent, reason=given.get("reason"))
        done = f"rolled back {found.id}: page {found.slug}"
    else:
        found = await asked.service.reject_proposal(given["id"], by=place.agent, reason=given.get("reason"))
        done = f"rejected {found.id}: the same is not proposed again"
    shown = found.model_dump(mode="json", exclude={"body", "evidence", "difference"}, exclude_none=True)
    return asked.answer([done], {"untrusted": UNTRUSTED, "proposals": [shown], "more": False})


def _hit(result: v.RecallResult) -> dict[str, Any]:
    """A result with what it takes to cite it and to read on."""
    kept = result.model_dump(mode="json", include={"kind", "id", "text", "speaker", "occurred_at", "quote", "page",
                                                   "heading", "thread"}, exclude_none=True)  # fmt: skip
    return {**kept, "score": round(result.score, 3), **({"unsettled": True} if result.unsettled else {})}


def _brief(handoff: v.Handoff) -> dict[str, Any]:
    kept = {"id", "title", "agent", "worktree", "branch", "left_at", "state"}
    return handoff.model_dump(mode="json", include=kept, exclude_none=True)


def _handoff_lines(chosen: v.Handoff | None, because: str, others: list[dict[str, Any]], *, taken: bool) -> list[str]:
    if chosen is None:
        return [f"no handoff: {because}", *(["others:", *notes(others)] if others else [])]
    state = f"taken up by {chosen.acknowledged_by}" if taken else f"{chosen.state}; take=true takes it up"
    shown = {**_brief(chosen), "body": chosen.body, "open_ends": chosen.open_ends}
    return [
        f"handoff {chosen.id} ({state}); chosen because: {because}", *notes([shown]),
        *([f"{len(others)} others:", *notes(others)] if others else []),
    ]  # fmt: skip
