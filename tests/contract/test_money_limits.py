"""A limit in money holds nothing back where nobody knows the model's price, and status and doctor say so (G14)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.factories import SECRET, settings_of

from everkept.bootstrap import open_application
from everkept.models.fakes import ScriptedModel
from everkept.store.money_limits import limited_in_money_alone
from everkept.store.projects import ensure_project, ensure_project_in
from everkept.store.store import Store

DOLLARS = {"models.daily_usd_max": 5.0}
BOTH = {**DOLLARS, "models.daily_tokens_max": 1000}


def test_those_are_named_whose_dollars_are_limited_and_whose_tokens_are_not(tmp_path: Path) -> None:
    store = Store(tmp_path / "everkept.db", threads=False)
    store.open()
    for name, own in (("dollars", DOLLARS), ("both", BOTH), ("neither", {})):
        store.write_now(ensure_project, name, SECRET, own)
    store.write_now(ensure_project_in, "research", "dollars", SECRET, DOLLARS)
    settings = settings_of(tmp_path)
    found = store.read_now(limited_in_money_alone, settings)
    assert (found.everywhere, found.projects) == (False, ["dollars", "research/dollars"])
    of_all = settings_of(tmp_path, models__daily_usd_max=1)
    assert store.read_now(limited_in_money_alone, of_all).everywhere
    with_tokens = settings_of(tmp_path, models__daily_tokens_max=1)
    assert store.read_now(limited_in_money_alone, with_tokens).in_words("m") is None
    store.close()


@pytest.mark.parametrize(("usd", "told"), [(None, True), (0.01, False)])
def test_status_and_doctor_tell_it_of_a_model_without_a_price_alone(
    tmp_path: Path, usd: float | None, told: bool
) -> None:
    settings = settings_of(tmp_path, models__daily_usd_max=3)

    async def go() -> tuple[str | None, str | None, list[str]]:
        model = ScriptedModel([], usd=usd)
        application = await open_application(settings, worker=False, model=model)
        try:
            memory = await application.service()
            whole, confined = await memory.status(), await memory.status(project_only=True)
            found = await memory.diagnose()
        finally:
            await application.close()
        return whole.price_unknown, confined.price_unknown, [finding.cause for finding in found.findings]

    words, confined, causes = asyncio.run(go())
    assert confined is None
    assert ("price_unknown" in causes) is told
    if told:
        assert words is not None
        assert words.startswith("the price of ")
        assert words.endswith(" is unknown: models.daily_usd_max of the installation holds nothing back")
    else:
        assert words is None
