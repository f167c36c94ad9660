"""What a planted bug is: what is broken, which guarantee that voids, and which layer of the proof must see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Layer = Literal["model", "kill", "power", "contract", "faults"]
LAYERS: dict[Layer, tuple[str, ...]] = {
    "model": ("tests/crash/model/",),
    "kill": ("tests/crash/kill/", "tests/mutation/layer_kill.py"),
    "power": ("tests/crash/power/", "tests/mutation/layer_power.py"),
    "contract": ("tests/contract/", "tests/nats/", "tests/unit/"),
    "faults": ("tests/faults/",),
}
"""Where the tests of a layer stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One bug: in `file` (below src/everkept), `old` becomes `new`."""

    name: str
    guarantee: str
    layer: Layer
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Node ids that must be green without it, and one of which must fail with it: few and fast."""
    fails_with: tuple[str, ...] = ("AssertionError", "Failed")
    """Classes of errors that count as caught; `Failed` is what pytest.raises says where nothing was raised."""
