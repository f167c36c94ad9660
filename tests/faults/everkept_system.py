"""Everkept as a system of the bench: a real process over a folder, with the vendor's adapter against the provider."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.faults.adapter import FEATURES
from tests.faults.provider import Provider, Statement, embedded, read_back, read_statement, say
from tests.faults.wire import WiredSystem, connect, fork_server
from tests.stubs.llm_server import Asked, Json, Reply

MODEL = "openai:gpt-5-mini"
QUICK: dict[str, object] = {"work__tick_s": 0.05, "work__heartbeat_s": 0.2, "models__probe_s": 1}
"""Polls that a test does not wait for; every limit and every time that decides anything keeps its default."""


class EverkeptSystem(WiredSystem):
    """`settings`: `group__name=value`, over the defaults. `die_at`: `point:n`, armed before the store is opened."""

    name = "everkept"
    has = frozenset(FEATURES)

    def __init__(
        self, home: Path, provider: Provider | None, *, die_at: str | None = None, worker: bool = True,
        project: str = "default", limits: dict[str, int] | None = None, **settings: object,
    ) -> None:  # fmt: skip
        super().__init__()
        self.home = home
        self._options = {
            "home": str(home), "worker": worker, "project": project, "die_at": die_at or "", "limits": limits or {},
            "environment": _environment(provider, {**QUICK, **settings}),
        }  # fmt: skip
        self.passed_s = 0.0
        """Time that passed on command; it goes on where it was when the process starts again."""
        self.set_s = 0.0

    def open(self) -> None:
        assert self._wire is None, "it is open"
        port = fork_server(sys.executable, "-m", "tests.faults.everkept_process")
        options = {**self._options, "passed_s": self.passed_s, "set_s": self.set_s}
        self._options["die_at"] = ""
        wire = connect(port, options)
        self._wire, self.version = wire, wire.hello["version"]

    def pass_time(self, seconds: float) -> None:
        """Also while it is down."""
        self.passed_s += seconds
        if self._wire is not None:
            super().pass_time(seconds)

    def set_clock(self, seconds: float) -> None:
        self.set_s += seconds
        if self._wire is not None:
            super().set_clock(seconds)

    # ---- only of this system

    def arm(self, point: str, at: int = 1, *, how: str = "die") -> None:
        """Let it `die`, `raise` or `hold` the `at`-th time at a point of `ports.faults.POINTS`, or at a `statement`."""
        self.wire.call("arm", point=point, at=at, how=how)

    def let_go(self) -> None:
        """What was held goes on."""
        self.wire.call("let_go")

    def query(self, sql: str) -> list[list[Any]]:
        """Rows of its database."""
        rows: list[list[Any]] = self.wire.call("query", sql=sql)
        return rows

    def execute(self, sql: str) -> int:
        """Change rows that no verb changes; how many."""
        return int(self.wire.call("execute", sql=sql))

    def call(self, method: str, **arguments: Any) -> Any:
        """A method of `Memory` that is no verb of the bench."""
        return self.wire.call("call", method=method, arguments=arguments)


def _environment(provider: Provider | None, settings: dict[str, object]) -> dict[str, str]:
    found = {f"EVERKEPT_{name.upper()}": _text(value) for name, value in settings.items()}
    if provider is not None:
        found |= {"OPENAI_API_KEY": "sk-no-key", "OPENAI_BASE_URL": provider.url}
        found.setdefault("EVERKEPT_MODEL", MODEL)
    return found


def _text(value: object) -> str:
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if isinstance(value, bool | None)
        else str(value)
    )


# ---- what the provider says to this system's questions


def mind(asked: Asked) -> Reply:
    """Facts with their quotes, a summary, "the later one holds", or vectors."""
    if asked.path.endswith("/embeddings"):
        texts = asked.body["input"]
        return Json(value={"data": [{"index": n, "embedding": embedded(text)} for n, text in enumerate(texts)]})
    lines = _lines(asked)
    match asked.step:
        case "facts":
            said = [(line, statement) for line in lines if (statement := read_statement(line.get("text", "")))]
            return say({"facts": [_fact(line, statement) for line, statement in said]})
        case "conflicts":
            return say({"verdicts": [{"pair": line["pair"], "verdict": _verdict(line)} for line in lines]})
        case _:
            texts = [str(line.get("text") or line.get("summary") or "") for line in lines]
            return say({"summary": "They said: " + " ".join(texts)[:400] + ".", "learnings": []})


def _verdict(pair: dict[str, Any]) -> str:
    """Of two statements about one thing that can only be one, the later holds."""
    earlier, later = (read_back(pair[side]["statement"]) for side in ("earlier", "later"))
    return "new" if earlier == later and earlier is not None else "both"


def _lines(asked: Asked) -> list[dict[str, Any]]:
    """The lines of JSON that the question shows, each one thing."""
    text = next(m["content"] for m in asked.body["messages"] if m["role"] == "user")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def _fact(line: dict[str, Any], statement: Statement) -> dict[str, Any]:
    return {
        "entity": "the speaker", "predicate": statement.predicate, "object": statement.object,
        "statement": statement.text, "quote": statement.quote, "seq": line["seq"], "confidence": 0.95,
        "valid_from": "", "valid_until": "", "change": statement.change, "replaces": "",
        "holds": "one" if statement.single else "many", "kind": statement.kind, "object_type": "other",
    }  # fmt: skip
