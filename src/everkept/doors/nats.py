"""The door of NATS: a message has the body of HTTP, and is taken in as that would be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pydantic_core
from pydantic import ValidationError

from everkept.api.nats_state import Letter, Take
from everkept.doors.http.ingest import EventIn, EventsBody, take_body
from everkept.doors.http.messages import parse_append
from everkept.doors.http.words import Words, known_words
from everkept.doors.invalid import invalid_input
from everkept.errors import InvalidInput, RateLimited

if TYPE_CHECKING:
    from everkept.api.service import Application


def taker(application: Application) -> Take:
    return partial(take_letter, application)


async def take_letter(application: Application, letter: Letter) -> None:
    """The body of `POST /v1/events`, one event of it, or `{"thread", …}` with the body of that thread's messages.

    Raises InvalidInput, NotFound and Conflict for what no later try takes in, RateLimited for what has to wait, and
    StoreUnavailable; sent again, what was taken in already changes nothing.
    """
    given = _read(letter.data)
    if "thread" in given:
        await _take_messages(application, letter, given)
    elif "events" in given or "records" in given:
        await _take_events(application, letter, _parse(EventsBody, given))
    else:
        event = _parse(EventIn, {"key": letter.key, **given})
        await _take_events(application, letter, EventsBody(events=[event]))


def _read(data: bytes) -> dict[str, Any]:
    try:
        given = pydantic_core.from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput("the message is not JSON", field="body") from error
    if not isinstance(given, dict):
        raise InvalidInput("the message must be an object", field="body")
    return given


async def _take_messages(application: Application, letter: Letter, given: dict[str, Any]) -> None:
    thread = given.pop("thread")
    if not isinstance(thread, str) or not thread:
        raise InvalidInput("thread: it must be a name", field="thread")
    if letter.project is None:
        raise InvalidInput("messages of a thread go to the subject of their project", field="thread")
    subject, messages = parse_append(pydantic_core.to_json(given))
    service = await application.service(letter.project)
    await service.append(thread, messages, subject=subject, key=letter.key)


async def _take_events(application: Application, letter: Letter, body: EventsBody) -> None:
    """Into the project of the subject only: who may publish there has that project's key, and no other one's."""
    if letter.project is not None:
        await application.service(letter.project)
    ingest = application.ingest(project=letter.project, confined=letter.project is not None)
    answers = (await take_body(ingest, body)).records or []
    for answer in answers:
        if answer.postponed is not None:
            raise RateLimited(answer.postponed.message, retry_after_s=answer.postponed.retry_after_s)
    refused = [answer for answer in answers if answer.refused is not None]
    if refused and refused[0].refused is not None:
        raise InvalidInput(
            f"{len(refused)} of {len(answers)} records were refused: {refused[0].refused.message}", field="records"
        )


def _parse(model: type[Words], given: dict[str, Any]) -> Any:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise invalid_input(error.errors(), known=known_words(model)) from error
