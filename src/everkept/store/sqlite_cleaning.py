"""What an erase leaves in a SQLite file beside the rows: its write-ahead log, and the unused parts of pages."""

from __future__ import annotations

from typing import Any

REWRITE_BYTES_MAX = 256 << 20
"""A larger file is not rewritten inside the service, because nobody could write meanwhile (2 s for 100 MB)."""
HELD = "a reader holds the write-ahead log, where the words still are"
TOO_LARGE = "the file is over 256 MB and was not rewritten: parts of words may stand in unused parts of its pages"


def clean_sqlite(raw: Any, *, rewrite: bool) -> str:
    """Empty the log, and with `rewrite` write the file anew. Why not, "" where it could; nothing is waited for.

    `secure_delete` overwrites what is deleted, but not the copies that SQLite left in the unused part of a page when it
    split it (measured: words of 1 % of the rows stay); only VACUUM drops these. A reader with an old snapshot keeps the
    log from being emptied.
    """
    wait_ms = raw.execute("pragma busy_timeout").fetchone()[0]
    raw.execute("pragma busy_timeout = 0")
    try:
        return _clean(raw, rewrite=rewrite)
    except raw.OperationalError as error:  # another process writes, or the disk is full: the job tries again
        return f"the file could not be rewritten: {error}"
    finally:
        raw.execute(f"pragma busy_timeout = {wait_ms}")


def _clean(raw: Any, *, rewrite: bool) -> str:
    if not _empty_log(raw):
        return HELD
    if not rewrite:
        return ""
    if _file_bytes(raw) > REWRITE_BYTES_MAX:
        return TOO_LARGE
    raw.execute("vacuum")
    return "" if _empty_log(raw) else HELD


def _empty_log(raw: Any) -> bool:
    busy: int = raw.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
    return not busy


def _file_bytes(raw: Any) -> int:
    pages: int = raw.execute("pragma page_count").fetchone()[0]
    size: int = raw.execute("pragma page_size").fetchone()[0]
    return pages * size
