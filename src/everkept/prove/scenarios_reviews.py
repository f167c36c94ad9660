"""Scenarios of reviews: sessions that finish and are reviewed, are asked for by hand, and are erased again."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from everkept.domain.erase import EventTarget, StreamTarget, SubjectTarget
from everkept.prove.scenario import Scenario
from everkept.prove.scenarios_agents import call, do, edit, end, erase_target, prompt, tell
from everkept.prove.stage import Cast, Stage
from everkept.store.projects import DEFAULT_PROJECT, ensure_workspace, find_subject, move_project
from everkept.store.review_schedule import look
from everkept.store.reviews import claim_review, reopen_imported
from everkept.store.sessions import OWNER

_SCHEDULER: Final = "EVERKEPT_REVIEW__SCHEDULER__"


def _cast(**rules: object) -> Cast:
    """Without a model, so that what is proposed is the rules' own; a session of no length is long enough."""
    given = {"duration_min_s": 0, **rules}
    settings = {f"{_SCHEDULER}{name.upper()}": str(value) for name, value in given.items()}
    return Cast(model=False, embedder=None, settings=MappingProxyType(settings))


REVIEWED: Final = _cast()
BY_MODEL: Final = replace(REVIEWED, model=True)
SKIPPED: Final = _cast(observations_min=100)


def _failed(s: Stage, session: str, goal: str = "Run the tests and mend the login", nth: int = 1, **more: Any) -> None:
    """A command failed, and another did what it was for."""
    id_ = f"{session}-{nth}"
    tell(
        s, session, prompt(session, goal, f"{id_}p"),
        call(session, f"{id_}a", "npm test", outcome="failed", exit_code=1, output="Error: run it with pnpm, not npm"),
        call(session, f"{id_}b", "pnpm test", outcome="ok", exit_code=0, output="12 passed"),
        edit(session, f"{id_}e", f"src/{id_}.py"), adds=4, **more,
    )  # fmt: skip


def _told_twice(s: Stage) -> None:
    for session in ("one", "two"):
        _failed(s, session)


def _review(s: Stage) -> None:
    """Two sessions are digested and reviewed; one goes on before its review, and once more after it."""
    for session in ("one", "two"):
        end(s, session)
    s.work()
    _failed(s, "one", "And now the docs", 2)
    end(s, "one")
    s.drain()
    _failed(s, "one", "And the release notes", 3)
    end(s, "one")
    s.drain()


def _review_one(s: Stage) -> None:
    end(s, "two")
    s.drain()


def _reviewed(s: Stage) -> None:
    _told_twice(s)
    for session in ("one", "two"):
        end(s, session)
    s.drain()


_BY_HAND: Final = "select count(*) from reviews where asked_by = 'hand'"
_IMPORTED: Final = "select count(*) from generations where state = 'imported'"


def _claim(s: Stage) -> None:
    """What was passed by is asked for by hand, and reviewed."""
    stream = int(s.value("select min(stream_id) from sessions"))
    project = s.project_id()
    do(s, "claim", lambda: s.write(claim_review, project, stream), sql=_BY_HAND, after=1)
    s.drain()


def _imported(s: Stage) -> None:
    _told_twice(s)
    _failed(s, "three", origin="import")
    for session in ("one", "two", "three"):
        end(s, session)
    s.work()


def _by_hand(s: Stage) -> None:
    """Old history is asked for, and a look that does not wait until the sessions are old enough."""
    project = s.project_id()
    do(s, "reopen", lambda: s.write(reopen_imported, project, None, 0, 10), sql=_IMPORTED, after=0)

    def now(conn: Any) -> object:
        return look(conn, project, s.settings, by_hand=True)

    do(s, "look", lambda: s.write(now), sql=_BY_HAND, after=3)
    s.drain()


def _erase_reviewed(s: Stage) -> None:
    erase_target(s, StreamTarget(stream=int(s.value("select min(stream_id) from sessions"))))


def _erase_observed(s: Stage) -> None:
    stream = int(s.value("select min(stream_id) from observations"))
    erase_target(s, EventTarget(stream=stream, seq=int(s.value("select min(seq) from observations"))))


def _erase_owner(s: Stage) -> None:
    owner = s.read(find_subject, s.project_id(), OWNER)
    assert owner is not None
    erase_target(s, SubjectTarget(subject=owner))


def _move(s: Stage) -> None:
    """A project with its reviews is taken to another workspace."""
    project = s.project_id()

    def move(conn: Any) -> None:
        move_project(conn, project, ensure_workspace(conn, "second").id, DEFAULT_PROJECT)

    sql = f"select workspace_id from projects where id = {project}"
    do(s, "move", lambda: s.write(move), sql=sql, after=2)


REVIEW_SCENARIOS: Final = (
    Scenario(name="session-reviewed", prepare=_told_twice, act=_review, cast=REVIEWED),
    Scenario(name="session-reviewed-by-model", prepare=_told_twice, act=_review_one, cast=BY_MODEL),
    Scenario(name="review-claimed", prepare=_reviewed, act=_claim, cast=SKIPPED),
    Scenario(name="review-by-hand", prepare=_imported, act=_by_hand, cast=REVIEWED),
    Scenario(name="project-moved", prepare=_reviewed, act=_move, cast=REVIEWED),
    Scenario(name="erase-reviewed-session", prepare=_reviewed, act=_erase_reviewed, cast=REVIEWED),
    Scenario(name="erase-reviewed-owner", prepare=_reviewed, act=_erase_owner, cast=REVIEWED),
    Scenario(name="erase-observed-event", prepare=_reviewed, act=_erase_observed, cast=REVIEWED),
)
