"""8 consumers, 4 of them dying at random, over 10,000 changes: each gets every change, in order, with one effect each.

`python -m tests.bench --only deliveries` does it over 100,000.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.load.followers import DEATHS, follow_all
from tests.load.outbox import fill_outbox
from tests.stubs.real_server import serving

from everkept import Memory

CHANGES = 10_000
CONSUMERS = 8
DYING = 4


@pytest.mark.skipif(sys.platform == "win32", reason="nothing can kill itself there as it is killed elsewhere")
def test_every_change_reaches_every_consumer_though_half_of_them_die(tmp_path: Path) -> None:
    home = tmp_path / "home"
    fill_outbox(home, CHANGES)
    with serving(home) as (_, url), Memory.connect(url) as memory:
        followed = asyncio.run(follow_all(url, tmp_path, consumers=CONSUMERS, dying=DYING, changes=CHANGES))
        cursors = {each.name: each.cursor for each in memory.consumers()}
    everything = list(range(1, CHANGES + 1))
    for each in followed:
        assert each.told == everything, each.consumer
        assert cursors[each.consumer] == CHANGES
    assert [each.deaths for each in followed] == [DEATHS] * DYING + [0] * (CONSUMERS - DYING)
