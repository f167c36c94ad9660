"""Pages: versioned knowledge of a project."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import views as v
from everkept.domain.pages import BODY_CHARS_MAX, PAGE_KINDS, SLUG_CHARS_MAX, TITLE_CHARS_MAX, PageKind
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Limit, Listed, Words

router = APIRouter(tags=["agents"], responses=RESPONSES)
Version = Annotated[int | None, Field(ge=1, le=2**31 - 1)]
_KINDS = f"One of {', '.join(PAGE_KINDS)}."


class PagesAsked(Listed):
    kind: PageKind | None = Field(default=None, description="Only pages of this kind.")
    superseded: bool = Field(default=False, description="Also those that another page took the place of.")
    links_to: str | None = Field(default=None, description="Only pages that link to this slug.", examples=["tokens"])


class PageAsked(Asked):
    version: Version = Field(default=None, description="As it was in this version; default: the newest.")


class HistoryAsked(Asked):
    before: Version = Field(default=None, description="Only versions older than this one.")
    limit: Limit = 50


class PageBody(Words):
    title: str = Field(min_length=1, max_length=TITLE_CHARS_MAX, examples=["Tokens live in the keychain"])
    body: str = Field(min_length=1, max_length=BODY_CHARS_MAX, description="Markdown; `[[slug]]` links to a page.")
    kind: PageKind = Field(default="note", description=_KINDS)
    slug: str | None = Field(
        default=None, min_length=1, max_length=SLUG_CHARS_MAX, description="Default: made from the title."
    )
    base: Version = Field(
        default=None, description="The version this was written on: 409 where it is not the newest any more."
    )
    reason: str | None = Field(default=None, max_length=1000, description="Why it is written or changed.")
    supersedes: str | None = Field(
        default=None,
        min_length=1,
        max_length=SLUG_CHARS_MAX,
        description="Slug of the page that it takes the place of.",
    )
    author: str = Field(default="hand", min_length=1, max_length=255)


class PinPageBody(Words):
    pinned: bool = Field(description="Whether proposals leave the page alone.")


@router.get("/v1/pages", operation_id="list_pages")
async def list_pages(service: Queried, query: Annotated[PagesAsked, Query()]) -> v.Page[v.KnowledgePage]:
    """Newest first, without their bodies."""
    return await service.list_pages(
        kind=query.kind, superseded=query.superseded, links_to=query.links_to, limit=query.limit, cursor=query.cursor
    )


@router.post("/v1/pages", operation_id="write_page", status_code=201)
async def write_page(body: PageBody, service: InProject) -> v.KnowledgePage:
    """A new page, or the next version of the one with this slug. The same text again is no new version."""
    return await service.write_page(**body.model_dump())


@router.get("/v1/pages/{slug:id}", operation_id="get_page")
async def get_page(slug: str, service: Queried, query: Annotated[PageAsked, Query()]) -> v.KnowledgePage:
    return await service.get_page(slug, version=query.version)


@router.get("/v1/pages/{slug:id}/history", operation_id="page_history")
async def page_history(slug: str, service: Queried, query: Annotated[HistoryAsked, Query()]) -> v.Page[v.PageVersion]:
    """Its versions, newest first."""
    return v.Page(items=await service.page_history(slug, before=query.before, limit=query.limit))


@router.put("/v1/pages/{slug:id}/pin", operation_id="pin_page")
async def pin_page(slug: str, body: PinPageBody, service: InProject) -> v.KnowledgePage:
    """Keep a page from proposals, or let them at it again."""
    return await service.pin_page(slug, pinned=body.pinned)


@router.delete("/v1/pages/{slug:id}", operation_id="delete_page")
async def delete_page(slug: str, service: InProject) -> v.KnowledgePage:
    """Take it out of search and lists: nothing brings it back by itself. Its versions stay until they are erased."""
    return await service.delete_page(slug)
