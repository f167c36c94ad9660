"""What people look for there: the work of one lane, what all projects spent, an old version, what an agent was told."""

from __future__ import annotations

import re
import time
from pathlib import Path

from playwright.sync_api import expect
from tests.acceptance.test_weather import GOOD
from tests.stubs.llm_server import LlmServer
from tests.stubs.real_server import serving
from tests.web.conftest import CLIENT, WAIT_S, Tab
from tests.web.telling import launch_session, settle


def test_the_work_of_one_lane_is_shown_alone_in_every_state(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        for subject in ("ana", "<b>bob</b>"):
            _say(url, subject, thread=f"of {len(subject)}")
        settle(url)
        tab.go(f"{url}/work")
        jobs = tab.page.locator(".panel", has=tab.page.get_by_label("Lane of")).locator("tbody")
        expect(jobs).to_contain_text("embed_passages")
        jobs.get_by_role("link", name="<b>bob</b>").first.click()
        expect(tab.page.get_by_label("Lane of")).to_have_value("<b>bob</b>")
        expect(jobs).not_to_contain_text("ana")
        expect(jobs).not_to_contain_text("embed_passages")
        tab.page.get_by_label("Lane of").fill("ana")
        tab.page.get_by_label("Kind").select_option("extract_facts")
        tab.page.get_by_role("button", name="Show").click()
        expect(jobs.locator("tr")).to_have_count(1)
        expect(jobs).to_contain_text("ana")
        tab.page.get_by_role("link", name="dead").click()
        expect(jobs).to_contain_text("Nothing here.")
        tab.page.get_by_role("link", name="every lane").click()
        expect(tab.page.get_by_label("Lane of")).to_have_value("")
        assert tab.said == []


def test_what_waits_is_counted_by_lane_and_each_leads_to_its_jobs(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        CLIENT.post(f"{url}/v1/projects", json={"name": "shop"}).raise_for_status()
        CLIENT.post(f"{url}/v1/jobs/pause", json={"kind": "extract_facts"}).raise_for_status()
        _say(url, "ana", thread="chat", project="shop")
        until = time.monotonic() + WAIT_S
        while not any(lane["subject"] == "ana" for lane in CLIENT.get(f"{url}/v1/status").json()["lanes"]):
            assert time.monotonic() < until
        tab.go(f"{url}/work")
        turns = tab.page.locator(".panel", has=tab.page.get_by_role("heading", name="Whose turn"))
        turns.get_by_role("link", name="ana").click()
        expect(tab.page).to_have_url(re.compile(r"/work\?project=shop&subject=ana$"))
        expect(tab.page.locator("main")).to_contain_text("in the lane of ana")


def test_what_all_projects_spent_is_summed_and_an_unknown_price_is_said(tab: Tab, tmp_path: Path) -> None:
    with LlmServer(GOOD) as llm:
        environment = {
            "OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": llm.url, "EVERKEPT_MODEL": "openai:gpt-5-mini",
            "EVERKEPT_WORK__TICK_S": "0.1",
        }  # fmt: skip
        with serving(tmp_path / "home", **environment) as (_, url):
            CLIENT.post(f"{url}/v1/projects", json={"name": "shop"}).raise_for_status()
            _say(url, "ana", thread="chat")
            _say(url, "bo", thread="chat", project="shop")
            for project in ("default", "shop"):
                settle(url, project)
            whole = CLIENT.get(f"{url}/v1/usage/projects").json()
            assert whole["calls"] == whole["unpriced"] == sum(each["calls"] for each in whole["projects"]) > 0
            tab.go(f"{url}/usage")
            everything = tab.page.locator(".panel", has=tab.page.get_by_role("heading", name="All projects"))
            expect(everything.locator("tbody tr")).to_have_count(2)
            expect(everything.locator("tfoot")).to_contain_text("price unknown")
            expect(tab.page.locator("main")).not_to_contain_text("$")
            everything.get_by_role("link", name="shop").click()
            expect(tab.page).to_have_url(f"{url}/usage?project=shop")
            tab.go(url)
            spent = tab.page.get_by_text("Spent on models")
            expect(spent).to_contain_text(re.compile(r"price unknown, [1-9].* tokens"))
            assert tab.said == []


def test_every_version_of_a_page_is_reached_and_compared_with_the_one_before_it(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        for n in range(1, 103):
            page = {"title": "Log", "slug": "log", "body": f"Day {n} came."}
            CLIENT.post(f"{url}/v1/pages", json=page).raise_for_status()
        tab.go(f"{url}/pages/log")
        versions = tab.page.locator(".panel", has=tab.page.get_by_role("heading", name="Versions"))
        seen = []
        for _ in range(3):
            seen += [int(each) for each in versions.locator("tbody tr td:first-child").all_inner_texts()]
            if (further := versions.get_by_role("link", name="Earlier versions")).count():
                further.click()
                tab.page.wait_for_load_state()
        assert seen == list(range(102, 0, -1))
        tab.go(f"{url}/pages/log/changes?version=2")
        expect(tab.page.locator(".diff .new")).to_have_text("Day 2 came.")
        expect(tab.page.locator(".diff .gone")).to_have_text("Day 1 came.")
        assert CLIENT.get(f"{url}/pages/log/changes?version=103").status_code == 404
        for wrong in ("0", "-1", "x", "²"):
            assert CLIENT.get(f"{url}/pages/log", params={"before": wrong}).status_code == 422


def test_the_tokens_of_a_packet_are_one_number_in_its_words_and_beside_them(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        CLIENT.post(f"{url}/v1/workstreams", json={"name": "login"}).raise_for_status()
        launch_session(url, "login", "Build the login with a code by mail")
        body = {"owner": "ana", "checkout": {"cwd": "/code"}, "agent": "codex", "workstream": "login"}
        launch = CLIENT.post(f"{url}/v1/launches", json=body, headers={"Idempotency-Key": "k"}).json()
        tokens = launch["packet"]["tokens"]
        assert launch["packet"]["text"].endswith(f"(about {tokens} tokens)")
        tab.go(f"{url}/workstreams/login/launches/{launch['id']}")
        told = tab.page.locator(".panel", has=tab.page.get_by_role("heading", name="What the agent was told"))
        expect(told.locator("pre")).to_contain_text(f"(about {tokens} tokens)")
        expect(told.locator("p")).to_contain_text(f"; {tokens} tokens.")


def _say(url: str, subject: str, *, thread: str, project: str = "default") -> None:
    named = {"project": project}
    body = {"content": "I live in Lisbon.", "subject": subject}
    CLIENT.post(f"{url}/v1/threads/{thread}/messages", json=body, params=named).raise_for_status()
    CLIENT.post(f"{url}/v1/threads/{thread}/end", params=named).raise_for_status()
