"""A pytest plugin that writes down what each test came to and which Everkept was imported, as one JSON file."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--witness", type=Path, required=True, help="where to write what happened")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Witness(config.getoption("--witness")))


class Witness:
    """Collects one row a phase: {"test", "phase", "outcome", "error"}."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        error = [] if call.excinfo is None else kinds_of(call.excinfo.value)
        self._rows.append({"test": item.nodeid, "phase": report.when, "outcome": report.outcome, "error": error})
        return report

    def pytest_sessionfinish(self) -> None:
        files = {
            name: file
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] == "everkept" and (file := getattr(module, "__file__", None)) is not None
        }
        self._path.write_text(json.dumps({"rows": self._rows, "files": files}), encoding="utf-8")


def kinds_of(error: BaseException) -> list[str]:
    """Names of the error's class and of those it comes from; of all in a group (hypothesis raises one for several)."""
    if isinstance(error, BaseExceptionGroup):
        return sorted({kind for inner in error.exceptions for kind in kinds_of(inner)})
    return [kind.__name__ for kind in type(error).__mro__ if kind not in (Exception, BaseException, object)]
