"""Limits in money that hold nobody back where a model's price is unknown: its calls count for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.config import Settings
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.project_names import shown

LISTED_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyAlone:
    """Who may spend money for so much a day, and tokens without a limit."""

    everywhere: bool
    """The installation says so, for every project without a limit of its own."""
    projects: list[str]
    """Those that say so themselves, `LISTED_MAX` at most."""

    def in_words(self, model: str) -> str | None:
        """Why they spend without a limit where the price of `model` is unknown; None where nobody does."""
        who = [*(["the installation"] if self.everywhere else []), *self.projects]
        if not who:
            return None
        return f"the price of {model} is unknown: models.daily_usd_max of {', '.join(who)} holds nothing back"


_OWN = text(f"""
select {shown("p")}, p.settings from projects p
where p.settings like '%"models.daily_usd_max"%' and p.erased_at is null and p.merged_into is null
order by p.id limit {LISTED_MAX}""")


def limited_in_money_alone(conn: Connection, base: Settings) -> MoneyAlone:
    own = [name for name, settings in conn.rows(_OWN) if _is_alone(effective(base, settings))]
    return MoneyAlone(everywhere=_is_alone(base), projects=own)


def _is_alone(settings: Settings) -> bool:
    return settings.models.daily_usd_max is not None and settings.models.daily_tokens_max is None
