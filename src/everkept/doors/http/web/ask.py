"""A recall playground: what a question finds and why, and the block that a model would be given."""

from __future__ import annotations

from typing import Final, get_args

from starlette.responses import Response

from everkept.api import views as v
from everkept.doors.http.web.memory import moment_of
from everkept.doors.http.web.timelines import first_day
from everkept.doors.http.web.visit import Visit, route
from everkept.errors import InvalidInput

TOKENS_DEFAULT: Final = 1200
KINDS: Final[tuple[str, ...]] = get_args(v.RecallResult.model_fields["kind"].annotation)


async def ask(visit: Visit) -> Response:
    """`q`, `subject`, `tokens`, `limit`, `as_of`; `tokens2` and `as_of2` put a second answer beside the first."""
    question = visit.asked("q")
    first = second = None
    if question is not None:
        first = await _recall(visit, question, "")
        if visit.asked("compare"):
            second = await _recall(visit, question, "2")
    return visit.show(
        "ask.html", q=question or "", first=first, second=second, kinds=KINDS, given=visit.request.query_params,
        tokens_default=TOKENS_DEFAULT,
        since=first_day(found.occurred_at for found in (first.results if first else ()) if found.occurred_at),
    )  # fmt: skip


async def _recall(visit: Visit, question: str, which: str) -> v.RecallAnswer:
    kinds = [kind for kind in KINDS if visit.asked(f"{kind}{which}")]
    return await visit.service.recall(
        question,
        subject=visit.asked("subject"),
        limit=_whole(visit, f"limit{which}", 10),
        tokens=_whole(visit, f"tokens{which}", TOKENS_DEFAULT),
        as_of=moment_of(visit, f"as_of{which}"),
        kinds=kinds or None,
        explain=True,
        held_back=True,
    )


def _whole(visit: Visit, word: str, default: int) -> int:
    given = visit.asked(word)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 7:
        raise InvalidInput(f"{word} is a whole number", field=word)
    return int(given)


ROUTES = [route("/ask", ask)]
