"""The `grove` command: registers the subcommands and turns errors into one line and an exit code.

A subcommand is imported when it runs: imports take most of the time of `grove --help` and of short commands.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError
from rich.text import Text

from grove.cli.command_logs import log_later
from grove.cli.console import open_console
from grove.cli.exit_codes import ExitCode
from grove.cli.printable import printable
from grove.cli.program import as_called, program_name
from grove.cli.program import version as version_text
from grove.cli.usage_errors import usage_error

_WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

COMMANDS = {
    "up": ("cluster:up", "Start a Kubernetes control plane with simulated GPU nodes on this machine."),
    "down": ("cluster:down", "Stop the local cluster. Its data is kept for the next `grove up`."),
    "cluster": ("cluster:app", "Show the local cluster, or prepare its programs."),
    "kubectl": ("cluster:kubectl", "Run kubectl against the local cluster."),
    "demo": (
        "demo:demo",
        "Start a local cluster of GPU nodes, deploy a prefill/decode workload, and scale it out.",
    ),
    "completion": (
        "completion:completion",
        "Print the script that completes command lines in bash, zsh or fish.",
    ),
    "crds": (
        "crds:crds",
        "Print the CustomResourceDefinitions, or with --apply create or update those of a cluster.",
    ),
    "detach": (
        "detach:detach",
        "Remove the operator's finalizers and scheduling gates, after the operator is uninstalled.",
    ),
    "delete-podgroups": (
        "delete_podgroups:delete_podgroups",
        "Delete the operator's PodGroups of scheduling.k8s.io/v1alpha2, before Kubernetes 1.36 is upgraded.",
    ),
    "operator": ("operator:operator", "Run the operator until SIGTERM or SIGINT."),
    "admission": ("operator:admission", "Run the admission webhooks until SIGTERM or SIGINT."),
    "get": (
        "inspection.get:get",
        "List PodCliqueSets with their counts and errors, and say whether an operator leads.",
    ),
    "plan": (
        "plan:plan",
        "Show what would happen if objects were applied, and whether they fit. Nothing is written.",
    ),
    "snapshot": ("snapshot:snapshot", "Write the state of the cluster as JSON, to be read with --snapshot."),
    "explain": ("inspection.explain:explain", "Say why a workload waits, and what would help."),
    "topology": (
        "inspection.topology:topology",
        "Show the domains of the cluster as a tree, with free and used GPUs, and nodes that are not usable.",
    ),
    "dashboard": (
        "dashboard:dashboard",
        "Show the cluster as a web page: where gangs are, what waits and why, and what just happened.",
    ),
    "restart": (
        "actions.restart:restart",
        "Restart a workload or a part of it, as an update would: one unit at a time.",
    ),
    "rollout": (
        "actions.rollout:app",
        "Follow the rollout of a workload (status), hold it (pause), or continue it (resume).",
    ),
    "doctor": (
        "installation.doctor:doctor",
        "Check the installation: operator, versions, CRDs, webhooks, certificates, schedulers and driver.",
    ),
    "diagnostics": (
        "installation.diagnostics:diagnostics",
        "Write an archive for support, without Secrets and values of environment variables.",
    ),
    "status": (
        "inspection.status:status",
        "Say on one page whether a workload is healthy: replicas, gangs, update, domains, errors.",
    ),
    "events": ("inspection.events:events", "List the events of a workload and of all that belongs to it."),
    "logs": (
        "inspection.logs:logs",
        "Print the logs of the pods of a set, group, clique or gang, merged, with prefixes.",
    ),
    "tree": ("inspection.tree:tree", "Show a PodCliqueSet as a tree, down to its pods."),
    "webhooks": (
        "webhooks:webhooks",
        "Print the webhook configurations for an operator that runs outside of the cluster.",
    ),
}
"""Each command: where it is in `grove.cli.commands`, and its line in the list of commands."""

app = App(
    name=program_name(),
    help="Grove: gang-scheduled pods for multi-node inference on Kubernetes.",
    version=version_text,
    version_flags=["--version"],
    console=open_console(),
    suppress_keyboard_interrupt=False,
    help_format="plaintext",  # the parser of Markdown alone takes a third of the time of `grove --help`
)
for _name, (_path, _summary) in COMMANDS.items():
    app.command(f"grove.cli.commands.{_path}", name=_name, help=_summary)


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
    from grove.cli.commands import initc

    return initc.main(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run one command. An error that the user can fix is one line and an exit code, never a traceback."""
    ready_output()
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()  # here, because an error at interpreter exit can no longer be reported
    except BaseException as error:
        code = _report(error)
    gc.freeze()  # the interpreter searches for cycles when it ends; the memory is freed without that
    sys.exit(code)


def _run(arguments: list[str]) -> int | str | None:
    use_own_help(arguments)
    command, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    if command.__module__ not in (__name__, App.__module__):  # those print the help or the version
        log_later()
    try:
        code: int | str | None = command(*bound.args, **bound.kwargs)
    except SystemExit as end:
        return end.code
    return code


def use_own_help(arguments: Sequence[str]) -> None:
    """The help of a command is its docstring, in Markdown; its line in the list of commands replaced it."""
    name = next((each for each in arguments if each != "help"), "")
    if name in COMMANDS:
        app[name].help = None
        app[name].help_format = "markdown"


def _report(error: BaseException) -> int:
    """Report what ended a command, and return its exit code. A bug is raised again."""
    from asyncio import CancelledError  # what follows is imported here, as only a failed command needs it

    from grove.kube.errors import KubeError
    from grove.local.errors import LocalError

    match error:
        case CycloptsError():
            _print_error(usage_error(error))
        case LocalError() | KubeError():
            _print_error(str(error))
        case KeyboardInterrupt() | CancelledError():  # asyncio raises the latter if no task has begun yet
            # Half-constructed objects warn when they are garbage collected; the user knows why.
            warnings.simplefilter("ignore")
            sys.unraisablehook = lambda _: None
            _print_error("interrupted")
            return ExitCode.INTERRUPTED
        case BrokenPipeError():
            _discard_output()
            sys.stderr.close()  # the reader of our output has exited; there is nothing left to report to
            return ExitCode.CLOSED_PIPE
        case OSError(errno=number) if number in _WRITE_ERRORS:
            _discard_output()
            _print_error(f"cannot write ({error.strerror}): make room, or write elsewhere")
        case _:
            raise error
    return ExitCode.FAILED


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


def _print_error(line: str) -> None:
    shown = printable(as_called(line, COMMANDS))
    text = Text.assemble(("grove:", "bold red"), " ", shown)  # brackets in the line are not markup
    open_console(stderr=True).print(text, highlight=False, soft_wrap=True)
