"""`grove tree`: a set and all that was made of it, down to the pods."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from grove.cli import looking
from grove.cli.rows import lines
from grove.cli.rows import tree as rows


def tree(
    name: str | None = None,
    *,
    namespace: looking.NamespaceOption = None,
    all_namespaces: looking.AllOption = False,
    pods: Annotated[bool, Parameter(help="Down to the pods, or to the cliques only.")] = True,
    output: looking.OutputOption = "text",
    kubeconfig: looking.KubeconfigOption = None,
    context: looking.ContextOption = None,
) -> int:
    """Show what a PodCliqueSet consists of: replicas, gangs, groups, cliques and pods, and how they are.

    Parameters
    ----------
    name
        Only this one; without it, all of the namespace.
    """
    views = looking.look(name, kubeconfig, context, namespace, all_namespaces)
    if output == "json":
        looking.show_json(views)
        return 0
    if not views:
        sys.stderr.write("no PodCliqueSets here: grove get -A lists all there are\n")
    console = Console()
    for view in views:
        looking.show(lines(rows(view, pods=pods), looking.room(console)), console)
    return 0
