from __future__ import annotations

import ast
import inspect

from scripts import generate_sync

from everkept.doors.python import (
    async_memory,
    async_reviews,
    async_workstreams,
    sync_memory,
    sync_reviews,
    sync_workstreams,
)


def test_the_synchronous_door_is_in_step_with_its_source() -> None:
    generated = generate_sync.generate(generate_sync.SOURCE.read_text("utf-8"))
    assert generated == generate_sync.TARGET.read_text("utf-8"), "run scripts/generate_sync.py"
    reviews = generate_sync.generate(generate_sync.REVIEWS_SOURCE.read_text("utf-8"), generate_sync.REVIEWS_HEAD)
    assert reviews == generate_sync.REVIEWS_TARGET.read_text("utf-8"), "run scripts/generate_sync.py"
    parts = generate_sync.generate(generate_sync.WORKSTREAMS_SOURCE.read_text("utf-8"), generate_sync.WORKSTREAMS_HEAD)
    assert parts == generate_sync.WORKSTREAMS_TARGET.read_text("utf-8"), "run scripts/generate_sync.py"


def test_both_doors_have_the_same_public_names() -> None:
    for one, other in (("AsyncMemory", "Memory"), ("AsyncThread", "Thread")):
        assert _public(getattr(async_memory, one)) == _public(getattr(sync_memory, other))
    for one, other in (("AsyncReviews", "Reviews"), ("AsyncProposals", "Proposals")):
        assert _public(getattr(async_reviews, one)) == _public(getattr(sync_reviews, other))
    for one, other in (("AsyncWorkstreams", "Workstreams"), ("AsyncLaunches", "Launches")):
        assert _public(getattr(async_workstreams, one)) == _public(getattr(sync_workstreams, other))


def test_every_public_method_says_what_it_does() -> None:
    trees = [ast.parse(inspect.getsource(module)) for module in (async_memory, async_reviews, async_workstreams)]
    functions = (
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    nested = {"opened", "fetch"}
    assert [
        each.name
        for each in functions
        if not each.name.startswith("_") and each.name not in nested and ast.get_docstring(each) is None
    ] == []


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}
