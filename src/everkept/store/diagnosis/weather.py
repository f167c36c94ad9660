"""Causes that lie with the provider: its circuit, its pace, the project's own budget."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.money_limits import limited_in_money_alone
from everkept.store.project_names import shown
from everkept.store.providers import list_providers

DAY_US = 86_400_000_000
SLOW_SHARE = 0.8
"""A p95 above this part of the timeout loses replies at the next busy hour."""
CALLS_MAX = 500
"""Calls, and jobs that failed, that are looked at."""
SAMPLES_MIN = 20
TEXT_STEPS = ("summary", "fold")
"""Steps that answer in text, with the shorter timeout."""
NO_REPLY = re.compile(r"no reply within|did not answer within|did not end within|timed? ?out", re.IGNORECASE)
_STATUS = re.compile(r"(?:answered|status_code:|status|account|path|key)\W{0,3}(\d{3})\b", re.IGNORECASE)
_QUOTA = re.compile(r"quota|billing|credit|payment|insufficient|balance", re.IGNORECASE)
_MODEL = re.compile(r"model\b.*(?:not (?:found|exist)|unknown)|does not (?:know|exist)|not_found", re.IGNORECASE)
_KEY = re.compile(r"api[_ ]?key|unauthor|credential|permission|revoked|refuses this key", re.IGNORECASE)

_WAITING = text("""
select count(*) from jobs where uses = :use and (state = 'ready' or (state = 'waiting' and error_class in
  ('transient', 'rate_limited', 'provider_down')))""")
_REPLIES = text("""
select step, replied_at - asked_at from replies where replied_at > :since and text is not null
order by replied_at desc limit :limit""")
_TROUBLED = text("""
select kind, history from jobs where history <> '[]' and (finished_at is null or finished_at > :since)
  and uses = 'model' order by finished_at desc nulls last limit :limit""")
_OVER_BUDGET = text(f"""
select {shown("p")}, count(*), min(j.error) from jobs j join projects p on p.id = j.project_id
where j.state = 'waiting' and j.error_class = 'over_budget' group by 1 order by 1""")


def circuits(conn: Connection, look: Look) -> list[Finding]:
    return [
        _circuit(conn, look, pool, circuit, reason or "", since, until)
        for pool, circuit, reason, since, until, _ in list_providers(conn) if circuit != "closed"
    ]  # fmt: skip


def _circuit(
    conn: Connection, look: Look, pool: str, circuit: str, reason: str, since: int | None, until: int | None
) -> Finding:
    embeds = pool == look.pools.get("embedder") and pool != look.pools.get("model")
    cause = "provider_limiting" if circuit == "limited" else "embedder_down" if embeds else cause_of(reason)
    vendor = pool.partition(":")[0]
    waiting = conn.scalar(_WAITING, {"use": "embedder" if embeds else "model"})
    again = "now" if until is None or until <= conn.now() else _moment(until)
    return Finding(
        cause=cause, what=f"{vendor}: {reason or circuit}; asked again: {again}", since=since,
        evidence={"provider": pool, "waiting": waiting, "asked_again_at": again},
        mend=_MENDS[cause].format(vendor.upper()),
    )  # fmt: skip


def cause_of(reason: str) -> str:
    """Which cause opened the circuit, from what the provider said. A status is believed before any word."""
    found = _STATUS.search(reason)
    status = int(found[1]) if found else None
    if status == 402 or _QUOTA.search(reason):
        return "quota_exhausted"
    if status == 404 or (status is None and _MODEL.search(reason)):
        return "model_unknown"
    if status in (401, 403) or (status in (None, 400) and _KEY.search(reason)):
        return "key_refused"
    return "provider_slow" if NO_REPLY.search(reason) else "provider_down"


_MENDS = {
    "provider_limiting": "nothing: it goes on then; EVERKEPT_MODELS__PERMITS_MAX lowers the number of calls at once",
    "key_refused": "set {}_API_KEY to a key that works, and restart",
    "quota_exhausted": "pay at the provider (it is probed by itself), or set {}_API_KEY to another key and restart",
    "model_unknown": "set EVERKEPT_MODEL to a model that this provider has, or {}_BASE_URL, and restart",
    "provider_down": "nothing: it is probed by itself; should the address be wrong, set {}_BASE_URL and restart",
    "provider_slow": "EVERKEPT_MODELS__STRUCTURED_TIMEOUT_S and EVERKEPT_MODELS__TEXT_TIMEOUT_S, or a faster model",
    "embedder_down": "nothing: it is probed by itself; EVERKEPT_EMBEDDER=wordllama does without it",
}


def _moment(us: int) -> str:
    return datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# ---- pace


def slow(conn: Connection, look: Look) -> list[Finding]:
    """The p95 of the day's newest calls against their timeout; a call that had no reply took its whole timeout."""
    since = conn.now() - DAY_US
    newest = {"since": since, "limit": CALLS_MAX}
    models = look.settings.models
    took: dict[float, list[float]] = {models.text_timeout_s: [], models.structured_timeout_s: []}
    for step, took_us in conn.rows(_REPLIES, newest):
        took[_timeout_s(step, look)].append(took_us / 1e6)
    silent = 0
    for kind, history in conn.rows(_TROUBLED, newest):
        for past in json.loads(history):
            if past["at"] > since and past["class"] == "transient" and NO_REPLY.search(past["error"]):
                step = "summary" if kind in ("summarise_episode", "fold_summary") else "facts"
                took[_timeout_s(step, look)].append(_timeout_s(step, look))
                silent += 1
    worst = max(took, key=lambda timeout_s: _p95(took[timeout_s]) / timeout_s)
    p95_s, calls = _p95(took[worst]), len(took[worst])
    if calls < SAMPLES_MIN or p95_s < SLOW_SHARE * worst:
        return []
    name = "STRUCTURED" if worst == models.structured_timeout_s else "TEXT"
    return [Finding(
        cause="provider_slow", what=f"95 of 100 calls take up to {p95_s:.1f} s, and the timeout is {worst:g} s",
        since=since, evidence={"p95_s": round(p95_s, 1), "timeout_s": worst, "calls": calls, "no_reply": silent},
        mend=f"EVERKEPT_MODELS__{name}_TIMEOUT_S={min(3600, 2 * worst):g}, or a faster model",
    )]  # fmt: skip


def _timeout_s(step: str, look: Look) -> float:
    models = look.settings.models
    return models.text_timeout_s if step in TEXT_STEPS else models.structured_timeout_s


def _p95(took: list[float]) -> float:
    """The nearest rank."""
    return sorted(took)[-(-len(took) * 95 // 100) - 1] if took else 0.0


def budgets(conn: Connection, _look: Look) -> list[Finding]:
    midnight = conn.now() // DAY_US * DAY_US
    return [
        Finding(
            cause="budget_spent", what=f"{jobs:,} jobs of project {name}: {error}", since=midnight,
            evidence={"jobs": jobs, "goes_on_at": _moment(midnight + DAY_US)},
            mend=f"everkept projects set {name} models.daily_tokens_max=… (or models.daily_usd_max=…)",
        )
        for name, jobs, error in conn.rows(_OVER_BUDGET)
    ]  # fmt: skip


def limits_without_price(conn: Connection, look: Look) -> list[Finding]:
    """A day's dollars are limited and its tokens are not, and no call counts for a dollar."""
    if look.unpriced is None:
        return []
    found = limited_in_money_alone(conn, look.settings)
    words = found.in_words(look.unpriced)
    if words is None:
        return []
    mends = ["EVERKEPT_MODELS__DAILY_TOKENS_MAX=…"] if found.everywhere else []
    mends += [f"everkept projects set {name} models.daily_tokens_max=…" for name in found.projects[:1]]
    return [Finding(
        cause="price_unknown", what=words, since=None, mend="; ".join(mends),
        evidence={"model": look.unpriced, "projects": len(found.projects)},
    )]  # fmt: skip
