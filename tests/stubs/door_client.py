"""Requests to the HTTP door in this process, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from fastapi import FastAPI
from tests.stubs.fake_service import FakeApplication, FakeService

from everkept import config
from everkept.doors.http.app import create_app

URL = "http://127.0.0.1:7411"


class DoorClient:
    """`bind`, `allowed_hosts` and `admin_key` as settings; `tokens` are the API keys that exist."""

    def __init__(self, *, tokens: dict[str, str] | None = None, url: str = URL, **settings: str) -> None:
        self.application = FakeApplication(tokens)
        self.app: FastAPI = create_app(self.application, config.load(settings))
        self.url = url

    @property
    def service(self) -> FakeService:
        return self.application.services["default"]

    def __call__(self, method: str, path: str, **request: Any) -> httpx2.Response:
        return asyncio.run(self._send(method, path, request))

    async def _send(self, method: str, path: str, request: dict[str, Any]) -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=self.url) as client:
            return await client.request(method, path, **request)


def error_of(response: httpx2.Response) -> dict[str, Any]:
    """The error of an answer, after checking that it has the one shape."""
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert isinstance(body["error"]["details"], dict)
    error: dict[str, Any] = body["error"]
    return error
