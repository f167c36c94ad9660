"""What one line of Claude Code's transcripts says by itself: whose it is, what was typed, which id it goes by."""

from __future__ import annotations

from typing import Final

from everkept.capture.agents.reading import as_text
from everkept.capture.agents.records import Record, record_in, text_in

THOUGHTS: Final = frozenset(["thinking", "redacted_thinking"])
"""Types of blocks that are left out."""
_OTHER_AGENTS: Final = frozenset(["peer", "coordinator", "teammate", "agent"])


def is_claude_code(record: Record) -> bool:
    match record.get("type"):
        case "user" | "assistant" | "system" | "attachment" | "progress" | "queue-operation" | "permission-mode":
            return bool(text_in(record, "sessionId")) and "parts" not in record_in(record, "message")
        case "summary":
            return "leafUuid" in record
        case "file-history-snapshot":
            return "snapshot" in record
        case _:
            return False


def typed_in(blocks: list[Record]) -> str:
    """The texts of a user's message; `[image]` where there is nothing but one."""
    text = as_text([block for block in blocks if block.get("type") == "text"])
    return text or ("[image]" if any(block.get("type") in ("image", "document") for block in blocks) else "")


def command_in(echo: str) -> str:
    """What was typed for the echo of a command: `/review 12`."""
    return f"{between(echo, 'command-name')} {between(echo, 'command-args')}".strip()


def between(text: str, tag: str) -> str:
    """What stands in `<tag>…</tag>`, else nothing."""
    _, opened, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.rpartition(f"</{tag}>")
    return inside.strip() if opened and closed else ""


def why_not_typed(record: Record) -> tuple[str, bool]:
    """(why nobody typed it, whether it is evidence all the same), by the fields of its line; ("", True) for neither."""
    origin = record_in(record, "origin")
    if record.get("isMeta") is True:
        return "meta line", False
    if record.get("isSidechain") is True:
        return "task of a sub-agent", True
    if text_in(origin, "from", "senderTaskId") or text_in(origin, "kind") in _OTHER_AGENTS:
        return "message of another agent", True
    if "task-notification" in (text_in(origin, "kind"), record.get("commandMode")):
        return "notice of a task", True
    if record.get("promptSource") == "system":
        return "prompt of Claude Code itself", False
    return "", True


def id_of(record: Record) -> str:
    """The id of a line; of a copy in a fork, that of the original."""
    return text_in(record_in(record, "forkedFrom"), "messageUuid") or text_in(record, "uuid")


def id_by_line(line: str, nth: int = 0) -> str:
    """An id for a call without one: that of its line, which its result names."""
    return f"{line}:call:{nth}" if line else ""


def nothing_in(blocks: list[Record]) -> str:
    kinds = [text_in(block, "type") for block in blocks]
    if any(kind in THOUGHTS for kind in kinds):
        return "thinking"
    return f"assistant {kinds[0]}" if kinds and kinds[0] not in ("", "text") else "empty message"
