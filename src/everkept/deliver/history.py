"""The history of a wiki that is made anew: one commit for each version of a page that remains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from everkept.deliver.git import Git, signature
from everkept.deliver.page_file import file_path, render
from everkept.store.store import Store
from everkept.store.wiki_pages import WikiPage, versions_after

REBUILT: Final = "refs/everkept/rebuilt"
VERSIONS_AT_ONCE: Final = 200


def replay(git: Git, store: Store, project: int) -> str | None:
    """The last commit of a new history on no other one, oldest version first; None where nothing remains."""
    git.run("update-ref", "-d", REBUILT)
    after, tip = (0, 0, 0), None
    while versions := store.read_now(versions_after, project, after, VERSIONS_AT_ONCE):
        git.run("fast-import", "--quiet", "--force", given=_commands(versions, tip))
        tip = git.refs()[REBUILT]
        last = versions[-1]
        after = (last.updated_at, last.id, last.version)
    return tip


def _commands(versions: Sequence[WikiPage], tip: str | None) -> bytes:
    parts: list[bytes] = []
    for page in versions:
        path = file_path(page)
        when_s = page.updated_at // 1_000_000
        message = f"{path}: version {page.version}\n".encode()
        parts.append(
            f"commit {REBUILT}\nauthor {signature(page.author, when_s)}\n"
            f"committer {signature('Everkept', when_s)}\ndata {len(message)}\n".encode()
            + message
        )
        if tip is not None and len(parts) == 1:
            parts.append(f"from {tip}\n".encode())
        text = render(page)
        parts.append(f"M 100644 inline {path}\ndata {len(text)}\n".encode() + text + b"\n")
    return b"".join(parts)
