"""What tells a session from all others of its agent."""

from __future__ import annotations

import pytest

from everkept.domain.session import is_unique_by_itself, own_name, session_identity

UNIQUE = [
    "019ae2f0-6b1d-7c3e-9a52-4f1d08b7c6e1", "00000000-0000-4000-8000-000000000009", "agent-a8aced0f5d2e81b0c",
    "toolu_01A2b3C4d5E6f7G8h9J0kL", "ses_6b1d2e3f4ffeQwErTyUiOpAsDf", "call_AbCdEfGhIjKlMnOpQrStUvWx",
    "01JDXQ7F8K3N5V2B9C4M6P8R0T",
]  # fmt: skip
PLACED = ["1", "main", "m1", "", "2026-11-30", "2026-11-30-06-26-41", "agent-5f0c1f0e", "run_shell_command-1",
          "implementauthentication", "feed-beef-cafe"]  # fmt: skip


@pytest.mark.parametrize("native", UNIQUE)
def test_an_id_that_is_unique_in_the_world_is_the_identity_wherever_the_session_goes(native: str) -> None:
    assert is_unique_by_itself(native)
    assert session_identity(native, within="/code/a") == session_identity(native, within="/code/b") == native


@pytest.mark.parametrize("native", PLACED)
def test_an_id_that_others_may_have_is_one_session_in_each_place(native: str) -> None:
    here, there = (session_identity(native, within=place) for place in ("/code/a", "/code/b"))
    assert here != there
    assert here == session_identity(native, within="/code/a")
    assert session_identity(here, within="/code/b") == here, "bound once, for good"
    assert own_name(here) == (native or "unnamed")


@pytest.mark.parametrize("sign", ["a", "A", "0", "-", "a-", "ab-", "z"])
def test_an_endless_id_is_looked_through_once(sign: str) -> None:
    assert is_unique_by_itself(sign * 400_000) is (sign == "0")


def test_an_id_told_without_a_place_stays_as_it_is() -> None:
    assert session_identity("main", within="") == own_name("main") == "main"
