"""The log of a command: warnings on stderr. The operator configures its own (`grove.operator.logs`)."""

from __future__ import annotations

import sys
from functools import partial

from grove.logger import configure_later


def log_later(level: str = "warning") -> None:
    """Configure structlog before the first message. Most commands log none, and its import takes as long as
    that of a command."""
    configure_later(partial(_configure, level))


def _configure(level: str) -> None:
    import structlog

    from grove.operator.logs import has_colours

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(
                colors=has_colours(sys.stderr),
                # The default renders local variables, which may be whole objects of users.
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # looked up at the time of logging
    )
