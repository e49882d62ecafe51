"""The plan of a gang of 1,000 pods on 5,000 nodes, from a snapshot file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from bench.cli.command_timing import Timing, run
from grove.cluster_state.described import described_state
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.cluster_state.snapshot_file import encode

SHAPE, GPUS, PODS = "5x10x20x5", 8, 1_000


def measure() -> Timing:
    """The time of `grove plan`."""
    state = described_state(SHAPE, GPUS, kinds_of(new_caches(operator_setup()), "lease"), ["default"])
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        snapshot, gang = Path(folder) / "cluster.json", Path(folder) / "gang.json"
        snapshot.write_bytes(encode(state))
        gang.write_text(json.dumps(_gang()))
        return run("plan", "-f", str(gang), "--snapshot", str(snapshot))


def _gang() -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(GPUS)}
    pod = {"containers": [{"name": "main", "image": "main", "resources": {"limits": limits}}]}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": PODS, "podSpec": pod}}
    constraint = {"topologyName": "default", "pack": {"required": "zone"}}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "large"},
        "spec": {"replicas": 1, "template": {"topologyConstraint": constraint, "cliques": [clique]}},
    }
