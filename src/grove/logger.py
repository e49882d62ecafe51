"""Loggers that import structlog when the first message is logged: most commands end without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_pending: list[Callable[[], None]] = []


class Logger:
    """A structlog logger of this name. It has the methods of structlog's: `info`, `warning`, `bind`, ..."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        import structlog

        while _pending:
            _pending.pop()()
        return getattr(structlog.get_logger(self._name), method)


def get_logger(name: str) -> Logger:
    """The logger of a module or package."""
    return Logger(name)


def configure_later(configure: Callable[[], None]) -> None:
    """Call `configure` before the first message, instead of what was to be called so far."""
    _pending[:] = [configure]


def configured() -> None:
    """Say that structlog is configured: nothing is called before the first message."""
    _pending.clear()
