"""What people do there: see a message arrive, mend a dead job, erase, write a page, log in."""

from __future__ import annotations

import re
import time
from pathlib import Path

from playwright.sync_api import Browser, expect
from tests.acceptance.test_weather import GOOD
from tests.stubs.llm_server import Fail, LlmServer
from tests.stubs.real_server import serving
from tests.web.conftest import CLIENT, WAIT_S, Tab
from tests.web.telling import launch_session

LIVE_MS = 20_000


def test_a_first_visit_says_how_to_begin_and_a_message_appears_by_itself(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        tab.go(f"{url}/subjects")
        expect(tab.page.locator("main")).to_contain_text("everkept add")
        tab.go(url)
        expect(tab.page.locator(".card", has_text="messages").locator("b")).to_have_text("0")
        body = {"content": "I live in Lisbon.", "subject": "ana"}
        assert CLIENT.post(f"{url}/v1/threads/t1/messages", json=body).status_code == 201
        expect(tab.page.locator(".card", has_text="messages").locator("b")).to_have_text("1", timeout=LIVE_MS)
        tab.go(f"{url}/threads/t1")
        expect(tab.page.locator(".said")).to_contain_text("I live in Lisbon.")
        assert tab.said == []


def test_a_dead_job_is_found_with_its_cause_and_tried_again(tab: Tab, tmp_path: Path) -> None:
    with LlmServer([Fail(status=400, message="refused by the stub")]) as llm:
        environment = {
            "OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": llm.url, "EVERKEPT_MODEL": "openai:gpt-5-mini",
            "EVERKEPT_WORK__TICK_S": "0.1",
        }  # fmt: skip
        with serving(tmp_path / "home", **environment) as (_, url):
            body = {"content": "I live in Lisbon.", "subject": "ana"}
            CLIENT.post(f"{url}/v1/threads/ana/messages", json=body).raise_for_status()
            CLIENT.post(f"{url}/v1/threads/ana/end").raise_for_status()
            _until_dead(url)
            tab.go(f"{url}/work?state=dead")
            expect(tab.page.get_by_role("heading", name="Given up, by cause")).to_be_visible()
            llm.script = GOOD
            tab.page.locator("tbody tr", has_text="extract_facts").last.get_by_role("link").first.click()
            expect(tab.page.locator("main")).to_contain_text("refused by the stub")
            tab.page.get_by_role("button", name="Try again now").click()
            expect(tab.page.locator(".done")).to_contain_text("tried again")
            expect(tab.page.locator(".head .tag").first).not_to_have_text("dead")
            _until(lambda: _state(url, tab.page.url) == "done")
            assert tab.said == []


def test_a_kind_is_paused_with_a_reason_and_resumed(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home", EVERKEPT_WORK__TICK_S="0.1") as (_, url):
        tab.go(f"{url}/work")
        tab.page.get_by_label("What").select_option("kind extract_facts")
        tab.page.get_by_label("Why").fill("prices doubled")
        tab.page.get_by_role("button", name="Pause").click()
        expect(tab.page.locator("main")).to_contain_text("prices doubled")
        body = {"content": "I live in Lisbon.", "subject": "ana"}
        said = CLIENT.post(f"{url}/v1/threads/ana/messages", json=body).json()["receipts"][0]["event_id"]
        CLIENT.post(f"{url}/v1/threads/ana/end").raise_for_status()
        _until(lambda: CLIENT.get(f"{url}/v1/receipts/{said}").json()["summary"] == "completed")
        assert "prices doubled" in CLIENT.get(f"{url}/v1/receipts/{said}").json()["reason"]
        tab.go(f"{url}/work")
        tab.page.locator("tbody tr", has_text="extract_facts").last.get_by_role("link").first.click()
        expect(tab.page.locator("main")).to_contain_text("prices doubled")
        tab.go(f"{url}/work")
        tab.page.get_by_role("button", name="Resume").click()
        expect(tab.page.locator(".done")).to_contain_text("It goes on")
        _until(lambda: CLIENT.get(f"{url}/v1/receipts/{said}").json()["state"] == "remembered")
        assert tab.said == []


def _until_dead(url: str) -> None:
    _until(lambda: len(CLIENT.get(f"{url}/v1/jobs?state=dead").json()["items"]) >= 2)


def _state(url: str, page: str) -> str:
    job = page.partition("/work/")[2].partition("?")[0]
    return str(CLIENT.get(f"{url}/v1/jobs/{job}").json()["state"])


def _until(holds: object) -> None:
    until = time.monotonic() + WAIT_S
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.1)


def test_an_erase_shows_what_would_go_and_needs_the_name_typed(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        body = {"content": "My secret is Rosebud.", "subject": "ana"}
        CLIENT.post(f"{url}/v1/threads/ana/messages", json=body).raise_for_status()
        tab.go(f"{url}/subjects/ana")
        tab.page.get_by_role("link", name="Erase…").click()
        expect(tab.page.locator("main")).to_contain_text("messages")
        tab.page.get_by_label("to confirm").fill("anna")
        tab.page.get_by_role("button", name="Erase for good").click()
        expect(tab.page.locator("main")).to_contain_text("exactly as it is shown")
        assert CLIENT.get(f"{url}/v1/threads/ana/messages").json()["items"][0]["content"] == "My secret is Rosebud."
        tab.go(f"{url}/erase?subject=ana")
        tab.page.get_by_label("to confirm").fill("ana")
        tab.page.get_by_role("button", name="Erase for good").click()
        expect(tab.page.get_by_role("heading", name="Erased")).to_be_visible()
        assert CLIENT.get(f"{url}/v1/threads/ana/messages").status_code == 404


def test_a_page_is_written_edited_and_compared_and_an_edit_of_an_old_version_is_refused(
    tab: Tab, tmp_path: Path
) -> None:
    with serving(tmp_path / "home") as (_, url):
        tab.go(f"{url}/pages/new")
        tab.page.get_by_label("Title").fill("How we release")
        tab.page.get_by_label("Markdown").fill("Tag first.\n\nThen push.")
        tab.page.get_by_role("button", name="Write").click()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text("How we release")
        tab.page.get_by_role("link", name="Edit").click()
        CLIENT.post(
            f"{url}/v1/pages", json={"title": "How we release", "body": "Ask first.", "slug": "how-we-release"}
        ).raise_for_status()
        tab.page.get_by_label("Markdown").fill("Push first.")
        tab.page.get_by_role("button", name="Write").click()
        expect(tab.page.locator("main")).to_contain_text("read it again")
        tab.go(f"{url}/pages/how-we-release/changes")
        expect(tab.page.locator(".diff .new")).to_contain_text("Ask first.")
        expect(tab.page.locator(".diff .gone").first).to_contain_text("Tag first.")


def test_a_proposal_is_read_with_its_evidence_approved_and_undone(site: str, tab: Tab) -> None:
    tab.go(f"{site}/proposals")
    tab.page.locator("tbody tr").first.get_by_role("link").click()
    expect(tab.page.locator("blockquote").first).to_contain_text("pnpm, not npm")
    expect(tab.page.locator(".diff .new").first).to_contain_text("pnpm")
    tab.page.get_by_role("link", name="where it was said").first.click()
    expect(tab.page.locator(":target")).to_contain_text("pnpm, not npm")
    tab.page.go_back()
    tab.page.get_by_role("button", name="Approve").click()
    expect(tab.page.locator(".done")).to_contain_text("approved")
    made = CLIENT.get(f"{site}/v1/proposals/prp_1").json()
    assert (made["state"], made["version"]) == ("approved", 1)
    assert "pnpm" in CLIENT.get(f"{site}/v1/pages/{made['slug']}").json()["body"]
    tab.go(f"{site}/proposals")
    expect(tab.page.locator(".panel", has_text="Did it help?")).to_contain_text(made["title"])
    tab.go(f"{site}/proposals/prp_1")
    tab.page.get_by_label("Reason").fill("we use bun now")
    tab.page.get_by_role("button", name="Roll back").click()
    expect(tab.page.locator("main")).to_contain_text("we use bun now")
    assert CLIENT.get(f"{site}/v1/proposals/prp_1").json()["state"] == "rolled_back"
    assert tab.said == []


def test_a_webhook_is_added_tested_paused_and_removed(site: str, tab: Tab) -> None:
    tab.go(f"{site}/deliveries")
    expect(tab.page.locator(".panel", has_text="Webhooks")).to_contain_text("https://crm.invalid/hook")
    tab.page.get_by_label("Name").fill("mirror")
    tab.page.get_by_label("Address").fill("https://mirror.invalid/")
    tab.page.get_by_role("button", name="Add a webhook").click()
    expect(tab.page.locator("pre")).to_contain_text("whsec_")
    tab.page.get_by_role("link", name="Go on to the webhook").click()
    tab.page.get_by_role("button", name="Test").click()
    expect(tab.page.get_by_role("status")).to_contain_text("Not delivered: it cannot be reached")
    tab.page.get_by_role("button", name="Pause").click()
    expect(tab.page.locator(".done")).to_contain_text("Nothing is sent until it is resumed")
    tab.page.get_by_role("button", name="Resume").click()
    expect(tab.page.locator(".done")).to_contain_text("goes on where it stands")
    tab.page.get_by_role("button", name="Remove").click()
    expect(tab.page.locator(".done")).to_contain_text("removed")
    assert "mirror" not in [each["name"] for each in CLIENT.get(f"{site}/v1/webhooks").json()["items"]]
    assert tab.said == []


def test_a_consumer_is_given_changes_again_and_removed_by_hand(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        for text in ("I live in Lisbon.", "I have a dog."):
            body = {"content": text, "subject": "ana"}
            CLIENT.post(f"{url}/v1/threads/ana/messages", json=body).raise_for_status()
        through = CLIENT.get(f"{url}/v1/changes?consumer=a/b").json()["next_after"]
        CLIENT.post(f"{url}/v1/changes/ack", json={"consumer": "a/b", "up_to": through}).raise_for_status()
        tab.go(f"{url}/deliveries")
        row = tab.page.locator("tbody tr", has_text="a/b")
        row.get_by_text("By hand").click()
        row.get_by_label("Give again").fill("1")
        row.get_by_role("button", name="Replay").click()
        expect(tab.page.locator(".done")).to_contain_text("given to it again")
        assert [c["cursor"] for c in CLIENT.get(f"{url}/v1/consumers").json()["items"] if c["name"] == "a/b"] == [1]
        tab.page.get_by_text("By hand").click()
        tab.page.get_by_role("button", name="Remove").click()
        expect(tab.page.locator(".done")).to_contain_text("forgotten")
        assert "a/b" not in [c["name"] for c in CLIENT.get(f"{url}/v1/consumers").json()["items"]]
        assert tab.said == []


def test_the_launches_of_a_workstream_are_paged_and_each_shows_the_words_that_its_agent_was_told(
    tab: Tab, tmp_path: Path
) -> None:
    with serving(tmp_path / "home") as (_, url):
        CLIENT.post(f"{url}/v1/workstreams", json={"name": "login"}).raise_for_status()
        launch_session(url, "login", "Build the login with a code by mail")
        for n in range(10):
            body = {"owner": "ana", "checkout": {"cwd": "/code"}, "agent": "codex", "workstream": "login"}
            made = CLIENT.post(f"{url}/v1/launches", json=body, headers={"Idempotency-Key": f"k{n}"}).json()
            CLIENT.post(f"{url}/v1/launches/{made['id']}/cancel", json={"fence": made["fence"]}).raise_for_status()
        tab.go(f"{url}/workstreams/login")
        launches = tab.page.locator(".panel", has=tab.page.get_by_role("heading", name="Launches"))
        expect(launches.locator("tbody tr")).to_have_count(10)
        launches.get_by_role("link", name="Earlier launches").click()
        expect(launches.locator("tbody tr")).to_have_count(1)
        expect(launches.locator("tbody tr")).to_contain_text("finished")
        tab.go(f"{url}/workstreams/login")
        launches.get_by_role("link", name="lch_2", exact=True).click()
        expect(tab.page.locator("pre")).to_contain_text("Build the login with a code by mail")
        assert tab.said == []


def test_a_day_is_slid_to_and_shows_what_was_believed_then(site: str, tab: Tab) -> None:
    tab.go(f"{site}/subjects/marta")
    later = tab.page.locator(".life", has_text="Marta moved to Porto")
    expect(later).to_be_visible()
    tab.page.get_by_role("slider").press("Home")
    tab.page.wait_for_url(re.compile("as_of=20"))
    expect(later).to_have_count(0)
    tab.page.get_by_role("slider").press("End")
    tab.page.wait_for_url(re.compile("as_of=(&|$)"))
    expect(later).to_be_visible()
    assert tab.said == []


def test_what_was_believed_and_how_names_and_pages_relate_is_drawn_and_listed(site: str, tab: Tab) -> None:
    facts = CLIENT.get(f"{site}/v1/facts?subject=marta&limit=100").json()["items"]
    work = next(fact["id"] for fact in facts if (fact["entity"], fact["predicate"]) == ("Marta", "works at"))
    tab.go(f"{site}/facts/{work}")
    believed = tab.page.locator(".panel", has_text="What was believed of this")
    expect(believed.locator(".struck")).to_contain_text("Lindenhof")
    tab.go(f"{site}/subjects/marta")
    related = tab.page.locator(".panel", has_text="Who and what is related")
    expect(related.locator("svg")).to_contain_text("Porto")
    related.get_by_text("The same as a list").click()
    expect(related.get_by_role("listitem").filter(has_text="Marta lives in Porto")).to_be_visible()
    for slug, body in (("drawn-one", "[[drawn two]] [[drawn three]]"), ("drawn-two", "[[drawn three]]")):
        page = {"title": slug, "body": body, "kind": "note", "slug": slug}
        CLIENT.post(f"{site}/v1/pages", json=page).raise_for_status()
    tab.go(f"{site}/pages/drawn-one")
    expect(tab.page.locator(".graph line")).to_have_count(3)
    assert tab.said == []


def test_where_a_key_is_needed_a_person_is_asked_for_it_and_other_sites_cannot_use_it(tab: Tab, tmp_path: Path) -> None:
    secured = {"EVERKEPT_ADMIN_KEY": "let-me-in-please", "EVERKEPT_SERVER__ALLOWED_HOSTS": '["localhost"]'}
    with serving(tmp_path / "home", **secured) as (_, url):
        tab.go(url)
        assert tab.page.url.endswith("/login")
        tab.page.get_by_label("Key").fill("wrong")
        tab.page.get_by_role("button", name="Log in").click()
        expect(tab.page.get_by_role("alert")).to_contain_text("opens nothing")
        tab.page.get_by_label("Key").fill("let-me-in-please")
        tab.page.get_by_role("button", name="Log in").click()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text("Overview")
        cookie = tab.page.context.cookies()[0]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        foreign = {"Cookie": "everkept_key=let-me-in-please", "Origin": "http://evil.example"}
        assert CLIENT.post(f"{url}/projects", headers=foreign, data={"name": "x"}).status_code == 403


def test_a_server_that_is_told_to_stop_does_not_wait_for_pages_that_stay_open(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (process, url):
        tab.go(url)
        expect(tab.page.locator(".cards").first).to_be_visible()
        began = time.monotonic()
        process.terminate()
        assert process.wait(WAIT_S) == 0
        assert time.monotonic() - began < 25  # the longest wait for answers that have begun is 30 s


def test_a_fact_is_put_right_pinned_and_unpinned_with_its_history_in_sight(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        body = {"text": "Ana lives in Lisbon", "subject": "ana", "predicate": "lives in", "object": "Lisbon"}
        fact = CLIENT.post(f"{url}/v1/remember", json=body).json()["id"]
        tab.go(f"{url}/facts/{fact}")
        tab.page.get_by_label("lives in").fill("Porto")
        tab.page.get_by_label("By").fill("marta")
        tab.page.get_by_role("button", name="Correct").click()
        expect(tab.page.locator("h1")).to_contain_text("Ana lives in Porto")
        expect(tab.page.locator("main")).to_contain_text("by marta")
        expect(tab.page.locator(".life .struck")).to_contain_text("Lisbon")
        tab.page.get_by_role("button", name="Pin", exact=True).click()
        expect(tab.page.locator(".head .tag", has_text="pinned")).to_be_visible()
        tab.page.get_by_role("button", name="Unpin").click()
        expect(tab.page.locator(".done")).to_contain_text("like any other")
        assert tab.said == []


def test_two_names_are_merged_and_split_again(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        for name, firm in (("Ana", "Acme"), ("Annie", "Beta")):
            body = {"text": f"{name} works at {firm}", "subject": "family", "entity": name, "predicate": "works at",
                    "object": firm}  # fmt: skip
            CLIENT.post(f"{url}/v1/remember", json=body).raise_for_status()
        tab.go(f"{url}/subjects/family")
        tab.page.get_by_text("Two of these are one thing").click()
        tab.page.get_by_label("This").select_option("Annie")
        tab.page.get_by_label("is the same as").select_option("Ana")
        tab.page.get_by_role("button", name="Merge").click()
        expect(tab.page.locator("main")).to_contain_text("also Annie")
        expect(tab.page.locator("main h3")).to_have_text("Ana")
        tab.page.get_by_role("button", name="Split").click()
        expect(tab.page.locator("main h3")).to_have_text(["Ana", "Annie"])
        assert tab.said == []


def test_a_page_shows_which_pages_link_to_it(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        for slug, text in (("tokens", "Where they are."), ("login", "See [[tokens]].")):
            body = {"title": slug.title(), "body": text, "slug": slug}
            CLIENT.post(f"{url}/v1/pages", json=body).raise_for_status()
        tab.go(f"{url}/pages/tokens")
        tab.page.locator("section", has_text="Linked from").get_by_role("link", name="Login").click()
        tab.page.wait_for_url("**/pages/login")
        expect(tab.page.locator("section", has_text="Linked from")).to_contain_text("No other page links here")
        assert tab.said == []


def test_the_places_are_reached_on_a_phone_without_scripts(chromium: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        context = chromium.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
        page = context.new_page()
        page.goto(url)
        page.get_by_role("link", name="Subjects").click()
        expect(page.locator("h1")).to_have_text("Subjects")
        page.get_by_role("link", name="Work", exact=True).click()
        expect(page.locator("h1")).to_have_text("Work")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        context.close()
