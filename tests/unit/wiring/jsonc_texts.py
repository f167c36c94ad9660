"""Settings files as people write them, at random: comments, trailing commas, any indentation, foreign hooks."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

KEYS = st.sampled_from(["a", "model", "hooks", "mcpServers", "x y", "ü", "//", "version", "everkept"]) | st.text(
    max_size=4
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
HANDLERS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["say done", "", "python hook.py --agent x", "'"])},
    optional={"timeout": st.integers(1, 99)},
)
GROUPS = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLERS, max_size=2)}, optional={"matcher": st.sampled_from(["", "Bash"])}
)
EVENTS = st.sampled_from(["SessionStart", "Stop", "PostToolUse", "PreToolUse", "Other"])
HOOKS = st.dictionaries(EVENTS, st.lists(GROUPS, max_size=2), max_size=3)
SERVERS = st.dictionaries(st.sampled_from(["github", "x", "ever kept"]), st.dictionaries(KEYS, SCALARS, max_size=2))
SETTINGS = st.builds(
    lambda plain, known: {k: v for k, v in plain.items() if k not in ("hooks", "mcpServers")} | known,
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.fixed_dictionaries({}, optional={"hooks": HOOKS, "mcpServers": SERVERS}),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """The text of a settings file that holds an object."""
    value = draw(SETTINGS)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    text = _Writer(draw, newline, draw(st.sampled_from(["  ", "    ", "\t"]))).whole(value)
    return text.replace("\n", newline)


class _Writer:
    def __init__(self, draw: st.DrawFn, newline: str, unit: str) -> None:
        self.draw = draw
        self.newline = newline
        self.unit = unit

    def whole(self, value: Any) -> str:
        return self.gap(0) + self.value(value, 0) + self.gap(0)

    def value(self, value: Any, depth: int) -> str:
        if isinstance(value, dict):
            members = [
                f"{json.dumps(k)}{self.thin()}:{self.thin()}{self.value(v, depth + 1)}" for k, v in value.items()
            ]
            return self.box("{", members, "}", depth)
        if isinstance(value, list):
            return self.box("[", [self.value(each, depth + 1) for each in value], "]", depth)
        return json.dumps(value, ensure_ascii=self.draw(st.booleans()))

    def box(self, opening: str, children: list[str], closing: str, depth: int) -> str:
        multi = self.draw(st.booleans())
        lead = "\n" + self.unit * (depth + 1) if multi else self.draw(st.sampled_from(["", " "]))
        last = "\n" + self.unit * depth if multi else self.draw(st.sampled_from(["", " "]))
        parts = []
        for place, child in enumerate(children):
            comma = "," if place < len(children) - 1 or self.draw(st.booleans()) else ""
            parts.append(lead + self.remark() + child + self.remark() + comma + self.note(multi))
        if not children and not self.draw(st.booleans()):
            return opening + closing
        return opening + "".join(parts) + (self.gap(depth) if not multi else "") + last + closing

    def remark(self) -> str:
        return self.draw(st.sampled_from(["", "", "", " /* r */ ", "/*\n*/"]))

    def note(self, multi: bool) -> str:
        """What stands behind a member: to the end of the line only where the line ends."""
        return self.draw(st.sampled_from(["", "", " // n, }", " /* b */"])) if multi else ""

    def thin(self) -> str:
        return self.draw(st.sampled_from(["", " ", " "]))

    def gap(self, depth: int) -> str:
        return self.draw(st.sampled_from(["", "", " ", "\n", "\n// g {\n", "/* ] */", "\n\n" + self.unit * depth]))
