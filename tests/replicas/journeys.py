"""The journeys of the acceptance suite through HTTP, to be walked on any server."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx2
import pytest
from tests.acceptance import test_http

Journey = Callable[[httpx2.Client], None]
SHORT = (
    test_http.test_a_conversation_is_remembered, test_http.test_replays_and_conflicts,
    test_http.test_facts_are_stated_traced_retired_and_brought_back, test_http.test_lists_page_to_the_end,
    test_http.test_changes_are_given_until_they_are_acknowledged,
)  # fmt: skip
OF_THE_WHOLE = {
    "test_projects_are_apart_and_keys_are_confined", "test_strangers_are_kept_out", "test_status_metrics_and_probes",
}  # fmt: skip
"""They speak of more than one project, and are walked once on a database."""


def all_journeys() -> Iterator[tuple[str, Journey]]:
    """Each test of the suite that asks a running server, once a set of its parameters."""
    for name, function in vars(test_http).items():
        if not name.startswith("test_") or "client" not in inspect.signature(function).parameters:
            continue
        for number, given in enumerate(_parameters(function)):
            yield f"{name}[{number}]", partial(function, **given)


def _parameters(function: Any) -> Iterator[dict[str, Any]]:
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    if not marks:
        yield {}
        return
    [mark] = marks
    names = [mark.args[0]] if isinstance(mark.args[0], str) else list(mark.args[0])
    for values in mark.args[1]:
        assert not isinstance(values, type(pytest.param()))
        yield dict(zip(names, values if len(names) > 1 else [values], strict=True))
