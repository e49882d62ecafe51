"""`grove tree`: a set and all that was made of it, down to the pods."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from grove.cli.commands import common
from grove.cli.views.text_layout import lines
from grove.cli.views.text_layout import tree as rows


def tree(
    name: str | None = None,
    *,
    namespace: common.NamespaceOption = None,
    all_namespaces: common.AllOption = False,
    pods: Annotated[bool, Parameter(help="Down to the pods, or to the cliques only.")] = True,
    output: common.OutputOption = "text",
    kubeconfig: common.KubeconfigOption = None,
    context: common.ContextOption = None,
) -> int:
    """Show what a PodCliqueSet consists of: replicas, gangs, groups, cliques and pods, and how they are.

    Parameters
    ----------
    name
        Only this one; without it, all of the namespace.
    """
    views = common.read_set_views(name, kubeconfig, context, namespace, all_namespaces)
    if output == "json":
        common.show_json(views)
        return 0
    if not views:
        sys.stderr.write("no PodCliqueSets here: grove get -A lists all there are\n")
    console = Console()
    for view in views:
        common.show(lines(rows(view, pods=pods), common.output_width(console)), console)
    return 0
