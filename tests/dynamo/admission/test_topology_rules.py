"""Topology constraints: the four shapes, what they mean, and what is refused."""

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
    """Of a set and its parts, by their names."""
    template = rendered(body)["spec"]["template"]
    parts = [*template["cliques"], *template.get("podCliqueScalingGroups", ())]
    found = {part["name"]: part["topologyConstraint"] for part in parts if "topologyConstraint" in part}
    whole = template.get("topologyConstraint")
    return {"": whole, **found} if whole else found


def refused(body, known=KNOWN):
    return [str(error) for error in graph_validation.on_create(body, known).errors]


@pytest.mark.parametrize(
    ("shape", "made"),
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
def test_each_shape_is_admitted_and_handed_on(shape, made):
    body = manifest(shape)
    assert refused(body) == []
    assert constraints(body) == made


@pytest.mark.parametrize("shape", ["deployment-only", "service-only", "both"])
def test_grove_itself_admits_the_set(shape):
    assert validation.on_create(default_set(rendered(manifest(shape), ON_KAI)), FACTS).message == ""
    assert graph_validation.on_create(manifest(shape), KNOWN, FACTS).message == ""


def test_a_constraint_that_no_scheduler_would_keep_is_refused_and_not_dropped():
    plain = replace(KNOWN, scheduler="")
    (error,) = graph_validation.on_create(manifest("both"), plain, replace(FACTS, backends=in_use())).errors
    assert "Grove would refuse its PodCliqueSet" in error.detail
    assert "default-scheduler cannot keep required topology constraints" in error.detail


def test_a_multinode_component_is_packed_as_a_group_and_its_cliques_inherit():
    applied = podcliqueset.applied(graph(manifest("both")), podcliqueset.RenderSettings(topology="dc"))
    assert [(each.component, each.pack_domain, each.applied_to) for each in applied] == [
        ("", "zone", "PodCliqueSet/app"),
        ("Frontend", "zone", "PodClique/app-0-frontend"),
        ("VllmWorker", "block", "PodCliqueScalingGroup/app-0-vllmworker"),
    ]


def test_a_broader_service_is_refused():
    assert refused(manifest("broader-service")) == [
        'spec.components[0].topologyConstraint.packDomain: Invalid value: "zone": must be rack, the '
        "deployment's domain, or narrower"
    ]


def test_without_constraints_there_are_none():
    body = deployment(component())
    assert refused(body) == []
    assert constraints(body) == {}


def test_the_superseded_snippet_is_told_what_to_write_instead():
    assert refused(manifest("superseded")) == [
        "spec.topologyConstraints: Forbidden: unknown field; write topologyConstraint: one object in spec, "
        "one in each component that has its own",
        "spec.topologyConstraints.enabled: Forbidden: unknown field; what is there is in force: "
        "take this field away",
        'spec.services: Invalid value: "(list)": must be an object with a service for each name; a list is '
        "spec.components of v1beta1",
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
        (packed("rack"), replace(KNOWN, topologies={}), "say which topology is meant; there is none"),
        (
            packed("rack"),
            replace(KNOWN, topologies={"a": ("rack",), "b": ("rack",)}),
            "say which topology is meant; there is a, b",
        ),
        (deployment(component(), topologyConstraint={"topologyName": "dc"}), KNOWN, "nothing is constrained"),
    ],
)
def test_bad_constraints_are_refused_with_a_reason(body, known, why):
    (error,) = refused(body, known)
    assert "opologyConstraint" in error
    assert why in error


@pytest.mark.parametrize("spelling", ["clusterTopologyName", "topologyProfile", "topologyName"])
def test_a_topology_may_be_named_in_each_spelling(spelling):
    known = replace(KNOWN, topologies={**KNOWN.topologies, "other": ("rack",)})
    assert refused(packed("rack", **{spelling: "other"}), known) == []
    assert refused(packed("block", **{spelling: "other"}), known) != []


def test_two_names_at_once_are_refused():
    (error,) = refused(packed("rack", clusterTopologyName="dc", topologyName="other"))
    assert "say it once" in error


def test_the_operators_default_comes_before_the_only_one_there_is():
    named = replace(KNOWN, topology=DynamoTopology(default_topology_name="gone"))
    assert "gone" in refused(packed("rack"), named)[0]


def test_an_empty_list_allows_every_domain_that_the_topology_has():
    known = GraphContext(DynamoTopology(allowed_domains=()), True, {"dc": ("row", "cabinet")})
    assert refused(packed("cabinet"), known) == []


def test_the_configuration_allows_the_seven_names():
    known = GraphContext.of(OperatorConfiguration())
    assert known.topology.allowed_domains == ("region", "zone", "datacenter", "block", "rack", "host", "numa")


@pytest.mark.parametrize("after", [None, {"packDomain": "block"}])
def test_a_constraint_cannot_be_changed_or_removed(after):
    old = manifest("both")
    new = manifest("both")
    for place in (new["spec"], *new["spec"]["components"]):
        place["topologyConstraint"] = after
    errors = [str(error) for error in graph_validation.on_update(old, new, KNOWN).errors]
    assert errors[0].startswith("spec.topologyConstraint: Forbidden: cannot be changed: delete")
    assert "spec.components[0].topologyConstraint: Forbidden" in errors[1]


def test_a_constraint_cannot_be_added():
    old = deployment(component())
    errors = graph_validation.on_update(old, packed("rack"), KNOWN).errors
    assert [error.path for error in errors] == ["spec.components[0].topologyConstraint"]


def test_a_change_elsewhere_does_not_ask_for_the_topology_again():
    new = manifest("both")
    new["spec"]["components"][1]["replicas"] = 5
    assert graph_validation.on_update(manifest("both"), new, replace(KNOWN, topologies={})).errors == ()


DECLINED = {"nvidia.com/enable-grove": "false"}


def declined(domain: str = "rack"):
    return deployment(component(topologyConstraint={"packDomain": domain}), annotations=DECLINED)


def test_without_grove_a_constraint_that_cannot_be_enforced_is_refused():
    assert "cannot be enforced without Grove" in refused(declined())[0]


def test_without_grove_a_domain_needs_a_label():
    topology = DynamoTopology(mode=TopologyMode.AFFINITY, domain_to_label_mapping={"block": "example/block"})
    known = replace(KNOWN, topology=topology)
    assert "domainToLabelMapping" in refused(declined(), known)[0]
    assert refused(declined("block"), known) == []


def test_without_grove_the_order_of_domains_is_that_of_the_allowed_list():
    topology = DynamoTopology(
        mode=TopologyMode.AFFINITY, domain_to_label_mapping={"zone": "example/zone", "rack": "example/rack"}
    )
    body = alpha(
        {"topologyConstraint": {"packDomain": "rack"}}, Web=service(topologyConstraint={"packDomain": "zone"})
    )
    body["metadata"]["annotations"] = DECLINED
    (error,) = refused(body, replace(KNOWN, topology=topology))
    assert "must be rack, the deployment's domain, or narrower" in error
