"""The settings in force for one stream: resolved by this one function, at the moment of each decision."""

from __future__ import annotations

import json

from sqlalchemy import text

from everkept.config import Settings
from everkept.store.connection import Connection

_CACHE_MAX = 4096
_cache: dict[tuple[int, str, str], tuple[Settings, Settings]] = {}


def effective(base: Settings, project_json: str, stream_json: str = "{}") -> Settings:
    """Process settings, then the project's, then the thread's (each a JSON object of flat keys)."""
    if project_json == "{}" and stream_json == "{}":
        return base
    key = (id(base), project_json, stream_json)
    found = _cache.get(key)
    if found is not None and found[0] is base:
        return found[1]
    if len(_cache) >= _CACHE_MAX:
        _cache.clear()
    settings = base.with_overrides(json.loads(project_json), json.loads(stream_json))
    _cache[key] = (base, settings)
    return settings


_OF_PROJECT = text("select settings from projects where id = :project")


def effective_of_project(conn: Connection, base: Settings, project: int) -> Settings:
    """The settings in force for what belongs to no stream."""
    return effective(base, str(conn.scalar(_OF_PROJECT, {"project": project}) or "{}"))
