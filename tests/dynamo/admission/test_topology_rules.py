"""Topology constraints: the four shapes, how they are rendered, and which are rejected."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.configuration.types import DynamoTopology, OperatorConfiguration, TopologyMode
from grove.dynamo.admission import graph_validation
from grove.dynamo.context import GraphContext
from grove.dynamo.render import podcliqueset
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from tests.dynamo.builders import (
    FACTS,
    KNOWN,
    ON_KAI,
    alpha,
    component,
    deployment,
    graph,
    manifest,
    rendered,
    service,
)
from tests.rules.builders import in_use

ZONE = {"topologyName": "dc", "pack": {"required": "zone"}}


def constraints(body):
    """The topology constraints of a set, its groups and cliques, by name."""
    template = rendered(body)["spec"]["template"]
    parts = [*template["cliques"], *template.get("podCliqueScalingGroups", ())]
    found = {part["name"]: part["topologyConstraint"] for part in parts if "topologyConstraint" in part}
    whole = template.get("topologyConstraint")
    return {"": whole, **found} if whole else found


def errors_of(body, known=KNOWN):
    return [str(error) for error in graph_validation.on_create(body, known).errors]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("deployment-only", {"": ZONE}),
        (
            "service-only",
            {"frontend": ZONE, "vllmworker": {"topologyName": "dc", "pack": {"required": "block"}}},
        ),
        (
            "both",
            {
                "": ZONE,
                "frontend": {"pack": {"required": "zone"}},
                "vllmworker": {"pack": {"required": "block"}},
            },
        ),
    ],
)
def test_each_shape_is_admitted_and_rendered(shape, expected):
    body = manifest(shape)
    assert errors_of(body) == []
    assert constraints(body) == expected


@pytest.mark.parametrize("shape", ["deployment-only", "service-only", "both"])
def test_rendered_set_passes_its_own_validation(shape):
    assert validation.on_create(default_set(rendered(manifest(shape), ON_KAI)), FACTS).message == ""
    assert graph_validation.on_create(manifest(shape), KNOWN, FACTS).message == ""


def test_constraint_unsupported_by_scheduler_is_rejected():
    plain = replace(KNOWN, scheduler="")
    errors = graph_validation.on_create(manifest("both"), plain, replace(FACTS, backends=in_use())).errors
    assert [error.path for error in errors] == [
        "spec.topologyConstraint.packDomain",
        "spec.components[0].topologyConstraint.packDomain",
        "spec.components[1].topologyConstraint.packDomain",
    ]
    for error in errors:
        assert error.detail.startswith("default-scheduler cannot keep this constraint")
        assert "pack.preferred" not in error.detail


def test_multinode_constraint_is_set_on_the_group():
    applied = podcliqueset.applied(graph(manifest("both")), podcliqueset.RenderSettings(topology="dc"))
    assert [(each.component, each.pack_domain, each.applied_to) for each in applied] == [
        ("", "zone", "PodCliqueSet/app"),
        ("Frontend", "zone", "PodClique/app-0-frontend"),
        ("VllmWorker", "block", "PodCliqueScalingGroup/app-0-vllmworker"),
    ]


def test_component_domain_broader_than_graph_is_rejected():
    assert errors_of(manifest("broader-service")) == [
        'spec.components[0].topologyConstraint.packDomain: Invalid value: "zone": must be rack, the '
        "domain of the graph, or narrower"
    ]


def test_graph_without_constraints_renders_none():
    body = deployment(component())
    assert errors_of(body) == []
    assert constraints(body) == {}


def test_superseded_fields_name_their_replacement():
    assert errors_of(manifest("superseded")) == [
        "spec.topologyConstraints: Forbidden: unknown field; use topologyConstraint: one object in spec, "
        "one in each constrained component",
        "spec.topologyConstraints.enabled: Forbidden: unknown field; an object that is present is enabled: "
        "remove this field",
        'spec.services: Invalid value: "(list)": must be an object that maps names to services; v1beta1 has '
        "a list, spec.components",
    ]


def packed(domain: str, **topology: str):
    return deployment(component(topologyConstraint={"packDomain": domain}), topologyConstraint=topology)


@pytest.mark.parametrize(
    ("body", "known", "why"),
    [
        (packed("row"), KNOWN, "Unsupported value"),
        (packed("Rack"), KNOWN, "must be lower case"),
        (packed("1st"), KNOWN, "start with a letter"),
        (packed("numa"), KNOWN, "is no level of topology dc, which has block, host, rack, zone"),
        (packed("rack", clusterTopologyName="gone"), KNOWN, '"gone" not found'),
        (packed("rack"), replace(KNOWN, topology_aware=False), "config.topologyAwareScheduling.enabled"),
        (packed("rack"), replace(KNOWN, topologies={}), "name a topology; existing topologies: none"),
        (
            packed("rack"),
            replace(KNOWN, topologies={"a": ("rack",), "b": ("rack",)}),
            "name a topology; existing topologies: a, b",
        ),
        (
            deployment(component(), topologyConstraint={"topologyName": "dc"}),
            KNOWN,
            "named without a constraint",
        ),
    ],
)
def test_invalid_constraint_is_rejected_with_reason(body, known, why):
    (error,) = errors_of(body, known)
    assert "opologyConstraint" in error
    assert why in error


@pytest.mark.parametrize("spelling", ["clusterTopologyName", "topologyProfile", "topologyName"])
def test_topology_is_named_by_any_of_three_fields(spelling):
    known = replace(KNOWN, topologies={**KNOWN.topologies, "other": ("rack",)})
    assert errors_of(packed("rack", **{spelling: "other"}), known) == []
    assert errors_of(packed("block", **{spelling: "other"}), known) != []


def test_topology_named_by_two_fields_is_rejected():
    (error,) = errors_of(packed("rack", clusterTopologyName="dc", topologyName="other"))
    assert "set one of them" in error


def test_configured_topology_precedes_the_only_one():
    named = replace(KNOWN, topology=DynamoTopology(default_topology_name="gone"))
    assert "gone" in errors_of(packed("rack"), named)[0]


def test_empty_allowed_domains_allow_all_levels():
    known = GraphContext(DynamoTopology(allowed_domains=()), True, {"dc": ("row", "cabinet")})
    assert errors_of(packed("cabinet"), known) == []


def test_default_allowed_domains_are_seven():
    known = GraphContext.of(OperatorConfiguration())
    assert known.topology.allowed_domains == ("region", "zone", "datacenter", "block", "rack", "host", "numa")


@pytest.mark.parametrize("after", [None, {"packDomain": "block"}])
def test_constraint_change_or_removal_is_rejected(after):
    old = manifest("both")
    new = manifest("both")
    for place in (new["spec"], *new["spec"]["components"]):
        place["topologyConstraint"] = after
    errors = [str(error) for error in graph_validation.on_update(old, new, KNOWN).errors]
    assert errors[0].startswith("spec.topologyConstraint: Forbidden: cannot be changed: delete")
    assert "spec.components[0].topologyConstraint: Forbidden" in errors[1]


def test_constraint_added_on_update_is_rejected():
    old = deployment(component())
    errors = graph_validation.on_update(old, packed("rack"), KNOWN).errors
    assert [error.path for error in errors] == ["spec.components[0].topologyConstraint"]


def test_update_elsewhere_does_not_check_topology():
    new = manifest("both")
    new["spec"]["components"][1]["replicas"] = 5
    assert graph_validation.on_update(manifest("both"), new, replace(KNOWN, topologies={})).errors == ()


DECLINED = {"nvidia.com/enable-grove": "false"}


def without_grove(domain: str = "rack"):
    return deployment(component(topologyConstraint={"packDomain": domain}), annotations=DECLINED)


def test_without_grove_unenforceable_constraint_is_rejected():
    assert "cannot be enforced without Grove" in errors_of(without_grove())[0]


def test_without_grove_domain_without_label_is_rejected():
    topology = DynamoTopology(mode=TopologyMode.AFFINITY, domain_to_label_mapping={"block": "example/block"})
    known = replace(KNOWN, topology=topology)
    assert "domainToLabelMapping" in errors_of(without_grove(), known)[0]
    assert errors_of(without_grove("block"), known) == []


def test_without_grove_allowed_domains_define_the_order():
    topology = DynamoTopology(
        mode=TopologyMode.AFFINITY, domain_to_label_mapping={"zone": "example/zone", "rack": "example/rack"}
    )
    body = alpha(
        {"topologyConstraint": {"packDomain": "rack"}}, Web=service(topologyConstraint={"packDomain": "zone"})
    )
    body["metadata"]["annotations"] = DECLINED
    (error,) = errors_of(body, replace(KNOWN, topology=topology))
    assert "must be rack, the domain of the graph, or narrower" in error
