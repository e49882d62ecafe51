"""GPUs that pods get by claims of their own, in the sum of their gang and as reserved cells."""

from __future__ import annotations

from typing import Any

import pytest

from grove.dashboard.model import Use
from grove.dashboard.rights import Rights
from tests.dashboard.state import histories as made
from tests.dashboard.state.histories import MemoryCluster

CHANNEL = "compute-domain-default-channel.nvidia.com"


def with_claims(*templates: str, gpus: int = 0) -> MemoryCluster:
    """A gang of two pods with these claims each."""
    cluster = MemoryCluster()
    cluster.put("set", made.a_set("open", "a"))
    cluster.put("clique", made.a_clique("open", "a", gpus=gpus, templates=templates))
    cluster.put("gang", made.a_gang("open", "a"))
    return cluster


def sum_of(cluster: MemoryCluster) -> int:
    cluster.refresh()
    return cluster.board.picture(Rights()).gangs["open/a-0"].gpus


@pytest.mark.parametrize(
    ("templates", "requested", "expected"),
    [
        ((), 1, 2),
        (("four",), 0, 8),
        (("four", "four"), 0, 16),
        (("four",), 1, 10),
        (("channel",), 0, 0),
        (("missing", "four"), 0, 8),
    ],
    ids=["requests", "claims", "twice", "both", "other-devices", "missing"],
)
async def test_gang_has_the_gpus_of_its_claims(templates, requested, expected):
    cluster = with_claims(*templates, gpus=requested)
    cluster.put("template", made.a_template("open", "four", 4))
    cluster.put("template", made.a_template("open", "channel", 1, CHANNEL))
    cluster.put("template", made.a_template("other", "missing", 1))
    assert sum_of(cluster) == expected


async def test_template_that_comes_later_or_goes_is_counted():
    cluster = with_claims("four")
    assert sum_of(cluster) == 0
    cluster.put("template", made.a_template("open", "four", 4))
    assert sum_of(cluster) == 8
    cluster.delete("template", "open", "four")
    assert sum_of(cluster) == 0


async def test_all_devices_of_a_node_are_counted():
    cluster = with_claims("all")
    template = made.a_template("open", "all")
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = "All"
    cluster.put("template", template)
    cluster.put("node", made.a_node("n0", gpus=0))
    cluster.put("class", made.a_class())
    cluster.put("slice", made.a_slice("n0", 4))
    assert sum_of(cluster) == 8
    cluster.put("slice", made.a_slice("n0", 3))
    assert sum_of(cluster) == 6


@pytest.mark.parametrize(("scope", "expected"), [("PerReplica", 4), ("AllReplicas", 0)])
async def test_claims_by_resource_sharing_count_unless_shared(scope, expected):
    cluster = with_claims()
    workload: dict[str, Any] = made.a_set("open", "a")
    sharing = {"name": "two", "scope": scope}
    clique = {"name": "worker", "spec": {"podSpec": {}, "replicas": 2}, "resourceSharing": [sharing]}
    workload["spec"]["template"] = {"cliques": [clique]}
    cluster.put("set", workload)
    cluster.put("template", made.a_template("open", "two", 2))
    assert sum_of(cluster) == expected


async def test_nominated_pod_reserves_the_gpus_of_its_claims():
    cluster = with_claims("two")
    cluster.put("template", made.a_template("open", "two", 2))
    cluster.put("node", made.a_node("n0", gpus=0))
    cluster.put("class", made.a_class())
    cluster.put("slice", made.a_slice("n0", 4))
    cluster.put("pod", made.gang_pod("open", "a", 0, nominated="n0", gpus=0))
    cluster.refresh()
    assert cluster.board.picture(Rights()).nodes["n0"].uses == (Use("open/a-0", 2, 1, reserved=True),)
    cluster.put("claim", made.a_claim("open", "c0", "n0", 0, "a-0-worker-0"))
    cluster.put("pod", made.gang_pod("open", "a", 0, node="n0", gpus=0))
    cluster.refresh()
    assert cluster.board.picture(Rights()).nodes["n0"].uses == (Use("open/a-0", 1, 1),)


async def test_template_that_cannot_be_read_is_not_counted():
    cluster = with_claims("four")
    template = made.a_template("open", "four")
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = "many"
    cluster.put("template", template)
    assert sum_of(cluster) == 0
