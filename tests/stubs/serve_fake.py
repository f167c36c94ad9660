"""A server process over the fake service, for what only a process can show: signals, sockets, exit codes.

`python -m tests.stubs.serve_fake`: a thread named `slow` takes a second to append to, and starting to says so.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from tests.stubs.fake_service import FakeApplication, FakeService

from everkept import config
from everkept.api import views as v
from everkept.doors.http.server import run
from everkept.errors import EverkeptError, exit_code


class _SlowService(FakeService):
    async def append(
        self, thread: str, messages: Sequence[v.MessageIn], *, subject: str | None = None, key: str | None = None
    ) -> v.AppendResult:
        if thread == "slow":
            _tell("appending")
            await asyncio.sleep(1.0)
        return await super().append(thread, messages, subject=subject, key=key)


class _Application(FakeApplication):
    async def close(self, *, drain_s: float = 5.0) -> None:
        _tell(f"closed with {drain_s}")


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main() -> int:
    application = _Application()
    application.services["default"] = _SlowService("default", application)
    try:
        asyncio.run(run(config.load(), application))
    except EverkeptError as error:
        _tell(error.message)
        return exit_code(error.code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
