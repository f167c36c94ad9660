"""The page of `doctor`: the verdict, each cause with what mends it, then the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everkept.api import views as v
from everkept.api.diagnosing import DiagnosisHere
from everkept.api.secrets import SecretPlace, SecretScan
from everkept.domain.scope import sign_in_words
from everkept.doors.cli.status_page import lanes_table, nats_words, workers_table
from everkept.doors.cli.wording import ago, clean, count, minute, size


def doctor_page(found: v.Diagnosis) -> RenderableType:
    return Group(_verdict(found), *(Padding(part, (1, 0, 0, 0)) for part in _sections(found)))


def secrets_page(scan: SecretScan) -> RenderableType:
    """Where secrets are and how to be rid of them; never a secret."""
    looked = f"{count(scan.texts, 'text')} looked at"
    if not scan.places:
        return Text(f"● no secret found; {looked}", style="bold green")
    head = Text(f"● secrets in {count(scan.places, 'text')}; {looked}", style="bold yellow")
    places = [Padding(_place(place), (1, 0, 0, 0)) for place in scan.found]
    more = [] if scan.places == len(scan.found) else [Text(f"and {scan.places - len(scan.found):,} more")]
    after = Text("Erasing is for good; whoever may have read a secret still knows it, so replace the secret, too.")
    return Group(head, *places, *more, Padding(after, (1, 0, 0, 0)))


def _place(place: SecretPlace) -> RenderableType:
    rules = ", ".join(f"{rule} ×{times}" if times > 1 else rule for rule, times in place.rules.items())
    head = Text(clean(f"{place.kind} {place.id}"), style="bold yellow").append(f"  {rules}", style="dim not bold")
    rows = {"project": place.project, "erase": place.erase}
    return Group(head, Padding(_grid(rows), (0, 0, 0, 2)))


def _verdict(found: v.Diagnosis) -> Text:
    if not found.looked:
        return Text("● could not look", style="bold red")
    wrong = sum(not finding.chosen for finding in found.findings)
    if wrong:
        return Text(f"● {count(wrong, 'cause')} to mend", style="bold yellow")
    return Text("● nothing is wrong", style="bold green")


def _sections(found: v.Diagnosis) -> Iterator[RenderableType]:
    for finding in found.findings:
        yield _finding(finding, found)
    yield _figures(found)
    if isinstance(found, DiagnosisHere):
        yield _agents(found)
    if found.lanes:
        yield lanes_table(found.lanes)
    if found.looked:
        yield workers_table(found.workers, found.at)


def _finding(finding: v.Finding, found: v.Diagnosis) -> RenderableType:
    head = Text(finding.title, style="bold" if finding.chosen else "bold yellow").append(
        f"  {finding.cause}", style="dim not bold"
    )
    rows = {
        "what": finding.what,
        "since": f"{finding.since:%Y-%m-%d %H:%M:%S UTC} ({ago(finding.since, found.at)})" if finding.since else "",
        "evidence": _counts(finding.evidence),
        "memory": finding.means,
        "mend": finding.mend,
    }
    return Group(head, Padding(_grid({name: text for name, text in rows.items() if text}), (0, 0, 0, 2)))


def _figures(found: v.Diagnosis) -> Table:
    store = found.store
    sizes = [
        "" if store.get("size_bytes") is None else size(store["size_bytes"]),
        f"its log {size(store['wal_bytes'])}" if "wal_bytes" in store else "",
        f"{size(store['free_bytes'])} free on the disk" if "free_bytes" in store else "",
    ]
    kept_by = f", mode {store['mode']}" if store.get("mode") else ""
    return _grid({
        "store": f"{store['path']}{kept_by}",
        "library": "; ".join(filter(None, [
            store["library"] or "not read", store["journal_mode"] and f"journal {store['journal_mode']}",
            f"sync {store['sync'] or 'full, set by whoever writes'}", store["degraded"],
        ])),
        "size": ", ".join(filter(None, sizes)),
        "leases": f"{count(found.expired_leases, 'lease')} ended, {count(found.refused_finishes, 'finish', 'finishes')}"
        " refused so far",
        "dead letters": _counts(found.dead_letters) or "none",
        "erases": f"{found.erases_unfinished} unfinished",
        "held back": _counts(found.held_back) or "no fact",
        **({} if found.nats is None else {"NATS": nats_words(found.nats)}),
    })  # fmt: skip


def _agents(found: DiagnosisHere) -> Table:
    spool, folder = found.spool, found.folder
    oldest = f", the oldest {ago(spool['oldest_at'], found.at)}" if spool["oldest_at"] else ""
    found_by = f", found by the {sign_in_words(folder['found_by'])}" if folder["project"] else ""
    whose = f"project {folder['project']}{found_by}" if folder["project"] else "no memory yet"
    return _grid({
        "this folder": f"{folder['place']}: {whose}",
        "spool": f"{count(spool['waiting'], 'record')} waiting{oldest}, {spool['aside']} set aside",
        **{seen["agent"]: _heard(seen, found) for seen in found.agents},
    })  # fmt: skip


def _heard(seen: Mapping[str, Any], found: DiagnosisHere) -> str:
    heard = seen["last_heard_at"]
    return "wired; its hooks were " + (f"last heard {ago(heard, found.at)}" if heard else "never heard")


def _grid(rows: Mapping[str, str]) -> Table:
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, text in rows.items():
        drawn.add_row(name, clean(text))
    return drawn


def _counts(numbers: Mapping[str, Any]) -> str:
    return " · ".join(f"{name.removesuffix('_us').replace('_', ' ')} {_fact(name, at)}" for name, at in numbers.items())


def _fact(name: str, value: Any) -> str:
    """A moment (`…_us`, microseconds since 1970) as a time; what is not there as a word."""
    if value is None:
        return "never" if name.endswith("_us") else "–"
    return minute(datetime.fromtimestamp(value / 1e6, UTC)) if name.endswith("_us") else str(value)
