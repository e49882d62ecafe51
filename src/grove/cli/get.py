"""`grove get`: the sets there are, a line each."""

from __future__ import annotations

import sys
import time

from rich.console import Console

from grove.cli import looking
from grove.cli.rows import table


def get(
    name: str | None = None,
    *,
    namespace: looking.NamespaceOption = None,
    all_namespaces: looking.AllOption = False,
    output: looking.OutputOption = "text",
    kubeconfig: looking.KubeconfigOption = None,
    context: looking.ContextOption = None,
) -> int:
    """List PodCliqueSets: replicas that are available, gangs that run, pods that are ready.

    Parameters
    ----------
    name
        Only this one.
    """
    views = looking.look(name, kubeconfig, context, namespace, all_namespaces)
    if output == "json":
        looking.show_json(views)
        return 0
    if not views:
        where = "any namespace" if all_namespaces else "this namespace: grove get -A looks in all"
        sys.stderr.write(f"no PodCliqueSets in {where}\n")
        return 0
    lines = table(views, time.time(), namespaces=all_namespaces, width=looking.room(Console()))
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
