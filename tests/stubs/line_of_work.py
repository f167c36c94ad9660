"""A workstream and those who work in it: launches through the service, sessions told by events or by hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.stubs.agent_desk import Desk

from everkept.api.local import LocalService
from everkept.api.workstream_views import Launch, LaunchFinish, LaunchTaken, WorkstreamEvent
from everkept.capture.identity import Checkout
from everkept.domain.erase import Target
from everkept.domain.session import AgentEvent, natural_key
from everkept.store.erase import erase
from everkept.store.residue import residue

HERE = Checkout(cwd="/code/app", top="/code/app", remote="example.com/acme/app", branch="main")
OWNER = "ana@laptop/1"
CLAUDE = "0199aaaa-1111-7222-8333-444455556666"
CODEX = "0199bbbb-1111-7222-8333-444455556666"
OTHER = "0199cccc-1111-7222-8333-444455556666"


def prompt(text: str, session: str = CLAUDE, agent: str = "claude-code", **more: Any) -> AgentEvent:
    key = natural_key(agent, None, session=session, role="prompt", text=text)
    return AgentEvent(kind="prompt", agent=agent, session=session, key=key, source="launch", text=text, **more)


def said(text: str, session: str = CLAUDE, agent: str = "claude-code", **more: Any) -> AgentEvent:
    key = natural_key(agent, None, session=session, role="said", text=text)
    return AgentEvent(kind="said", agent=agent, session=session, key=key, source="launch", text=text, **more)


class LineOfWork:
    """The service of one project, at a desk."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.clock = desk.clock
        self.service: LocalService = desk.run(desk.app.service())

    def prepare(self, key: str = "k1", *, agent: str | None = "claude-code", owner: str = OWNER, **more: Any) -> Launch:
        asked = {"checkout": HERE, "workstream": None, **more}
        return self.desk.run(self.service.prepare_launch(owner, agent=agent, key=key, **asked))

    def tell(self, launch: Launch, *events: AgentEvent, first: int = 1, key: str | None = None) -> LaunchTaken:
        return self.desk.run(self.service.launch_events(launch.id, events, first=first, delivery_key=key))

    def finish(self, launch: Launch, **more: Any) -> LaunchFinish:
        return self.desk.run(self.service.finish_launch(launch.id, fence=more.pop("fence", launch.fence), **more))

    def accept(self, launch: Launch, **more: Any) -> Launch:
        return self.desk.run(self.service.accept_launch(launch.id, **more))

    def worked(self, *events: AgentEvent, agent: str = "claude-code", key: str, **more: Any) -> Launch:
        """A whole launch: prepared, its packet accepted, events told, finished."""
        launch = self.prepare(key, agent=agent, **more)
        self.accept(launch)
        if events:
            self.tell(launch, *events)
        self.finish(launch, exit_code=0)
        return launch

    def events(self, workstream: str = "app/main", **asked: Any) -> list[WorkstreamEvent]:
        return self.desk.run(self.service.workstream_events(workstream, **asked)).items

    def texts(self, **asked: Any) -> list[str]:
        return [e.text for e in self.events(**asked)]

    def erase(self, target: Target) -> None:
        """It is hidden; it is destroyed once the desk has settled."""
        self.desk.run(self.desk.app.parts.store.write(erase, self.service._project_id, target))

    def left_of(self, target: Target) -> dict[str, int]:
        """What the probe finds of it."""
        found = self.desk.run(self.desk.app.parts.store.read(residue, self.service._project_id, target))
        return {kind: rows for kind, rows in found.items() if rows}

    def rows(self, sql: str) -> Sequence[Any]:
        return self.desk.rows(sql)


def text_of(launch: Launch) -> str:
    assert launch.packet is not None
    return launch.packet.text
