"""Make docs/images: every web page, light and dark, over the demo's data and what tests/web tells besides.

    python -m scripts.screenshots

The store is one of its own in a temporary folder, the server a real one, the browser that of tests/web.
"""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import httpx2
import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page
from tests.stubs.real_server import serving
from tests.web.browser import browser
from tests.web.filling import fill
from tests.web.telling import SENDING, keep_held, make_trouble, receiver, tell

IMAGES = Path(__file__).parent.parent / "docs" / "images"
Look = Literal["light", "dark", "phone"]
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH, HEIGHT = 1200, 800
PHONE_WIDTH = 390
BYTES_MAX = 150_000
COLOURS_MAX = 256
ALIKE_BITS = 3
"""Colours that differ in these lowest bits of a channel alone are much alike."""
Pixels = NDArray[np.uint8]
Colours = NDArray[np.int32]
_DECODE = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const drawing = canvas.getContext("2d");
  drawing.drawImage(image, 0, 0);
  const raw = drawing.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < raw.length; at += 32768) text += String.fromCharCode(...raw.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""
PAGES = {
    "overview": "/",
    "ask": "/ask?q=Where+do+I+live+now%3F&subject=marta",
    "ask-compared": "/ask?q=Where+do+I+live+now%3F&compare=1&tokens2=200",
    "subjects": "/subjects",
    "subject": "/subjects/marta?past=1",
    "entities": "/subjects/marta/entities",
    "fact": "/facts/{fact}",
    "why": "/why/{fact}",
    "episodes": "/episodes",
    "episode": "/episodes/{episode}",
    "threads": "/threads",
    "thread": "/threads/marta-kitchen",
    "sessions": "/sessions",
    "session": "/sessions/{session}",
    "handoffs": "/handoffs",
    "workstreams": "/workstreams",
    "workstream": "/workstreams/{workstream}",
    "launch": "/workstreams/{workstream}/launches/{launch}",
    "pages": "/pages",
    "page": "/pages/recipes-are-plain-files",
    "page-of-a-session": "/pages/{page}",
    "page-changes": "/pages/{page}/changes",
    "page-edit": "/pages/{page}/edit",
    "proposals": "/proposals",
    "proposal": "/proposals/{proposal}",
    "work": "/work",
    "job": "/work/{job}",
    "deliveries": "/deliveries",
    "webhook": "/deliveries/whk_2",
    "webhook-failing": "/deliveries/whk_1",
    "doctor": "/doctor",
    "settings": "/settings",
    "erase": "/erase?subject=marta",
}
"""By the name of the picture; what stands in braces is the newest of its kind."""
IN_TROUBLE = {
    "overview-trouble": "/",
    "work-dead": "/work?state=dead",
    "job-dead": "/work/{dead}",
    "doctor-trouble": "/doctor",
    "usage": "/usage",
    "login": "/login",
}
"""The same, where a model refused and somebody paused a kind of work."""
ON_PHONES = ("overview", "subject", "thread", "proposal")


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    for old in IMAGES.glob("*.png"):
        old.unlink()
    with TemporaryDirectory(prefix="everkept-pictures-") as name, browser() as chromium, receiver() as receiver_url:
        home, transcripts = Path(name) / "home", Path(name) / "transcripts"
        transcripts.mkdir()
        fill(home, transcripts)
        with serving(home, **SENDING) as (_, url):
            tell(url, receiver_url)
            taken: list[Path] = []
            for scheme in SCHEMES:
                taken += _take_all(chromium, url, PAGES, scheme, before_each=keep_held)
            phone = {name: PAGES[name] for name in ON_PHONES}
            taken += _take_all(chromium, url, phone, "phone", before_each=keep_held)
        make_trouble(home)
        with serving(home, **SENDING) as (_, url):
            for scheme in SCHEMES:
                taken += _take_all(chromium, url, IN_TROUBLE, scheme)
    heavy = [path.name for path in taken if path.stat().st_size > BYTES_MAX]
    sys.stdout.write(f"{len(taken)} pictures, {sum(path.stat().st_size for path in taken):,} bytes, in {IMAGES}\n")
    if heavy:
        sys.stderr.write(f"larger than {BYTES_MAX:,} bytes: {', '.join(heavy)}\n")
    return 1 if heavy else 0


def _take_all(
    chromium: Browser, url: str, pages: Mapping[str, str], look: Look, before_each: Callable[[str], None] | None = None
) -> Iterator[Path]:
    named = _newest(url)
    context = chromium.new_context(
        viewport={"width": PHONE_WIDTH if look == "phone" else WIDTH, "height": HEIGHT},
        color_scheme="light" if look == "phone" else look,
    )
    tab = context.new_page()
    for name, path in pages.items():
        if before_each is not None:
            before_each(url)
        yield _take(tab, url + path.format(**named), IMAGES / f"{name}-{look}.png")
    context.close()


def _take(tab: Page, address: str, path: Path) -> Path:
    answer = tab.goto(address, wait_until="load")
    assert answer is not None
    assert answer.status == 200, f"{address}: {answer.status}"
    picture = tab.screenshot(animations="disabled", caret="hide")
    tab.goto("about:blank")
    path.write_bytes(_palette_png(_pixels(tab, picture)))
    return path


def _pixels(tab: Page, png: bytes) -> Pixels:
    """(height, width, 3) of a PNG, decoded by the browser."""
    width, height, raw = tab.evaluate(_DECODE, base64.b64encode(png).decode())
    rgba = np.frombuffer(base64.b64decode(raw), np.uint8).reshape(height, width, 4)
    return rgba[..., :3]


def _palette_png(pixels: Pixels) -> bytes:
    """A PNG of at most 256 colours, each other one told by the nearest of them."""
    height, width = pixels.shape[:2]
    red, green, blue = (pixels[..., n].astype(np.int32).ravel() for n in range(3))
    packed, which, counts = np.unique(red << 16 | green << 8 | blue, return_inverse=True, return_counts=True)
    found = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=1)
    palette = _palette(found, counts)
    nearest = [int(np.argmin(((palette - colour) ** 2).sum(axis=1))) for colour in found]
    indexed = np.asarray(nearest, np.uint8)[which].reshape(height, width)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), indexed], axis=1)  # each row without a filter
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", palette.astype(np.uint8).tobytes()),
             (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _palette(found: Colours, counts: NDArray[np.int64]) -> Colours:
    """Of colours that are much alike, as at the edges of letters, the most frequent one stands for all."""
    order = np.argsort(-counts, kind="stable")
    red, green, blue = (found[order] >> ALIKE_BITS).T
    _, first, member = np.unique(red << 16 | green << 8 | blue, return_index=True, return_inverse=True)
    together = np.bincount(member, weights=counts[order])
    return found[order][first[np.argsort(-together, kind="stable")[:COLOURS_MAX]]]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _newest(url: str) -> dict[str, str]:
    """What the braces in `PAGES` stand for."""

    def first(path: str, field: str = "id") -> str:
        items = httpx2.get(f"{url}/v1/{path}").raise_for_status().json()["items"]
        return str(items[0][field]) if items else ""

    workstream = first("workstreams")
    return {
        "fact": first("facts?subject=marta"), "episode": first("episodes?subject=marta"), "job": first("jobs"),
        "session": first("pages?kind=session", "session_id"), "page": first("pages?kind=session", "slug"),
        "proposal": first("proposals?state=all"), "dead": first("jobs?state=dead"), "workstream": workstream,
        "launch": first(f"workstreams/{workstream}/launches"),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
