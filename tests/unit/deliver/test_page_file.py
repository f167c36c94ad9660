"""A page's file: what is written can be read, whatever stands in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.deliver.page_file import (
    conflict_of,
    conflict_path,
    file_path,
    is_conflict,
    is_page_path,
    name_in,
    parse,
    places_of,
    render,
)
from everkept.store.wiki_pages import WikiPage

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=80)


def page(**more: Any) -> WikiPage:
    plain: dict[str, Any] = {
        "id": 12, "kind": "note", "slug": "limits", "title": "Limits", "body": "Text.", "version": 3, "author": "hand",
        "source": None, "updated_at": 1_700_000_000_000_000, "deleted": False, "supersedes": (), "superseded_by": None,
    }  # fmt: skip
    return WikiPage(**(plain | more))


@given(title=TEXT, slug=TEXT, body=TEXT, author=TEXT)
def test_what_is_written_is_read_again(title: str, slug: str, body: str, author: str) -> None:
    read = parse(render(page(title=title, slug=slug, body=body, author=author)))
    assert (read.page, read.version, read.kind) == (12, 3, "note")
    assert (read.title, read.slug, read.body) == (title, slug, body.strip("\n"))


def test_a_body_that_looks_like_front_matter_stays_a_body() -> None:
    body = "---\nid: pag_99\nversion: 7\n---\n\nText."
    assert (parse(render(page(body=body))).page, parse(render(page(body=body))).body) == (12, body)


@pytest.mark.parametrize(
    ("line", "title"),
    [("title: It's fine", "It's fine"), ("title: 'It''s'", "It's"), ('title: "a: b"', "a: b"), ('title: "a', "a"),
     ("Title:   spaced  ", "spaced"), ("title:", None)],
)  # fmt: skip
def test_front_matter_as_other_editors_write_it_is_read(line: str, title: str | None) -> None:
    assert parse(f"---\n{line}\ntags:\n  - x\n---\nText.".encode()).title == title


@pytest.mark.parametrize("text", ["Text.", "---\nid: pag_3\nText.", "", "---\n---", "---\nid: pag_x\n---\nText."])
def test_broken_front_matter_says_nothing(text: str) -> None:
    assert parse(text.encode()).page is None


def test_what_is_not_text_is_an_error() -> None:
    with pytest.raises(UnicodeDecodeError):
        parse(b"\xff\xfe")


@given(slug=TEXT)
def test_every_slug_has_a_path_in_its_folder(slug: str) -> None:
    path = file_path(page(slug=slug))
    assert is_page_path(path)
    assert path.startswith("note/")
    assert path.count("/") == 1
    assert len(path.encode()) <= 230
    assert ".." not in path
    assert path in places_of(page(slug=slug))


def test_slugs_that_read_alike_have_a_path_each() -> None:
    paths = {file_path(page(id=n, slug=slug)) for n, slug in enumerate(["a-b", "a/b", "A b", "a  b"])}
    assert len(paths) == 4


def test_what_is_kept_beside_a_page_is_no_page() -> None:
    beside = [conflict_path("note/a.md", n) for n in (1, 2)]
    assert beside == ["note/a.conflict.md", "note/a.conflict-2.md"]
    assert [is_page_path(path) for path in beside] == [False, False]
    assert [is_conflict(path) for path in beside] == [True, True]
    assert {conflict_of(path) for path in beside} == {"note/a.md"}


@pytest.mark.parametrize("path", ["README.md", "other/a.md", "note/a.txt", "note/sub/a.md", ".everkept-wiki"])
def test_other_files_are_no_pages(path: str) -> None:
    assert not is_page_path(path)


def test_a_new_files_name_is_its_slug() -> None:
    assert name_in("gotcha/Mind the Gap.md") == "mind-the-gap"
