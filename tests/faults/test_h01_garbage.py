"""H01: what a hook was given by mistake is set aside and told of; it makes no session."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stubs.agent_desk import a_checkout, a_desk

from everkept.hook.hook_script import append, record_of

pytestmark = pytest.mark.own_engine("hooks of coding agents")


@pytest.mark.parametrize("said", [b"", b"not json", b"[1]", b'"x"'], ids=["empty", "words", "list", "text"])
def test_h01_a_hook_that_is_given_garbage_makes_no_session_and_is_told_of(tmp_path: Path, said: bytes) -> None:
    with a_desk(tmp_path / "home") as desk:
        app = a_checkout(tmp_path / "app")
        record = record_of(said, "claude-code", "UserPromptSubmit")
        assert record is not None
        name = append(str(desk.home), {**record, "cwd": str(app)}, durable=False)
        desk.work("codex", "s1", app)
        assert desk.rows("select native_id from sessions where genuine = 0") == []
        assert desk.spool.state().aside == 1
        assert not desk.spool.names(), name


def test_h01_words_that_are_cut_are_kept_where_they_name_their_session(tmp_path: Path) -> None:
    with a_desk(tmp_path / "home") as desk:
        record = record_of(b'{"session_id": "s9", "prompt": "Fix', "claude-code", "UserPromptSubmit")
        assert record is not None
        append(str(desk.home), {**record, "cwd": str(a_checkout(tmp_path / "app"))}, durable=False)
        desk.settle()
        assert desk.spool.state().aside == 0
        assert len(desk.rows("select 1 from sessions where native_id like 's9%'")) == 1
