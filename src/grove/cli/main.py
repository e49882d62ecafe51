"""The `grove` command: registers the subcommands and turns errors into one line and an exit code."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import warnings
from asyncio import CancelledError
from pathlib import Path
from typing import Annotated

import structlog
from cyclopts import App, CycloptsError, Parameter, UnknownCommandError
from rich.text import Text

from grove.cli.commands import (
    cluster,
    crds,
    delete_podgroups,
    demo,
    detach,
    get,
    initc,
    operator,
    plan,
    snapshot,
    tree,
    webhooks,
)
from grove.cli.console import open_console
from grove.cli.usage_errors import usage_error
from grove.kube.errors import KubeError
from grove.local.errors import LocalError
from grove.operator.logs import has_colours

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
_WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

app = App(
    name="grove",
    help="Grove: gang-scheduled pods for multi-node inference on Kubernetes.",
    version_flags=["--version"],
    console=open_console(),
    suppress_keyboard_interrupt=False,
)
app.command(cluster.up)
app.command(cluster.down)
app.command(cluster.app)
app.command(cluster.kubectl)
app.command(demo.demo)
app.command(crds.crds)
app.command(detach.detach)
app.command(delete_podgroups.delete_podgroups)
app.command(operator.operator)
app.command(get.get)
app.command(plan.plan)
app.command(snapshot.snapshot)
app.command(tree.tree)
app.command(webhooks.webhooks)


@app.command
def version() -> None:
    """Print the version of grove, as --version does."""
    app.version_print()


@app.command(name="help")
def _help(*command: str) -> None:
    """Show the commands, or the options of one command.

    Parameters
    ----------
    command
        Name of a command; of `grove cluster`, its own command as well.
    """
    chain, apps, unknown = app.parse_commands(command)
    if unknown:
        raise UnknownCommandError(unused_tokens=unknown, app=apps[-1], command_chain=chain)
    app.help_print(command)


@app.command(name="initc", help_flags=[], version_flags=[])
def _initc(*arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Wait until the cliques that a pod starts after are ready (runs in the init container)."""
    return initc.main(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run one command. An error that the user can fix is one line and an exit code, never a traceback."""
    ready_output()
    _configure_logging()
    try:
        code = _run(arguments)
        sys.stdout.flush()  # here, because an error at interpreter exit can no longer be reported
    except CycloptsError as error:
        _print_error(usage_error(error))
        code = EXIT_FAILED
    except (LocalError, KubeError) as error:
        _print_error(str(error))
        code = EXIT_FAILED
    except (KeyboardInterrupt, CancelledError):  # asyncio raises the latter if no task has begun yet
        # Half-constructed objects warn when they are garbage collected; the user knows why.
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _: None
        _print_error("interrupted")
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        sys.stderr.close()  # the reader of our output has exited; there is nothing left to report to
        code = EXIT_FAILED
    except OSError as error:
        if error.errno not in _WRITE_ERRORS:
            raise
        _discard_output()
        _print_error(f"cannot write ({error.strerror}): make room, or write elsewhere")
        code = EXIT_FAILED
    sys.exit(code)


def _run(arguments: list[str] | None) -> int | str | None:
    try:
        code: int | str | None = app(arguments, exit_on_error=False, print_error=False)
    except SystemExit as end:
        return end.code
    return code


def ready_output() -> None:
    """Open closed standard streams on /dev/null, and replace characters that stdout cannot encode."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _discard_output() -> None:
    """Redirect stdout to /dev/null, so that the buffered rest is not written again at interpreter exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def _configure_logging() -> None:
    """Log warnings to stderr. The operator configures its own logging (`grove.operator.logs`)."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=has_colours(sys.stderr)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # looked up at the time of logging
    )


def _print_error(line: str) -> None:
    text = Text.assemble(("grove:", "bold red"), " ", line)  # brackets in the line are not markup
    open_console(stderr=True).print(text, highlight=False, soft_wrap=True)
