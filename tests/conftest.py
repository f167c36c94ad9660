"""What every test needs: an environment without the machine's own settings and keys, and a log that is only its own."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")  # how fast a machine is says nothing about a property

# Nor does it say anything about an answer: who names no time-out waits for a minute, and not for five seconds.
_CLIENTS_DEFAULT = inspect.signature(httpx2.get).parameters["timeout"].default
_CLIENTS_DEFAULT.connect = _CLIENTS_DEFAULT.read = _CLIENTS_DEFAULT.write = _CLIENTS_DEFAULT.pool = 60.0

PROVIDER_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_HOST")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the developer's settings, spends money on a key, or writes into the real home."""
    for name in list(os.environ):
        if name.startswith("EVERKEPT_") or name in PROVIDER_VARIABLES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("EVERKEPT_HOME", str(tmp_path / "everkept-home"))


@pytest.fixture(autouse=True)
def clean_log() -> Iterator[None]:
    """A command sets up the log of its whole process, whose level would hide what a later test listens for."""
    before = structlog.get_config() if structlog.is_configured() else None
    yield
    structlog.reset_defaults() if before is None else structlog.configure(**before)
