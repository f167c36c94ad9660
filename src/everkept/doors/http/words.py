"""Models of what is asked: known words only, with the synonyms of other systems accepted (design §1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from everkept.api.views import written_out
from everkept.domain.scope import METADATA_WORDS, SYNONYMS, scope_words
from everkept.doors.invalid import unknown_word
from everkept.errors import InvalidInput

Limit = Annotated[int, Field(ge=1, le=500, description="Most items in one page.")]
Cursor = Annotated[str | None, Field(max_length=1024, description="`next_cursor` of the page before.")]
Subject = Annotated[str | None, Field(description="Whose memory. Also accepted: `user_id`, `dataset`.")]
ThreadWord = Annotated[
    str | None, Field(description="The conversation. Also accepted: `thread_id`, `session_id`, `run_id`.")
]
Sequence63 = Annotated[int, Field(ge=0, le=2**63 - 1)]
Moment = Annotated[AwareDatetime | None, BeforeValidator(written_out), Field(description="RFC 3339 with a zone.")]
PROJECT = "Which project; the header X-Everkept-Project says the same. Default: the key's project, else `default`."


class Words(BaseModel):
    """Accepts its own fields and the synonyms of them; any other word is an error that lists what is known."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    THREAD_FIELD: ClassVar[str] = "thread"
    """The field that the words for a thread mean."""

    @model_validator(mode="before")
    @classmethod
    def _sort(cls, given: Any) -> Any:
        """Rename synonyms to fields. Raises UnknownScope and InvalidInput as they are, past pydantic."""
        if not isinstance(given, Mapping) or given.keys() <= cls.model_fields.keys():
            return given
        return sort_words(cls, given)


class NoWords(Words):
    """The query of a route that takes nothing."""


class Asked(Words):
    """The query of a route that takes nothing but the project."""

    project: str | None = Field(default=None, description=PROJECT)


class Listed(Asked):
    """The query of a list."""

    limit: Limit = 50
    cursor: Cursor = None


class Erased(Asked):
    """The query of a DELETE that erases."""

    dry_run: bool = Field(default=False, description="Only say what would be destroyed.")


def sort_words(model: type[Words], given: Mapping[str, Any]) -> dict[str, Any]:
    fields = model.model_fields
    accepted = {word: given[word] for word in given if word in fields}
    foreign = {word: given[word] for word in given if word not in fields}
    for word in foreign:
        if not _means(model, word):
            raise _unknown(model, word)
    scope, metadata = scope_words(foreign)
    for name, value in scope.items():
        field = model.THREAD_FIELD if name == "thread" else name
        if accepted.setdefault(field, value) != value:
            raise InvalidInput(f"two words for {field!r} contradict each other", field=field)
    if metadata:
        accepted["metadata"] = {**metadata, **(accepted.get("metadata") or {})}
    return accepted


def known_words(model: type[Words]) -> list[str]:
    """The fields of a model, then the synonyms that it accepts."""
    words = [*SYNONYMS, *METADATA_WORDS, "thread"]
    return [*model.model_fields, *(word for word in words if word not in model.model_fields and _means(model, word))]


def _means(model: type[Words], word: str) -> str | None:
    """The field that a word which is not a field itself stands for."""
    if word in METADATA_WORDS:
        field = "metadata"
    else:
        name = SYNONYMS.get(word, word)
        field = model.THREAD_FIELD if name == "thread" else ""
        field = name if name == "subject" else field
    return field if field in model.model_fields else None


def _unknown(model: type[Words], word: str) -> InvalidInput:
    if word == "project":
        return InvalidInput("the project goes into the header X-Everkept-Project, or into the query", field=word)
    return unknown_word(word, known_words(model))
