"""The key that may do everything: what the settings say, and from then on what its file says."""

from __future__ import annotations

import hmac
from typing import Final

import structlog

from everkept.config import Settings, read_again
from everkept.errors import ConfigInvalid

_KEY: Final = "secrets.admin_key"
_log = structlog.get_logger("everkept.http")


class AdminKey:
    """Held in memory alone: whoever reads or writes the database, or restores an old copy of it, gets no key by it.

    Where it comes from a file, it is the one that stands there: a new one holds, and the old one does not, from the
    next request on. While the file cannot be used, as when it is half written, the last one goes on.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = settings.files.get(_KEY)
        self._key = settings.secrets.admin_key
        self._seen: tuple[int, ...] | None = None

    def opens(self, token: str) -> bool:
        if self._file is not None and (mark := self._mark()) != self._seen:
            self._seen = mark
            self._read()
        return self._key is not None and hmac.compare_digest(token.encode(), self._key.encode())

    def _mark(self) -> tuple[int, ...] | None:
        """Another one whenever the file was written, replaced or let others read."""
        assert self._file is not None
        try:
            at = self._file.path.stat()
        except OSError:
            return None
        return at.st_ino, at.st_size, at.st_mtime_ns, at.st_mode

    def _read(self) -> None:
        before = self._key
        try:
            self._key = read_again(self._settings, _KEY)
        except ConfigInvalid as error:
            _log.warning("the file of the admin key cannot be used; the last key goes on", why=error.message)
        else:
            if self._key != before:
                _log.warning("the admin key is another one from now on, as its file says")
