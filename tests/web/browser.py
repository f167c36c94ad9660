"""The browser of these tests: Debian's Chromium where there is one, else playwright's own.

`python -m tests.web.browser` sees that there is one, and installs Debian's where it may (as root, with apt).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""It calls nobody on its own; as root it has no sandbox, and sees nothing but our own pages."""


def find_browser() -> str | None:
    """The path of a browser on this machine; None where playwright must bring its own."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = _launch(playwright)
        yield found
        found.close()


def _launch(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=find_browser(), args=list(QUIET))


def there_is_one() -> bool:
    """Whether a browser could be started."""
    if find_browser() is not None:
        return True
    with sync_playwright() as playwright:
        return Path(playwright.chromium.executable_path).exists()


def main() -> int:
    if there_is_one():
        return 0
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        sys.stderr.write("no Chromium: its tests are left out (install it, or run `playwright install chromium`)\n")
        return 0
    sys.stderr.write("Installing Debian's Chromium for the tests of the web pages (a minute or two)\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", "chromium"]):
        subprocess.run([apt, *words], env=environment, stdout=sys.stderr, check=False)
    if not there_is_one():
        sys.stderr.write("Chromium could not be installed: the tests of the web pages are left out\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
