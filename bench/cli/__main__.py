"""python -m bench.cli: how soon commands answer; prints a table, writes bench/results/cli.json."""

from __future__ import annotations

import asyncio
import sys

from bench.cli import busy_cluster, plan
from bench.cli.command_timing import Timing, run
from bench.cli.report import kept, show, write
from grove.local.cluster.lifecycle import LocalCluster


async def measure() -> dict[str, Timing]:
    """All commands, one after another."""
    found = {"help": run("--help"), "plan": plan.measure()}
    async with busy_cluster.busy_cluster() as cluster:
        return found | await asyncio.to_thread(_on_cluster, cluster)


def _on_cluster(cluster: LocalCluster) -> dict[str, Timing]:
    here = ("-n", busy_cluster.NAMESPACE, "--kubeconfig", str(cluster.kubeconfig))
    return {
        "get": run("get", *here),
        "tree": run("tree", busy_cluster.RUNNING, *here),
        "topology": run("topology", *here[2:]),
        "__complete": run("__complete", "get", *here, ""),
        "explain": run("explain", busy_cluster.WAITING, *here),
    }


def main() -> int:
    result = asyncio.run(measure())
    show(result)
    write(result)
    return 0 if kept(result) else 1


if __name__ == "__main__":
    sys.exit(main())
