"""The watches of fabric domains: which change enqueues which domains, sets and replicas."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from grove import timing
from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.api.types.pod import Pod
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.fabrics.provider import Domain
from grove.kube.cache.crd_watch import CustomResourceDefinition
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import BY_NODE, Caches
from grove.operator.keys import DomainKey, Key, ReplicaKey, SetKey
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.fabric import domain_watches
from tests.fabrics.builders import BOTH, a_set, clique
from tests.operator.cluster_builders import listed_nodes, node
from tests.operator.observers.cluster.test_cluster_view import apply
from tests.operator.watches.enqueued_keys import EnqueuedKeys, changed

SET = SetKey("ns", "inference")
REPLICAS = {ReplicaKey("ns", "inference", index) for index in range(2)}
SHARED = clique("worker", computedomain="shared")
PER_REPLICA = clique("worker", computedomain="mine", scope="replica")
PER_GROUP_REPLICA = clique("worker", computedomain="mine", scope="scaling-group-replica")


def nvidia(*names: str) -> set[Key]:
    return {DomainKey("nvidia", "ns", name) for name in names}


class DomainRun:
    """One set, and what its watches enqueue."""

    def __init__(self, *cliques: dict[str, Any], groups: Any = (), nodes: Nodes | None = None) -> None:
        self.caches = Caches(fabrics=BOTH, topology_aware=nodes is not None)
        self.caches.nodes = nodes or self.caches.nodes
        self.workload = a_set(*cliques, groups=groups)
        self.caches.sets.apply_event("ADDED", self.workload)
        self.domains = self.caches.domains["nvidia"]
        self.keys = EnqueuedKeys(domain_watches(self.caches, FabricLookup(self.caches)))

    def domain(self, name: str, **fields: Any) -> Domain:
        """Adds a domain, whose claim template has its name."""
        spec = {"channel": {"resourceClaimTemplate": {"name": name}}}
        found = Domain(ObjectMeta(name, "ns", f"uid-{name}", "2", **fields), spec)
        self.domains.apply_event("ADDED", found)
        self.keys.take()
        return found


def test_no_vendor_has_no_watches():
    assert domain_watches(Caches(), FabricLookup(Caches())) == ()


@pytest.mark.parametrize(
    ("cliques", "expected"),
    [
        ([clique("worker")], set()),
        ([SHARED], nvidia("shared")),
        ([PER_REPLICA], nvidia("mine-0", "mine-1")),
    ],
)
def test_set_enqueues_its_domains(cliques, expected):
    run = DomainRun(*cliques)
    found = run.keys.take()
    assert {key for key in found if key.vendor == "nvidia"} == expected
    assert run.keys.after(changed(run.caches.sets, run.workload, 3)) == {}, "only its status changed"
    assert run.keys.after(changed(run.caches.sets, run.workload, 4, generation=2)) == found


def test_owned_domain_is_enqueued_with_its_set():
    run = DomainRun(clique("worker"))
    owner = OwnerReference("grove.io/v1alpha1", "PodCliqueSet", "inference", "uid-inference")
    run.domain("former", owner_references=(owner,))
    assert nvidia("former") <= run.keys.after(changed(run.caches.sets, run.workload, 4, generation=2)).keys()


def test_domain_enqueues_itself_owners_and_consumers():
    run = DomainRun(SHARED)
    domain = run.domain("shared")
    waiting = dict.fromkeys((*nvidia("shared"), SET, *REPLICAS), 0.0)
    assert run.keys.after(changed(run.domains, domain, 3, generation=2)) == waiting
    assert run.keys.after(changed(run.domains, domain, 4, generation=2)) == {SET: 0.0}, "its status"
    assert run.keys.after(changed(run.domains, domain, 5, "DELETED")) == waiting
    owner = OwnerReference("grove.io/v1alpha1", "PodCliqueSet", "owner", "u")
    owned = changed(run.domains, run.domain("other"), 9, owner_references=(owner,))
    assert run.keys.after(owned) == dict.fromkeys((*nvidia("other"), SetKey("ns", "owner")), 0.0)


def test_domain_of_one_replica_enqueues_that_replica():
    run = DomainRun(PER_REPLICA)
    domain = run.domain("mine-1")
    found = run.keys.after(changed(run.domains, domain, 3, generation=2))
    assert found.keys() == {*nvidia("mine-1"), SET, ReplicaKey("ns", "inference", 1)}


def a_pod(
    version: int,
    *,
    unschedulable: bool = False,
    claim: bool = True,
    node: str = "",
    part_of: str = "inference",
) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    body = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "resourceVersion": str(version),
            "labels": {"app.kubernetes.io/part-of": part_of},
        },
        "spec": {
            "nodeName": node,
            "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "shared"}] if claim else [],
        },
        "status": {"conditions": [condition] if unschedulable else []},
    }
    return msgspec.convert(body, Pod)


@pytest.mark.parametrize("claim", [True, False])
def test_unschedulable_bound_or_deleted_pod_enqueues_domain(claim):
    run = DomainRun(SHARED)
    run.domain("shared")
    pods, expected = run.caches.pods, nvidia("shared") if claim else set()
    rows = [
        ("ADDED", a_pod(1, claim=claim), set()),
        ("MODIFIED", a_pod(2, claim=claim, unschedulable=True), expected),
        ("MODIFIED", a_pod(3, claim=claim, unschedulable=True), set()),
        ("MODIFIED", a_pod(4, claim=claim), expected),
        ("MODIFIED", a_pod(5, claim=claim, node="n"), expected),
        ("MODIFIED", a_pod(6, claim=claim, node="n"), set()),
        ("DELETED", a_pod(7, claim=claim, node="n"), expected),
    ]
    for kind, pod, keys in rows:
        assert run.keys.after(pods.apply_event, kind, pod).keys() == keys, (kind, pod)


MANAGED = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/component": "pcs-computedomain",
}
OWNERS = tuple(OwnerReference("grove.io/v1alpha1", "PodCliqueSet", name, name) for name in "ab")


@pytest.mark.parametrize(
    ("fields", "sharers"),
    [
        ({"labels": MANAGED, "owner_references": OWNERS}, {SET}),
        ({"labels": MANAGED, "owner_references": OWNERS[:1]}, set()),
        ({}, {SET}),
    ],
    ids=["two owners", "one owner", "not managed"],
)
def test_pod_of_another_set_enqueues_sets_that_share_its_domain(fields, sharers):
    run = DomainRun(SHARED)
    run.domain("shared", **fields)
    pods = run.caches.pods
    rows = [
        ("ADDED", a_pod(1, part_of="other"), set()),
        ("MODIFIED", a_pod(2, part_of="other", unschedulable=True), nvidia("shared")),
        ("MODIFIED", a_pod(3, part_of="other", node="n"), nvidia("shared") | sharers),
        ("DELETED", a_pod(4, part_of="other", node="n"), nvidia("shared") | sharers),
    ]
    for kind, pod, keys in rows:
        assert run.keys.after(pods.apply_event, kind, pod).keys() == keys, (kind, pod)


@pytest.mark.parametrize(("claim", "expected"), [(True, nvidia("shared")), (False, set())])
async def test_relabelled_node_enqueues_domains_of_its_pods(claim, expected):
    """The label of another domain may appear after the pod was bound."""
    run = DomainRun(SHARED, nodes=listed_nodes(node("n"), node("m")))
    run.domain("shared")
    run.caches.pods.apply_event("ADDED", a_pod(1, claim=claim, node="n"))
    run.keys.take()
    nodes = run.caches.nodes
    found = run.keys.after(apply, nodes, "MODIFIED", node("n", 2, zone="y"))
    assert found == dict.fromkeys(expected, timing.BATCH_DELAY)
    assert run.keys.after(apply, nodes, "MODIFIED", node("n", 3, zone="y", cpu="9")) == {}
    assert run.keys.after(apply, nodes, "MODIFIED", node("m", 4, zone="y")) == {}, "it has no pods"


@pytest.mark.parametrize(
    ("options", "watched"),
    [
        ({}, False),
        ({"topology_aware": True}, True),
        ({"placement": True}, True),
        ({"auto_fabric": True}, True),
    ],
)
def test_node_labels_are_watched_where_nodes_are_read(options, watched):
    caches = Caches(fabrics=BOTH, **options)
    sources = [watch.source for watch in domain_watches(caches, FabricLookup(caches))]
    assert (caches.nodes.subscribe_labels in sources) is watched
    if watched:
        assert caches.pods.by_index(BY_NODE, "n") == []


def a_group(version: int, replicas: int) -> PodCliqueScalingGroup:
    of_replica = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "inference", labels.SET_REPLICA: "0"}
    meta = {"name": "inference-0-x", "namespace": "ns", "resourceVersion": str(version), "labels": of_replica}
    body = {"metadata": meta, "spec": {"replicas": replicas, "cliqueNames": ["worker"]}}
    return msgspec.convert(body, PodCliqueScalingGroup)


def test_scaled_group_enqueues_its_domains():
    group = {"name": "x", "cliqueNames": ["worker"], "replicas": 1}
    run = DomainRun(PER_GROUP_REPLICA, groups=[group])
    owner = OwnerReference("grove.io/v1alpha1", "PodCliqueSet", "inference", "uid-inference")
    run.domain("former", owner_references=(owner,))
    first, second = ("mine-0-0", "mine-0-1")
    for version, (replicas, expected) in enumerate(
        [(1, nvidia(first)), (1, set()), (2, nvidia(first, second)), (1, nvidia(first, "former"))], start=3
    ):
        found = run.keys.after(run.caches.groups.apply_event, "MODIFIED", a_group(version, replicas))
        assert found.keys() == expected, (version, replicas)


@pytest.mark.parametrize("foreign", [True, False])
def test_claim_template_enqueues_domain(foreign):
    """If it appears or disappears; that of another owner at every change."""
    run = DomainRun(SHARED)
    run.domain("shared")
    owner = OwnerReference(
        "resource.nvidia.com/v1beta1", "ComputeDomain", "shared", "uid-shared", controller=True
    )
    body = b'{"metadata": {"name": "shared", "namespace": "ns", "uid": "t"}, "spec": {"spec": {}}}'
    template = msgspec.json.decode(body, type=ResourceClaimTemplateObject)
    owners = () if foreign else (owner,)
    templates, waiting = run.caches.claim_templates, {*nvidia("shared"), SET, *REPLICAS}
    for version, kind, expected in (
        (3, "ADDED", waiting),
        (4, "MODIFIED", waiting if foreign else set()),
        (5, "DELETED", waiting),
    ):
        found = run.keys.after(changed(templates, template, version, kind, owner_references=owners))
        assert found.keys() == expected, kind


def test_vendor_available_enqueues_sets_with_its_domains():
    run = DomainRun(SHARED)
    expected = {*nvidia("shared"), SET, *REPLICAS}
    assert run.keys.after(run.domains.clear).keys() >= expected
    (listener,) = run.caches.fabric_nodes._listeners
    assert run.keys.after(listener, "nvidia").keys() >= expected
    assert run.keys.after(listener, "another") == {}


def test_outdated_crd_enqueues_sets_with_its_domains():
    run = DomainRun(SHARED)
    definitions = run.caches.crd_watch.definitions
    resource = run.domains.resource
    run.keys.take()

    versions = itertools.count(1)

    def crd(name: str, version: str) -> CustomResourceDefinition:
        metadata = {"name": name, "resourceVersion": str(next(versions))}
        body = {"metadata": metadata, "spec": {"versions": [{"name": version, "served": True}]}}
        return msgspec.convert(body, CustomResourceDefinition)

    assert run.keys.after(definitions.apply_event, "ADDED", crd("others.example.com", "v1")) == {}
    assert not run.caches.outdated(resource)
    outdated = crd(resource.label, "v1alpha1")
    assert SET in run.keys.after(definitions.apply_event, "ADDED", outdated)
    assert run.caches.outdated(resource)
    assert SET in run.keys.after(definitions.apply_event, "MODIFIED", crd(resource.label, "v1beta1"))
    assert not run.caches.outdated(resource)
    assert run.keys.after(definitions.apply_event, "MODIFIED", crd(resource.label, "v1beta1")) == {}
