"""Write the reference pages of docs/ from the code: settings, HTTP, the command line, errors, doctor.

Run it after each change of one of these; a test fails while a page is out of step.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import everkept
import everkept.bootstrap  # with it all errors that there are
from everkept import config, errors
from everkept.api.service import Application
from everkept.doors.cli.commands import EPILOGUE, build_app
from everkept.doors.http.app import create_app
from everkept.store.diagnosis.causes import CAUSES

DOCS = Path(__file__).parent.parent / "docs"
MADE = "<!-- Made by scripts/generate_docs.py; do not edit. -->\n\n"
Json = Mapping[str, Any]


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in markdown; bars and line breaks inside cells are made safe."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# ---- settings


def settings_page() -> str:
    groups = groupby(config.SETTINGS.values(), key=lambda row: row.key.rpartition(".")[0])
    parts = [
        "# Settings\n",
        "Where a value comes from, weakest first: the default, `config.toml` in the home, the environment, the "
        "project, the thread. An unknown name or a value out of range is an error. `everkept config` prints each value "
        "and where it comes from.\n",
        "In `config.toml`, `window.idle_s` is `idle_s` under `[window]`. In the environment it is "
        "`EVERKEPT_WINDOW__IDLE_S`; secrets and URLs may also be named by a file: the same name with `_FILE` at its "
        "end. In Python it is `Memory.open(window__idle_s=…)`. ✓ in the last column: a project or a thread may have "
        "its own.\n",
    ]
    for group, rows in groups:
        parts.append(f"## {group or 'The installation'}\n")
        parts.append(table(("setting", "default", "accepted", "meaning", "own"), [_setting(row) for row in rows]))
    short = [(f"`{name}`", f"`{key}`") for name, key in config.SHORT_NAMES.items()]
    parts.append("## Short names in the environment\n")
    parts.append(table(("variable", "setting"), short))
    return MADE + "\n".join(parts)


def _setting(row: config.Setting) -> tuple[str, ...]:
    default = _value(row.default) + (f" {row.unit}" if row.unit and row.default is not None else "")
    return f"`{row.key}`", default, row.limit, row.rule.description, "✓" if row.rule.overridable else ""


def _value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.15g}"
        case tuple():
            return ", ".join(value) or "none"
        case str():
            return f"`{value}`"
        case _:
            return str(value)


# ---- the command line


def cli_page() -> str:
    with patch.object(sys, "argv", ["everkept"]):  # the library names groups of commands after the running program
        text = build_app().generate_docs(output_format="markdown", recursive=True)
    head, _, rest = text.partition("\n## everkept ")
    head = head.replace("# everkept", "# Command line", 1)
    return MADE + f"{head.rstrip()}\n\n{EPILOGUE}\n\n## everkept {rest.rstrip()}\n"


# ---- errors


def errors_page() -> str:
    parts = [
        "# Errors\n",
        "Every error has a stable code. Over HTTP it is `error.code`, in Python `error.code` of an "
        "`everkept.EverkeptError`, in the command line's `--json` the same as over HTTP. `message` is for people and "
        "may change; `details` holds facts such as `field` and `limit`.\n",
        "Names in bold can be imported from `everkept`.\n",
        "## What a caller meets\n",
        _errors(errors.EverkeptError, without=errors.ModelError),
        "## What a model call can end in\n",
        "These are met in jobs, episodes and receipts: the engine reads the class and decides what happens next "
        "(see [models](models.md)).\n",
        _errors(errors.ModelError, without=None),
    ]
    return MADE + "\n".join(parts)


def _errors(root: type[errors.EverkeptError], *, without: type[errors.EverkeptError] | None) -> str:
    rows = [
        (f"`{kind.code}`", _python_name(kind), str(errors.http_status(kind.code)), str(errors.exit_code(kind.code)),
         inspect.cleandoc(kind.__doc__ or "").splitlines()[0])
        for kind in _family(root)
        if without is None or not issubclass(kind, without)
    ]  # fmt: skip
    return table(("code", "class", "HTTP", "exit code", "meaning"), rows)


def _python_name(kind: type) -> str:
    return f"**{kind.__name__}**" if kind.__name__ in everkept.__all__ else kind.__name__


def _family(kind: type[errors.EverkeptError]) -> Iterator[type[errors.EverkeptError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


# ---- HTTP


def openapi() -> Json:
    """The document that a server of this version serves. Making it asks nothing of an application."""
    return create_app(cast(Application, None), config.load({}, home=Path("/nowhere"))).openapi()


def http_page() -> str:
    document = openapi()
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    parts = [
        "# HTTP\n",
        document["info"]["description"] + "\n",
        "On 127.0.0.1:7411 unless `server.bind` says otherwise; the server gives the same as a document at "
        "`/openapi.json`. Which project: the header `X-Everkept-Project`, or the parameter `project`; "
        "else the key's, else `default`. Every error has one shape, "
        '`{"error": {"code", "message", "details"}}`; the codes are on [their own page](reference-errors.md).\n',
    ]
    for tag in dict.fromkeys(operation["tags"][0] for _, _, operation in operations):
        parts.append(f"## {tag.capitalize()}\n")
        for method, path, operation in operations:
            if operation["tags"][0] == tag:
                parts += _operation(method, path, operation)
    parts.append("## Shapes\n")
    sent = _sent(document)
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += _shape(name, schema, needed=schema.get("required", ()) if name in sent else ())
    return MADE + "\n".join(parts)


def _operation(method: str, path: str, operation: Json) -> Iterator[str]:
    yield f"### {method} {path}\n"
    if "description" in operation:
        yield operation["description"] + "\n"
    common = ("project", "x-everkept-project")
    asked = [each for each in operation.get("parameters", ()) if each["name"].lower() not in common]
    if asked:
        yield table(("parameter", "in", "type", "meaning"), [_parameter(each) for each in asked])
    answers = [
        f"{status}: {_content(answer)}" for status, answer in operation["responses"].items() if status.startswith("2")
    ]
    body = f"Body: {_content(operation['requestBody'])}. " if "requestBody" in operation else ""
    yield f"{body}Answer: {', '.join(answers)}.\n"


def _parameter(given: Json) -> tuple[str, ...]:
    schema = given["schema"]
    meaning = given.get("description") or schema.get("description") or ""
    return f"`{given['name']}`" + (" (needed)" if given.get("required") else ""), given["in"], _type(schema), meaning


def _content(part: Json) -> str:
    kinds = part.get("content", {})
    if "application/json" in kinds:
        return _type(kinds["application/json"]["schema"])
    return next((f"`{kind}`" for kind in kinds), "nothing")


def _sent(document: Json) -> set[str]:
    """Shapes that a request holds: of those a reader must know what is needed. An answer always has every field."""
    found: set[str] = set()
    for methods in document["paths"].values():
        for operation in methods.values():
            _collect(operation.get("requestBody"), document["components"]["schemas"], found)
    return found


def _collect(part: Any, schemas: Json, found: set[str]) -> None:
    if isinstance(part, list):
        for each in part:
            _collect(each, schemas, found)
    elif isinstance(part, dict):
        name = str(part.get("$ref", "")).rpartition("/")[2]
        if name and name not in found:
            found.add(name)
            _collect(schemas[name], schemas, found)
        _collect(list(part.values()), schemas, found)


def _shape(name: str, schema: Json, *, needed: Collection[str]) -> Iterator[str]:
    yield f"### {name}\n"
    if "description" in schema:
        yield " ".join(schema["description"].split()) + "\n"
    rows = [
        (f"`{field}`" + (" (needed)" if field in needed else ""), _type(value), value.get("description", ""))
        for field, value in schema.get("properties", {}).items()
    ]
    if rows:
        yield table(("field", "type", "meaning"), rows)


def _type(schema: Json) -> str:
    """A JSON schema in a few words; named shapes are links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower().replace('[', '').replace(']', '')})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind: str = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    words: str = "time" if schema.get("format") == "date-time" else kind
    return words + _bounds(schema)


def _bounds(schema: Json) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return ""
    if most is None or most > 2**53:
        return f" from {least}"
    return f" from {least} to {most}" if least is not None else f" up to {most}"


# ---- doctor


def doctor_page() -> str:
    parts = [
        "# Doctor\n",
        "`everkept doctor` names causes, not symptoms. Of each it says what was found, since when, the evidence in "
        "counts, what it means for memory, and the command or setting that mends it.\n",
        "```console\n$ everkept doctor                  # a second: quick check of the file, every cause below\n"
        "$ everkept doctor --full           # reads the file from end to end, and the full-text index\n"
        "$ everkept doctor --subject anna   # also why each of her facts is held back from recall\n"
        "$ everkept doctor --json           # what GET /v1/doctor answers, and what lies around the store here\n"
        "$ everkept doctor --secrets        # where the store holds secrets, and what erases each\n```\n",
        "It asks the server that runs on this home, because only that one knows whether its writes fail. Without "
        "a server it reads the file, which it neither makes, nor upgrades, nor changes; so it works with a store "
        "that is missing, damaged, locked, or newer than the program.\n",
        "Exit codes: 0 nothing is wrong, 5 something needs attention, 3 the store could not be looked at. What "
        "somebody decided for one thread (memory off, no idle time) is told, and needs no attention. Facts that "
        "recall holds back are a cause where a subject has no other fact, or where that subject is asked after; "
        "elsewhere they are normal, and only counted.\n",
        "Where the store is one of this machine, it also looks at what lies around it: how coding agents are wired, "
        "when the hooks of each were heard last, what waits in their spool, and whose memory the current folder is. "
        "A server does not see that, so `GET /v1/doctor` does not tell it.\n",
        "`--secrets` reads every text that the store keeps (messages, pages with all their versions, facts, "
        "summaries, handoffs, what agents were given, kept replies) with the rules of today, and names id, rule and "
        "what erases it, never the secret. It exits with 5 where it finds any.\n",
        "A cause that another one explains is left out: with no worker alive, nothing else is blamed for the "
        "backlog. Below the causes stand the figures: library and journal, sizes and free space, the lanes that "
        "wait longest, workers and their last sign of life, leases that ended, refused finishes, dead letters by "
        "class, unfinished erases, facts held back by reason.\n",
        "## Causes\n",
        table(
            ("cause", "what it is", "what it means for memory", "what mends it"),
            [(f"`{cause.id}`", cause.title, cause.means, cause.mends) for cause in CAUSES.values()],
        ),
    ]
    return MADE + "\n".join(parts)


PAGES: Mapping[str, Callable[[], str]] = {
    "reference-settings.md": settings_page,
    "reference-http.md": http_page,
    "reference-cli.md": cli_page,
    "reference-errors.md": errors_page,
    "doctor.md": doctor_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")
