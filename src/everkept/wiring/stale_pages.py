"""Looking whether a checkout of this machine has what pages of its project name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from everkept.api import review_views as r
from everkept.api.service import Service
from everkept.domain.review.stale import Named
from everkept.wiring import files
from everkept.wiring.checkout_tree import CheckoutTree, tree_of

FILE: Final = "checkouts_looked_at"
EVERY_S: Final = 6 * 3_600


async def look_for_stale_pages(memory: Service, root: Path) -> r.StaleFound | None:
    """None where the folder at `root` is no checkout on its default branch. Raises GitMissing, GitFailed."""
    tree = await asyncio.to_thread(tree_of, root)
    if tree is None:
        return None
    looks = await asyncio.to_thread(_looks, tree, await memory.names_in_pages())
    return await memory.note_looks(looks)


def _looks(tree: CheckoutTree, pages: Sequence[r.PageNames]) -> list[r.PageLook]:
    gone = tree.gone({Named(name.kind, name.text) for page in pages for name in page.names})
    return [
        r.PageLook(
            slug=page.slug, version=page.version,
            gone=[name for name in page.names if Named(name.kind, name.text) in gone],
        )
        for page in pages
    ]  # fmt: skip


def take_turn(home: Path, now_s: int) -> bool:
    """Whether this machine's checkouts are to be looked at now, which is noted: workers come and go."""
    before = files.read_bytes(home / FILE)
    if before is not None and before.isdigit() and 0 <= now_s - int(before) < EVERY_S:
        return False
    files.replace(home / FILE, str(now_s).encode())
    return True
