"""Workspaces and projects that have to be there: made where they are not, and the same answer however often."""

from __future__ import annotations

import json
import secrets
from typing import Any

from everkept.api import views as v
from everkept.api.operating import Operating
from everkept.api.present import moment, project_view
from everkept.capture.messages import check_name
from everkept.config import validate_overrides
from everkept.store.projects import ensure_project_in, ensure_workspace, project_counts


class Tenants(Operating):
    async def ensure_workspace(self, name: str) -> v.Workspace:
        check_name(name, "workspace")
        row = await self._whole.write(ensure_workspace, name)
        return v.Workspace(name=row.name, created_at=moment(row.created_at))

    async def ensure_project(
        self, name: str, *, workspace: str = "default", settings: dict[str, Any] | None = None
    ) -> v.Project:
        check_name(workspace, "workspace")
        check_name(name, "name")
        checked = None if settings is None else validate_overrides(settings)
        row = await self._whole.write(ensure_project_in, workspace, name, secrets.token_bytes(32), checked)
        if checked is not None and json.loads(row.settings) != checked:  # it was there, with others
            return await self.update_project(row.found_as or row.name, settings=checked)
        return project_view(row, *await self._whole.read(project_counts, row.id))
