"""The exit codes of all commands. `grove operator` has those of upstream's operator instead."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command ends with. The docstrings are the table in docs/cli.md."""

    OK = 0
    """Done, or shown. An empty list is no error."""
    FAILED = 1
    """A wrong command line, no cluster, a missing right, no such object, or wrong input: one line on standard
    error says which, and what to do."""
    PROBLEM = 2
    """Shown, and something is wrong: a plan does not fit, a workload of `grove status` is not healthy, an
    update of `grove rollout status` is not complete; with `--exit-code`, something waits."""
    UNKNOWN = 3
    """It cannot be known: a right is missing, a search was stopped at its limit, or no operator leads."""
    INTERRUPTED = 130
    """Interrupted by SIGINT (Ctrl-C)."""
    CLOSED_PIPE = 141
    """The reader of the output has closed it, as `head` does. Nothing is printed."""
