"""`grove doctor`: checks the installation, one line for each check."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Annotated

from cyclopts import Parameter

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli import options
from grove.cli.commands.installation.admission_checks import admission_checks
from grove.cli.commands.installation.check_model import Check, State
from grove.cli.commands.installation.cluster_checks import cluster_checks
from grove.cli.commands.installation.facts import Installation
from grove.cli.commands.installation.operator_checks import operator_checks
from grove.cli.commands.installation.reading import read_installation
from grove.cli.console import open_console
from grove.cli.printable import printable
from grove.cli.structured_output import write_structured
from grove.kube.auth import config

_COLOURS = {State.OK: "green", State.WARN: "yellow", State.FAIL: "bold red", State.UNKNOWN: "dim"}
_INDENT = 9


def doctor(
    *,
    namespace: options.NamespaceOption = None,
    output: options.StructuredOption = "table",
    lease: Annotated[str, Parameter(help="Name of the operator's Lease.")] = OPERATOR_LEASE,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Check the installation: API server, operator, versions, CRDs, webhooks, certificates, schedulers,
    feature gates and NVIDIA's driver. Each check is a line, with a remedy where something is wrong.

    A set that breaks a rule is sent to the API server in a dry run, in --namespace; nothing is stored. What
    the user may not read is "unknown", which is no failure. No Secret is read.

    Exit codes: 0 nothing failed; 1 something failed, or the cluster cannot be reached.
    """
    connection = config.load(kubeconfig, context)
    found = asyncio.run(read_installation(connection, lease, namespace or connection.namespace))
    checks = all_checks(found, lease)
    if output == "table":
        _show(checks)
    else:
        write_structured({"checks": checks}, output)
    return int(any(each.state is State.FAIL for each in checks))


def all_checks(found: Installation, lease: str) -> list[Check]:
    """Every check of an installation, in the order in which problems are to be solved. Pure."""
    return [*operator_checks(found, lease), *admission_checks(found), *cluster_checks(found)]


def _show(checks: Iterable[Check]) -> None:
    console = open_console()
    width = console.width if console.is_terminal else None
    for each in checks:
        first, *rest = check_lines(each, width)
        if console.is_terminal:
            console.print(
                f"{first[:_INDENT]}", style=_COLOURS[each.state], end="", highlight=False, markup=False
            )
            console.print(first[_INDENT:], highlight=False, markup=False, soft_wrap=True)
        else:
            sys.stdout.write(first + "\n")
        sys.stdout.writelines(f"{line}\n" for line in rest)


def check_lines(check: Check, width: int | None) -> Iterator[str]:
    """A check: one line, and one for its remedy; on a terminal of some width they are wrapped. Pure."""
    indent = " " * _INDENT
    texts = [f"{check.state:<{_INDENT}}{check.name}: {printable(check.message)}"]
    if check.remedy:
        texts.append(f"{indent}do: {printable(check.remedy)}")
    for text in texts:
        if width is None:
            yield text
        else:
            yield from textwrap.wrap(text, max(width, 2 * _INDENT), subsequent_indent=indent)
