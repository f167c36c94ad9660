"""Where the log goes when a command opens the store itself: to stderr, as the settings say."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everkept.config import Settings


def write_logs(settings: Settings, *, least: str = "debug") -> None:
    """Set up the log of this process: level and format of the settings, and nothing below `least`."""
    import structlog

    levels = logging.getLevelNamesMapping()
    level = max(levels[settings.log.level.upper()], levels[least.upper()])
    last = _on_console() if _wants_console(settings.log.format) else _as_json()
    _take_in_others()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


class _Others(logging.Handler):
    """What libraries log, in the form of ours: a line that is no JSON breaks whatever program reads the log."""

    def emit(self, record: logging.LogRecord) -> None:
        import structlog

        structlog.get_logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def _take_in_others() -> None:
    """Warnings and errors, once a process; where the program around us has a log of its own, they are its."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_Others(logging.WARNING))


def _wants_console(log_format: str) -> bool:
    return log_format == "console" or (log_format == "auto" and sys.stderr.isatty())


def _on_console() -> tuple[Any, ...]:
    """Lines for people. Tracebacks are plain: the ones that show variables would show what people have said."""
    from structlog.dev import ConsoleRenderer, plain_traceback

    colours = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    return (ConsoleRenderer(colors=colours, exception_formatter=plain_traceback),)


def _as_json() -> tuple[Any, ...]:
    from structlog.processors import ExceptionRenderer, JSONRenderer
    from structlog.tracebacks import ExceptionDictTransformer

    return (ExceptionRenderer(ExceptionDictTransformer(show_locals=False)), JSONRenderer())
