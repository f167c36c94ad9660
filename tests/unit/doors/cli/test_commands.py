from __future__ import annotations

import json

import pytest
from tests.unit.doors.cli.fake_service import (
    FakeService,
    a_check,
    a_fact,
    a_job,
    a_message,
    a_result,
    a_status,
    an_answer,
    an_episode,
)

from everkept.api import views as v
from everkept.doors.cli.commands import PANELS
from everkept.doors.cli.main import run
from everkept.errors import Conflict, NotFound, ProviderDown, StoreUnavailable

HELP = """\
Usage: everkept COMMAND

Durable memory for AI agents: nothing lost, nothing twice, nothing hidden.

╭─ Use ────────────────────────────────────────────────────────────────────────╮
│ add       Append what was said to a thread.                                  │
│ recall    Search what was said, stated and summarised.                       │
│ remember  State a durable fact by hand.                                      │
│ facts     List facts with their quotes and how long they hold.               │
│ episodes  List episodes: summaries of stretches of conversation.             │
│ threads   List conversations; show, end or set one.                          │
│ timeline  List what happened in this folder's project, newest first.         │
│ correct   Put one fact right; what was wrong is kept.                        │
│ pin       Keep one fact in view, or no longer.                               │
│ forget    Retire one fact; can be undone.                                    │
│ erase     Destroy something and all that rests on it, for good.              │
│ export    Write all that is kept about a subject.                            │
│ import    Take in what exists: a chat export, or sessions of coding agents.  │
│ why       Show where anything comes from: a fact, message, page, proposal …  │
╰──────────────────────────────────────────────────────────────────────────────╯
╭─ Agents ─────────────────────────────────────────────────────────────────────╮
│ install      Wire coding agents to this memory: hooks, MCP server,           │
│              instructions.                                                   │
│ uninstall    Leave the files of coding agents as they were.                  │
│ mcp          Serve the memory's tools to one agent over stdio (MCP).         │
│ sessions     List sessions of coding agents; show or end one.                │
│ pages        List pages of knowledge; show, write or delete one.             │
│ handoffs     List where sessions left off; show or take one.                 │
│ accept       Say that a session has what it was given at its start.          │
│ run          Run an agent here, its sessions linked to this folder's line of │
│              work.                                                           │
│ continue     Go on with the work done last here, with any agent.             │
│ workstreams  List lines of work across agents; show, name or select one.     │
│ review       Review finished sessions now; list the reviews so far.          │
│ proposals    List proposed improvements of pages; decide, undo, measure.     │
╰──────────────────────────────────────────────────────────────────────────────╯
╭─ Operate ────────────────────────────────────────────────────────────────────╮
│ serve      Serve HTTP, with a worker inside.                                 │
│ worker     Work jobs until stopped, or until idle.                           │
│ status     Show health, backlog and what needs attention.                    │
│ jobs       List background work; retry, pause, resume or discard it.         │
│ consumers  List who follows the changes; replay or remove one.               │
│ webhooks   List webhooks; add, test, pause, resume or replay one.            │
│ reprocess  Derive memory again from events and kept replies.                 │
│ projects   List projects; create, set, rename, move or merge one.            │
│ keys       List, create and revoke API keys.                                 │
│ db         Check or upgrade the store's file; print its schema.              │
│ backup     Write the whole store to one file, also while it is in use.       │
│ restore    Put a backup in the place of the store, which is kept beside.     │
│ move       Move the memory between a file and PostgreSQL, while it is used.  │
│ config     Print each setting and where its value comes from.                │
╰──────────────────────────────────────────────────────────────────────────────╯
╭─ Prove ──────────────────────────────────────────────────────────────────────╮
│ demo     Show what Everkept does, offline, in a throw-away store.            │
│ doctor   Name what is wrong, why, and the command that mends it.             │
│ torture  Kill and cut a throw-away store on this disk, and check what is     │
│          left.                                                               │
╰──────────────────────────────────────────────────────────────────────────────╯
"""


def test_help_shows_the_panels_in_order(capsys):
    assert run(["--help"]) == 0
    assert capsys.readouterr().out.startswith(HELP)


@pytest.mark.parametrize("name", [command.name for commands in PANELS.values() for command in commands])
def test_every_command_explains_itself(name, capsys):
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"everkept {name}" in out
    alone = ("serve", "mcp", "run", "continue")
    assert "--json" in out or name in alone or f"{name} COMMAND" in out  # a group says it of each


@pytest.mark.parametrize(
    ("error", "code"),
    [(NotFound("no such fact"), 4), (Conflict("another subject"), 4), (StoreUnavailable(), 3), (ProviderDown(), 1)],
)
def test_error_decides_the_exit_code(error, code, capsys):
    assert run(["why", "fct_9"], opener=FakeService(why=error)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1


def test_error_in_json_has_the_shape_of_http(capsys):
    run(["why", "fct_9", "--json"], opener=FakeService(why=NotFound("no such fact", id="fct_9")))
    body = json.loads(capsys.readouterr().err)
    assert body == {"error": {"code": "not_found", "message": "no such fact", "details": {"id": "fct_9"}}}


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall"],
        ["recall", "x", "--limit", "many"],
        ["nonsense"],
        ["facts", "--as-of", "soon"],
        ["erase"],
        ["recall", "x", "--no"],
    ],
)
def test_wrong_usage_is_two(arguments, capsys):
    assert run(arguments, opener=FakeService()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


def test_interrupt_is_130():
    class Interrupting(FakeService):
        async def list_facts(self, **words):
            raise KeyboardInterrupt

    assert run(["facts"], opener=Interrupting()) == 130


def test_empty_result_is_done(capsys):
    assert run(["recall", "anything", "--subject", "nobody"], opener=FakeService(recall=an_answer(text=""))) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "nothing found in the memory of nobody\n"


@pytest.mark.parametrize(
    ("arguments", "use_case", "view"),
    [
        (["recall", "where?"], "recall", an_answer(a_result())),
        (["facts"], "list_facts", v.Page(items=[a_fact()], next_cursor="7")),
        (["remember", "I live in Lisbon"], "remember", a_fact()),
        (["forget", "fct_1"], "forget", a_fact(live=False)),
        (["episodes"], "list_episodes", v.Page(items=[an_episode()])),
        (["threads"], "list_threads", v.Page(items=[])),
        (["threads", "show", "chat-1"], "list_messages", v.Page(items=[a_message()])),
        (
            ["why", "fct_1"],
            "why",
            v.Why(id="fct_1", kind="fact", text="x", events=[a_message()], steps=[{"step": "facts"}]),
        ),
        (["status"], "status", a_status()),
        (["jobs"], "list_jobs", v.Page(items=[a_job()])),
        (["jobs", "show", "job_1"], "get_job", a_job()),
        (["jobs", "retry", "job_1"], "retry_job", a_job()),
        (["jobs", "discard", "job_1"], "discard_job", a_job()),
        (["jobs", "release", "job_1"], "release_job", a_job()),
        (
            ["erase", "--subject", "me", "--yes"],
            "erase",
            v.ErasePlan(scope="x", rows={"facts": 1}, residue=0, dry_run=False),
        ),
    ],
)
def test_json_is_the_view_and_nothing_else(arguments, use_case, view, capsys):
    assert run([*arguments, "--json"], opener=FakeService(**{use_case: view})) == 0
    assert capsys.readouterr().out == view.model_dump_json() + "\n"


def test_whole_lists_are_pages_in_json(capsys):
    project = v.Project(id="prj_1", name="default", created_at=a_fact().said_at, settings={}, messages=1, facts=1)
    assert run(["projects", "--json"], opener=FakeService(list_projects=[project])) == 0
    assert capsys.readouterr().out == v.Page[v.Project](items=[project]).model_dump_json() + "\n"


def test_scope_words_of_other_systems_are_understood():
    fake = FakeService(recall=an_answer())
    assert run(["recall", "x", "--user-id", "user_42", "--session_id=chat-1"], opener=fake) == 0
    assert fake.calls[1][1]["subject"] == "user_42"
    assert fake.calls[1][1]["thread"] == "chat-1"


def test_times_without_a_zone_are_utc():
    fake = FakeService(list_facts=v.Page(items=[]))
    run(["facts", "--as-of", "2026-03-01"], opener=fake)
    assert fake.calls[1][1]["as_of"].isoformat() == "2026-03-01T00:00:00+00:00"


def test_add_without_a_thread_goes_to_the_subjects_own(capsys):
    fake = FakeService()
    assert run(["add", "I moved to Lisbon", "--subject", "anna"], opener=fake) == 0
    name, asked = fake.calls[1]
    assert (name, asked["thread"], asked["subject"]) == ("append", "cli-anna", "anna")
    assert asked["key"].startswith("cli-")  # always sent, so that the client may try again
    assert capsys.readouterr().out == "evt_1_1  searchable\n"


def test_add_to_an_unknown_thread_says_how_to_create_it(capsys):
    assert run(["add", "hello", "--thread", "chat-9"], opener=FakeService()) == 4
    assert "--subject" in capsys.readouterr().err


def test_facts_show_quote_validity_and_source(capsys):
    run(["facts"], opener=FakeService(list_facts=v.Page(items=[a_fact()])))
    out = capsys.readouterr().out
    for words in ("me lives in Lisbon", "“I moved to Lisbon”", "2026-03-02", "now", "fct_1", "evt_1_1"):
        assert words in out


def test_stored_text_cannot_command_the_terminal(capsys):
    run(["recall", "x"], opener=FakeService(recall=an_answer(a_result(text="\x1b[2Jgone [bold]not markup[/bold]"))))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[bold]not markup[/bold]" in out


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 5)])
def test_status_check_exits_by_the_thresholds(ok, code, capsys):
    assert run(["status", "--check"], opener=FakeService(status=a_status(checks=[a_check(ok=ok)]))) == code
    assert ("needs attention: the oldest due work waits 900 s" in capsys.readouterr().err) == (not ok)


def test_status_page_has_every_section(capsys):
    stuck = v.StuckItem(id="epi_3", subject="anna", stage="facts", attempts=2, error="x" * 500, since=a_fact().said_at)
    full = a_status(
        stuck=[stuck],
        given_up=[stuck],
        checks=[a_check(ok=False)],
        refused_finishes=1,
        workers=[v.Worker(id="host-1", slots=4, running=1, last_seen_at=stuck.since, leases=["job_1"])],
        periodic=[
            v.Periodic(
                name="fact_sweep",
                every_s=120,
                last_start_at=None,
                last_success_at=None,
                last_error=None,
                next_due_at=None,
                rows_repaired=3,
                degraded=True,
            )
        ],
        providers=[
            v.Provider(
                name="openai",
                circuit="open",
                reason="401",
                since=None,
                next_probe_at=None,
                permits=8,
                in_flight=0,
                waiting=3,
            )
        ],
        lanes=[{"project": "default", "subject": "anna", "ready": 3, "running": 1, "oldest_due_s": 12.0}],
    )
    assert run(["status"], opener=FakeService(status=full)) == 0
    out = capsys.readouterr().out
    for words in (
        "needs attention",
        "1,204 messages",
        "1.2 MB",
        "0 jobs due",
        "2 armed",
        "Given up",
        "Stuck",
        "p95",
        "1.5 s",
        "host-1",
        "fact_sweep",
        "openai",
        "open",
        "default / anna",
        "1 finish refused",
        "deterministic extraction",
    ):
        assert words in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_erase_without_a_terminal_needs_yes(capsys, monkeypatch):
    monkeypatch.setattr("everkept.doors.cli.screen.can_ask", lambda: False)
    fake = FakeService()
    assert run(["erase", "--subject", "anna"], opener=fake) == 2
    assert fake.calls == []
    assert "--yes" in capsys.readouterr().err


def test_erase_that_leaves_something_fails():
    plan = v.ErasePlan(scope="subject anna", rows={"facts": 2}, residue=1, dry_run=False)
    assert run(["erase", "--subject", "anna", "--yes"], opener=FakeService(erase=plan)) == 1


def test_erase_takes_a_project_alone_or_as_the_place():
    plan = v.ErasePlan(scope="x", rows={}, residue=None, dry_run=True)
    fake = FakeService(erase=plan)
    run(["erase", "--project", "p", "--dry-run"], opener=fake)
    run(["erase", "--project", "p", "--subject", "anna", "--dry-run"], opener=fake)
    asked = [words for name, words in fake.calls if name == "erase"]
    assert asked == [{"project": "p", "dry_run": True}, {"subject": "anna", "dry_run": True}]
    assert [words["project"] for name, words in fake.calls if name == "open"] == ["p", "p"]


def test_reprocess_that_costs_needs_a_yes(capsys, monkeypatch):
    monkeypatch.setattr("everkept.doors.cli.screen.can_ask", lambda: False)
    plan = v.ReprocessPlan(windows=3, calls=6, estimated_usd=0.12, scheduled=0, dry_run=True)
    assert run(["reprocess", "--fresh"], opener=FakeService(reprocess=plan)) == 2
    assert "6 paid questions (about 0.12 USD)" in capsys.readouterr().err


def test_key_is_the_only_thing_on_stdout(capsys):
    made = v.KeyCreated(id="key_1", name="laptop", project="default", token="ek_secret")
    run(["keys", "create", "laptop"], opener=FakeService(create_key=made))
    assert capsys.readouterr().out == "ek_secret\n"


def test_project_settings_are_typed(capsys):
    project = v.Project(id="prj_1", name="p", created_at=a_fact().said_at, settings={}, messages=0, facts=0)
    fake = FakeService(create_project=project)
    run(["projects", "create", "p", "window.idle_s=60", "memory.enabled=false"], opener=fake)
    assert fake.calls[1][1]["1"] == {"window.idle_s": 60, "memory.enabled": False}


def test_a_project_without_settings_asks_for_none_and_leaves_those_that_it_has(capsys):
    project = v.Project(id="prj_1", name="p", created_at=a_fact().said_at, settings={}, messages=0, facts=0)
    fake = FakeService(create_project=project)
    run(["projects", "create", "p"], opener=fake)
    assert fake.calls[1][1]["1"] is None


def test_config_names_the_source(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("EVERKEPT_HOME", str(tmp_path))
    monkeypatch.setenv("EVERKEPT_WINDOW__IDLE_S", "60")
    assert run(["config", "window.idle_s"]) == 0
    assert "window.idle_s = 60 s   (environment EVERKEPT_WINDOW__IDLE_S)" in capsys.readouterr().out
    assert run(["config", "window.idel_s"]) == 4
