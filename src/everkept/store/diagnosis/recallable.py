"""Facts that are there and that no recall shows, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.store.connection import Connection
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.effective import effective
from everkept.store.hidden import SHOWN_FACT
from everkept.store.project_names import shown
from everkept.store.projects import shown_name

REPEATED = "repeated"
"""Not held back: the statement that it repeats is shown in its place."""

# In the order in which recall finds a reason, except that what took its place is named before that it was retired.
_REASON = f"""case
  when coalesce(p.hidden, false) or u.erased_at is not null or not ({SHOWN_FACT}) then 'fact_erased'
  when p.id is null then 'fact_not_indexed'
  when f.unsettled and not f.live then 'fact_unsettled'
  when f.superseded_by is not null and (f.retired_at is not null or f.closed_at <= :now) then 'fact_superseded'
  when f.retired_at is not null then 'fact_retired'
  when f.valid_from > :now then 'fact_not_yet_valid'
  when not f.closes and (f.valid_until <= :now or f.closed_at <= :now) then 'fact_no_longer_valid'
  when f.confidence < :floor then 'fact_below_floor'
  when f.duplicate_of is not null then '{REPEATED}' end"""
_FROM = """from facts f join subjects u on u.id = f.subject_id
  left join passages p on p.kind = 'fact' and p.ref_id = f.id where f.project_id = :project"""
_COUNTS = text(f"""
select f.subject_id, u.name, {_REASON} as reason, count(*), max(f.id), min(f.recorded_at), min(f.valid_from)
{_FROM} group by f.subject_id, u.name, 3""")
_PROJECTS = text(f"select p.id, {shown('p')}, p.settings from projects p where p.erased_at is null order by p.id")
_NAMESAKES = text(f"""
select {shown("p")}, u.name, count(*) from facts f join subjects u on u.id = f.subject_id
  join projects p on p.id = f.project_id
where lower(u.name) = lower(:subject) and u.erased_at is null and p.erased_at is null
  and not ({shown("p")} = :project and u.name = :subject) group by p.id, u.name order by count(*) desc""")

_MENDS = {
    "fact_erased": "nothing: an erase cannot be undone",
    "fact_not_indexed": "everkept reprocess --subject {subject}{scope}",
    "fact_unsettled": "nothing: the judge is on its way; everkept forget {fact}{scope} if it is wrong",
    "fact_superseded": "everkept why {fact}{scope} shows what took its place; everkept forget that if it is wrong",
    "fact_retired": "everkept forget {fact} --undo{scope}",
    "fact_not_yet_valid": "everkept recall … --subject {subject} --as-of a later day{scope}",
    "fact_no_longer_valid": "everkept recall … --subject {subject} --as-of an earlier day{scope}",
    "fact_below_floor": "everkept projects set {project} recall.confidence_floor=… (now {floor:g})",
}


def not_recallable(conn: Connection, look: Look) -> tuple[list[Finding], dict[str, int]]:
    """What is found, and how many facts of the whole store each reason holds back.

    Found is each reason of the subject that is asked after; else those of subjects of whose facts none can be recalled.
    """
    found: list[Finding] = []
    counts: Counter[str] = Counter()
    asked_after = 0
    for project, name, settings_json in conn.rows(_PROJECTS):
        floor = effective(look.settings, settings_json).recall.confidence_floor
        rows = conn.rows(_COUNTS, {"project": project, "now": conn.now(), "floor": floor})
        for _, _, reason, facts, *_ in rows:
            counts[(reason or "").removeprefix("fact_")] += facts
        if look.subject is None:
            shown = {row[0] for row in rows if row[2] is None}
            rows = [row for row in rows if row[0] not in shown]
        else:
            rows = [row for row in rows if (name, row[1]) == (look.project, look.subject)]
            asked_after += sum(row[3] for row in rows)
        found += _held_back(name, floor, [row for row in rows if row[2] not in (None, REPEATED)])
    if look.subject is not None and not asked_after:
        found += _elsewhere(conn, look)
    del counts[""]  # of those that nothing holds back
    return found, dict(counts)


def _held_back(project: str, floor: float, rows: list[tuple[object, ...]]) -> Iterator[Finding]:
    """One finding for each reason of the project."""
    by_reason: dict[str, list[tuple[object, ...]]] = {}
    for row in rows:
        by_reason.setdefault(str(row[2]), []).append(row)
    scope = "" if project == "default" else f" --project {project}"
    for reason, held in by_reason.items():
        facts = sum(int(str(row[3])) for row in held)
        subject, fact = shown_name(str(held[0][1])), row_id("fct", int(str(held[0][4])))
        yield Finding(
            cause=reason, what=f"{facts:,} facts of {subject}" + (f" and {len(held) - 1} others" if held[1:] else ""),
            since=min(int(str(row[5])) for row in held),
            evidence={"facts": facts, "subjects": len(held), "such_as": fact},
            mend=_MENDS[reason].format(subject=subject, fact=fact, project=project, floor=floor, scope=scope),
        )  # fmt: skip


def _elsewhere(conn: Connection, look: Look) -> list[Finding]:
    rows = conn.rows(_NAMESAKES, {"subject": look.subject, "project": look.project})
    if not rows:
        return []
    project, subject, facts = rows[0]
    return [Finding(
        cause="facts_elsewhere", what=f"{look.subject} has no facts in project {look.project}; "
        f"{subject} has {facts:,} in project {project}", since=None, evidence={"facts": facts, "project": project},
        mend=f"everkept facts --subject {subject} --project {project}",
    )]  # fmt: skip
