"""Who is calling: somebody on this machine, the operator, or the holder of a project's key."""

from __future__ import annotations

from dataclasses import dataclass

from everkept.api.service import Application
from everkept.doors.http.admin_key import AdminKey
from everkept.errors import Forbidden, Unauthorized

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/login"})
"""What a load balancer asks without a key, and where a person gives one."""
OPEN_FILES = "/static/"
"""Style sheets, scripts and pictures of the site, which are everybody's."""


def is_open(path: str) -> bool:
    """Whether it needs no key, wherever the server is reached from."""
    return path in OPEN_PATHS or path.startswith(OPEN_FILES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`project` is the only one the caller may touch; None: every project."""

    project: str | None
    also: frozenset[str] = frozenset()
    """Other names of that project, since one was merged into another."""

    @property
    def is_operator(self) -> bool:
        """The admin key, or nobody's key where none is needed."""
        return self.project is None

    def may_touch(self, project: str) -> bool:
        return self.project in (None, project) or project in self.also

    def confine(self, project: str) -> str:
        """`project`, if the caller may touch it. Raises Forbidden."""
        if not self.may_touch(project):
            raise Forbidden(f"this key belongs to the project {self.project!r}, not to {project!r}", project=project)
        return project

    def require_operator(self, what: str) -> None:
        """Raises Forbidden unless every project is open to the caller."""
        if not self.is_operator:
            raise Forbidden(f"a project's key may not {what}; use the admin key, or the command line on the server")


EVERYTHING = Caller(project=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gatekeeper:
    application: Application
    admin_key: AdminKey
    key_needed: bool
    """False on loopback without `server.allowed_hosts`: every program on this machine is then the operator."""

    async def admit(self, authorization: str | None, path: str) -> Caller:
        """`authorization` as sent. A key that is sent is checked, needed or not. Raises Unauthorized."""
        if authorization is None:
            if self.key_needed and not is_open(path):
                raise Unauthorized("send Authorization: Bearer <key>; `everkept keys create <name>` makes one")
            return EVERYTHING
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("the Authorization header must read: Bearer <key>")
        if self.admin_key.opens(token):
            return EVERYTHING
        holder = await self.application.authenticate(token)
        if holder is None:
            raise Unauthorized("this API key is unknown or was revoked")
        return Caller(project=holder.project, also=holder.names)
