"""`grove get`: lists PodCliqueSets, one per line."""

from __future__ import annotations

import sys
import time

from grove.cli.commands import common
from grove.cli.console import open_console
from grove.cli.views.text_layout import table


def get(
    name: str | None = None,
    *,
    namespace: common.NamespaceOption = None,
    all_namespaces: common.AllOption = False,
    output: common.OutputOption = "text",
    kubeconfig: common.KubeconfigOption = None,
    context: common.ContextOption = None,
) -> int:
    """List PodCliqueSets with their available replicas, running gangs and ready pods.

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
        where = (
            "any namespace"
            if all_namespaces
            else "this namespace: grove get -A lists those of all namespaces"
        )
        sys.stderr.write(f"no PodCliqueSets in {where}\n")
        return 0
    lines = table(views, time.time(), namespaces=all_namespaces, width=common.output_width(open_console()))
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
