"""`grove tree`: prints a set and the objects below it, down to the pods."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from grove.cli import options
from grove.cli.commands import common
from grove.cli.console import open_console
from grove.cli.views.text_layout import lines
from grove.cli.views.text_layout import tree as rows


def tree(
    name: str | None = None,
    *,
    namespace: options.NamespaceOption = None,
    all_namespaces: options.AllOption = False,
    pods: Annotated[bool, Parameter(help="Show pods, or only down to the cliques.")] = True,
    output: options.OutputOption = "text",
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Show a PodCliqueSet as a tree: its replicas, gangs, groups, cliques and pods, with their state.

    Parameters
    ----------
    name
        Name of a PodCliqueSet; default: all of the namespace.
    """
    views = common.read_set_views(name, kubeconfig, context, namespace, all_namespaces)
    if output == "json":
        common.show_json(views)
        return 0
    if not views:
        sys.stderr.write("no PodCliqueSets in this namespace: grove get -A lists those of all namespaces\n")
    console = open_console()
    for view in views:
        common.show(lines(rows(view, pods=pods), common.output_width(console)), console)
    return 0
