"""Links resolve, what a page names exists, and its drawings say what the code says."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict
from pathlib import Path
from urllib.parse import unquote

import pytest
from scripts import generate_docs
from tests.proof.figures import FIGURES, PAGE, read_proof, section
from tests.proof.layers import LAYERS

import everkept
from everkept.domain.jobs import TRANSITIONS
from everkept.doors.cli.commands import build_app
from everkept.doors.mcp.tools import TOOLS
from everkept.models.language import VENDORS
from everkept.recall.rank import Weights

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANYTHING_LOCAL = re.compile(r"/(?:work|home|tmp|root)/")


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = []
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        path, _, anchor = unquote(link).partition("#")
        target = page if not path else (page.parent / path).resolve()
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_place_on_somebodys_machine(page: Path) -> None:
    assert ANYTHING_LOCAL.findall(page.read_text("utf-8")) == []


def test_every_guarantee_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
    parts = re.split(r"^## (G\d+)", text, flags=re.MULTILINE)[1:]
    named = {name: re.findall(r"`(tests/[\w/.]+)`", body) for name, body in zip(parts[::2], parts[1::2], strict=True)}
    assert set(named) == {f"G{number}" for number in (*range(1, 12), *range(13, 17))}
    assert [name for name, tests in named.items() if not tests] == []
    assert [test for tests in named.values() for test in tests if not (ROOT / test).exists()] == []


def test_the_page_of_guarantees_has_the_figures_of_the_latest_proof() -> None:
    """`python -m tests.proof --write` writes it again after a bug was planted; `make torture` makes new figures."""
    text = PAGE.read_text("utf-8")
    assert section(read_proof(FIGURES)) in text
    assert [run.layer for run in read_proof(FIGURES).runs] == [layer.name for layer in LAYERS]


def test_drawing_of_a_job_is_the_table_of_its_transitions() -> None:
    text = (ROOT / "docs" / "operations.md").read_text("utf-8")
    drawn = {
        ("new" if start == "[*]" else start, event): end
        for start, end, event in re.findall(r"^    (\S+) --> (\w+): (\w+)$", text, re.MULTILINE)
    }
    assert drawn == dict(TRANSITIONS)


def console_lines(program: str) -> list[str]:
    """What the pages tell a reader to type, one command each, without prompts and comments."""
    blocks = [
        block for page in PAGES if "reference" not in page.name for block in CONSOLE.findall(page.read_text("utf-8"))
    ]
    lines = [line.removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return sorted({line for line in lines if line.startswith(f"{program} ")})


@pytest.mark.parametrize("line", console_lines("everkept"))
def test_command_of_a_page_is_understood(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    build_app().parse_args(words, exit_on_error=False, print_error=False)  # binds the arguments, and runs nothing


def test_every_request_of_a_page_has_a_route() -> None:
    routes = {
        (method.upper(), re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))))
        for path, methods in generate_docs.openapi()["paths"].items()
        for method in methods
    }
    text = "\n".join(page.read_text("utf-8") for page in PAGES).replace("\\\n", " ")
    asked = re.findall(r"^\$ curl (.*?)http://127\.0\.0\.1:7411(/[^\s'?]*)(.*)$", text, re.MULTILINE)
    assert len(asked) > 5
    for before, path, after in asked:
        named = re.search(r"-X (\w+)", before)
        method = named[1] if named else "POST" if " -d " in f"{before}{after} " else "GET"
        assert any(method == known and route.fullmatch(path) for known, route in routes), (method, path)


def test_every_public_name_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "stability.md").read_text("utf-8")
    assert [name for name in everkept.__all__ if f"`{name}`" not in text] == []


def test_every_vendor_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "models.md").read_text("utf-8")
    for name, vendor in VENDORS.items():
        assert f"| `{name}:<model>` |" in text
        for word in (vendor.key, vendor.url, vendor.model and f"{name}:{vendor.model}"):
            assert word is None or f"`{word}`" in text


def test_weights_of_the_page_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "recall.md").read_text("utf-8")
    shown: dict[str, float] = {}
    for names, numbers in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| [^|]+ \| ([-−\d., ]+) \|$", text, re.MULTILINE):
        weights = [float(number.replace("−", "-")) for number in numbers.split(", ")]
        shown |= dict(zip(re.findall(r"\w+", names), weights, strict=True))
    variants = {"bm_lexical": 7.5, "bm_mini": 3.5, "static_turn_mini": 0.0, "static_3_mini": 2.5}
    assert (
        "Without vectors `bm` weighs 7.5; with a neural embedder `bm` is 3.5, `static_turn` 0 and `static_3` 2.5"
        in text
    )
    assert shown | variants == asdict(Weights())


def test_every_tool_of_the_mcp_server_stands_in_the_guide_with_each_of_its_arguments() -> None:
    guide = (ROOT / "docs" / "agents.md").read_text("utf-8").splitlines()
    rows = {line.split("`")[1]: line for line in guide if line.startswith("| `")}
    for tool in TOOLS:
        arguments = set(tool["inputSchema"]["properties"]) - {"project"}
        assert {name for name in arguments if f"`{name}`" not in rows[tool["name"]]} == set(), tool["name"]
