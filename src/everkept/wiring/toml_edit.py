"""One table in the text of a TOML file, added at its end and taken out again; every other byte stays."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from everkept.errors import CannotWire
from everkept.wiring.json_edit import newline_of

Path = tuple[str, ...]
_HEADER = re.compile(r"^[ \t]*\[([^\[\]].*?)\][ \t]*(?:#.*)?$|^[ \t]*\[\[(.*?)\]\][ \t]*(?:#.*)?$")


def parse_toml(text: str) -> dict[str, Any]:
    """Raises CannotWire with the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise CannotWire(f"line {line}: not valid TOML: {error}", line=line) from error


def table_at(parsed: dict[str, Any], path: Path) -> Any:
    found: Any = parsed
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def add_table(text: str, path: Path, values: dict[str, Any]) -> str:
    """The text with a table at its end. Raises CannotWire where the file's form has no place for one."""
    before = parse_toml(text)
    newline = newline_of(text)
    gap = "" if not text else newline if text.endswith(("\n", "\r")) else newline * 2
    lines = [f"[{_dotted(path)}]", *(f"{key} = {_value(value)}" for key, value in values.items())]
    after = f"{text}{gap}{newline.join(lines)}{newline}"
    try:
        done = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        done = None
    if done is None or table_at(done, path) != values or without_table(done, path) != _tidy(before):
        raise CannotWire(f"`{_dotted(path[:-1])}` is written in one line, which has no place for a table")
    return after


def set_values(text: str, path: Path, values: dict[str, Any]) -> str:
    """The text with these values in a table that is there; other keys of it stay."""
    old = table_at(parse_toml(text), path)
    assert isinstance(old, dict)
    merged = {**{key: value for key, value in old.items() if not isinstance(value, dict)}, **values}
    span = _span(text, path)
    for key, value in values.items():
        if old.get(key) == value or span is None:
            continue
        body = text[span[0] : span[1]]
        line = f"{key} = {_value(value)}"
        changed, count = re.subn(rf"(?m)^[ \t]*{re.escape(key)}[ \t]*=[^\r\n]*", lambda _: line, body, count=1)  # noqa: B023
        body = changed if count else body + line + newline_of(text)
        text = text[: span[0]] + body + text[span[1] :]
        span = _span(text, path)
    try:
        done = table_at(tomllib.loads(text), path)
    except tomllib.TOMLDecodeError:
        done = None
    if not isinstance(done, dict) or any(done.get(key) != value for key, value in merged.items()):
        raise CannotWire(f"`{_dotted(path)}` is written in a way that cannot be edited; delete it, and install again")
    return text


def remove_table(text: str, path: Path) -> str:
    """The text without a table, the tables in it, and the empty line before. Raises CannotWire."""
    before = parse_toml(text)
    if table_at(before, path) is None:
        return text
    after = text
    while (span := _span(after, path, with_children=True)) is not None:
        head, tail = after[: span[0]], after[span[1] :]
        for line_end in ("\r\n", "\n"):
            if head.endswith(line_end * 2) or head == line_end:
                head = head.removesuffix(line_end)
                break
        after = head + tail
    if _tidy(tomllib.loads(after)) != without_table(before, path):
        raise CannotWire(f"`{_dotted(path)}` is written in a way that cannot be edited; delete it by hand")
    return after


def without_table(parsed: dict[str, Any], path: Path) -> dict[str, Any]:
    """What the file means without the table."""
    return _tidy(_without(parsed, path))


def _span(text: str, path: Path, *, with_children: bool = False) -> tuple[int, int] | None:
    """From the table's header to the end of its last own line; comments and blanks before the next header stay."""
    start = end = None
    for place, line, header in _lines(text):
        if header is not None:
            ours = header == path or (with_children and header[: len(path)] == path)
            if start is not None and not ours:
                break
            start = place if start is None and ours else start
        if start is not None and (header is not None or (line.strip() and not line.lstrip().startswith("#"))):
            end = place + len(line)
    return None if start is None or end is None else (start, end)


def _lines(text: str) -> list[tuple[int, str, Path | None]]:
    """Each line with its place, and the path that it names if it is a header; strings over lines are not headers."""
    found: list[tuple[int, str, Path | None]] = []
    place, quote = 0, ""
    for line in text.splitlines(keepends=True):
        header = None if quote else _header(line.rstrip("\r\n"))
        if header is None:
            quote = _open_quote(line, quote)
        found.append((place, line, header))
        place += len(line)
    return found


def _header(line: str) -> Path | None:
    matched = _HEADER.match(line)
    if matched is None:
        return None
    try:
        node = tomllib.loads(f"[{matched[1] or matched[2]}]")
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while node:
        key, node = next(iter(node.items()))
        path.append(key)
    return tuple(path)


def _open_quote(line: str, quote: str) -> str:
    """The triple quote that is open after this line, if any."""
    token = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|\\.')
    place = 0
    while place < len(line):
        if quote:
            closing = re.compile(r'\\.|"""' if quote == '"""' else r"'''").search(line, place)
            if closing is None:
                return quote
            quote = "" if closing[0] == quote else quote
            place = closing.end()
            continue
        found = token.search(line, place)
        if found is None:
            return ""
        quote = found[0] if found[0] in ('"""', "'''") else ""
        place = found.end()
    return quote


def _without(parsed: dict[str, Any], path: Path) -> dict[str, Any]:
    """The same without what is at the path; tables that this empties go too."""
    if len(path) == 1:
        return {key: value for key, value in parsed.items() if key != path[0]}
    inner = parsed.get(path[0])
    if not isinstance(inner, dict):
        return parsed
    return {key: (_without(inner, path[1:]) if key == path[0] else value) for key, value in parsed.items()}


def _tidy(parsed: dict[str, Any]) -> dict[str, Any]:
    """Without empty tables at the top: a header that only held ours is gone with it."""
    return {key: value for key, value in parsed.items() if value != {}}


def _dotted(path: Path) -> str:
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key) for key in path)


def _value(value: Any) -> str:
    """A string or a list of strings as TOML; JSON's escapes are also TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
