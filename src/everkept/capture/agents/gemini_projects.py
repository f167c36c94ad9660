"""Whose folder a chat of Gemini CLI is about: chats name it by a hash, files beside them by its path."""

from __future__ import annotations

import hashlib
from pathlib import Path

from everkept.capture.agents.records import record_in, record_of_file, text_of_file


def folder_of(chat: Path, project_hash: str) -> str | None:
    """The project's path: from the marker beside its chats, else from the list of known projects by the hash."""
    chats = next((folder for folder in chat.parents if folder.name == "chats"), None)
    if chats is None:
        return None
    if marked := text_of_file(chats.parent / ".project_root").strip():
        return marked
    known = record_in(record_of_file(chats.parent.parent.parent / "projects.json"), "projects")
    return next((path for path in known if hashlib.sha256(path.encode()).hexdigest() == project_hash), None)
