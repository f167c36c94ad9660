"""What the smokes of both state machines share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """A simulation fails on purpose all the time; what it logs would bury the one failure that counts."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()
