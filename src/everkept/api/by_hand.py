"""What a person changes in what is remembered: a fact is pinned or put right, and two names are one thing."""

from __future__ import annotations

from datetime import datetime

from everkept.api import views as v
from everkept.api.present import microseconds
from everkept.api.remembering import Remembering, entity_views
from everkept.capture.messages import check_key, check_name, key_hash
from everkept.capture.redaction import strip_private
from everkept.derive.tools import analyse_fact
from everkept.domain.facts import CHARS_MAX, ENTITY_TYPES, FactDraft, check_bounds
from everkept.domain.ids import parse_row_id, row_id
from everkept.errors import InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.entity_merges import merge_entities, split_entity
from everkept.store.facts import NewFact, find_entity
from everkept.store.hand import Statement, correct, get_statement, pin


class ByHand(Remembering):
    async def pin_fact(self, fact_id: str, *, pinned: bool = True, by: str = "hand") -> v.Fact:
        check_name(by, "by")
        row = parse_row_id("fct", fact_id)
        await self._write(lambda conn: pin(conn, self._project_id, row, by, undo=not pinned))
        return await self.get_fact(fact_id)

    async def correct_fact(
        self, fact_id: str, *, object: str | None = None, text: str | None = None,
        valid_from: datetime | None = None, valid_until: datetime | None = None, by: str = "hand",
        key: str | None = None,
    ) -> v.Remembered:  # fmt: skip
        check_name(by, "by")
        if key is not None:
            check_key(key)
        row = parse_row_id("fct", fact_id)
        old = await self._store.read(get_statement, self._project_id, row)
        draft = _corrected(
            old, object=object, text=None if text is None else strip_private(text),
            valid_from_us=microseconds(valid_from, "valid_from"),
            valid_until_us=microseconds(valid_until, "valid_until"),
        )  # fmt: skip
        said_at = max(self._parts.clock.now_us(), old.said_at + 1)  # it answers what was said, whatever its clock said
        new = NewFact(
            draft=draft, said_at=said_at, zone_min=None, stream=None, analysed=analyse_fact(draft, said_at),
            pinned=old.pinned,
        )  # fmt: skip
        name = f"hand:{key_hash(key, self._project.secret)}" if key else f"hand:{row}:{said_at}"
        made, replayed = await self._write(correct, self._project_id, row, new, name, by)
        stated = await self.get_fact(row_id("fct", made))
        return v.Remembered(**dict(stated), replayed=replayed)

    async def merge_entities(self, entity_id: str, *, into: str, by: str = "hand") -> v.Entity:
        check_name(by, "by")
        other, one = parse_row_id("ent", entity_id), parse_row_id("ent", into)
        await self._write(merge_entities, self._project_id, other, one, by)
        return await self._entity(one)

    async def split_entity(self, entity_id: str) -> v.Entity:
        row = parse_row_id("ent", entity_id)
        await self._write(split_entity, self._project_id, row)
        return await self._entity(row)

    async def _entity(self, entity: int) -> v.Entity:
        def read(conn: Connection) -> v.Entity:
            row = find_entity(conn, self._project_id, entity)
            if row is None:
                raise NotFound(f"there is no entity {row_id('ent', entity)}", id=row_id("ent", entity))
            return entity_views(conn, [row])[0]

        return await self._store.read(read)


def _corrected(
    old: Statement, *, object: str | None, text: str | None, valid_from_us: int | None, valid_until_us: int | None
) -> FactDraft:
    """What is right, as a correction of what was stated. Raises InvalidInput where nothing differs."""
    if old.closes:
        raise InvalidInput("it says that something ended: retire it, and state what is right", field="fact_id")
    is_sentence = old.object == old.text[: CHARS_MAX["object"]]
    if is_sentence and object is not None and text is None:
        raise InvalidInput("it is a whole sentence, without a value in it: give its `text`", field="object")
    if is_sentence and object is None and text is not None:
        object = text.strip()[: CHARS_MAX["object"]]
    value = old.object if object is None else object.strip()
    said = text.strip() if text is not None else _said_anew(old, value)
    after = (value, said, valid_from_us or old.valid_from, valid_until_us or old.valid_until)
    if after == (old.object, old.text, old.valid_from, old.valid_until):
        raise InvalidInput("nothing differs from what is stated already", field="text")
    draft = FactDraft(
        entity=old.entity, predicate=old.predicate, object=value, text=said, quote="", confidence=1.0,
        valid_from_us=after[2], valid_until_us=after[3], kind="literal" if old.object_type is None else "entity",
        object_type=next((each for each in ENTITY_TYPES if each == old.object_type), "other"),
        single_valued=old.single_valued, correction=True, replaces=old.object,
    )  # fmt: skip
    fault = check_bounds(draft)
    if fault is not None:
        raise InvalidInput(fault[1], field=fault[0])
    return draft


def _said_anew(old: Statement, value: str) -> str:
    """The sentence with the new value in the place of the old one; else the statement spelt out."""
    if value == old.object:
        return old.text
    return old.text.replace(old.object, value) if old.object in old.text else f"{old.entity} {old.predicate} {value}"
