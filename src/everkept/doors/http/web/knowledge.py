"""Pages: read, written, with their history and what links to what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from starlette.responses import Response

from everkept.api import views as v
from everkept.domain.pages import MAINTAINED, PAGE_KINDS, links_of
from everkept.doors.http.web.graphs import Graph, ring
from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route
from everkept.errors import InvalidInput, NotFound

LINKING_SHOWN = 50
FOLLOWED_MAX = 12
"""Links of a page whose own links are read too."""


async def pages(visit: Visit) -> Response:
    kind = visit.asked("kind")
    found = await visit.service.list_pages(
        kind=kind, links_to=visit.asked("links_to"), limit=PAGE_ITEMS, cursor=visit.asked("cursor")
    )
    groups: dict[str, list[v.KnowledgePage]] = defaultdict(list)
    for page in found.items:
        groups[page.kind].append(page)
    order: dict[str, int] = {name: place for place, name in enumerate(PAGE_KINDS)}
    tree = sorted(groups.items(), key=lambda group: order[group[0]])
    return visit.show("pages.html", pages=found, tree=tree, kind=kind, kinds=PAGE_KINDS)


async def page(visit: Visit) -> Response:
    slug = visit.at("page")
    found = await visit.service.get_page(slug, version=_number(visit, "version"))
    history = await visit.service.page_history(found.slug, before=_number(visit, "before"), limit=PAGE_ITEMS + 1)
    links = links_of(found.body or "")
    here = await visit.service.list_pages(links_to=found.slug, limit=LINKING_SHOWN)
    linking = [each for each in here.items if each.slug != found.slug]
    return visit.show(
        "page.html", page=found, history=history[:PAGE_ITEMS], links=links, linking=linking,
        earlier=history[PAGE_ITEMS - 1].version if len(history) > PAGE_ITEMS else None,
        linking_cut=here.next_cursor is not None,
        graph=await _around(visit, found.slug, links, [each.slug for each in linking]),
    )  # fmt: skip


def _number(visit: Visit, word: str) -> int | None:
    """A version that the address names. Raises InvalidInput."""
    asked = visit.asked(word)
    if asked is not None and (not asked.isascii() or not asked.isdigit() or len(asked) > 9 or not int(asked)):
        raise InvalidInput(f"{word} is a whole number, from 1 on", field=word)
    return None if asked is None else int(asked)


async def _around(visit: Visit, slug: str, links: Sequence[str], linking: Sequence[str]) -> Graph:
    """A page, what links to it, what it links to, and how those link to each other and on."""
    relations = [(slug, "links to", link) for link in links]
    relations += [(other, "links to", slug) for other in linking[:FOLLOWED_MAX]]
    for link in links[:FOLLOWED_MAX]:
        try:
            linked = await visit.service.get_page(link)
        except NotFound:  # a link may come before its page
            continue
        relations += [(link, "links to", further) for further in links_of(linked.body or "")]
    return ring(relations)


async def changed(visit: Visit) -> Response:
    """One version beside the one before it."""
    found = await visit.service.get_page(visit.at("page"), version=_number(visit, "version"))
    after, *earlier = await visit.service.page_history(found.slug, before=found.version + 1, limit=2)
    return visit.show("page_changes.html", page=found, after=after, before=earlier[0] if earlier else None)


async def edit(visit: Visit) -> Response:
    found = await visit.service.get_page(visit.at("page"))
    return visit.show("page_edit.html", page=found, kinds=sorted(MAINTAINED))


async def new(visit: Visit) -> Response:
    return visit.show("page_edit.html", page=None, kinds=sorted(MAINTAINED))


async def write(visit: Visit) -> Response:
    """`base` is the version that the form was made from: a later one is never overwritten."""
    form = await visit.form()
    base = form.get("base", "")
    written = await visit.service.write_page(
        form.get("title", ""), form.get("body", "").replace("\r\n", "\n"), kind=form.get("kind") or "note",
        slug=form.get("slug") or None, base=int(base) if base.isdecimal() else None,
        reason=form.get("reason", "").strip() or None,
    )  # fmt: skip
    return visit.go(f"/pages/{written.slug}", done="written")


async def delete(visit: Visit) -> Response:
    await visit.form()
    await visit.service.delete_page(visit.at("page"))
    return visit.go("/pages", done="deleted")


ROUTES = [
    route("/pages", pages),
    route("/pages", write, "POST"),
    route("/pages/new", new),
    route("/pages/{page:id}", page),
    route("/pages/{page:id}/changes", changed),
    route("/pages/{page:id}/edit", edit),
    route("/pages/{page:id}/delete", delete, "POST"),
]
