"""A transcript in UTF-16 tells the same as in UTF-8."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.stubs.replayed import RECORDED

from everkept.capture.agents.formats import FORMATS, recognise


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_transcript_in_utf_16_has_the_same_events(tmp_path: Path, encoding: str) -> None:
    recorded = RECORDED / "entireio-cli" / "claude-code-2.0.76.jsonl"
    path = tmp_path / recorded.name
    path.write_bytes(("\ufeff" + recorded.read_text("utf-8")).encode(encoding))

    found = recognise(path)
    assert found is not None
    assert found.agent == "claude-code"
    wide, plain = found.read(path), found.read(recorded)
    assert (wide.unreadable, wide.lines) == ([], plain.lines)
    assert [event.text for event in wide.events] == [event.text for event in plain.events]


def test_a_document_in_utf_16_is_read_too(tmp_path: Path) -> None:
    message = {"id": "m1", "type": "user", "content": "Mend the lamp", "timestamp": "2026-01-01T00:00:00Z"}
    document = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z", "messages": [message]}
    path = tmp_path / "session-1.json"
    path.write_bytes(json.dumps(document).encode("utf-16"))

    assert [event.text for event in FORMATS["gemini"].read(path).events if event.kind == "prompt"] == ["Mend the lamp"]
