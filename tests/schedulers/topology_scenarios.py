"""Upstream's topology scenarios: the sets in a short notation, and KAI's PodGroups for them, field by field.

The scenarios with a manifest of upstream's are in `tests/cluster/operator/scheduling/test_topology.py`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tests.plan.builders import a_set
from tests.topology.builders import packed

Body = dict[str, Any]

TOPOLOGY = "grove-topology"
ZONE, BLOCK, RACK, HOST = KEYS = (
    "topology.kubernetes.io/zone",
    "topology.example.com/block",
    "topology.example.com/rack",
    "kubernetes.io/hostname",
)
DOMAINS = dict(zip(("zone", "block", "rack", "host"), KEYS, strict=True))
QUEUE = {"kai.scheduler/queue": "test"}


class Scenario(Struct, frozen=True):
    """A set, and the expected PodGroups of its first replica."""

    body: Body
    pod_groups: dict[str, Body]


def workload(name: str, cliques: str, groups: str, wishes: str, replicas: int = 1) -> Body:
    body = packed(a_set(cliques, groups), wishes, TOPOLOGY)
    body["metadata"] = {"name": name, "labels": {"app": name}}
    body["spec"]["replicas"] = replicas
    for clique in body["spec"]["template"]["cliques"]:
        clique["labels"] = dict(QUEUE)
        pod = {"schedulerName": "kai-scheduler", "containers": [{"name": "main", "image": "model:1"}]}
        clique["spec"]["podSpec"] = pod
    return body


def within(key: str) -> Body:
    return {"topology": TOPOLOGY, "requiredTopologyLevel": key} if key else {}


def group(*subgroups: Body, key: str = "") -> Body:
    minimum = sum(each.get("minMember", 0) for each in subgroups)
    return {
        "minMember": minimum,
        "queue": "test",
        "topologyConstraint": within(key),
        "subGroups": list(subgroups),
    }


def parent(name: str, members: int, key: str) -> Body:
    return {"name": name, "minSubGroup": members, "topologyConstraint": within(key)}


def leaf(name: str, minimum: int, key: str = "", parent: str = "") -> Body:
    found: Body = {"name": name, "minMember": minimum}
    if parent:
        found["parent"] = parent
    return found | ({"topologyConstraint": within(key)} if key else {})


def _large() -> dict[str, Body]:
    base = "tas12-0"
    parts = [f"{base}-workers-{replica}" for replica in range(3)]
    expected = {
        base: group(
            *(parent(part, 1, RACK) for part in parts),
            *(leaf(f"{part}-worker", 2, HOST, part) for part in parts),
            key=BLOCK,
        )
    }
    for scaled in range(7):
        expected[f"{base}-workers-{scaled}"] = group(
            leaf(f"{base}-workers-{scaled + 3}-worker", 2, HOST), key=RACK
        )
    return expected


def _disaggregated(name: str, host: str = "") -> dict[str, Body]:
    base, roles = f"{name}-0", ("decoder", "prefill")
    expected = {
        base: group(
            *(parent(f"{base}-{role}-0", 2, RACK) for role in roles),
            leaf(f"{base}-router", 2),
            *(
                leaf(f"{base}-{role}-0-{role[0]}{part}", 1, host, f"{base}-{role}-0")
                for role in roles
                for part in ("worker", "leader")
            ),
            key=BLOCK,
        )
    }
    for role in roles:
        expected[f"{base}-{role}-0"] = group(
            *(leaf(f"{base}-{role}-1-{role[0]}{part}", 1, host) for part in ("worker", "leader")), key=RACK
        )
    return expected


_ROLES = "router:2 dworker dleader pworker pleader"
_GROUPS = "decoder:2/1=dworker,dleader prefill:2/1=pworker,pleader"
_HOSTS = "dworker:host dleader:host pworker:host pleader:host"

SCENARIOS: dict[str, Scenario] = {
    "TAS2 constraints on each clique": Scenario(
        workload("tas2", "worker-rack:3 worker-block:4", "", "worker-rack:rack worker-block:block"),
        {"tas2-0": group(leaf("tas2-0-worker-rack", 3, RACK), leaf("tas2-0-worker-block", 4, BLOCK))},
    ),
    "TAS3 constraint on the set only": Scenario(
        workload("tas3", "worker:2", "workers:2/2=worker", "rack"),
        {"tas3-0": group(leaf("tas3-0-workers-0-worker", 2), leaf("tas3-0-workers-1-worker", 2), key=RACK)},
    ),
    "TAS4 constraint on a group only": Scenario(
        workload("tas4", "worker:2 router:2", "workers:2/2=worker", "workers:rack"),
        {
            "tas4-0": group(
                parent("tas4-0-workers-0", 1, RACK),
                parent("tas4-0-workers-1", 1, RACK),
                leaf("tas4-0-router", 2),
                leaf("tas4-0-workers-0-worker", 2, parent="tas4-0-workers-0"),
                leaf("tas4-0-workers-1-worker", 2, parent="tas4-0-workers-1"),
            )
        },
    ),
    "TAS5 constraint to one host": Scenario(
        workload("tas5", "worker:2", "", "worker:host"),
        {"tas5-0": group(leaf("tas5-0-worker", 2, HOST))},
    ),
    "TAS6 constraint on a set with one clique": Scenario(
        workload("tas6", "worker:4", "", "zone"), {"tas6-0": group(leaf("tas6-0-worker", 4), key=ZONE)}
    ),
    "TAS11 constraints on a group and its clique": Scenario(
        workload("tas11", "worker:2", "workers:2/2=worker", "workers:rack worker:host"),
        {
            "tas11-0": group(
                parent("tas11-0-workers-0", 1, RACK),
                parent("tas11-0-workers-1", 1, RACK),
                leaf("tas11-0-workers-0-worker", 2, HOST, "tas11-0-workers-0"),
                leaf("tas11-0-workers-1-worker", 2, HOST, "tas11-0-workers-1"),
            )
        },
    ),
    "TAS12 many scaled gangs": Scenario(
        workload("tas12", "worker:2", "workers:10/3=worker", "block workers:rack worker:host"), _large()
    ),
    "TAS13 more pods than a rack holds": Scenario(
        workload("tas13", "worker:10", "", "rack"), {"tas13-0": group(leaf("tas13-0-worker", 10), key=RACK)}
    ),
    "TAS14 two replicas": Scenario(
        workload("tas14", "worker:2", "", "rack", replicas=2),
        {"tas14-0": group(leaf("tas14-0-worker", 2), key=RACK)},
    ),
    "TAS15 two groups and a router": Scenario(
        workload("tas15", _ROLES, _GROUPS, "block decoder:rack prefill:rack"), _disaggregated("tas15")
    ),
    "TAS16 three levels and two replicas": Scenario(
        workload("tas16", _ROLES, _GROUPS, f"block decoder:rack prefill:rack {_HOSTS}", replicas=2),
        _disaggregated("tas16", HOST),
    ),
}


def all_pod_groups(scenario: Scenario) -> dict[str, Body]:
    """The expected PodGroups of all replicas, which differ only in their names."""
    name, found = scenario.body["metadata"]["name"], dict(scenario.pod_groups)
    for index in range(1, scenario.body["spec"]["replicas"]):
        found |= {
            _renamed(key, name, index): _for_replica(value, name, index)
            for key, value in scenario.pod_groups.items()
        }
    return found


def _for_replica(value: Any, name: str, index: int) -> Any:
    if isinstance(value, dict):
        return {key: _for_replica(inner, name, index) for key, inner in value.items()}
    if isinstance(value, list):
        return [_for_replica(inner, name, index) for inner in value]
    return _renamed(value, name, index) if isinstance(value, str) else value


def _renamed(text: str, name: str, index: int) -> str:
    return f"{name}-{index}" + text.removeprefix(f"{name}-0") if text.startswith(f"{name}-0") else text
