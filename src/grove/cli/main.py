"""The `grove` command: which commands there are, and how an error reaches a person."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import structlog
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.text import Text

from grove.cli.commands import cluster, crds, demo, detach, get, initc, operator, tree
from grove.kube.errors import KubeError
from grove.local.errors import LocalError

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
_WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

app = App(
    name="grove",
    help="Gangs of pods that start together, sit close together and are kept together.",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)
app.command(cluster.up)
app.command(cluster.down)
app.command(cluster.app)
app.command(cluster.kubectl)
app.command(demo.demo)
app.command(crds.crds)
app.command(detach.detach)
app.command(operator.operator)
app.command(get.get)
app.command(tree.tree)


@app.command(name="initc", help_flags=[], version_flags=[])
def _initc(*arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Wait for the cliques that a pod starts after: the program of the init container."""
    return initc.main(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run one command. What a user can mend is one line and an exit code, never a traceback."""
    _configure_logging()
    ready_output()
    try:
        code = _run(arguments)
        sys.stdout.flush()  # at the end of the process it would be too late to say what is wrong with it
    except CycloptsError:  # which has been told already
        code = EXIT_FAILED
    except (LocalError, KubeError) as error:
        _print_error(str(error))
        code = EXIT_FAILED
    except KeyboardInterrupt:
        # What was cut off in the middle of being made complains when it is collected; the user knows why.
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _: None
        _print_error("interrupted")
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        sys.stderr.close()  # whoever read our output has gone, and so has the reason to say more
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
        code: int | str | None = app(arguments, exit_on_error=False)
    except SystemExit as end:
        return end.code
    return code


def ready_output() -> None:
    """Somewhere to write to, whatever we were started with, and whatever letters it knows."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _discard_output() -> None:
    """What is still in the buffer cannot be written either, and must not be tried again at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _configure_logging() -> None:
    """Logs are for the operator, which sets them up itself; at a terminal one sees what went wrong."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # as it is when something is said
    )


def _print_error(line: str) -> None:
    said = Text.assemble(("grove:", "bold red"), " ", line)  # a line with brackets in it is no markup
    Console(stderr=True).print(said, highlight=False, soft_wrap=True)
