"""A transcript is passed by only where it is as it was: size and time may be kept by whoever rewrites it (H05)."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.stubs.agent_desk import a_checkout, a_desk

from everkept.api.transcripts import TranscriptImport, TranscriptReport
from everkept.capture.agents.formats import FORMATS


def written(path: Path, cwd: Path, words: str, id_: str) -> None:
    line = {"type": "user", "sessionId": "11111111-2222-3333-4444-555555555555", "uuid": id_, "cwd": str(cwd),
            "timestamp": "2026-01-01T00:00:00Z", "message": {"role": "user", "content": words}}  # fmt: skip
    path.write_text(json.dumps(line) + "\n", "utf-8")
    os.utime(path, ns=(1_700_000_000_000_000_000, 1_700_000_000_000_000_000))


def test_a_rewrite_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    app, path = a_checkout(tmp_path / "app"), tmp_path / "t.jsonl"
    with a_desk(tmp_path / "home") as desk:
        importer = TranscriptImport(desk.app.parts)

        def take() -> TranscriptReport:
            return desk.run(importer.take(FORMATS["claude-code"], path))

        written(path, app, "Mend the lamp", "aaaaaaaa-0000-0000-0000-000000000001")
        size = path.stat().st_size
        assert take().taken.stored == 1
        assert take().skipped_because == "unchanged since it was read"

        written(path, app, "Paint a boat.", "aaaaaaaa-0000-0000-0000-000000000002")
        assert path.stat().st_size == size
        assert take().taken.stored == 1
        assert desk.rows("select content from events order by seq") == [("Mend the lamp",), ("Paint a boat.",)]
