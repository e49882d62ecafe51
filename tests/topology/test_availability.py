"""The condition `TopologyLevelsUnavailable` in every case."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.topology.availability import levels_unavailable
from tests.plan.builders import a_set, read_set
from tests.topology.builders import a_topology, missing, packed

FALSE, TRUE, UNKNOWN = "False", "True", "Unknown"
ALL, SOME = "AllClusterTopologyLevelsAvailable", "ClusterTopologyLevelsUnavailable"
WELL, TURNED = "All topology levels are available", "ClusterTopologyLevelsInverted"
OTHER = f"{WELL}, but their order inverts constraints of the set: PodCliqueSet asks for zone, and"
A, X = f"{OTHER} PodClique 'a' in it for rack", f"{OTHER} PodCliqueScalingGroup 'x' in it for rack"
LOST = "Unavailable topology domains: "
ABSENT = 'ClusterTopology or ClusterTopologyBinding "racks" not found'
NAMELESS = (
    "PodCliqueSet topology constraints must include topologyName: add "
    "spec.template.topologyConstraint.topologyName, the name of a ClusterTopology, to the set"
)
OFF = "Topology constraints are defined but Topology Aware Scheduling is disabled"
ROWS = [
    # wishes, name in the set, topology; status, reason, message
    ("zone/rack a:host", "racks", a_topology(), FALSE, ALL, WELL),
    ("", "", a_topology(), FALSE, ALL, "No topology constraints defined"),
    ("zone a:rack x:/host", "racks", a_topology("zone"), TRUE, SOME, f"{LOST}[host, rack]"),
    ("zone a:rack", "racks", a_topology("rack zone"), FALSE, TURNED, A),
    ("zone/rack x:rack/zone", "racks", a_topology("host rack zone"), FALSE, TURNED, X),
    ("rack a:rack x:/zone", "racks", a_topology("rack zone"), FALSE, ALL, WELL),
    ("zone a:rack x:host", "racks", a_topology("rack zone"), TRUE, SOME, f"{LOST}[host]"),
    ("/rack", "racks", a_topology("zone host"), TRUE, SOME, f"{LOST}[rack]"),
    ("zone", "racks", missing(), TRUE, "ClusterTopologyNotFound", ABSENT),
    ("zone", "", missing(""), UNKNOWN, "TopologyNameMissing", NAMELESS),
    ("a:rack", "", missing(""), UNKNOWN, "TopologyNameMissing", NAMELESS),
    ("zone", "racks", None, UNKNOWN, "TopologyAwareSchedulingDisabled", OFF),
]


@pytest.mark.parametrize(("wishes", "name", "topology", "status", "reason", "message"), ROWS)
@pytest.mark.parametrize("old_spelling", [False, True])
def test_condition_by_constraints_and_topology(wishes, name, topology, status, reason, message, old_spelling):
    workload = read_set(packed(a_set("a b", "x:1=b"), wishes, name, old_spelling=old_spelling))
    workload = replace(workload, metadata=replace(workload.metadata, generation=7))
    condition = levels_unavailable(workload, topology)
    assert condition is not None
    assert (condition.type, condition.status) == ("TopologyLevelsUnavailable", status)
    assert (condition.reason, condition.message) == (reason, message)
    assert condition.observed_generation == 7


def test_disabled_without_constraints_gives_no_condition():
    assert levels_unavailable(read_set(a_set("a")), None) is None


def with_fallbacks(*fallbacks):
    body = packed(a_set("a b", "x:1=b"), "rack", "racks")
    body["spec"]["template"]["topologyConstraint"]["fallbacks"] = list(fallbacks)
    return read_set(body)


@pytest.mark.parametrize(
    ("fallback", "topology", "expected"),
    [
        ({"packDomain": "zone"}, a_topology(), (FALSE, ALL, WELL)),
        ({"packDomain": "block"}, a_topology(), (TRUE, SOME, f"{LOST}[block]")),
        (
            {"topologyName": "other"},
            missing("other"),
            (TRUE, "ClusterTopologyNotFound", ABSENT.replace("racks", "other")),
        ),
        ({"topologyName": "other"}, a_topology("zone"), (TRUE, SOME, f"{LOST}[rack]")),
    ],
)
def test_condition_names_the_fallback_without_its_levels(fallback, topology, expected):
    workload = with_fallbacks({"packDomain": "zone"}, fallback)
    condition = levels_unavailable(workload, a_topology(), (a_topology(), topology))
    status, reason, message = expected
    if status == TRUE:
        message = f"topologyConstraint.fallbacks[1], which is not tried: {message}"
    assert (condition.status, condition.reason, condition.message) == (status, reason, message)


def test_missing_levels_of_the_constraint_come_first():
    condition = levels_unavailable(with_fallbacks({"packDomain": "zone"}), a_topology("zone"), (missing(),))
    assert condition.message == f"{LOST}[rack]"
