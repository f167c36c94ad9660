"""Looking a store's file over, from end to end: what `everkept db check` says. It only reads."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everkept.errors import NotFound, StoreNotSupported, StoreUnavailable
from everkept.store.copy import opened, our_errors
from everkept.store.migrate import SCHEMA, read_revision, read_schema, revision
from everkept.store.sqlite import choose_driver, open_file, refuse_network

FREE_BYTES_MIN = 256 << 20
_INTEGRITY_OF_VIRTUAL = (3, 44, 0)
"""From this version on `integrity_check` looks into the full-text index, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    name: str
    ok: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    path: Path
    library: str
    """Module and version of SQLite."""
    size_bytes: int
    free_bytes: int
    copies: tuple[Path, ...]
    """Earlier stores that upgrades and restores have left beside: they hold what was erased after them."""
    findings: tuple[Finding, ...]


def inspect_store(path: Path) -> Inspection:
    """Every check, each with what was found. Raises NotFound without a store, StoreUnavailable while it is locked."""
    if not path.is_file():
        raise NotFound(f"there is no store at {path}", path=str(path))
    driver = choose_driver()
    size_bytes = sum(side.stat().st_size for side in (path, path.with_name(f"{path.name}-wal")) if side.exists())
    free_bytes = shutil.disk_usage(path.parent).free
    findings = [Finding(name="library", ok=driver.wal, message=driver.degraded or f"SQLite {driver.version}")]
    findings += [_place(path), _private(path), _space(size_bytes, free_bytes), *_content(path)]
    return Inspection(
        path=path, library=f"{driver.module.__name__} {driver.version}",
        size_bytes=size_bytes, free_bytes=free_bytes, copies=tuple(find_copies(path)), findings=tuple(findings),
    )  # fmt: skip


def find_copies(path: Path) -> list[Path]:
    """Stores and unfinished files that upgrades, restores and backups have left beside this one."""
    copies = re.compile(rf"{re.escape(path.stem)}\.(before-|replaced-|.*\.?partial-)")
    return sorted(found for found in path.parent.iterdir() if copies.match(found.name))


def _place(path: Path) -> Finding:
    try:
        refuse_network(path)
    except StoreNotSupported as error:
        return Finding(name="place", ok=False, message=error.message)
    return Finding(name="place", ok=True, message="on a local disk")


def _private(path: Path) -> Finding:
    mode = path.stat().st_mode & 0o777
    open_to_others = sys.platform != "win32" and mode & 0o077
    message = f"others can read it (mode {mode:o}): chmod 600 {path}" if open_to_others else "only its owner reads it"
    return Finding(name="private", ok=not open_to_others, message=message)


def _space(size_bytes: int, free_bytes: int) -> Finding:
    needed = max(FREE_BYTES_MIN, size_bytes)
    ok = free_bytes >= needed
    short = "" if ok else f"; a copy before an upgrade needs {needed >> 20:,} MB"
    return Finding(name="free space", ok=ok, message=f"{free_bytes >> 20:,} MB free{short}")


def _content(path: Path) -> list[Finding]:
    try:
        with opened(path) as raw:
            findings = [_schema(raw, path), check_integrity(raw), check_references(raw)]
            findings.append(check_full_text(raw))
        return [*_modes(path), *findings]
    except StoreUnavailable as error:
        if "locked" in error.message or "busy" in error.message:
            raise
        return [Finding(name="readable", ok=False, message=error.message)]


def _schema(raw: Any, path: Path) -> Finding:
    try:
        found = read_schema(raw, path)
    except StoreNotSupported as error:
        return Finding(name="schema", ok=False, message=error.message)
    if found == 0 or read_revision(raw) != revision(found):
        return Finding(name="schema", ok=False, message=f"version {found}, recorded as {read_revision(raw) or 'none'}")
    if found < SCHEMA:
        message = f"version {found}, this Everkept has {SCHEMA}: the next start or `everkept db upgrade` upgrades it"
        return Finding(name="schema", ok=False, message=message)
    return Finding(name="schema", ok=True, message=f"version {found}, up to date")


def check_integrity(raw: Any) -> Finding:
    faults = [str(row[0]) for row in raw.execute("pragma integrity_check(10)").fetchall()]
    ok = faults == ["ok"]
    return Finding(name="integrity", ok=ok, message="every page and index agrees" if ok else "; ".join(faults))


def check_references(raw: Any) -> Finding:
    broken = sorted({str(row[0]) for row in raw.execute("pragma foreign_key_check").fetchmany(1000)})
    message = f"rows of {', '.join(broken)} refer to nothing" if broken else "every row has what it refers to"
    return Finding(name="references", ok=not broken, message=message)


def check_full_text(raw: Any) -> Finding:
    number = tuple(int(part) for part in choose_driver().version.split("."))
    if number < _INTEGRITY_OF_VIRTUAL:
        return Finding(name="full text", ok=True, message=f"SQLite {choose_driver().version} cannot check it")
    if raw.execute("select 1 from sqlite_master where name = 'passage_text'").fetchone() is None:
        return Finding(name="full text", ok=False, message="the index is missing")
    faults = [str(row[0]) for row in raw.execute("pragma integrity_check(passage_text)").fetchall()]
    lost = raw.execute(
        "select count(*) from passages p where not exists (select 1 from passage_text_content d where d.id = p.id)"
    ).fetchone()[0]
    if lost:
        faults = [f"{lost:,} passages are not in the index"]
    ok = faults == ["ok"]
    return Finding(name="full text", ok=ok, message="the index agrees with its text" if ok else "; ".join(faults))


def _modes(path: Path) -> list[Finding]:
    """As this program opens the file to write."""
    driver = choose_driver()
    with our_errors(path):
        raw = open_file(driver, path)
        try:
            journal = str(raw.execute("pragma journal_mode").fetchone()[0])
            sync = int(raw.execute("pragma synchronous").fetchone()[0])
            secure = int(raw.execute("pragma secure_delete").fetchone()[0])
        finally:
            raw.close()
    return [
        Finding(name="journal", ok=journal == ("wal" if driver.wal else "truncate"), message=journal),
        Finding(name="sync", ok=sync >= 2, message="full" if sync >= 2 else f"level {sync}: a power cut can lose data"),
        Finding(name="secure delete", ok=secure == 1, message="on" if secure == 1 else "off: erased words stay"),
    ]
