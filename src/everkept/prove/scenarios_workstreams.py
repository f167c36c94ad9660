"""Scenarios of workstreams: work goes from agent to agent, leases end and are taken over, and all of it is erased."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from everkept.api.workstream_views import Launch
from everkept.capture.identity import Checkout
from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget
from everkept.domain.session import AgentEvent, natural_key
from everkept.errors import PacketGone
from everkept.prove.scenario import Scenario
from everkept.prove.scenarios_agents import do, erase_target
from everkept.prove.stage import Cast, Stage
from everkept.store.projects import find_subject
from everkept.store.sessions import OWNER

HERE: Final = Checkout(cwd="/code/app", top="/code/app", branch="main")
ONE: Final = "0199aaaa-1111-7222-8333-444455556666"
TWO: Final = "0199bbbb-1111-7222-8333-444455556666"
THREE: Final = "0199cccc-1111-7222-8333-444455556666"
PLAIN: Final = Cast(model=False, embedder=None)
_LAUNCH: Final = "select state || ' ' || fence from launches order by id limit 1"
_LAUNCHES: Final = f"select ({_LAUNCH}) || coalesce(', ' || ({_LAUNCH} offset 1), '')"


def _prompt(text: str, session: str = ONE, **more: Any) -> AgentEvent:
    return AgentEvent(
        kind="prompt", agent="claude-code", session=session, key=natural_key("claude-code", text), source="launch",
        text=text, **more,
    )  # fmt: skip


def _prepare(s: Stage, key: str, after: str, **more: Any) -> Launch:
    """`after`: all launches afterwards, as state and fence."""
    found: list[Launch] = []

    def work() -> None:
        found.append(s.run(s.service().prepare_launch(f"owner-{key}", checkout=HERE, key=key, **more)))

    do(s, "prepare", work, sql=_LAUNCHES, after=after)
    return found[0]


def _tell(s: Stage, launch: Launch, *events: AgentEvent, first: int) -> None:
    sql = "select count(*) from launch_events"
    work = lambda: s.run(s.service().launch_events(launch.id, events, first=first, delivery_key=f"d{first}"))  # noqa: E731
    do(s, "tell", work, sql=sql, after=s.value(sql) + len(events))


def _go_on(s: Stage) -> None:
    """Named, launched, told of in two batches, finished; and continued by another agent, which accepts what is new."""
    names = "select max(name) from workstreams"
    do(s, "create", lambda: s.run(s.service().create_workstream("old", place="/code/app")), sql=names, after="old")
    do(s, "rename", lambda: s.run(s.service().rename_workstream("old", "login")), sql=names, after="login")
    one = _prepare(s, "k1", "prepared 1", agent="claude-code", native_session=ONE)
    beat = lambda: s.run(s.service().heartbeat_launch(one.id, fence=one.fence))  # noqa: E731
    do(s, "heartbeat", beat, sql=_LAUNCHES, after="running 1")
    _tell(s, one, _prompt("Build the login"), _prompt("As a sub-agent", "sub", parent=ONE), first=1)
    _tell(s, one, _prompt("And the docs"), first=3)
    finish = lambda: s.run(s.service().finish_launch(  # noqa: E731
        one.id, fence=one.fence, native_session=ONE, events=[_prompt("The last word")], source_cursor="9", exit_code=0,
    ))  # fmt: skip
    do(s, "finish", finish, sql=_LAUNCHES, after="finished 1")
    two = _prepare(s, "k2", "finished 1, prepared 2", agent="codex", native_session=TWO)
    _accept(s, two, accepted=1)


def _accept(s: Stage, launch: Launch, *, accepted: int) -> None:
    sql = "select count(accepted_at) from launches"
    assert launch.offer is not None
    offer = launch.offer
    do(s, "accept", lambda: s.run(s.service().accept_offer(offer)), sql=sql, after=accepted)


def _take_over(s: Stage) -> None:
    """A lease ends and is taken over; the old holder finishes late; the new one's ends too, and it takes it again."""
    old = _prepare(s, "k1", "prepared 1", agent="claude-code")
    s.clock.advance(91.0)
    new = _prepare(s, "k2", "lost 1, prepared 2", agent="codex")
    late = lambda: s.run(s.service().finish_launch(  # noqa: E731
        old.id, fence=old.fence, events=[_prompt("It came late")], source_cursor="1"
    ))  # fmt: skip
    do(s, "late finish", late, sql="select count(*) from events", after=1)
    s.clock.advance(91.0)
    again = _prepare(s, "k2", "lost 1, prepared 3", agent="codex")
    assert (again.id, again.fence) == (new.id, new.fence + 1)
    cancel = lambda: s.run(s.service().cancel_launch(again.id, fence=again.fence))  # noqa: E731
    do(s, "cancel", cancel, sql=_LAUNCHES, after="lost 1, cancelled 3")


def _link_late(s: Stage) -> None:
    """A finish names a session that comes by an import afterwards, and one that was there before with its sub-agent;
    a packet gets its receiver when a new session is linked."""
    s.run(_ingest(s, _prompt("Told before", TWO), _prompt("As a sub-agent", "sub", parent=TWO)))
    one = s.run(s.service().prepare_launch("ana", checkout=HERE, key="k1", agent="claude-code"))
    s.run(s.service().accept_launch(one.id))
    linked = "select count(*) from launch_sessions where launch_id = 1"
    for native, count in ((ONE, 1), (TWO, 3)):
        name = lambda native=native: s.run(  # noqa: E731
            s.service().finish_launch(one.id, fence=one.fence, native_session=native)
        )
        do(s, "link", name, sql=linked, after=count)
    s.run(_ingest(s, _prompt("Imported later", ONE)))
    two = s.run(s.service().prepare_launch("ana", checkout=HERE, key="k2", agent="claude-code"))
    assert two.offer is not None
    _tell(s, two, _prompt("Of a new session", THREE), first=1)
    _accept(s, two, accepted=2)


async def _ingest(s: Stage, *events: AgentEvent) -> None:
    from everkept.api.ingesting import Ingest

    service = s.service()
    await Ingest(service._parts, project="default", confined=True).events(events, checkout=HERE)


def _gone_on(s: Stage) -> None:
    _go_on(s)
    s.clock.advance(91.0)
    s.drain()
    three = s.run(s.service().prepare_launch("bo", checkout=HERE, key="k3", workstream="login", agent="gemini"))
    s.run(s.service().cancel_launch(three.id, fence=three.fence))


def _erase_event(s: Stage) -> None:
    """A packet that told of it has a successor from the erase's first commit on."""
    s.run(s.service().prepare_launch("cy", checkout=HERE, key="k4", workstream="login", agent="gemini"))
    erase_target(s, EventTarget(stream=int(s.value("select min(stream_id) from sessions")), seq=1))
    launch = str(s.value("select 'lch_' || max(id) from launches"))
    with suppress(PacketGone):
        s.run(s.service().accept_launch(launch))
    do(
        s, "accept", lambda: s.run(s.service().accept_launch(launch)),
        sql=f"select accepted_at is not null from launches where 'lch_' || id = '{launch}'", after=1,
    )  # fmt: skip


def _erase_session(s: Stage) -> None:
    erase_target(s, StreamTarget(stream=int(s.value("select min(stream_id) from sessions"))))


def _erase_owner(s: Stage) -> None:
    owner = s.read(find_subject, s.project_id(), OWNER)
    assert owner is not None
    erase_target(s, SubjectTarget(subject=owner))


def _erase_all(s: Stage) -> None:
    erase_target(s, ProjectTarget())


WORKSTREAM_SCENARIOS: Final = (
    Scenario(name="workstream", act=_go_on, cast=PLAIN),
    Scenario(name="workstream-taken-over", act=_take_over, cast=PLAIN),
    Scenario(name="workstream-linked-late", act=_link_late, cast=PLAIN),
    Scenario(name="erase-workstream-event", prepare=_gone_on, act=_erase_event, cast=PLAIN),
    Scenario(name="erase-workstream-session", prepare=_gone_on, act=_erase_session, cast=PLAIN),
    Scenario(name="erase-workstream-owner", prepare=_gone_on, act=_erase_owner, cast=PLAIN),
    Scenario(name="erase-workstream-project", prepare=_gone_on, act=_erase_all, cast=PLAIN),
)
