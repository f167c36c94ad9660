"""What coding agents left, on the command line: whose memory answers, what is printed, what a command asks."""

from __future__ import annotations

import io
import json

import pytest
from tests.stubs.fake_agents import AT, a_handoff, a_page, a_session, an_event
from tests.unit.doors.cli.fake_service import FakeService, a_fact, an_answer

from everkept.api import views as v
from everkept.doors.cli.main import run
from everkept.errors import NotFound

SCOPE = v.Scope(project="github.com/acme/app", found_by="remote", value="github.com/acme/app")
CHOICE = v.HandoffChoice(chosen=a_handoff(), because="left in this worktree", others=[])
ITEM = v.TimelineItem(at=AT, kind="session", id="ses_1", title="Fix the login test", detail="claude-code, 42 events")
VERSION = v.PageVersion(version=2, base=1, title="Tokens", body="x", author="hand", reason=None, created_at=AT)


def fake(**answers):
    return FakeService(resolve_scope=SCOPE, choose_handoff=CHOICE, **answers)


def opened(service):
    return [words["project"] for name, words in service.calls if name == "open"]


def asked(service, name):
    return next(words for called, words in service.calls if called == name)


def test_the_project_of_the_folder_answers_and_the_answer_says_why(capsys):
    service = fake(list_sessions=v.Page(items=[a_session()]))
    assert run(["sessions"], opener=service) == 0
    assert opened(service) == ["default", "github.com/acme/app"]
    captured = capsys.readouterr()
    assert "project github.com/acme/app, found by the remote\n" in captured.err
    for words in ("ses_1", "Fix the login test", "claude-code", "digested", "branch main", "42"):
        assert words in captured.out


def test_a_project_that_was_named_is_not_looked_for(capsys):
    service = fake(list_pages=v.Page(items=[]))
    assert run(["pages", "--project", "mine"], opener=service) == 0
    assert opened(service) == ["mine"]
    assert capsys.readouterr() == ("", "project mine, as you named it\nno pages\n")


@pytest.mark.parametrize(
    "arguments",
    [["sessions"], ["pages"], ["handoffs"], ["timeline"], ["sessions", "show", "ses_1"], ["handoffs", "take", "hnd_1"],
     ["pages", "show", "tokens"], ["erase", "--session", "ses_1", "--yes"]],
)  # fmt: skip
def test_an_unknown_folder_is_an_error_and_no_empty_list(arguments, capsys):
    service = FakeService(resolve_scope=NotFound("there is no memory of /code/app yet: import it"))
    assert run(arguments, opener=service) == 4
    assert capsys.readouterr() == ("", "error: there is no memory of /code/app yet: import it\n")


@pytest.mark.parametrize(
    ("arguments", "use_case", "view"),
    [
        (["sessions"], "list_sessions", v.Page(items=[a_session()], next_cursor="7")),
        (["sessions", "end", "ses_1"], "end_session", v.EndResult(episode_queued=True, reason="x")),
        (["pages"], "list_pages", v.Page(items=[a_page(body=None)])),
        (["pages", "show", "tokens"], "get_page", a_page()),
        (["pages", "delete", "tokens"], "delete_page", a_page(body=None)),
        (["handoffs"], "list_handoffs", v.Page(items=[a_handoff()])),
        (["handoffs", "show", "hnd_1"], "get_handoff", a_handoff()),
        (
            ["handoffs", "take", "hnd_1"],
            "acknowledge_handoff",
            a_handoff(state="acknowledged", acknowledged_by="hand"),
        ),
        (["timeline"], "timeline", v.Page(items=[ITEM])),
    ],
)
def test_json_is_the_view_and_nothing_else(arguments, use_case, view, capsys):
    assert run([*arguments, "--json"], opener=fake(**{use_case: view})) == 0
    assert capsys.readouterr().out == view.model_dump_json() + "\n"


def test_a_session_in_json_comes_with_its_events(capsys):
    service = fake(get_session=a_session(), session_events=v.Page(items=[an_event()], next_cursor="1"))
    assert run(["sessions", "show", "ses_1", "--json", "--after", "3"], opener=service) == 0
    shown = json.loads(capsys.readouterr().out)
    assert v.Session.model_validate(shown["session"]) == a_session()
    assert [event["seq"] for event in shown["events"]["items"]] == [1]
    assert asked(service, "session_events")["after_seq"] == 3


def test_a_session_is_shown_with_its_head_and_long_events_are_cut(capsys):
    long = an_event(content="\n".join(f"line {n} \x1b[2J" for n in range(500)), name="Bash", metadata={"kind": "tool"})
    service = fake(get_session=a_session(), session_events=v.Page(items=[long, an_event(seq=2)], next_cursor="2"))
    assert run(["sessions", "show", "ses_1"], opener=service) == 0
    captured = capsys.readouterr()
    for words in ("/code/app", "opus", "Bash", "line 7", "more characters", "prompt", "evt_1_1"):
        assert words in captured.out
    assert "line 8" not in captured.out
    assert "\x1b" not in captured.out
    assert "everkept pages show 2026-01-02-fix-the-login-test-1" in captured.err
    assert "more with --after 2" in captured.err


def test_a_session_without_a_title_goes_by_its_page(capsys):
    run(["sessions"], opener=fake(list_sessions=v.Page(items=[a_session(title=None)])))
    assert "2026-01-02-fix-the-login-test-1" in "".join(capsys.readouterr().out.split())


def test_the_text_of_a_page_is_all_that_goes_to_stdout(capsys):
    page = a_page(body="# Tokens\r\n\n\tIn the \x1b[31mkeychain.\n", superseded=True, reason="asked for")
    assert run(["pages", "show", "tokens", "--version", "1"], opener=fake(get_page=page)) == 0
    captured = capsys.readouterr()
    assert captured.out == "# Tokens\n\n\tIn the  [31mkeychain.\n"
    assert "decision · version 1" in captured.err
    assert "asked for" in captured.err
    assert "another page took the place" in captured.err


def test_the_name_of_a_page_can_be_copied_whole(capsys):
    run(["pages"], opener=fake(list_pages=v.Page(items=[a_page(slug="a-slug" * 20, body=None)])))
    assert "a-slug" * 20 + "\n" in capsys.readouterr().out


def test_a_page_is_written_from_stdin_or_a_file(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe"))
    service = fake(write_page=a_page(version=3))
    assert run(["pages", "write", "Tokens", "--kind", "decision", "--base", "2"], opener=service) == 0
    assert capsys.readouterr().out == "tokens  version 3\n"
    words = asked(service, "write_page")
    assert (words["0"], words["1"], words["kind"], words["base"]) == ("Tokens", "from a pipe", "decision", 2)
    (tmp_path / "page.md").write_text("from a file", encoding="utf-8")
    service = fake(write_page=a_page())
    assert run(["pages", "write", "Tokens", "--file", str(tmp_path / "page.md")], opener=service) == 0
    assert asked(service, "write_page")["1"] == "from a file"


def test_a_page_that_nobody_gives_the_text_of_is_refused_before_anything_is_opened(monkeypatch, tmp_path, capsys):
    service = fake()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert run(["pages", "write", "Tokens"], opener=service) == 2
    assert "--file" in capsys.readouterr().err
    assert run(["pages", "write", "Tokens", "--file", str(tmp_path / "no.md")], opener=service) == 4
    (tmp_path / "image.md").write_bytes(b"\xff\xfe\x00")
    assert run(["pages", "write", "Tokens", "--file", str(tmp_path / "image.md")], opener=service) == 2
    assert run(["pages", "write", "Tokens", "--file", str(tmp_path)], opener=service) == 3
    assert service.calls == []


def test_versions_are_a_page_of_views_in_json(capsys):
    assert run(["pages", "history", "tokens", "--json"], opener=fake(page_history=[VERSION])) == 0
    assert capsys.readouterr().out == v.Page[v.PageVersion](items=[VERSION]).model_dump_json() + "\n"
    assert run(["pages", "history", "tokens"], opener=fake(page_history=[VERSION])) == 0
    assert "1 character" in capsys.readouterr().out


def test_handoffs_are_the_open_ones_and_say_which_is_offered_here(capsys):
    service = fake(list_handoffs=v.Page(items=[a_handoff()]))
    assert run(["handoffs"], opener=service) == 0
    captured = capsys.readouterr()
    assert asked(service, "list_handoffs")["state"] == "open"
    assert "a session in this folder is offered hnd_1: left in this worktree" in captured.err
    assert "1 open end" in captured.out
    service = fake(list_handoffs=v.Page(items=[]))
    assert run(["handoffs", "--state", "all"], opener=service) == 0
    assert asked(service, "list_handoffs")["state"] is None
    assert capsys.readouterr().err.endswith("no handoffs\n")


def test_another_projects_handoff_is_not_said_to_be_offered_in_this_folder(capsys):
    service = fake(list_handoffs=v.Page(items=[a_handoff()]))
    assert run(["handoffs", "--project", "other"], opener=service) == 0
    assert "is offered" not in capsys.readouterr().err
    assert run(["handoffs", "--project", SCOPE.project], opener=service) == 0
    assert "a session in this folder is offered hnd_1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["facts"], {"list_facts": v.Page(items=[])}),
        (["episodes"], {"list_episodes": v.Page(items=[])}),
        (["threads"], {"list_threads": v.Page(items=[])}),
        (["remember", "I live in Lisbon"], {"remember": a_fact()}),
        (["recall", "x"], {"recall": an_answer()}),
    ],
)
def test_what_does_not_follow_the_folder_says_whose_memory_the_folder_has(arguments, answer, capsys):
    assert run(arguments, opener=fake(**answer)) == 0
    hint = f"this is the memory of project default; this folder's has --project {SCOPE.project}\n"
    assert hint in capsys.readouterr().err


def test_a_handoff_that_is_taken_shows_where_it_left_off(capsys):
    service = fake(acknowledge_handoff=a_handoff(state="acknowledged", acknowledged_by="ana"))
    assert run(["handoffs", "take", "hnd_1", "--by", "ana"], opener=service) == 0
    assert asked(service, "acknowledge_handoff") == {"0": "hnd_1", "by": "ana"}
    assert capsys.readouterr().out == "The login test passes.\n"


@pytest.mark.parametrize(("state", "by"), [("acknowledged", "codex/1"), ("replaced", None), ("expired", None)])
def test_a_handoff_that_is_not_open_any_more_cannot_be_taken(state, by, capsys):
    service = fake(acknowledge_handoff=a_handoff(state=state, acknowledged_by=by))
    assert run(["handoffs", "take", "hnd_1"], opener=service) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"it is {state}" in captured.err


def test_the_timeline_takes_kinds_and_times(capsys):
    service = fake(timeline=v.Page(items=[ITEM], next_cursor="abc"))
    arguments = ["timeline", "--kind", "session", "--kind", "page", "--since", "2026-01-01", "--limit", "1"]
    assert run(arguments, opener=service) == 0
    words = asked(service, "timeline")
    assert (words["kinds"], words["since"].isoformat(), words["limit"]) == (
        ["session", "page"], "2026-01-01T00:00:00+00:00", 1,
    )  # fmt: skip
    captured = capsys.readouterr()
    assert "ses_1 · claude-code, 42 events" in captured.out
    assert "more with --cursor abc" in captured.err
    assert run(["timeline", "--kind", "dream"], opener=service) == 2


def test_a_session_is_erased_in_the_project_of_the_folder():
    plan = v.ErasePlan(scope="session ses_1", rows={"sessions": 1}, residue=0, dry_run=False)
    service = fake(erase=plan)
    assert run(["erase", "--session", "ses_1", "--yes"], opener=service) == 0
    assert opened(service) == ["default", "github.com/acme/app"]
    assert asked(service, "erase") == {"session": "ses_1", "dry_run": False}


# ---- whose memory


def test_why_looks_where_agents_work_for_what_agents_left_and_there_too_for_what_the_default_project_has_not(capsys):
    found = v.Why(id="ses_1", kind="session", text="Fix the login test", events=[], steps=[{"step": "session"}])
    service = fake(why=found)
    assert run(["why", "ses_1"], opener=service) == 0
    assert opened(service) == ["default", "github.com/acme/app"]
    assert "Fix the login test" in capsys.readouterr().out
    service = fake(why=NotFound("there is no event evt_7_1"))
    assert run(["why", "evt_7_1"], opener=service) == 4
    assert opened(service) == ["default", "default", "github.com/acme/app"]
    service = FakeService(why=found)
    assert run(["why", "ses_1", "--project", "mine"], opener=service) == 0
    assert opened(service) == ["mine"]


def test_recall_says_where_the_folders_own_memory_is(capsys):
    nothing = v.RecallAnswer(query="login", results=[], held_back=[], text="", tokens=0, lexical_only=False)
    assert run(["recall", "login"], opener=fake(recall=nothing)) == 0
    told = "this is the memory of project default; this folder's has --project github.com/acme/app\n"
    assert told in capsys.readouterr().err
    assert run(["recall", "login"], opener=FakeService(recall=nothing)) == 0
    assert "this folder" not in capsys.readouterr().err


def test_a_marker_that_nobody_trusts_is_told_of_and_trusting_it_says_what_that_means(capsys, tmp_path, monkeypatch):
    (tmp_path / ".everkept.toml").write_text('project = "mine"\n')
    monkeypatch.chdir(tmp_path)
    assert run(["sessions"], opener=fake(list_sessions=v.Page(items=[]))) == 0
    assert "names the project mine, and counts once you trust it: everkept projects trust\n" in capsys.readouterr().err
    scope = v.Scope(project="mine", found_by="marker", value="mine in github.com/acme/app")
    service = fake(trust_marker=scope)
    assert run(["projects", "trust"], opener=service) == 0
    assert asked(service, "trust_marker")["0"].marker == "mine"
    captured = capsys.readouterr()
    assert captured.out == "this folder is project mine, named by the marker mine in github.com/acme/app\n"
    assert "what was captured before stays where it is" in captured.err
