"""The topology and the domains that a set names, and their node label keys."""

from __future__ import annotations

import pytest

from grove.api.types.clustertopology import (
    ClusterTopologySpec,
    SchedulerReference,
    SchedulerTopologyBinding,
    TopologyLevel,
)
from grove.topology.constraints import ResolvedTopology, domains, read, to_label_keys, topology_name_of
from tests.plan.builders import a_set, read_set
from tests.topology.builders import KEYS, a_topology, missing, packed


def template_of(body):
    return read_set(body).spec.template


@pytest.mark.parametrize("old_spelling", [False, True])
def test_domains_include_required_and_preferred_of_all_parts(old_spelling):
    template = template_of(
        packed(a_set("a b", "x:1=b"), "zone/rack a:/host x:rack", old_spelling=old_spelling)
    )
    assert domains(template) == {"zone", "rack", "host"}
    assert domains(template_of(packed(a_set("a b"), "a:rack"))) == {"rack"}
    assert domains(template_of(a_set("a"))) == frozenset()


def test_topology_name_precedence_is_set_group_clique():
    body = packed(a_set("a b", "x:1=b"), "a:host x:rack", name="")
    assert topology_name_of(template_of(body)) == ""
    body["spec"]["template"]["cliques"][0]["topologyConstraint"]["topologyName"] = "of-clique"
    assert topology_name_of(template_of(body)) == "of-clique"
    body["spec"]["template"]["podCliqueScalingGroups"][0]["topologyConstraint"]["topologyName"] = "of-group"
    assert topology_name_of(template_of(body)) == "of-group"
    body["spec"]["template"]["topologyConstraint"] = {"topologyName": "of-set"}
    assert topology_name_of(template_of(body)) == "of-set"


WISHES = [
    # constraint, levels of the topology, pack constraint of the gang
    ("rack", "zone rack host", {"required": KEYS["rack"]}),
    ("zone/rack", "zone rack host", {"required": KEYS["zone"], "preferred": KEYS["rack"]}),
    ("/host", "zone rack host", {"preferred": KEYS["host"]}),
    ("zone/rack", "zone host", {"required": KEYS["zone"]}),
    ("zone/rack", "rack host", {"preferred": KEYS["rack"]}),
    ("zone/rack", "host", None),
    ("rack", "zone rack=other.example.com/rack", {"required": "other.example.com/rack"}),
    ("rack", "rack zone", {"required": KEYS["rack"]}),
]


@pytest.mark.parametrize(("wish", "levels", "expected"), WISHES)
@pytest.mark.parametrize("old_spelling", [False, True])
def test_domains_resolve_to_keys_and_missing_are_dropped(wish, levels, expected, old_spelling):
    constraint = template_of(packed(a_set("a"), wish, old_spelling=old_spelling)).topology_constraint
    assert to_label_keys(constraint, a_topology(levels)) == (expected and {"packConstraint": expected})


def test_constraint_without_domain_or_topology_gives_none():
    named_only = template_of(packed(a_set("a b"), "a:rack")).topology_constraint
    assert named_only.topology_name == "racks"
    assert to_label_keys(named_only, a_topology()) is None
    assert to_label_keys(None, a_topology()) is None
    assert to_label_keys(template_of(packed(a_set("a"), "rack")).topology_constraint, missing()) is None


def test_references_of_both_fields_are_read():
    spec = ClusterTopologySpec(
        levels=(TopologyLevel("zone", "z"), TopologyLevel("rack", "r")),
        scheduler_references=(SchedulerReference("kai-scheduler", "kai-racks"),),
        scheduler_topology_bindings=(SchedulerTopologyBinding("other", "elsewhere"),),
    )
    found = read("racks", spec)
    assert found == ResolvedTopology(
        "racks", {"zone": "z", "rack": "r"}, {"kai-scheduler": "kai-racks", "other": "elsewhere"}, found=True
    )
    assert list(found.keys) == ["zone", "rack"]
    assert read("racks", None) == missing()
