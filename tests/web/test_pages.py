"""Every page in a real browser: it can be reached, says nothing on the console, is accessible, and stays inert."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from starlette.routing import Route
from tests.web.conftest import CLIENT, HOSTILE, Tab

from everkept.doors.http.web.site import routes

NO_PAGES = {"/live", "/samples"}
"""What pages fetch."""
SHOWN: Mapping[str, tuple[str, ...]] = {
    "/": ("/",),
    "/ask": ("/ask", "/ask?q=Where+do+I+live+now%3F&compare=1&tokens2=200"),
    "/subjects": ("/subjects",),
    "/subjects/{subject:id}": (
        "/subjects/marta", "/subjects/marta?past=1&as_of=2026-05-01", "/subjects/{hostile}?past=1",
    ),
    "/subjects/{subject:id}/entities": ("/subjects/marta/entities", "/subjects/{hostile}/entities"),
    "/facts/{fact:id}": ("/facts/{fact}", "/facts/{hostile_fact}"),
    "/episodes": ("/episodes", "/episodes?q=oven"),
    "/episodes/{episode:id}": ("/episodes/{episode}",),
    "/why/{id:id}": ("/why/{fact}", "/why/{hostile_fact}"),
    "/threads": ("/threads",),
    "/threads/{thread:id}": ("/threads/marta-kitchen", "/threads/hostile-0"),
    "/sessions": ("/sessions",),
    "/sessions/{session:id}": ("/sessions/{digested}", "/sessions/{hostile_session}"),
    "/handoffs": ("/handoffs",),
    "/pages": ("/pages",),
    "/pages/new": ("/pages/new",),
    "/pages/{page:id}": ("/pages/recipes-are-plain-files", "/pages/hostile-0"),
    "/pages/{page:id}/edit": ("/pages/hostile-0/edit",),
    "/pages/{page:id}/changes": ("/pages/hostile-0/changes",),
    "/proposals": ("/proposals", "/proposals?state=all"),
    "/proposals/{proposal:id}": ("/proposals/prp_1",),
    "/workstreams": ("/workstreams",),
    "/workstreams/{workstream:id}": ("/workstreams/wst_1", "/workstreams/{workstream}"),
    "/workstreams/{workstream:id}/launches/{launch:id}": (
        "/workstreams/wst_1/launches/lch_2", "/workstreams/{workstream}/launches/{launch}",
    ),
    "/deliveries": ("/deliveries",),
    "/deliveries/{webhook:id}": ("/deliveries/whk_1", "/deliveries/whk_2", "/deliveries/{webhook}"),
    "/work": ("/work", "/work?state=dead", "/work?state=done", "/work?subject=marta"),
    "/work/{job:id}": ("/work/{job}", "/work/{dead}"),
    "/doctor": ("/doctor",),
    "/usage": ("/usage",),
    "/settings": ("/settings",),
    "/erase": ("/erase?subject=marta", "/erase?subject={hostile}"),
    "/login": ("/login", "/login?failed=1"),
}  # fmt: skip
"""By the route that answers; what stands in braces is found in the store."""
ADDRESSES = tuple(address for addresses in SHOWN.values() for address in addresses)
LOOKS = (("light", 1280), ("dark", 1280), ("dark", 390))
GRAVE = ("serious", "critical")


@pytest.fixture(scope="session")
def names(site: str) -> Mapping[str, str]:
    """What the braces in `SHOWN` stand for: where one can, the newest, which is hostile."""

    def first(path: str, field: str = "id") -> str:
        return str(CLIENT.get(f"{site}/v1/{path}").raise_for_status().json()["items"][0][field])

    workstream, hostile = first("workstreams"), quote(HOSTILE[0], safe="")
    return {
        "fact": first("facts?subject=marta"), "episode": first("episodes?subject=marta"), "job": first("jobs"),
        "digested": first("pages?kind=session", "session_id"), "dead": first("jobs?state=dead"), "hostile": hostile,
        "hostile_fact": first(f"facts?subject={hostile}"), "hostile_session": first("sessions"),
        "workstream": workstream, "launch": first(f"workstreams/{workstream}/launches"),
        "webhook": CLIENT.get(f"{site}/v1/webhooks").json()["items"][-1]["id"],
    }  # fmt: skip


def test_the_tests_go_over_every_page() -> None:
    pages = {route.path for route in routes() if isinstance(route, Route) and "GET" in (route.methods or ())}
    assert set(SHOWN) == pages - NO_PAGES
    assert all(addresses for addresses in SHOWN.values())


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_is_quiet_on_the_console_accessible_inert_and_fits_a_phone(
    site: str, tab: Tab, names: Mapping[str, str], address: str
) -> None:
    assert tab.go(site + address.format(**names)) == 200
    _require_sound(tab)
    assert tab.said == []


def _require_sound(tab: Tab) -> None:
    """However it is looked at."""
    for scheme, width in LOOKS:
        tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        tab.page.set_viewport_size({"width": width, "height": 900})
        faults = [each for each in Axe().run(tab.page).response["violations"] if each["impact"] in GRAVE]
        assert [(each["id"], [node["target"] for node in each["nodes"][:3]]) for each in faults] == [], (scheme, width)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.page.evaluate("window.hurt") is None
    assert tab.page.locator("main script, main iframe, main style, [onerror], [onload]").count() == 0
    assert tab.page.locator("a[href^='javascript:'], a[href^='data:']").count() == 0
    assert tab.page.locator("main").is_visible()


def test_what_a_form_is_answered_with_is_as_sound_as_a_page(site: str, tab: Tab) -> None:
    tab.go(f"{site}/deliveries")
    tab.page.get_by_label("Name").fill("<script>window.hurt=1</script>")
    tab.page.get_by_label("Address").fill("https://sound.invalid/")
    tab.page.get_by_role("button", name="Add a webhook").click()
    expect(tab.page.locator("pre")).to_contain_text("whsec_")
    _require_sound(tab)
    tab.page.get_by_role("link", name="Go on to the webhook").click()
    for button, answered in (("Pause", "Nothing is sent"), ("Test", "Not delivered"), ("New secret", "shown once")):
        tab.page.get_by_role("button", name=button).click()
        expect(tab.page.locator("main")).to_contain_text(answered)
        _require_sound(tab)
    tab.page.get_by_role("link", name="Go on to the webhook").click()
    tab.page.get_by_role("button", name="Remove").click()
    expect(tab.page.locator(".done")).to_contain_text("removed")
    tab.go(f"{site}/settings")
    tab.page.locator(".panel", has_text="Make a key").get_by_label("Name").fill("<script>window.hurt=1</script>")
    tab.page.get_by_role("button", name="Make a key").click()
    expect(tab.page.locator("main")).to_contain_text("shown once")
    _require_sound(tab)
    tab.go(f"{site}/settings")
    _require_sound(tab)
    tab.page.get_by_role("button", name="Revoke").click()
    expect(tab.page.locator(".done")).to_contain_text("opens nothing")
    tab.page.goto(f"{site}/erase?subject={quote(HOSTILE[-1], safe='')}")
    tab.page.get_by_label("to confirm").fill("something else")
    tab.page.get_by_role("button", name="Erase for good").click()
    expect(tab.page.locator("main")).to_contain_text("exactly as it is shown")
    _require_sound(tab)
    assert [line for line in tab.said if "422" not in line] == []


def test_no_link_of_the_site_is_broken(site: str, tab: Tab) -> None:
    waiting, seen = ["/"], {"/"}
    while waiting and len(seen) < 600:
        path = waiting.pop()
        answer = CLIENT.get(site + path, headers={"Accept": "text/html"}, timeout=60)
        assert answer.status_code == 200, path
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        tab.page.set_content(answer.text, wait_until="commit")
        for link in tab.page.eval_on_selector_all("a[href]", "all => all.map(a => a.getAttribute('href'))"):
            whole = urlsplit(urljoin(site + path, link))
            if whole.netloc == urlsplit(site).netloc and not _may_be_missing(whole.path):
                found = whole.path + (f"?{whole.query}" if whole.query else "")
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
    assert len(seen) > 200


def _may_be_missing(path: str) -> bool:
    """A wikilink may name a page that nobody has written yet."""
    return path.startswith("/pages/") and "hostile" not in path and "session" not in path


@pytest.mark.parametrize("n", range(len(HOSTILE)))
def test_what_was_said_stays_text_on_every_page_that_shows_it(site: str, tab: Tab, n: int) -> None:
    name = quote(HOSTILE[n], safe="")
    asked = [f"/ask?q={name}"] if any(letter.isalnum() for letter in HOSTILE[n]) else []
    for path in (
        *asked, f"/threads/hostile-{n}", f"/subjects/{name}", f"/pages/hostile-{n}", f"/pages/hostile-{n}/edit",
        f"/pages/hostile-{n}/changes", f"/threads?subject={name}", f"/subjects/{name}/entities",
        f"/workstreams/{name}", f"/erase?subject={name}",
    ):  # fmt: skip
        assert tab.go(site + path) == 200, path
        assert tab.page.evaluate("window.hurt") is None, path
        assert tab.page.locator("main script, main iframe, main style, [onerror], [onload]").count() == 0, path
        assert tab.page.locator("a[href^='javascript:'], a[href^='data:']").count() == 0, path
        assert tab.page.locator("main").is_visible(), path
    assert HOSTILE[n] in tab.page.locator("main").inner_text()
    assert tab.said == []


def test_what_is_not_there_is_a_page_too(site: str, tab: Tab) -> None:
    assert tab.go(f"{site}/facts/fct_999999") == 404
    assert "fct_999999" in tab.page.locator("main").inner_text()
    assert tab.go(f"{site}/ask?q=x&limit=lots") == 422
    assert "limit" in tab.page.locator("main").inner_text()


def test_it_is_usable_on_a_phone_and_by_keys(site: str, tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 360, "height": 720})
    tab.go(site)
    tab.page.get_by_role("button", name="Menu").click()
    tab.page.get_by_role("link", name="Ask").click()
    assert urlsplit(tab.page.url).path == "/ask"
    tab.page.set_viewport_size({"width": 1280, "height": 720})
    tab.go(site)
    tab.page.keyboard.press("g")
    tab.page.keyboard.press("t")
    tab.page.wait_for_url("**/threads")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the content"
