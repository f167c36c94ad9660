"""Asking a model so that no paid reply is lost and none is paid for twice (G8).

A crash before `begin` leaves nothing; between `begin` and `commit` the reply may be asked for again, and is counted;
after `commit` it is never asked for again, whatever becomes of the job.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import TypeVar

from everkept.domain.replies import InvalidReply
from everkept.errors import InvalidOutput, Transient
from everkept.ports.faults import Faults
from everkept.ports.journal import Address, Journal, Recipe
from everkept.ports.models import LanguageModel, Question

T = TypeVar("T")


def _nobody() -> None:
    return None


class JournaledModel:
    """A model behind the journal. `asks_max` bounds how many replies to one question are paid for."""

    def __init__(self, model: LanguageModel, journal: Journal, faults: Faults, *, asks_max: int) -> None:
        self.model = model
        self._journal = journal
        self._faults = faults
        self._asks_max = asks_max

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

    async def _pay(
        self, address: Address, question: Question, parse: Callable[[str], T], recipe: Recipe, *, ask: int, left: int,
        heard: Callable[[], None],
    ) -> T:  # fmt: skip
        request = hashlib.blake2b(f"{question.system}\0{question.user}".encode(), digest_size=16).digest()
        await self._journal.allow(address)
        await self._journal.begin(address, ask, request, recipe)
        self._faults.reach("journal.before_ask")
        try:
            async with asyncio.timeout(question.timeout_s):
                reply = await self.model.ask(question)
        except TimeoutError as error:
            raise Transient(f"the model did not answer within {question.timeout_s:g} s") from error
        heard()
        self._faults.reach("journal.after_reply")
        text = await self._journal.commit(address, ask, reply)
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
