"""Receive webhooks: check who sent them, let each have its effect once, and answer.

    everkept webhooks add my-crm http://127.0.0.1:8088/everkept   # prints the secret
    WEBHOOK_SECRET=whsec_… python examples/webhook_receiver.py    # EVERKEPT_WEBHOOKS__ALLOW_PRIVATE=true on the server

2xx says that a change is done; 4xx that it never will be (after five tries it is parked, and the next one comes); any
other answer, and none, that it is to be sent again.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import os
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from everkept import Inbox, SignatureInvalid, verify_webhook

SECRET = os.environ["WEBHOOK_SECRET"]
BODY_MAX_BYTES = 1_000_000


class Receiver(BaseHTTPRequestHandler):
    database: sqlite3.Connection
    inbox: Inbox

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_MAX_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        try:
            told = verify_webhook(SECRET, dict(self.headers.items()), body)
        except SignatureInvalid as error:
            self.send_error(401, str(error))
            return
        if told["type"] != "webhook.test":
            with self.inbox.once(self.headers["webhook-id"]) as new:
                if new:  # yours: whatever this change means in your own tables
                    change = told["data"]
                    self.database.execute("insert into told values(?, ?)", (change["seq"], told["type"]))
                    print(change["seq"], told["type"], change["ref"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet: what matters is printed."""


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8088
    Receiver.database = sqlite3.connect(Path(sys.argv[2] if len(sys.argv) > 2 else "received.db"))
    Receiver.database.execute("create table if not exists told(seq integer, kind text)")
    Receiver.inbox = Inbox(Receiver.database)
    with HTTPServer(("127.0.0.1", port), Receiver) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
