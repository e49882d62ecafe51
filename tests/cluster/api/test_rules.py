"""Every rule that the API server itself validates, with an object that it accepts and one that it rejects."""

from __future__ import annotations

import pytest

from grove.api.crds import crd
from grove.api.wire import MOST
from grove.kube.client.decoding import Scale
from grove.kube.errors import Invalid
from tests.cluster.api.objects import (
    POD_SPEC,
    RESOURCES,
    clique_template,
    create,
    group,
    pod_clique,
    pod_clique_set,
    refusal,
    topology,
)

PACK_OR_DOMAIN = "topologyConstraint must specify pack or deprecated packDomain"
NOT_BOTH = "must not set both pack.required and deprecated packDomain"
ONE_OF = "pack must specify at least one of required or preferred"
NAMED_FALLBACK = "a fallback must specify topologyName or packDomain"
ENOUGH = "replicas must be 0 or at least minAvailable"
ONE_DOMAIN = "domain must be unique across all levels"
ONE_KEY = "key must be unique across all levels"

ZONE, RACK = ("zone", "example.com/zone"), ("rack", "example.com/rack")
GROUP = {"name": "engine", "cliqueNames": ["worker"]}


def on_clique(**constraint):
    return pod_clique_set(cliques=[clique_template(topologyConstraint=constraint)])


def on_group(**constraint):
    return pod_clique_set(podCliqueScalingGroups=[{**GROUP, "topologyConstraint": constraint}])


def on_set(parts=None, **constraint):
    return pod_clique_set(topologyConstraint=constraint, **(parts or {}))


ACCEPTED = {
    "clique packs": on_clique(pack={"required": "rack"}),
    "clique packs by packDomain, on create": on_clique(packDomain="rack"),
    "clique prefers only": on_clique(pack={"preferred": "host"}),
    "packDomain beside a preference": on_clique(packDomain="rack", pack={"preferred": "host"}),
    "group packs": on_group(pack={"required": "rack"}),
    "group packs by packDomain, on create": on_group(packDomain="rack"),
    "set packs": on_set(topologyName="h100", pack={"required": "zone"}),
    "set packs by packDomain, on create": on_set(topologyName="h100", packDomain="zone"),
    "set with eight fallbacks": on_set(
        topologyName="h100", packDomain="rack", fallbacks=[{"topologyName": f"t{n}"} for n in range(8)]
    ),
    "set names the topology of a clique": on_set(
        {"cliques": [clique_template(topologyConstraint={"packDomain": "rack"})]}, topologyName="h100"
    ),
    "set names the topology of a group": on_set(
        {"podCliqueScalingGroups": [{**GROUP, "topologyConstraint": {"packDomain": "rack"}}]},
        topologyName="h100",
    ),
    "clique with 0 replicas": pod_clique(replicas=0, minAvailable=2),
    "clique with minAvailable replicas": pod_clique(replicas=2, minAvailable=2),
    "clique without minAvailable": pod_clique(replicas=1),
    "group with 0 replicas": group(replicas=0, minAvailable=2),
    "group with minAvailable replicas": group(replicas=2, minAvailable=2),
    "topology": topology("ClusterTopology", ZONE, RACK),
    "topology of 16 levels": topology("ClusterTopology", *((f"d{n}", f"k{n}") for n in range(16))),
    "label key with a long prefix": topology("ClusterTopology", ("zone", f"{'a' * 60}.{'b' * 100}/zone")),
    "binding": topology("ClusterTopologyBinding", ZONE, RACK),
    "binding with a duplicate domain, checked by the webhook": topology(
        "ClusterTopologyBinding", ZONE, ("zone", "k")
    ),
}

REJECTED = {
    "clique constrains nothing": (on_clique(topologyName="h100"), PACK_OR_DOMAIN),
    "group constrains nothing": (on_group(topologyName="h100"), PACK_OR_DOMAIN),
    "set constrains nothing": (on_set(), PACK_OR_DOMAIN),
    "set names a topology without any constraint": (on_set(topologyName="h100"), PACK_OR_DOMAIN),
    "clique sets pack.required and packDomain": (
        on_clique(packDomain="rack", pack={"required": "rack"}),
        NOT_BOTH,
    ),
    "group sets pack.required and packDomain": (
        on_group(packDomain="rack", pack={"required": "rack"}),
        NOT_BOTH,
    ),
    "set sets pack.required and packDomain": (on_set(packDomain="rack", pack={"required": "rack"}), NOT_BOTH),
    "clique packs into nothing": (on_clique(pack={}), ONE_OF),
    "group packs into nothing": (on_group(pack={}), ONE_OF),
    "set packs into nothing": (on_set(pack={}), ONE_OF),
    "fallback to nothing": (
        on_set(topologyName="h100", packDomain="rack", fallbacks=[{"after": "5s"}]),
        NAMED_FALLBACK,
    ),
    "nine fallbacks": (
        on_set(
            topologyName="h100", packDomain="rack", fallbacks=[{"topologyName": f"t{n}"} for n in range(9)]
        ),
        "must have at most 8 items",
    ),
    "fallback to a domain with an upper case letter": (
        on_set(topologyName="h100", packDomain="rack", fallbacks=[{"packDomain": "Zone"}]),
        "should match '^[a-z][a-z0-9-]*$'",
    ),
    "domain with an upper case letter": (on_clique(packDomain="Rack"), "should match '^[a-z][a-z0-9-]*$'"),
    "clique below its minimum": (pod_clique(replicas=1, minAvailable=2), ENOUGH),
    "group below its minimum": (group(replicas=1, minAvailable=2), ENOUGH),
    "duplicate domain": (topology("ClusterTopology", ZONE, ("zone", "other")), ONE_DOMAIN),
    "duplicate key": (topology("ClusterTopology", ("a", "key"), ("b", "key")), ONE_KEY),
    "no levels": (topology("ClusterTopology"), "should have at least 1 items"),
    "17 levels": (topology("ClusterTopology", *((f"d{n}", f"k{n}") for n in range(17))), "at most 16 items"),
    "17 levels in a binding": (
        topology("ClusterTopologyBinding", *((f"d{n}", f"k{n}") for n in range(17))),
        "at most 16 items",
    ),
    "label key too long": (topology("ClusterTopology", ("zone", "k" * 317)), "may not be more than 316"),
    "label key with a space": (topology("ClusterTopology", ("zone", "a b")), "should match"),
    "unknown startup type": (pod_clique_set(cliqueStartupType="Random"), "supported values"),
    "two cliques with the same name": (
        pod_clique_set(cliques=[clique_template(), clique_template()]),
        "Duplicate value",
    ),
    "clique without podSpec": (pod_clique_set(cliques=[{"name": "worker", "spec": {}}]), "Required value"),
    "pod without containers": (
        pod_clique_set(cliques=[{"name": "worker", "spec": {"podSpec": {}}}]),
        "Required value",
    ),
    "set with too many replicas": (
        {**pod_clique_set(), "spec": {**pod_clique_set()["spec"], "replicas": 2**31 - 1}},
        "spec.replicas",
    ),
    "clique of a set with too many replicas": (
        pod_clique_set(cliques=[clique_template(spec={"podSpec": POD_SPEC, "replicas": 3_000_000})]),
        "spec.template.cliques[0].spec.replicas",
    ),
    "group of a set with too large minAvailable": (
        pod_clique_set(
            podCliqueScalingGroups=[{"name": "g", "cliqueNames": ["worker"], "minAvailable": 3_000_000}]
        ),
        "spec.template.podCliqueScalingGroups[0].minAvailable",
    ),
    "autoscaler with too large maxReplicas": (
        pod_clique(autoScalingConfig={"maxReplicas": 3_000_000}),
        "spec.autoScalingConfig.maxReplicas",
    ),
    "invalid quantity": (
        pod_clique(podSpec={"containers": [{"name": "a", "resources": {"limits": {"cpu": "many"}}}]}),
        "should match",
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
async def test_valid_object_is_accepted(crds, client, namespace, case):
    assert await refusal(client, ACCEPTED[case], namespace) == ""


@pytest.mark.parametrize("case", REJECTED)
async def test_invalid_object_is_rejected(crds, client, namespace, case):
    body, why = REJECTED[case]
    assert why in await refusal(client, body, namespace)


def test_each_rule_has_a_rejected_case():
    rules = {
        rule["message"]
        for definition in crd.all_definitions()
        for rule in _rules(definition["spec"]["versions"])
    }
    assert rules == {PACK_OR_DOMAIN, NOT_BOTH, ONE_OF, NAMED_FALLBACK, ENOUGH, ONE_DOMAIN, ONE_KEY}
    assert rules <= {why for _, why in REJECTED.values()}


def _rules(node):
    if isinstance(node, dict):
        yield from node.get("x-kubernetes-validations", ())
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _rules(each)


@pytest.mark.parametrize("body", [pod_clique(replicas=3, minAvailable=2), group(replicas=3, minAvailable=2)])
async def test_scaling_between_zero_and_minimum_is_rejected(crds, client, namespace, body):
    created = await create(client, body, namespace)
    resource, name = RESOURCES[created["kind"]], created["metadata"]["name"]
    for replicas in (2, 0, 5):
        scaled = await client.set_scale(resource, name, replicas, namespace=namespace)
        assert scaled.spec.replicas == replicas
    with pytest.raises(Invalid, match=ENOUGH):
        await client.set_scale(resource, name, 1, namespace=namespace)
    kept = await client.get(resource, name, namespace=namespace, as_type=dict)
    assert kept["spec"]["replicas"] == 5


@pytest.mark.parametrize("body", [pod_clique_set(), pod_clique(), group()], ids=lambda body: body["kind"])
async def test_count_above_maximum_is_rejected(crds, client, namespace, body):
    created = await create(client, body, namespace)
    resource, name = RESOURCES[created["kind"]], created["metadata"]["name"]
    above = f"should be less than or equal to {MOST}"
    for count in (MOST + 1, 3_000_000, 2**31 - 1):
        with pytest.raises(Invalid, match=above):
            await client.set_scale(resource, name, count, namespace=namespace)
        patch = {"spec": {"replicas": count}}
        with pytest.raises(Invalid, match=above):
            await client.patch(resource, name, patch, namespace=namespace, as_type=dict)
    scaled = await client.set_scale(resource, name, MOST, namespace=namespace)
    assert scaled.spec.replicas == MOST


async def test_set_scales_to_any_count(crds, client, namespace):
    await create(client, pod_clique_set(), namespace)
    for replicas in (0, 4):
        scaled = await client.set_scale(RESOURCES["PodCliqueSet"], "inference", replicas, namespace=namespace)
        assert scaled.spec.replicas == replicas


@pytest.mark.parametrize(
    ("body", "field"),
    [(pod_clique_set(), "hpaPodSelector"), (pod_clique(), "hpaPodSelector"), (group(), "selector")],
)
async def test_scale_shows_count_and_selector_of_status(crds, client, namespace, body, field):
    created = await create(client, body, namespace)
    resource, name = RESOURCES[created["kind"]], created["metadata"]["name"]
    status = {"status": {"replicas": 7, field: "a=b"}}
    await client.patch(resource, name, status, namespace=namespace, subresource="status", as_type=dict)
    shown = await client.get(resource, name, namespace=namespace, subresource="scale", as_type=Scale)
    assert (shown.status.replicas, shown.status.selector) == (7, "a=b")
