"""Doctor names causes: each has a planted case that yields it and no other, and a healthy store yields none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import text
from tests.contract.test_doctor_of_a_server import PLANTED as ON_A_SERVER
from tests.contract.test_doctor_of_a_server import SAFE
from tests.databases import UrlOf
from tests.factories import HOUR_S, MINUTE_S, US, World, open_store, plain_reply, settings_of
from tests.postgres import TestedDatabase, ordinary_role

from everkept.capture.agents.keeping import prepare
from everkept.derive.tools import Tools
from everkept.domain.erase import SubjectTarget
from everkept.domain.jobs import Uses
from everkept.domain.nats_seen import NatsSeen, StreamSeen
from everkept.domain.session import AgentEvent
from everkept.domain.signatures import secret_of
from everkept.errors import ExtraMissing, ModelError, ProviderDown, RateLimited, Refused, Transient
from everkept.models.embedders import OpenAIEmbedder
from everkept.ports.clock import VirtualClock
from everkept.ports.models import Question
from everkept.store.aliases import resolve, trust
from everkept.store.changes import NewChange, acknowledge, prune_changes, record_changes
from everkept.store.diagnosis import place
from everkept.store.diagnosis.causes import CAUSES, Finding
from everkept.store.diagnosis.diagnose import Diagnosis, diagnose, diagnose_database, diagnose_file
from everkept.store.diagnosis.look import AgentsAround, Look, WiredAgent, look_around
from everkept.store.diagnosis.weather import cause_of
from everkept.store.erase import erase
from everkept.store.facts import retire_by_hand
from everkept.store.migrate import SCHEMA, revision
from everkept.store.moving.away import begin_move
from everkept.store.moving.mover import move_memory
from everkept.store.pauses import pause
from everkept.store.projects import ensure_project, ensure_subject
from everkept.store.sessions import SessionBatch, SessionHeader, append_session
from everkept.store.sqlite import choose_driver
from everkept.store.sqlite_database import SqliteDatabase
from everkept.store.tables import metadata
from everkept.store.webhooks import NewWebhook, add_webhook, remove_webhook
from everkept.work.maintenance import PeriodicTask

DAY_S = 24 * HOUR_S


# ---- a model that reads


@dataclass(frozen=True, kw_only=True)
class Said:
    """What somebody says, and the fact that a model makes of it."""

    object: str
    when: str = ""
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return f"I live in {self.object}{self.when}"


class Reader:
    """Makes one fact of each statement that it knows; fails as it is told, by step, after taking its time."""

    def __init__(self, *known: Said, fails: dict[str, ModelError] | None = None) -> None:
        self.known = known
        self.fails = fails or {}
        self.clock: VirtualClock | None = None
        self.takes_s = 0.0

    def __call__(self, question: Question) -> dict[str, Any] | Exception:
        if self.clock is not None:
            self.clock.advance(self.takes_s)
        if question.step in self.fails:
            return self.fails[question.step]
        if question.step != "facts":
            return plain_reply(question)
        inside = question.user.partition("<transcript>\n")[2].partition("\n</transcript>")[0]
        turns = [json.loads(line) for line in inside.splitlines()]
        return {"facts": [_fact(turn, said) for turn in turns for said in self.known if said.text == turn["text"]]}


def _fact(turn: dict[str, Any], said: Said) -> dict[str, Any]:
    plain = {
        "entity": turn["speaker"], "predicate": "lives in", "object": said.object,
        "statement": f"{turn['speaker']} lives in {said.object}.", "quote": said.text, "seq": turn["seq"],
        "confidence": 0.9, "valid_from": "", "valid_until": "", "change": "state", "replaces": "", "holds": "one",
        "kind": "entity", "object_type": "place",
    }  # fmt: skip
    return {**plain, **said.fields}


def down(error: ModelError) -> Reader:
    """A provider that fails every question in the same way."""
    return Reader(fails=dict.fromkeys(("facts", "summary", "fold", "conflicts"), error))


# ---- a store to plant something in


class Patient:
    """In the file at `path`, or on `server`."""

    def __init__(self, path: Path, home: Path, server: TestedDatabase | None) -> None:
        self.path = path
        self.server = server
        self.home = home
        self.clock = VirtualClock()
        self.settings = settings_of(home)
        self.worlds: list[World] = []

    def world(self, **kw: Any) -> World:
        world = World(open_store(self.server or self.path, self.clock), self.home, self.clock, **kw)
        self.settings = world.settings
        self.worlds.append(world)
        return world

    def remember(self, *said: Said, fails: dict[str, ModelError] | None = None) -> World:
        """Each statement in a thread of its own, a minute apart, worked by a model that reads them."""
        world = self.world(script=Reader(*said, fails=fails))
        for n, statement in enumerate(said):
            world.add(f"said-{n}", statement.text)
            world.end(f"said-{n}")
            world.live(MINUTE_S)
        return world

    def close(self) -> None:
        while self.worlds:
            world = self.worlds.pop()
            world.close()
            world.store.close()

    def look(self, **kw: Any) -> Look:
        pools: dict[Uses, str | None] = {"local": None, "model": "fake", "embedder": None}
        return Look(
            **{
                "settings": self.settings,
                "name": self.server.name if self.server else str(self.path),
                "around": None if self.server else look_around(self.path),
                "pools": pools,
                **kw,
            }
        )

    def diagnose(self, *, beat: bool = True, **kw: Any) -> Diagnosis:
        """Of the open store; `beat`: its worker is alive."""
        [world] = self.worlds
        if beat:
            world.runner().heartbeat()
        return world.read(diagnose, self.look(**kw))

    def diagnose_file(self, **kw: Any) -> Diagnosis:
        """Of the store, which nobody has open."""
        self.close()
        if self.server:
            return diagnose_database(self.look(**kw), self.clock, self.server)
        return diagnose_file(self.look(**kw), self.clock)

    def change(self, *statements: str) -> None:
        """Somebody else changes the store."""
        raw = (
            self.server.connect(read_only=False)
            if self.server
            else choose_driver().module.connect(str(self.path), isolation_level=None)
        )
        for statement in statements:
            raw.execute(statement)
        raw.close()


@pytest.fixture
def patient(tmp_path: Path, each_database: UrlOf) -> Iterator[Patient]:
    path = tmp_path / "everkept.db"
    served = each_database(path).startswith("postgresql:")
    made = Patient(path, tmp_path / "home", TestedDatabase(ordinary_role() + SAFE) if served else None)
    if not served:
        open_store(path, made.clock).close()
    yield made
    made.close()


def chat(world: World, threads: int) -> None:
    """Threads of one message, ended."""
    for n in range(threads):
        world.add(f"chat-{n}", f"Hello number {n}", subject=f"person-{n % 3}")
        world.end(f"chat-{n}")


def causes(found: Diagnosis) -> list[str]:
    return [finding.cause for finding in found.findings]


# ---- the planted cases

Plant = Callable[[Patient], Diagnosis]
PLANTED: dict[str, Plant] = {}


IN_A_FILE: set[str] = set()
"""Causes that no server has: it lies elsewhere, or keeps its pages and references whole itself."""


def planted(plant: Plant) -> Plant:
    """The function's name is the cause that it plants."""
    PLANTED[plant.__name__] = plant
    return plant


def planted_in_a_file(plant: Plant) -> Plant:
    IN_A_FILE.add(plant.__name__)
    return planted(plant)


def on_what_it_lies_in(causes: Iterable[str]) -> list[Any]:
    """For `parametrize`."""
    only = pytest.mark.only_on("sqlite", reason="it lies in a file; test_doctor_of_a_server has what lies in a server")
    return [pytest.param(cause, marks=only) if cause in IN_A_FILE else cause for cause in causes]


@planted_in_a_file
def store_missing(patient: Patient) -> Diagnosis:
    patient.path.unlink()
    return patient.diagnose_file()


@planted_in_a_file
def store_newer(patient: Patient) -> Diagnosis:
    patient.change(f"pragma user_version = {SCHEMA + 1}")
    return patient.diagnose_file()


@planted_in_a_file
def schema_newer(patient: Patient) -> Diagnosis:
    patient.change(
        "delete from schema_support",
        f"insert into schema_support(schema, oldest_program) values({SCHEMA + 1}, {SCHEMA})",
        f"update alembic_version set version_num = '{revision(SCHEMA + 1)}'",
        f"pragma user_version = {SCHEMA + 1}",
    )
    return patient.diagnose_file()


@planted_in_a_file
def store_foreign(patient: Patient) -> Diagnosis:
    patient.path.unlink()
    patient.change("create table recipes(id integer)")
    patient.path.chmod(0o600)
    return patient.diagnose_file()


@planted_in_a_file
def store_corrupt(patient: Patient) -> Diagnosis:
    chat(world := patient.world(), 30)
    world.run_until_idle()
    patient.close()
    whole = bytearray(patient.path.read_bytes())
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 8 * 4096] = b"\xa5" * 8 * 4096
    patient.path.write_bytes(whole)
    return patient.diagnose_file()


@planted_in_a_file
def store_locked(patient: Patient) -> Diagnosis:
    other = choose_driver().module.connect(str(patient.path), isolation_level=None)
    other.execute("begin immediate")
    try:
        return patient.diagnose_file()
    finally:
        other.close()


@planted_in_a_file
def references_broken(patient: Patient) -> Diagnosis:
    patient.change("insert into fact_events(fact_id, stream_id, seq) values(7, 7, 7)")
    return patient.diagnose_file()


@planted_in_a_file
def full_text_broken(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon"))
    patient.close()
    patient.change("delete from passage_text where rowid = 1")
    assert causes(patient.diagnose_file()) == [], "only --full reads it"
    return patient.diagnose_file(full=True)


@planted_in_a_file
def migration_pending(patient: Patient) -> Diagnosis:
    patient.change(f"pragma user_version = {SCHEMA - 1}")
    return patient.diagnose_file()


@planted_in_a_file
def library_old(patient: Patient) -> Diagnosis:
    around = replace(look_around(patient.path), degraded="SQLite 3.45.1 has a WAL bug")
    return patient.diagnose_file(around=around)


@planted_in_a_file
def network_disk(patient: Patient) -> Diagnosis:
    around = replace(look_around(patient.path), network="it lies on a network file system (nfs4)")
    return patient.diagnose_file(around=around)


@planted_in_a_file
def open_to_others(patient: Patient) -> Diagnosis:
    patient.path.chmod(0o644)
    return patient.diagnose_file()


@planted_in_a_file
def disk_full(patient: Patient) -> Diagnosis:
    return patient.diagnose_file(around=replace(look_around(patient.path), free_bytes=30 << 20), failing="disk is full")


@planted
def writes_fail(patient: Patient) -> Diagnosis:
    patient.world()
    return patient.diagnose(failing="the database could not be written: attempt to write a readonly database")


@planted_in_a_file
def memory_moved(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon"))
    patient.close()
    move_memory(SqliteDatabase(patient.path), SqliteDatabase(patient.path.with_name("new.db")), patient.clock)
    return patient.diagnose_file()


@planted_in_a_file
def move_unfinished(patient: Patient) -> Diagnosis:
    patient.world().write(begin_move, "m1", "postgresql://db/everkept")
    patient.clock.advance(2 * HOUR_S)
    return patient.diagnose()


@planted_in_a_file
def copies_kept(patient: Patient) -> Diagnosis:
    patient.world().do(
        "insert into erasures(project_id, kind, asked_at, done_at, residue) values(1, 'subject', ?, ?, 0)",
        patient.clock.now_us(), patient.clock.now_us(),
    )  # fmt: skip
    copy = patient.path.with_name("everkept.before-2.db")
    around = replace(look_around(patient.path), copies=((copy, patient.clock.now_us() - US),))
    return patient.diagnose(around=around)


@planted_in_a_file
def several_machines(patient: Patient) -> Diagnosis:
    world = patient.world()
    for worker in ("box-17-ab12", "laptop-23-cd34"):
        world.do("insert into workers values(?, 4, ?, ?)", worker, world.clock.now_us(), world.clock.now_us())
    return patient.diagnose(beat=False)


@planted
def clock_moved(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon"))
    patient.clock.step_wall(-HOUR_S)
    return patient.diagnose()


@planted
def no_worker(patient: Patient) -> Diagnosis:
    world = patient.remember(Said(object="Lisbon"))
    world.runner().heartbeat()
    world.add("later", "I have a dog")
    world.tick(HOUR_S)
    return patient.diagnose(beat=False)


@planted
def lease_of_dead_worker(patient: Patient) -> Diagnosis:
    world = patient.world()
    world.schedule("job")
    world.claim("box-1-aa")
    world.tick(HOUR_S)
    return patient.diagnose()


@planted
def worker_too_old(patient: Patient) -> Diagnosis:
    world = patient.world()
    world.schedule("job", kind="dream.v2")
    world.run_until_idle()
    return patient.diagnose()


@planted
def sweep_failing(patient: Patient) -> Diagnosis:
    world = patient.world()

    def fail(*_: Any) -> tuple[int, int]:
        raise Transient("no such function")

    world.runner(tasks=[PeriodicTask(name="sweep_dreams", every_s=60, chunk=fail)])
    world.maintain()
    return patient.diagnose()


@planted
def backlog_growing(patient: Patient) -> Diagnosis:
    chat(world := patient.world(script=Reader()), 30)
    for _ in range(9):
        world.step()
    world.tick(10 * MINUTE_S)
    return patient.diagnose()


@planted
def paused(patient: Patient) -> Diagnosis:
    patient.world().write(pause, "provider", "openai", "prices", "hand")
    return patient.diagnose()


@planted
def input_kills_worker(patient: Patient) -> Diagnosis:
    world = patient.world()
    world.schedule("job")
    for _ in range(world.settings.work.crashes_max):
        world.claim("box-1-aa")
        world.tick(HOUR_S)
        world.maintain()
    return patient.diagnose()


@planted
def dead_letters(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon"), fails={"summary": Refused("I cannot help with that")})
    return patient.diagnose()


@planted
def facts_failing(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon"), fails={"facts": Refused("I cannot help with that")})
    return patient.diagnose()


class NoWords:
    """Word vectors whose package is gone."""

    name = "wordllama"
    dim = 256

    def lookup(self, _words: Sequence[str]) -> Any:
        raise ExtraMissing("the package wordllama is not installed")


@planted
def no_vectors(patient: Patient) -> Diagnosis:
    world = patient.world()
    world.runner()._tools = Tools(model=None, words=NoWords(), embedder=None)
    world.add("t", "Hello there")
    world.live(HOUR_S, every=60)
    return patient.diagnose()


UNCLEAR = {"holds": "unclear", "predicate": "keeps"}


@planted
def conflict_unjudged(patient: Patient) -> Diagnosis:
    two = [Said(object=place, fields=UNCLEAR) for place in ("Lisbon", "Porto")]
    patient.remember(*two, fails={"conflicts": Refused("I cannot help with that")})
    return patient.diagnose(subject="ana")


@planted
def fact_unsettled(patient: Patient) -> Diagnosis:
    two = [Said(object=place, fields=UNCLEAR) for place in ("Lisbon", "Porto")]
    world = patient.remember(two[0])
    world.model = replace_script(world, Reader(*two))
    world.add("said-1", two[1].text)
    world.end("said-1")
    while not world.value("select count(*) from verdicts"):
        assert world.step()
    return patient.diagnose(subject="ana")


def replace_script(world: World, script: Reader) -> Any:
    assert world.model is not None
    world.model._answer = script
    return world.model


def erase_ana(world: World) -> None:
    subject = world.write(ensure_subject, world.project.id, "ana")
    world.write(erase, world.project.id, SubjectTarget(subject=subject))


@planted
def fact_erased(patient: Patient) -> Diagnosis:
    erase_ana(patient.remember(Said(object="Lisbon")))
    return patient.diagnose()


@planted
def erase_unfinished(patient: Patient) -> Diagnosis:
    erase_ana(world := patient.remember(Said(object="Lisbon")))
    world.tick(20 * MINUTE_S)
    return patient.diagnose()


def erased(patient: Patient, **found: Any) -> Diagnosis:
    erase_ana(world := patient.remember(Said(object="Lisbon")))
    world.live(MINUTE_S)
    assert causes(patient.diagnose()) == []
    for name, value in found.items():
        world.do(f"update erasures set {name} = ?", value)
    return patient.diagnose()


@planted
def erase_residue(patient: Patient) -> Diagnosis:
    return erased(patient, residue=3)


@planted
def erase_unclean(patient: Patient) -> Diagnosis:
    return erased(patient, unclean="a reader kept the log of the file from being emptied")


# ---- providers


def weather(patient: Patient, error: ModelError, **kw: Any) -> Diagnosis:
    chat(world := patient.world(script=down(error), **kw), 5)
    world.live(2 * HOUR_S, every=300)
    return patient.diagnose()


@planted
def provider_limiting(patient: Patient) -> Diagnosis:
    return weather(patient, RateLimited("status 429", retry_after_s=7200))


@planted
def key_refused(patient: Patient) -> Diagnosis:
    return weather(patient, ProviderDown("the provider answered 401: Incorrect API key provided"))


@planted
def quota_exhausted(patient: Patient) -> Diagnosis:
    return weather(patient, ProviderDown("the provider answered 429: You exceeded your current quota"))


@planted
def model_unknown(patient: Patient) -> Diagnosis:
    return weather(patient, ProviderDown("the provider answered 404: The model `x` does not exist"))


@planted
def provider_down(patient: Patient) -> Diagnosis:
    return weather(patient, Transient("the provider answered 503: overloaded"))


@planted
def provider_slow(patient: Patient) -> Diagnosis:
    reader = Reader()
    reader.clock, reader.takes_s = patient.clock, 28.0
    chat(world := patient.world(script=reader, models__structured_timeout_s=30), 20)
    world.run_until_idle()
    assert world.value("select count(*) from windows where facts_at is null or summary_at is null") == 0
    return patient.diagnose()


@planted
def embedder_down(patient: Patient) -> Diagnosis:
    away = httpx2.MockTransport(lambda _: httpx2.Response(503))
    embedder = OpenAIEmbedder(model="m", dim=4, api_key="k", transport=away)
    pools: dict[Uses, str | None] = {"local": None, "model": "fake", "embedder": embedder.pool}
    world = patient.world(script=Reader())
    runner = world.runner(pools=pools)
    runner._tools = replace(runner._tools, embedder=embedder)
    chat(world, 3)
    world.live(2 * HOUR_S, every=300)
    return patient.diagnose(pools=pools)


@planted
def budget_spent(patient: Patient) -> Diagnosis:
    chat(world := patient.world(script=Reader(), project_settings={"models.daily_tokens_max": 1}), 5)
    world.live(HOUR_S, every=60)
    return patient.diagnose()


@planted
def price_unknown(patient: Patient) -> Diagnosis:
    patient.world(project_settings={"models.daily_usd_max": 5.0})
    return patient.diagnose(unpriced="openai:nobody-knows")


# ---- nothing scheduled


def said_and_left(patient: Patient, **project: Any) -> World:
    world = patient.world(project_settings=project)
    world.add("t", "I live in Lisbon")
    world.live(HOUR_S, every=300)
    return world


@planted
def memory_off(patient: Patient) -> Diagnosis:
    said_and_left(patient, **{"memory.enabled": False})
    return patient.diagnose()


@planted
def idle_null(patient: Patient) -> Diagnosis:
    said_and_left(patient, **{"window.idle_s": None})
    return patient.diagnose()


@planted
def timer_missing(patient: Patient) -> Diagnosis:
    world = patient.world()
    world.add("t", "I live in Lisbon")
    world.do("delete from jobs where kind = 'open_window'")
    world.live(HOUR_S, every=300)
    return patient.diagnose()


# ---- facts there but not recallable


@planted
def fact_below_floor(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon", fields={"confidence": 0.3}))
    return patient.diagnose()


@planted
def fact_retired(patient: Patient) -> Diagnosis:
    world = patient.remember(Said(object="Lisbon"))
    world.write(retire_by_hand, world.project.id, 1, "by hand")
    return patient.diagnose()


@planted
def fact_superseded(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon"), Said(object="Porto"))
    assert causes(patient.diagnose()) == [], "the later one is recalled"
    return patient.diagnose(subject="ana")


@planted
def fact_not_yet_valid(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon", when=" from 2031-05-01 on", fields={"valid_from": "2031-05-01"}))
    return patient.diagnose()


@planted
def fact_no_longer_valid(patient: Patient) -> Diagnosis:
    patient.remember(
        Said(
            object="Lisbon",
            when=" from 2019-01-01 to 2020-01-01",
            fields={"valid_from": "2019-01-01", "valid_until": "2020-01-01"},
        )
    )
    return patient.diagnose()


@planted
def fact_not_indexed(patient: Patient) -> Diagnosis:
    world = patient.remember(Said(object="Lisbon"))
    world.do("delete from passages where kind = 'fact'")
    return patient.diagnose()


@planted
def facts_elsewhere(patient: Patient) -> Diagnosis:
    patient.remember(Said(object="Lisbon"))
    return patient.diagnose(subject="Ana")


# ---- coding agents


def with_agents(patient: Patient, *wired: WiredAgent, **around: Any) -> Diagnosis:
    signs = around.pop("signs", ())
    return patient.diagnose_file(agents=AgentsAround(wired=wired, place="/code/app", signs=signs, **around))


@planted
def hooks_broken(patient: Patient) -> Diagnosis:
    return with_agents(patient, WiredAgent(name="codex", problems=("no hook at Stop", "/opt/python is gone")))


@planted
def hooks_untrusted(patient: Patient) -> Diagnosis:
    return with_agents(patient, WiredAgent(name="codex", untrusted=("SessionStart", "Stop")))


def heard(patient: Patient) -> World:
    """A session of Claude Code that its hooks told of, now."""
    world = patient.world()
    now = world.clock.now_us()
    event = AgentEvent(kind="prompt", agent="claude-code", session="s1", key="k", source="hook", text="hello",
                       occurred_at_us=now)  # fmt: skip
    ready = prepare([event], secret=world.project.secret, now_us=now)
    header = SessionHeader(agent="claude-code", native="s1", origin="hook")
    batch = SessionBatch(project=world.project.id, header=header, events=ready, base=world.settings, mark="m")
    world.write(append_session, batch)
    return world


@planted
def hooks_silent(patient: Patient) -> Diagnosis:
    heard(patient)
    now = patient.clock.now_us()
    fresh = with_agents(patient, WiredAgent(name="claude-code", used_at=now + 60 * US))
    assert causes(fresh) == [], "its hooks told of that work"
    return with_agents(patient, WiredAgent(name="claude-code", used_at=now + 2 * 3600 * US))


@planted
def spool_waiting(patient: Patient) -> Diagnosis:
    now = patient.clock.now_us()
    assert causes(with_agents(patient, waiting=3, oldest_at=now - 60 * US)) == []
    return with_agents(patient, waiting=3, oldest_at=now - 3600 * US)


@planted
def records_aside(patient: Patient) -> Diagnosis:
    return with_agents(patient, aside=2)


@planted
def rules_unusable(patient: Patient) -> Diagnosis:
    return with_agents(patient, unusable=("kubernetes-secret-yaml",))


SIGNS = (("remote", "example.com/acme/app"), ("path", "/code/app"))
MARKER = ("marker", "shared in example.com/acme/app")


@planted
def marker_untrusted(patient: Patient) -> Diagnosis:
    world = patient.world()
    world.write(resolve, SIGNS, "example.com/acme/app", b"s" * 32)
    unmarked = with_agents(patient, WiredAgent(name="codex"), signs=SIGNS)
    assert causes(unmarked) == []
    found = with_agents(patient, WiredAgent(name="codex"), signs=(MARKER, *SIGNS))
    assert "names the project shared, which nobody trusted; project example.com/acme/app is used" in str(found.findings)
    trusting = patient.world()
    trusting.write(ensure_project, "shared", b"s" * 32)
    trusting.write(trust, *MARKER, "shared")
    assert causes(with_agents(patient, WiredAgent(name="codex"), signs=(MARKER, *SIGNS))) == []
    patient.change("delete from project_aliases where kind = 'marker'")
    return found


@planted
def folder_unknown(patient: Patient) -> Diagnosis:
    assert causes(with_agents(patient, signs=SIGNS)) == [], "where no agent is wired, no folder has to be known"
    return with_agents(patient, WiredAgent(name="codex"), signs=SIGNS)


# ---- deliveries


def hooked(patient: Patient, *changes: str) -> World:
    """A webhook with three changes before it, and what became of it."""
    world = patient.world()
    new = NewWebhook(name="crm", url="https://crm.example", secret=secret_of(b"x" * 32), after=0)
    kinds = [NewChange(kind="fact.added", ref="fct_1")] * 3
    world.write(record_changes, world.project.id, kinds)
    world.write(add_webhook, world.project.id, new)
    for change in changes:
        world.write(lambda conn, sql=change: conn.run(text(sql), {"now": world.clock.now_us()}))
    return world


@planted
def webhook_dead(patient: Patient) -> Diagnosis:
    hooked(patient, "update webhooks set state = 'dead', reason = 'no delivery for 3 days', failing_since = :now")
    return patient.diagnose()


@planted
def webhook_failing(patient: Patient) -> Diagnosis:
    world = hooked(patient, "update webhooks set tries = 9, failing_since = :now, last_error = 'it answered 500'")
    assert causes(patient.diagnose()) == [], "it may only be restarting"
    world.tick(61)
    return patient.diagnose()


@planted
def webhook_rejected(patient: Patient) -> Diagnosis:
    parked = "insert into parked_changes(webhook_id, seq, status, reason, tries, at) values(1, 1, 422, 'no', 5, :now)"
    hooked(patient, parked)
    return patient.diagnose()


@planted
def consumer_behind(patient: Patient) -> Diagnosis:
    world = hooked(patient)
    world.write(remove_webhook, world.project.id, 1)
    world.write(acknowledge, world.project.id, "mirror", 1)
    world.tick(11)
    world.write(prune_changes, 10)
    return patient.diagnose()


def changes_of_nats(**more: Any) -> NatsSeen:
    """A cluster in which nothing is wrong but what is said."""
    stream = {"name": "EVERKEPT_CHANGES", "made_at": 0, "replicas": 3, "messages": 1, "differs": ()}
    return NatsSeen(server="nats.example:4222", streams=(StreamSeen(**{**stream, **more}),))


@planted
def nats_unreachable(patient: Patient) -> Diagnosis:
    patient.world()
    return patient.diagnose(nats=NatsSeen(server="nats.example:4222", trouble="connection refused"))


@planted
def nats_stream_differs(patient: Patient) -> Diagnosis:
    patient.world()
    return patient.diagnose(nats=changes_of_nats(differs=("it is kept in memory",)))


@planted
def nats_one_replica(patient: Patient) -> Diagnosis:
    patient.world()
    return patient.diagnose(nats=changes_of_nats(replicas=1))


@planted
def nats_stream_lost(patient: Patient) -> Diagnosis:
    """Three changes were published, and the stream that was made since has the third alone."""
    world = patient.world()
    world.write(record_changes, world.project.id, [NewChange(kind="fact.added", ref="fct_1")] * 3)
    world.write(acknowledge, world.project.id, "nats", 3)
    made_at = world.clock.now_us() + 1
    world.tick(1)
    return patient.diagnose(nats=replace(changes_of_nats(made_at=made_at), published={"default": 1}))


# ---- the tests


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "BUSY_S", 0.05)


@pytest.mark.parametrize("cause", on_what_it_lies_in(PLANTED))
def test_planted_cause_is_found_and_no_other(patient: Patient, cause: str) -> None:
    found = PLANTED[cause](patient)
    assert causes(found) == [cause]
    [finding] = found.findings
    assert finding.what
    assert finding.mend
    assert finding.since is None or finding.since <= patient.clock.now_us() or cause == "clock_moved"


def test_every_cause_is_planted_and_says_what_it_means() -> None:
    assert {*PLANTED, *(plant.__name__ for plant in ON_A_SERVER)} == set(CAUSES)
    assert all(cause.title and cause.means and cause.mends for cause in CAUSES.values())
    assert {name for cause in CAUSES.values() for name in cause.explained_by} <= set(CAUSES)


BLIND = {"store_missing", "store_newer", "store_foreign"}


SEEN = ("store_corrupt", "migration_pending", "store_locked")


@pytest.mark.parametrize("cause", on_what_it_lies_in(sorted({*BLIND, *SEEN})))
def test_could_not_look_and_found_something_are_told_apart(patient: Patient, cause: str) -> None:
    assert PLANTED[cause](patient).looked is (cause not in BLIND)


@pytest.mark.only_on("sqlite", reason="a reader of a server waits for no writer")
def test_a_store_that_cannot_be_read_for_a_lock_was_not_looked_at(patient: Patient) -> None:
    other = choose_driver().module.connect(str(patient.path), isolation_level=None)
    other.execute("pragma locking_mode = exclusive")
    other.execute("begin exclusive")
    other.execute("insert into counters values('x', 1)")
    other.execute("commit")
    found = patient.diagnose_file()
    other.close()
    assert (causes(found), found.looked) == (["store_locked"], False)


@pytest.mark.only_on("sqlite", reason="it is about a file")
def test_a_file_that_is_no_database_is_damaged(patient: Patient) -> None:
    patient.path.write_bytes(b"not a database at all " * 1000)
    found = patient.diagnose_file()
    assert (causes(found), found.looked) == (["store_corrupt"], True)


def healthy(patient: Patient) -> World:
    """A store in use: facts that were replaced, repeated, corrected and retired beside others that hold."""
    said = [Said(object=place) for place in ("Lisbon", "Porto", "Porto")]
    world = patient.remember(
        *said,
        Said(object="Rome", fields={"confidence": 0.2}),
        Said(object="Oslo", when=" from 2031-01-01 on", fields={"valid_from": "2031-01-01"}),
    )
    world.write(retire_by_hand, world.project.id, 1, "by hand")
    chat(world, 12)
    world.live(HOUR_S, every=60)
    erase_ana_s_friend(world)
    world.add("open", "still talking", subject="bo")
    world.set_thread("open", '{"window.idle_s": 900}')
    world.live(5 * MINUTE_S, every=60)
    return world


def erase_ana_s_friend(world: World) -> None:
    world.write(
        erase, world.project.id, SubjectTarget(subject=world.write(ensure_subject, world.project.id, "person-1"))
    )


def test_a_healthy_store_has_nothing_to_mend(patient: Patient) -> None:
    world = healthy(patient)
    found = patient.diagnose(full=True)
    assert found.findings == []
    assert found.looked
    assert found.held_back["retired"] == 1
    assert [worker.id for worker in found.workers] == ["w1"]
    assert world.value("select count(*) from facts where live") >= 1
    found = patient.diagnose_file(full=True)
    assert found.findings == []
    if patient.server is None:
        assert (found.store["journal_mode"], found.store["mode"]) == ("wal", "600")


def test_a_new_store_has_nothing_to_mend(patient: Patient) -> None:
    patient.world()
    assert patient.diagnose(beat=False, full=True).findings == []


def test_figures_are_shown_beside_the_causes(patient: Patient) -> None:
    world = patient.world()
    world.schedule("late")
    world.schedule("held")
    world.claim("box-1-aa")
    world.tick(HOUR_S)
    found = patient.diagnose()
    assert (found.expired_leases, found.refused_finishes, found.dead_letters) == (1, 0, {})
    assert [(lane.subject, lane.ready, round(lane.oldest_due_s)) for lane in found.lanes] == [("ana", 1, 3600)]


def finding_of(found: Diagnosis) -> Finding:
    [finding] = found.findings
    return finding


@pytest.mark.parametrize(
    ("level", "mend"),
    [
        ("thread", "everkept threads set t window.idle_s=60 memory.enabled=true"),
        ("project", "everkept projects set default memory.enabled=true"),
        ("process", "EVERKEPT_MEMORY__ENABLED=true (now from environment EVERKEPT_MEMORY__ENABLED), and restart"),
    ],
)
def test_the_setting_that_keeps_memory_off_is_named_where_it_stands(patient: Patient, level: str, mend: str) -> None:
    world = patient.world(**({"memory__enabled": False} if level == "process" else {}))
    if level == "project":
        world.set_project(memory__enabled=False)
    world.create("t")
    if level == "thread":
        world.set_thread("t", '{"window.idle_s": 60, "memory.enabled": false}')
    world.add("t", "I live in Lisbon", "and I like it")
    world.live(26 * HOUR_S, every=3600)
    finding = finding_of(patient.diagnose())
    assert (finding.cause, finding.mend, finding.chosen) == ("memory_off", mend, level == "thread")
    assert finding.evidence == {"setting": "memory.enabled", "set_in": level, "threads": 1, "messages": 2}


def test_rate_limit_says_when_it_ends(patient: Patient) -> None:
    finding = finding_of(provider_limiting(patient))
    assert finding.evidence["waiting"] == 10
    assert "2025-06-15" in str(finding.evidence["asked_again_at"])


def test_dead_letters_are_counted_by_cause_and_kind(patient: Patient) -> None:
    finding = finding_of(dead_letters(patient))
    assert finding.evidence == {"jobs": 1, "summarise_episode": 1}
    assert finding.mend == "everkept jobs retry-all --cause refused"


def test_facts_failing_names_the_episode_to_retry(patient: Patient) -> None:
    finding = finding_of(facts_failing(patient))
    assert finding.evidence == {"episodes": 1, "refused": 1}
    assert finding.mend.endswith("everkept jobs retry epi_1 --stage facts")


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("status_code: 401, model_name: m, body: {'message': 'no'}", "key_refused"),
        ("the embeddings server refuses this key or account (403)", "key_refused"),
        ("the provider answered 400: API key not valid. Please pass a valid API key.", "key_refused"),
        ("the provider answered 402: Payment Required", "quota_exhausted"),
        ("the provider answered 429: insufficient_quota", "quota_exhausted"),
        ("the provider answered 404: model 'x' not found, try pulling it first", "model_unknown"),
        ("the embeddings server does not know this model or path", "model_unknown"),
        ("no reply within 90 s", "provider_slow"),
        ("the model did not answer within 30 s", "provider_slow"),
        ("ConnectError: connection refused", "provider_down"),
        ("the provider answered 500: quite unauthorised nonsense about models", "provider_down"),
    ],
)
def test_what_the_provider_said_is_read_for_its_cause(reason: str, cause: str) -> None:
    assert cause_of(reason) == cause


def test_looking_changes_nothing(patient: Patient) -> None:
    chat(world := patient.world(), 3)
    world.tick(HOUR_S)
    patient.close()
    before = everything_in(patient)
    assert causes(patient.diagnose_file(full=True)) == ["no_worker"]
    assert everything_in(patient) == before


def everything_in(patient: Patient) -> Any:
    """The bytes of the file, or every row of the database with where it lies and who wrote it last."""
    if patient.server is None:
        return patient.path.read_bytes()
    with patient.server.connect(read_only=True) as raw:
        return {t.name: raw.execute(f"select ctid, xmin, * from {t.name}").fetchall() for t in metadata.sorted_tables}
