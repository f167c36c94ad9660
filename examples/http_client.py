"""Everkept over HTTP with nothing but Python's standard library.

everkept serve
python examples/http_client.py [http://127.0.0.1:7411]
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("EVERKEPT_URL", "http://127.0.0.1:7411")
TRIES = 5


def call(method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
    """One request. A `key` makes an append safe to send again, so it is sent again where no answer came."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    if token := os.environ.get("EVERKEPT_API_KEY"):
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    for attempt in range(TRIES):
        request = urllib.request.Request(URL + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = json.load(error)["error"]
            if error.code != 503 or attempt == TRIES - 1:
                raise SystemExit(f"{problem['code']}: {problem['message']}") from error
        except urllib.error.URLError as error:
            if (key is None and method != "GET") or attempt == TRIES - 1:
                raise SystemExit(f"no answer from {URL}: {error.reason}; is `everkept serve` running?") from error
        time.sleep(2**attempt / 10)
    raise AssertionError("every try returned or ended the program")


def main() -> None:
    messages = [
        {"role": "user", "name": "Marta", "content": "I moved from Leipzig to Porto in May."},
        {"role": "assistant", "content": "Porto! How do you like it?"},
    ]
    added = call(
        "POST", "/v1/threads/http-chat/messages", {"subject": "user_7", "messages": messages}, key="http-chat-1"
    )
    event = added["receipts"][0]["event_id"]

    call("POST", "/v1/threads/http-chat/end")
    while (receipt := call("GET", f"/v1/receipts/{event}"))["state"] not in ("remembered", "skipped", "failed"):
        time.sleep(0.2)
    print(f"{event} is {receipt['state']}, in {receipt['episode_id']}")

    context = call("POST", "/v1/threads/http-chat/context", {"question": "Where do I live now?", "tokens": 400})
    print(context["text"])

    asked = urllib.parse.urlencode({"subject": "user_7"})
    for fact in call("GET", f"/v1/facts?{asked}")["items"]:
        print(f"{fact['id']}: {fact['text']}  (said: {fact['quote']!r})")


if __name__ == "__main__":
    main()
