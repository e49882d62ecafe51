"""The entry point of `grove`. `grove initc` starts without importing what the other commands need."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command on the command line."""
    if sys.argv[1:2] == ["initc"]:
        from grove.cli.commands import initc

        sys.exit(initc.main(sys.argv[2:]))
    try:  # the imports take long enough to be interrupted
        from grove.operator import python_gc

        python_gc.raise_thresholds()  # most commands end before there is anything to collect
        from grove.cli.main import main as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("grove: interrupted\n")
        sys.exit(130)
