"""Configures the operator's log: one line per message on standard error, as JSON or as text for people.

Every line carries what it is about (`key`), what is done (`action`) and why (`reason`). Messages of libraries
through Python's own logging have the same format, so that a JSON log is JSON throughout.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, Processor

from grove.api.configuration.types import LogFormat, LogLevel

_LEVELS = {LogLevel.DEBUG: logging.DEBUG, LogLevel.INFO: logging.INFO, LogLevel.ERROR: logging.ERROR}


def configure(level: LogLevel, format_: LogFormat) -> None:
    """Set level and format for the whole process."""
    as_json = format_ is LogFormat.JSON
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _key_as_text,
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
    return [structlog.dev.ConsoleRenderer(colors=has_colours(sys.stderr), timestamp_key="time")]


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


class _LibraryLogHandler(logging.Handler):
    """Passes messages of asyncio, aiohttp and Python's warnings to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        structlog.get_logger().log(record.levelno, message, key=record.name, exc_info=record.exc_info)
