"""The pictures in the documentation are those that one command makes, and every one of them is shown."""

from __future__ import annotations

import re

from scripts.screenshots import BYTES_MAX, IMAGES, IN_TROUBLE, ON_PHONES, PAGES, SCHEMES

MADE = {f"{name}-{scheme}.png" for name in (*PAGES, *IN_TROUBLE) for scheme in SCHEMES} | {
    f"{name}-phone.png" for name in ON_PHONES
}


def test_each_page_has_its_pictures_and_none_is_left_over_or_too_heavy() -> None:
    assert {path.name for path in IMAGES.glob("*.png")} == MADE
    assert [path.name for path in IMAGES.glob("*.png") if path.stat().st_size > BYTES_MAX] == []


def test_the_documentation_shows_every_picture() -> None:
    shown = set(re.findall(r"images/([\w-]+\.png)", (IMAGES.parent / "web.md").read_text()))
    assert shown >= {name for name in MADE if not name.endswith("-phone.png")}
    assert shown <= MADE
