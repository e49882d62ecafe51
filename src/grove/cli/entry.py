"""Where `grove` begins. The init container's program goes past all that commands for people need."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that was asked for."""
    if sys.argv[1:2] == ["initc"]:
        from grove.cli.commands import initc

        sys.exit(initc.main(sys.argv[2:]))
    try:  # to load all of it takes long enough for a change of mind
        from grove.cli.main import main as others

        others()
    except KeyboardInterrupt:
        sys.stderr.write("grove: interrupted\n")
        sys.exit(130)
