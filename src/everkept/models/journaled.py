"""Asking a model so that no paid reply is lost and none is paid for twice (G8).

A crash before `begin` leaves nothing; between `begin` and `commit` the reply may be asked for again, and is counted;
after `commit` it is never asked for again, whatever becomes of the job.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Final, TypeVar

from everkept.domain.replies import InvalidReply
from everkept.errors import (
    InvalidOutput,
    Permanent,
    ProviderDown,
    RateLimited,
    Refused,
    StoreUnavailable,
    Transient,
)
from everkept.models.calls import about_question, about_reply, asking
from everkept.ports.faults import Faults
from everkept.ports.journal import Address, Journal, Recipe
from everkept.ports.models import LanguageModel, Question, RawReply

T = TypeVar("T")
TOKENS_MAX: Final = 1_000_000_000
UNKEPT_MAX: Final = 256
_ORDINARY: Final = {
    "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"], "additionalProperties": False,
}  # fmt: skip
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _nobody() -> None:
    return None


class JournaledModel:
    """A model behind the journal. `asks_max` bounds how many replies to one question are paid for."""

    def __init__(self, model: LanguageModel, journal: Journal, faults: Faults, *, asks_max: int) -> None:
        self.model = model
        self._journal = journal
        self._faults = faults
        self._asks_max = asks_max
        self._unkept: dict[tuple[Address, int, int], RawReply] = {}
        """Paid replies, by address, epoch and ask, that wait here until the store can be written again."""

    async def ask(
        self, question: Question, parse: Callable[[str], T], *, project: int, subject: int, work: str, recipe: Recipe,
        epoch: int, budget: int = 1, fresh: int = 0, heard: Callable[[], None] = _nobody,
    ) -> T:  # fmt: skip
        """The first kept reply that `parse` accepts, else a new one.

        `epoch` is the subject's, read together with what the question is made of.
        `budget` multiplies the asks allowed (a hand that retries allows more); `fresh` skips replies up to that ask;
        `heard` is called when the provider has answered, which a kept reply does not tell.
        Raises InvalidOutput when the allowed asks are spent, its transient sister (`Transient`) while one is left, and
        the model's own errors.
        """
        address = Address(
            project=project,
            subject=subject,
            work=work,
            step=question.step,
            version=question.version,
            model=self.model.name,
            epoch=epoch,
        )
        kept = [k for k in await self._journal.kept(address) if k.ask > fresh]
        reason = "no reply yet"
        for reply in reversed(kept):  # the newest that can be used: asking afresh replaces what was
            try:
                found = parse(reply.text)
            except InvalidReply as error:
                reason = str(error)
                continue
            if reply.rejected_because is not None:
                await self._journal.judge(address, reply.ask, None)
            return found
        if len(kept) >= self._asks_max * budget:
            raise InvalidOutput(f"the model's replies cannot be used: {reason}", asks=len(kept))
        left = self._asks_max * budget - len(kept) - 1
        # Past the highest kept one, not their number: an erase may have taken an earlier reply and left a later one.
        ask = max((k.ask for k in kept), default=fresh) + 1
        return await self._pay(address, question, parse, recipe, ask=ask, left=left, heard=heard)

    async def answers_ordinary(self, *, project: int, subject: int, epoch: int, timeout_s: float) -> bool:
        """Whether the provider answers what every model can: then a failure was not its own. Paid and kept like others.

        Raises SubjectMoved, OverBudget and what the store raises.
        """
        address = Address(
            project=project, subject=subject, work="weather", step="ordinary", version="ordinary.1",
            model=self.model.name, epoch=epoch,
        )  # fmt: skip
        ask = max((kept.ask for kept in await self._journal.kept(address)), default=0) + 1
        question = Question(
            step="ordinary", version="ordinary.1", system="Reply with a JSON object: one word.", user="Hello.",
            schema=_ORDINARY, timeout_s=timeout_s,
        )  # fmt: skip
        try:
            await self._pay(address, question, str, Recipe(), ask=ask, left=0, heard=_nobody)
        except (Transient, RateLimited, ProviderDown):
            return False
        except (Refused, Permanent):  # an answer, too
            return True
        return True

    async def _pay(
        self, address: Address, question: Question, parse: Callable[[str], T], recipe: Recipe, *, ask: int, left: int,
        heard: Callable[[], None],
    ) -> T:  # fmt: skip
        waiting = self._unkept.pop((address, address.epoch, ask), None)
        if waiting is not None:
            text = await self._keep(address, ask, waiting)
        else:
            text = await self._call(address, question, recipe, ask=ask, heard=heard)
        self._faults.reach("journal.after_commit")
        try:
            return parse(text)
        except InvalidReply as error:
            await self._journal.judge(address, ask, str(error))
            if left > 0:
                raise Transient(
                    f"the model's reply cannot be used, and is asked for once more: {error}", answered=True
                ) from error
            raise InvalidOutput(f"the model's replies cannot be used: {error}", asks=ask) from error

    async def _call(
        self, address: Address, question: Question, recipe: Recipe, *, ask: int, heard: Callable[[], None]
    ) -> str:
        """The text of the reply that is kept."""
        request = hashlib.blake2b(f"{question.system}\0{question.user}".encode(), digest_size=16).digest()
        await self._journal.allow(address)
        if (kept := await self._journal.begin(address, ask, request, recipe)) is not None:
            return kept
        self._faults.reach("journal.before_ask")
        with asking("chat", self.model.name, about_question(question, ask)) as call:
            try:
                async with asyncio.timeout(question.timeout_s):
                    reply = storable(await self.model.ask(question))
            except TimeoutError as error:
                raise Transient(f"the model did not answer within {question.timeout_s:g} s") from error
            call.tell(about_reply(reply))
        heard()
        self._faults.reach("journal.after_reply")
        return await self._keep(address, ask, reply)

    async def _keep(self, address: Address, ask: int, reply: RawReply) -> str:
        """Commit a reply. Where the store cannot be written it is held in memory, for the job's next run."""
        try:
            return await self._journal.commit(address, ask, reply)
        except StoreUnavailable:
            self._unkept[address, address.epoch, ask] = reply
            if len(self._unkept) > UNKEPT_MAX:
                del self._unkept[next(iter(self._unkept))]
            raise


def storable(reply: RawReply) -> RawReply:
    """The reply as every database can hold it: what was paid for is never lost to how its text or its bill reads.

    NUL and lone surrogates become U+FFFD, what is no text becomes JSON, and numbers that cannot be are left out.
    """
    text: object = reply.text
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, default=str)
    return RawReply(
        text=_UNSTORABLE.sub("\ufffd", text),
        tokens_in=_tokens(reply.tokens_in),
        tokens_out=_tokens(reply.tokens_out),
        usd=reply.usd if isinstance(reply.usd, int | float) and math.isfinite(reply.usd) and reply.usd >= 0 else None,
    )


def _tokens(counted: object) -> int:
    return min(max(counted, 0), TOKENS_MAX) if isinstance(counted, int) else 0
