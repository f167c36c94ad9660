"""A page as a markdown file: front matter, then its text; and what an edited file says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from everkept.domain.ids import row_id
from everkept.domain.pages import PAGE_KINDS, slug_of
from everkept.store.wiki_pages import WikiPage

NAME_BYTES_MAX: Final = 180
"""Room is left for `.conflict-12.md` within the 255 bytes that file systems give a name."""
_RESERVED: Final = frozenset({"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))})
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_SAID_OTHERWISE: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_CONFLICT: Final = re.compile(r"\.conflict(-\d+)?\.md$")
_FIELD: Final = re.compile(r"^([A-Za-z_]+):[ \t]*(.*?)[ \t]*$")


def file_path(page: WikiPage) -> str:
    """`<kind>/<slug>.md`; a slug that no file system or no reader would take gets the page's number instead."""
    return f"{page.kind}/{_file_name(page)}.md"


def places_of(page: WikiPage) -> list[str]:
    """Every path that the page may have had: its kind can change, its name cannot."""
    return [f"{kind}/{_file_name(page)}.md" for kind in PAGE_KINDS]


def _file_name(page: WikiPage) -> str:
    name = slug_of(page.slug)
    if name == page.slug and len(name.encode()) <= NAME_BYTES_MAX and name not in _RESERVED:
        return name
    return f"{name.encode()[:NAME_BYTES_MAX].decode(errors='ignore')}~{page.id}"


def is_page_path(path: str) -> bool:
    """Whether a file at this place is a page's. What is kept beside a page is not."""
    parts = path.split("/")
    return len(parts) == 2 and parts[0] in PAGE_KINDS and path.endswith(".md") and not is_conflict(path)


def is_conflict(path: str) -> bool:
    return _CONFLICT.search(path) is not None


def conflict_path(path: str, number: int) -> str:
    """Where an edit of `path` is kept that could not be taken in; `number` from 1."""
    return path.removesuffix(".md") + (".conflict.md" if number == 1 else f".conflict-{number}.md")


def conflict_of(path: str) -> str:
    """The page's path of a file that is kept beside it."""
    return _CONFLICT.sub(".md", path)


def render(page: WikiPage) -> bytes:
    fields: list[tuple[str, str]] = [
        ("id", row_id("pag", page.id)), ("kind", page.kind), ("slug", _written(page.slug)),
        ("title", _written(page.title)), ("version", str(page.version)), ("author", _written(page.author)),
        ("updated", datetime.fromtimestamp(page.updated_at // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
    ]  # fmt: skip
    if page.source is not None:
        fields.append(("source", _written(page.source)))
    if page.supersedes:
        fields.append(("supersedes", f"[{', '.join(map(_written, page.supersedes))}]"))
    if page.superseded_by is not None:
        fields.append(("superseded_by", _written(page.superseded_by)))
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    return f"---\n{head}---\n\n{page.body.strip(chr(10))}\n".encode()


def _written(text: str) -> str:
    """A scalar as YAML: JSON's quoted strings are YAML's too."""
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _SAID_OTHERWISE
    return text if plain else json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """What a file says. Only the text, the title and the kind are taken from one that was edited."""

    page: int | None
    version: int | None
    kind: str | None
    slug: str | None
    title: str | None
    body: str


def parse(data: bytes) -> PageFile:
    """Raises UnicodeDecodeError for what is not text. Front matter that is broken or missing says nothing."""
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    fields, body = _split(text)
    kind = fields.get("kind")
    return PageFile(
        page=_number(fields.get("id", "").removeprefix("pag_")),
        version=_number(fields.get("version", "")),
        kind=kind if kind in PAGE_KINDS else None,
        slug=fields.get("slug") or None,
        title=fields.get("title") or None,
        body=body.strip("\n"),
    )


def _split(text: str) -> tuple[dict[str, str], str]:
    if not text.startswith("---\n"):
        return {}, text
    head, found, body = text[4:].partition("\n---\n")
    if not found:
        return {}, text
    return dict(_fields(head.split("\n"))), body


def _fields(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        field = _FIELD.match(line)
        if field is not None:
            yield field[1].lower(), _read(field[2])


def _read(value: str) -> str:
    if value.startswith('"'):
        try:
            read = json.loads(value)
        except ValueError:
            return value.strip('"')
        return read if isinstance(read, str) else value
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    return value


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def name_in(path: str) -> str:
    """The slug of a page that a new file at this path makes."""
    return slug_of(PurePosixPath(path).stem)
