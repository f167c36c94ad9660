"""The generated pages are in step, and every setting, route, command and error code is somewhere in the docs."""

from __future__ import annotations

import pytest
from scripts import generate_docs

from everkept import config, errors
from everkept.doors.cli.commands import PANELS


def page(name: str) -> str:
    return (generate_docs.DOCS / name).read_text("utf-8")


@pytest.mark.parametrize("name", generate_docs.PAGES)
def test_generated_page_is_in_step(name: str) -> None:
    assert generate_docs.PAGES[name]() == page(name), "run scripts/generate_docs.py"


def test_every_setting_is_in_the_docs() -> None:
    text = page("reference-settings.md")
    assert [key for key in (*config.SETTINGS, *config.SHORT_NAMES) if f"`{key}`" not in text] == []


def test_every_route_is_in_the_docs() -> None:
    text = page("reference-http.md")
    routes = [
        f"### {method.upper()} {path}\n"
        for path, methods in generate_docs.openapi()["paths"].items()
        for method in methods
    ]
    assert len(routes) > 40
    assert [route for route in routes if route not in text] == []


def test_every_command_is_in_the_docs() -> None:
    text = page("reference-cli.md")
    names = [command.name for commands in PANELS.values() for command in commands]
    assert [name for name in names if f"\n## everkept {name}\n" not in text] == []


def test_every_error_code_is_in_the_docs() -> None:
    text = page("reference-errors.md")
    codes = {*errors.HTTP_STATUS, *errors.EXIT_CODE} | {
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.EverkeptError)
    }
    assert [code for code in sorted(codes) if f"| `{code}` |" not in text] == []
