"""Settings, keys, projects, doctor, and the erase that shows first what it would destroy."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from everkept.config import Settings
from everkept.doors.http.web.slices import slice_of
from everkept.doors.http.web.visit import Visit, route
from everkept.errors import InvalidInput

SCOPES = ("event", "thread", "session", "subject")


async def settings(visit: Visit) -> Response:
    visit.caller.require_operator("see the settings of this server")
    own: Settings = visit.request.app.state.settings
    projects, keys = await visit.service.list_projects(), await visit.service.list_keys()
    return visit.show(
        "settings.html", rows=own.explain(), projects=slice_of(projects, "projects", visit.asked("projects")),
        keys=slice_of(keys, "keys", visit.asked("keys")),
    )  # fmt: skip


async def doctor(visit: Visit) -> Response:
    """With `whole`, also whether the file is whole: that reads all of it, so it is asked for by hand."""
    visit.caller.require_operator("diagnose the whole store")
    whole = visit.asked("whole") is not None
    return visit.show("doctor.html", diagnosis=await visit.service.diagnose(rows_only=not whole), whole=whole)


async def make_project(visit: Visit) -> Response:
    visit.caller.require_operator("make projects")
    name = (await visit.form()).get("name", "").strip()
    await visit.service.create_project(name)
    return visit.go("/settings", done="project", project=name)


async def make_key(visit: Visit) -> Response:
    """The token is in this one answer and nowhere else."""
    visit.caller.require_operator("make keys")
    form = await visit.form()
    made = await visit.service.create_key(form.get("name", "").strip(), project=form.get("project") or None)
    return visit.show("key_made.html", made=made)


async def revoke_key(visit: Visit) -> Response:
    visit.caller.require_operator("revoke keys")
    await visit.form()
    await visit.service.revoke_key(visit.at("key"))
    return visit.go("/settings", done="revoked")


async def show_erase(visit: Visit) -> Response:
    """What would be destroyed: the closure, counted by a dry run."""
    scope = _scope(visit.request.query_params)
    return visit.show("erase.html", scope=scope, plan=await visit.service.erase(**scope, dry_run=True))


async def erase(visit: Visit) -> Response:
    form = await visit.form()
    scope = _scope(form)
    if form.get("confirm") != next(iter(scope.values())):
        raise InvalidInput("type the name of what is to be erased, exactly as it is shown", field="confirm")
    return visit.show("erased.html", scope=scope, plan=await visit.service.erase(**scope))


def _scope(given: Any) -> dict[str, Any]:
    scope = {name: given.get(name) for name in SCOPES if given.get(name)}
    if len(scope) != 1:
        raise InvalidInput(f"name exactly one of {', '.join(SCOPES)}", field="scope")
    return scope


ROUTES = [
    route("/settings", settings),
    route("/doctor", doctor),
    route("/projects", make_project, "POST"),
    route("/keys", make_key, "POST"),
    route("/keys/{key:id}/revoke", revoke_key, "POST"),
    route("/erase", show_erase),
    route("/erase", erase, "POST"),
]
