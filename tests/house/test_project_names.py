"""No statement tells a project's name without its workspace: that one may be another project's, or nobody's."""

from __future__ import annotations

import re
from pathlib import Path

STORE = Path(__file__).parents[2] / "src" / "everkept" / "store"
BARE = re.compile(r"\bp\.name\b")
MAY = {
    "project_names.py": "it makes the whole name",
    "projects.py": "it sorts by it, within a workspace",
    "wiki_pages.py": "a folder is found by the project's number",
    "diagnosis/texts.py": "the name itself is a text that may hold a secret",
}
"""Where the bare name is meant, and why."""


def test_a_bare_name_is_selected_only_where_it_is_meant() -> None:
    found = {
        path.relative_to(STORE).as_posix(): len(BARE.findall(path.read_text("utf-8")))
        for path in sorted(STORE.rglob("*.py"))
    }
    bare = {name: times for name, times in found.items() if times}
    assert bare == dict.fromkeys(sorted(MAY), 1)
