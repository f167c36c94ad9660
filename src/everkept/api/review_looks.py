"""Pages that name what is gone: what there is to look for, and what whoever has the checkout found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from everkept.api import review_views as r
from everkept.api.base import Cases
from everkept.domain.review.known import is_target
from everkept.domain.review.stale import Named, names_in, stale_draft
from everkept.domain.review.values import KnownPage, Refusal
from everkept.errors import InvalidInput
from everkept.store.review_input import PAGES_MAX, known_pages
from everkept.store.stale_pages import PAGES_PER_CHUNK, STALE_PER_CHUNK, PageLook, note_looks


class ReviewLooks(Cases):
    """The server of a memory has no checkout: it tells what pages name, and takes what was found."""

    async def names_in_pages(self) -> list[r.PageNames]:
        """Files and tasks that pages name, for whoever can look at the checkout."""
        pages = await self._store.read(known_pages, self._project_id)
        return await asyncio.to_thread(lambda: [_page_names(page) for page in pages if is_target(page)])

    async def note_looks(self, looks: Sequence[r.PageLook]) -> r.StaleFound:
        """What a checkout on its default branch does not have any more. What is found again a day later is proposed
        to go; where nothing is gone, an earlier look counts no more."""
        if len(looks) > PAGES_MAX:
            raise InvalidInput(f"at most {PAGES_MAX} pages at once", field="looks", limit=PAGES_MAX)
        pages = {page.slug: page for page in await self._store.read(known_pages, self._project_id)}
        found = await asyncio.to_thread(lambda: list(_looks(looks, pages)))
        waiting = staged = 0
        refused: list[Refusal] = []
        for chunk in _chunks(found):
            more = await self._write(note_looks, self._project_id, chunk, self._settings)
            waiting, staged, refused = waiting + more[0], staged + more[1], [*refused, *more[2]]
        return r.StaleFound(
            waiting=waiting, staged=staged, refused=[r.RefusedDraft(what=x.what, reason=x.reason) for x in refused]
        )


def _chunks(found: Sequence[PageLook]) -> Iterator[Sequence[PageLook]]:
    """What may become a proposal is checked against its whole page, in the writer's lock."""
    stale = [look for look in found if look.gone]
    for looks, most in ((stale, STALE_PER_CHUNK), ([look for look in found if not look.gone], PAGES_PER_CHUNK)):
        yield from (looks[at : at + most] for at in range(0, len(looks), most))


def _page_names(page: KnownPage) -> r.PageNames:
    names = [r.Name(kind=name.kind, text=name.text) for name in names_in(page)]
    return r.PageNames(slug=page.slug, version=page.version, names=names)


def _looks(looks: Sequence[r.PageLook], pages: Mapping[str, KnownPage]) -> Iterator[PageLook]:
    """Of the pages as they are now. Whatever the page does not name is nothing that it could be stale by."""
    for look in looks:
        page = pages.get(look.slug)
        if page is not None and page.version == look.version:
            said = {Named(name.kind, name.text) for name in look.gone}
            names = names_in(page)
            gone = tuple(place for place, name in enumerate(names) if name in said)
            yield PageLook(page=page.id, version=page.version, gone=gone, draft=stale_draft(page, said))
