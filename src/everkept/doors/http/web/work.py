"""Background work: what waits, runs, failed or was given up, and the hand on it."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from starlette.responses import Response

from everkept.api import views as v
from everkept.api.pausing import KIND_NAMES
from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route
from everkept.errors import InvalidInput


async def jobs(visit: Visit) -> Response:
    state = visit.asked("state")
    if state is not None and state not in get_args(v.JobState):
        raise InvalidInput(f"state is one of {', '.join(get_args(v.JobState))}", field="state")
    kind, subject = visit.asked("kind"), visit.asked("subject")
    found = await visit.service.list_jobs(
        state=state, kind=kind, subject=subject, limit=PAGE_ITEMS, cursor=visit.asked("cursor")
    )
    status = await visit.service.status(project_only=not visit.caller.is_operator)
    return visit.show(
        "jobs.html", jobs=found, state=state, kind=kind, subject=subject, states=get_args(v.JobState),
        causes=await visit.service.dead_causes(), status_now=status, known_kinds=KIND_NAMES,
    )  # fmt: skip


async def job(visit: Visit) -> Response:
    found = await visit.service.get_job(visit.at("job"))
    failures = [{**one, "at": datetime.fromisoformat(one["at"])} for one in reversed(found.history)]
    return visit.show("job.html", job=found, failures=failures)


async def act(visit: Visit) -> Response:
    """`retry`, `discard` or `release` one job."""
    name, verb, form = visit.at("job"), visit.at("verb"), await visit.form()
    match verb:
        case "retry":
            await visit.service.retry_job(name)
        case "discard":
            await visit.service.discard_job(name, reason=form.get("reason", "").strip() or "by hand")
        case "release":
            await visit.service.release_job(name)
        case _:
            raise InvalidInput("a job is retried, discarded or released", field="verb")
    done = {"retry": "retried", "discard": "discarded", "release": "released"}[verb]
    return visit.go(f"/work/{name}", done=done)


async def pause(visit: Visit) -> Response:
    """Of a kind or a provider, in the whole store."""
    visit.caller.require_operator("pause the work of the whole store")
    form = await visit.form()
    kind, provider = _named(form)
    await visit.service.pause_jobs(kind=kind, provider=provider, why=form.get("why", "").strip() or "by hand")
    return visit.go("/work", done="paused")


async def resume(visit: Visit) -> Response:
    visit.caller.require_operator("resume the work of the whole store")
    kind, provider = _named(await visit.form())
    await visit.service.resume_jobs(kind=kind, provider=provider)
    return visit.go("/work", done="resumed")


def _named(form: dict[str, str]) -> tuple[str | None, str | None]:
    """The kind or the provider that a form is about."""
    what, _, name = form.get("what", "").partition(" ")
    return (name or None, None) if what == "kind" else (None, name or None)


async def retry_all(visit: Visit) -> Response:
    form = await visit.form()
    await visit.service.retry_jobs(kind=form.get("kind") or None, cause=form.get("cause") or None)
    return visit.go("/work", done="retried", state="ready")


ROUTES = [
    route("/work", jobs),
    route("/work/retry", retry_all, "POST"),
    route("/work/pause", pause, "POST"),
    route("/work/resume", resume, "POST"),
    route("/work/{job:id}", job),
    route("/work/{job:id}/{verb}", act, "POST"),
]
