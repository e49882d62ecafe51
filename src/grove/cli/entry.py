"""The entry points of `grove`, which is also `kubectl-grove`, and of `kubectl_complete-grove`.

`grove initc` starts without importing what the other commands need.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command on the command line."""
    if sys.argv[1:2] == ["initc"]:
        from grove.cli.commands import initc

        sys.exit(initc.main(sys.argv[2:]))
    if sys.argv[1:2] == ["__complete"]:
        _complete(sys.argv[2:])
    if sys.argv[0].endswith("kubectl_complete-grove"):  # a link to the program of the archive for krew
        complete()
    try:  # the imports take long enough to be interrupted
        from grove.operator import python_gc

        python_gc.raise_thresholds()  # most commands end before there is anything to collect
        from grove.cli.main import main as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("grove: interrupted\n")
        sys.exit(130)


def complete() -> None:
    """Print what may follow the words of a command line of `kubectl grove`."""
    _complete(sys.argv[1:])


def _complete(words: list[str]) -> None:
    try:
        from grove.cli.completion import candidates

        sys.exit(candidates.main(words))
    except KeyboardInterrupt:
        sys.exit(130)
