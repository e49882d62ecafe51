"""The program as its user has called it, and its version."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import PurePath

DISTRIBUTION = "grove-operator"
"""On PyPI `grove` is an unrelated project."""


def version() -> str:
    """The version of the installed distribution."""
    from importlib import metadata  # most commands do not need it, and its import takes long

    return metadata.version(DISTRIBUTION)


def program_name() -> str:
    """`grove`, or `kubectl grove` for the plug-in of kubectl."""
    return "kubectl grove" if PurePath(sys.argv[0]).stem == "kubectl-grove" else "grove"


def as_called(line: str, commands: Collection[str]) -> str:
    """A line with its commands as this user can type them: the plug-in alone has no program `grove`."""
    if program_name() == "grove":
        return line
    return re.sub(rf"(?<!kubectl )\bgrove (?=(?:{'|'.join(commands)})\b)", "kubectl grove ", line)
