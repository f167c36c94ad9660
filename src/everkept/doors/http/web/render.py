"""Pages from templates. Whatever was stored is text, and stays text: Jinja escapes it, markdown knows no HTML."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from everkept import __version__
from everkept.domain.pages import slug_of

FOLDED_CHARS = 600
"""A text that is longer is folded."""
_STEPS = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_FRONT_MATTER = re.compile(r"\A---\n((?:[^\n]*\n){1,40}?)---(?:\n|\Z)")
_WIKILINK = re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:\|([^\[\]\n]{1,200}))?\]\]")


@cache
def environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {
        "when": when, "stamp": stamp, "day": day, "seconds": seconds, "size": size, "number": number,
        "markdown": markdown, "path": path_segment, "pretty": pretty, "clip": clip, "cost": cost,
    }  # fmt: skip
    found.globals |= {"version": __version__, "folded_chars": FOLDED_CHARS, "diff": diff, "unified": unified}
    return found


def render(template: str, values: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(values)


# ---- how values read


def when(at: datetime | None, empty: str = "–") -> Markup:
    """`3 min ago`, with the whole time beneath the pointer and for machines."""
    return Markup(escape(empty)) if at is None else _time(at, title=f"{_whole(at)} UTC", shown=_ago(at))


def stamp(at: datetime | None, empty: str = "–") -> Markup:
    """To the second (UTC), for what happens one after the other: a transcript, attempts, deliveries."""
    return Markup(escape(empty)) if at is None else _time(at, title=f"UTC, {_ago(at)}", shown=_whole(at))


def _time(at: datetime, *, title: str, shown: str) -> Markup:
    machine = at.astimezone(UTC).isoformat(timespec="milliseconds")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, title, shown)


def _whole(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _ago(at: datetime) -> str:
    return _apart(datetime.now(UTC) - at)


def _apart(gone: timedelta) -> str:
    total = abs(gone.total_seconds())
    if total < 1:
        return "now"
    said = seconds(total)
    return f"in {said}" if gone < timedelta(0) else f"{said} ago"


def day(at: datetime | None, empty: str = "") -> str:
    return empty if at is None else f"{at:%Y-%m-%d}"


def seconds(value: float | None) -> str:
    """`1.2 s`, `4 min`, `3 d`: the largest unit alone."""
    if value is None:
        return "–"
    if 0 < value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 10 and value != int(value):
        return f"{value:.1f} s"
    unit_s, unit = next(((length, name) for length, name in _STEPS if value >= length), _STEPS[-1])
    return f"{int(value / unit_s)} {unit}"


def size(count: int | None) -> str:
    value, units = float(count or 0), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 100 else f"{value:.1f} {units[0]}"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


class Costly(Protocol):
    """Calls of models: `usd` is what those cost whose price is known, and `unpriced` counts the others."""

    @property
    def calls(self) -> int: ...
    @property
    def usd(self) -> float: ...
    @property
    def unpriced(self) -> int: ...


def cost(spent: Costly) -> str:
    """`$1.20`; what has no known price is said, and is no $0.00."""
    known = f"${spent.usd:,.2f}" if spent.usd >= 0.01 or spent.usd == 0 else f"${spent.usd:.4f}"
    if not spent.unpriced:
        return known
    if spent.unpriced == spent.calls:
        return "price unknown"
    return f"{known} + {number(spent.unpriced)} call{'s' if spent.unpriced != 1 else ''} of unknown price"


def clip(text: str | None, chars: int = 120) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= chars else line[: chars - 1] + "…"


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def path_segment(value: object) -> str:
    """An id inside a path: its slashes too are part of it."""
    return quote(str(value), safe="")


# ---- markdown and differences


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def markdown(text: str | None, page_url: str = "/pages/{}") -> Markup:
    """Rendered without raw HTML and without pictures; `[[wikilinks]]` lead to their pages. Outer links say so, and what
    stands in front of a text (`name: value` between two lines of `---`) is a list of terms."""

    def link(found: re.Match[str]) -> str:
        said = (found[2] or found[1]).replace("[", "(").replace("]", ")")
        return f"[{said}]({page_url.format(path_segment(slug_of(found[1])))})"

    text = text or ""
    front = _FRONT_MATTER.match(text)
    html = _parser().render(_WIKILINK.sub(link, text[front.end() :] if front else text))
    return _terms(front[1] if front else "") + Markup(
        html.replace('<a href="http', '<a rel="noreferrer nofollow" href="http')
    )


def _terms(front_matter: str) -> Markup:
    pairs = [line.partition(":")[::2] for line in front_matter.splitlines() if ":" in line]
    rows = Markup("").join(
        Markup("<dt>{}</dt><dd>{}</dd>").format(name.replace("_", " "), value.strip(' "')) for name, value in pairs
    )
    return Markup('<dl class="front small">{}</dl>').format(rows) if pairs else Markup("")


def diff(before: str, after: str) -> Sequence[tuple[str, str]]:
    """Lines with what became of them: `same`, `gone`, `new`, or `cut` where equal lines are left out."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    return unified("\n".join(lines))


def unified(text: str) -> Sequence[tuple[str, str]]:
    """The same of a unified diff, without the two lines that name its sides."""
    kinds = {" ": "same", "-": "gone", "+": "new", "@": "cut", "\\": "cut"}
    lines = text.split("\n")[2:]
    return [(kinds[line[0]], line if kinds[line[0]] == "cut" else line[1:]) for line in lines if line]
