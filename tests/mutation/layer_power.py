"""Layer 3 as the gate asks for it: one recorded run, cut at some moments.

Not collected with the other tests: `tests/crash/power` is the layer's own smoke.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from everkept.prove import power
from everkept.prove.torture import silence

IMAGES = 40
SEEDS = range(1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_power_cut(seed: int, tmp_path: Path) -> None:
    with silence():
        report = power.cut_runs(tmp_path, seed, until=lambda images: images >= IMAGES)
    assert report.not_run is None
    assert [str(violation) for violation in report.violations] == []
    assert report.images >= IMAGES
