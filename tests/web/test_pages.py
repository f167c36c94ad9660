"""Every page in a real browser: it can be reached, says nothing on the console, is accessible, and stays inert."""

from __future__ import annotations

from urllib.parse import quote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.web.conftest import CLIENT, HOSTILE, Tab

SHOWN = (
    "/", "/ask", "/ask?q=Where+do+I+live+now%3F&compare=1&tokens2=200", "/subjects", "/subjects/marta",
    "/subjects/marta?past=1&as_of=2026-05-01", "/episodes", "/threads", "/threads/marta-kitchen", "/sessions",
    "/handoffs", "/pages", "/pages/new", "/pages/hostile-0", "/pages/hostile-0/edit", "/pages/hostile-0/changes",
    "/proposals", "/proposals?state=all", "/proposals/prp_1",
    "/workstreams", "/workstreams/wst_1", "/deliveries", "/deliveries/whk_1", "/work",
    "/work?state=done", "/doctor", "/usage", "/settings",
    "/erase?subject=marta",
)  # fmt: skip
GRAVE = ("serious", "critical")


@pytest.mark.parametrize("path", SHOWN)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_quiet_on_the_console_and_accessible(site: str, tab: Tab, path: str, scheme: str) -> None:
    tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    assert tab.go(site + path) == 200
    faults = [each for each in Axe().run(tab.page).response["violations"] if each["impact"] in GRAVE]
    assert [(each["id"], [node["target"] for node in each["nodes"][:3]]) for each in faults] == []
    assert tab.said == []


def test_no_link_of_the_site_is_broken(site: str, tab: Tab) -> None:
    waiting, seen = ["/"], {"/"}
    while waiting and len(seen) < 400:
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
    assert len(seen) > 60


def _may_be_missing(path: str) -> bool:
    """A wikilink may name a page that nobody has written yet."""
    return path.startswith("/pages/") and "hostile" not in path and "session" not in path


@pytest.mark.parametrize("n", range(len(HOSTILE)))
def test_what_was_said_stays_text_on_every_page_that_shows_it(site: str, tab: Tab, n: int) -> None:
    name = quote(HOSTILE[n], safe="")
    asked = [f"/ask?q={name}"] if any(letter.isalnum() for letter in HOSTILE[n]) else []
    for path in (
        *asked, f"/threads/hostile-{n}", f"/subjects/{name}", f"/pages/hostile-{n}", f"/pages/hostile-{n}/edit",
        f"/pages/hostile-{n}/changes", f"/threads?subject={name}", f"/erase?subject={name}",
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
    for path in SHOWN:
        tab.go(site + path)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360, path
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
