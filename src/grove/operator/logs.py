"""Configures the operator's log: one line per message on standard error, as JSON or as text for people.

Every line carries what it is about (`key`), what is done (`action`) and why (`reason`). Messages of libraries
through Python's own logging have the same format, so that a JSON log is JSON throughout.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import Any, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, Processor

from grove import timing
from grove.api.configuration.types import LogFormat, LogLevel
from grove.logger import configured

_LEVELS = {LogLevel.DEBUG: logging.DEBUG, LogLevel.INFO: logging.INFO, LogLevel.ERROR: logging.ERROR}


def configure(level: LogLevel, format_: LogFormat) -> None:
    """Set level and format for the whole process."""
    as_json = format_ is LogFormat.JSON
    configured()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _key_as_text,
            _TracebackOncePerCause(),
            *(_json() if as_json else _text()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=(
            structlog.BytesLoggerFactory(sys.stderr.buffer)
            if as_json
            else structlog.PrintLoggerFactory(sys.stderr)
        ),
        cache_logger_on_first_use=True,
    )
    logging.captureWarnings(True)
    logging.basicConfig(
        handlers=[_LibraryLogHandler()], level=max(_LEVELS[level], logging.WARNING), force=True
    )


def _json() -> list[Processor]:
    return [
        structlog.processors.ExceptionRenderer(),
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(serializer=_encode),
    ]


def _text() -> list[Processor]:
    return [
        structlog.dev.ConsoleRenderer(
            colors=has_colours(sys.stderr),
            timestamp_key="time",
            # The default renders local variables, which may be whole objects of users.
            exception_formatter=structlog.dev.plain_traceback,
        )
    ]


def has_colours(stream: TextIO) -> bool:
    """Whether lines on this stream may have colours: it is a terminal, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def _encode(event: EventDict, **_: Any) -> bytes:
    """Encode a line with the time, the level and the message first."""
    head = {name: event.pop(name) for name in ("time", "level", "message")}
    return msgspec.json.encode({**head, **event}, enc_hook=str)


def _key_as_text(_logger: object, _method: str, event: EventDict) -> EventDict:
    if "key" in event:
        event["key"] = str(event["key"])
    return event


class _TracebackOncePerCause:
    """Drops the traceback of an exception that was logged with one before: of the same type, raised at the
    same line. A failure that is retried for days fills no disk."""

    def __init__(self) -> None:
        self._logged: set[tuple[type, str, int]] = set()

    def __call__(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        info = event.get("exc_info")
        error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
        if not isinstance(error, BaseException):
            return event
        cause = _cause(error)
        if cause in self._logged:
            event["exc_info"] = None
            event["exception"] = f"{type(error).__name__} as logged before"
        elif len(self._logged) < timing.LOGGED_TRACEBACKS:
            self._logged.add(cause)
        return event


def _cause(error: BaseException) -> tuple[type, str, int]:
    """The type of an exception, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    where = (frames[0].filename, frames[0].lineno or 0) if frames else ("", 0)
    return type(error), *where


class _LibraryLogHandler(logging.Handler):
    """Passes messages of asyncio, aiohttp and Python's warnings to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        structlog.get_logger().log(record.levelno, message, key=record.name, exc_info=record.exc_info)
