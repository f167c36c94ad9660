"""Make docs/images: every web page, light and dark, over the demo's data and a few reviewed sessions of a coding agent.

    python -m scripts.screenshots

The store is one of its own in a temporary folder, the server a real one, the browser that of tests/web.
"""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from collections.abc import Iterator
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

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH, HEIGHT = 1200, 800
PHONE = {"width": 390, "height": 800}
BYTES_MAX = 150_000
COLOURS_MAX = 256
Pixels = NDArray[np.uint8]
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
    "fact": "/facts/{fact}",
    "episodes": "/episodes",
    "episode": "/episodes/{episode}",
    "threads": "/threads",
    "thread": "/threads/marta-kitchen",
    "sessions": "/sessions",
    "session": "/sessions/{session}",
    "handoffs": "/handoffs",
    "pages": "/pages",
    "page": "/pages/{page}",
    "page-changes": "/pages/{page}/changes",
    "page-edit": "/pages/{page}/edit",
    "proposals": "/proposals",
    "proposal": "/proposals/{proposal}",
    "work": "/work",
    "job": "/work/{job}",
    "doctor": "/doctor",
    "usage": "/usage",
    "settings": "/settings",
    "erase": "/erase?subject=marta",
}
"""By the name of the picture; what stands in braces is the newest of its kind."""
ON_PHONES = ("overview", "subject", "thread", "proposal")


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    for old in IMAGES.glob("*.png"):
        old.unlink()
    with TemporaryDirectory(prefix="everkept-pictures-") as name:
        home, transcripts = Path(name) / "home", Path(name) / "transcripts"
        transcripts.mkdir()
        fill(home, transcripts)
        with serving(home) as (_, url), browser() as chromium:
            taken = list(_take_all(chromium, url))
    heavy = [path.name for path in taken if path.stat().st_size > BYTES_MAX]
    sys.stdout.write(f"{len(taken)} pictures, {sum(path.stat().st_size for path in taken):,} bytes, in {IMAGES}\n")
    if heavy:
        sys.stderr.write(f"larger than {BYTES_MAX:,} bytes: {', '.join(heavy)}\n")
    return 1 if heavy else 0


def _take_all(chromium: Browser, url: str) -> Iterator[Path]:
    addresses = {name: url + path.format(**_newest(url)) for name, path in PAGES.items()}
    for scheme in SCHEMES:
        context = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
        tab = context.new_page()
        for name, address in addresses.items():
            yield _take(tab, address, IMAGES / f"{name}-{scheme}.png")
        context.close()
    context = chromium.new_context(viewport={"width": PHONE["width"], "height": PHONE["height"]}, color_scheme="light")
    tab = context.new_page()
    for name in ON_PHONES:
        yield _take(tab, addresses[name], IMAGES / f"{name}-phone.png")
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
    """A PNG of at most 256 colours: the most frequent ones, each other one told by the nearest of them."""
    height, width = pixels.shape[:2]
    red, green, blue = (pixels[..., n].astype(np.int32).ravel() for n in range(3))
    packed, which, counts = np.unique(red << 16 | green << 8 | blue, return_inverse=True, return_counts=True)
    found = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=1)
    palette = found[np.argsort(-counts, kind="stable")[:COLOURS_MAX]]
    nearest = [int(np.argmin(((palette - colour) ** 2).sum(axis=1))) for colour in found]
    indexed = np.asarray(nearest, np.uint8)[which].reshape(height, width)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), indexed], axis=1)  # each row without a filter
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", palette.astype(np.uint8).tobytes()),
             (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _newest(url: str) -> dict[str, str]:
    """What the braces in `PAGES` stand for."""

    def first(path: str, field: str = "id") -> str:
        return str(httpx2.get(f"{url}/v1/{path}").raise_for_status().json()["items"][0][field])

    return {
        "fact": first("facts?subject=marta"), "episode": first("episodes"), "session": first("sessions"),
        "page": first("pages", "slug"), "proposal": first("proposals?state=all"), "job": first("jobs"),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
