"""The watches of fabric domains: which change enqueues which domains, sets and replicas."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.api.types.pod import Pod
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.fabrics.provider import Domain
from grove.operator.caches.registry import Caches
from grove.operator.keys import DomainKey, Key, ReplicaKey, SetKey
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.fabric import domain_watches
from tests.fabrics.builders import BOTH, a_set, clique
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

    def __init__(self, *cliques: dict[str, Any], groups: Any = ()) -> None:
        self.caches = Caches(fabrics=BOTH)
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


def a_pod(version: int, *, unschedulable: bool = False, claim: bool = True) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    body = {
        "metadata": {"name": "p", "namespace": "ns", "resourceVersion": str(version)},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "shared"}] if claim else []},
        "status": {"conditions": [condition] if unschedulable else []},
    }
    return msgspec.convert(body, Pod)


@pytest.mark.parametrize("claim", [True, False])
def test_unschedulable_or_deleted_pod_enqueues_domain(claim):
    run = DomainRun(SHARED)
    run.domain("shared")
    pods, expected = run.caches.pods, nvidia("shared") if claim else set()
    rows = [
        ("ADDED", a_pod(1, claim=claim), set()),
        ("MODIFIED", a_pod(2, claim=claim, unschedulable=True), expected),
        ("MODIFIED", a_pod(3, claim=claim, unschedulable=True), set()),
        ("MODIFIED", a_pod(4, claim=claim), expected),
        ("DELETED", a_pod(5, claim=claim), expected),
    ]
    for kind, pod, keys in rows:
        assert run.keys.after(pods.apply_event, kind, pod).keys() == keys, (kind, pod)


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
def test_foreign_claim_template_enqueues_domain(foreign):
    run = DomainRun(SHARED)
    run.domain("shared")
    owner = OwnerReference(
        "resource.nvidia.com/v1beta1", "ComputeDomain", "shared", "uid-shared", controller=True
    )
    body = b'{"metadata": {"name": "shared", "namespace": "ns", "uid": "t"}, "spec": {"spec": {}}}'
    template = msgspec.json.decode(body, type=ResourceClaimTemplateObject)
    owners = () if foreign else (owner,)
    found = run.keys.after(changed(run.caches.claim_templates, template, 3, owner_references=owners))
    assert found.keys() == ({*nvidia("shared"), SET, *REPLICAS} if foreign else set())


def test_vendor_available_enqueues_sets_with_its_domains():
    run = DomainRun(SHARED)
    expected = {*nvidia("shared"), SET, *REPLICAS}
    assert run.keys.after(run.domains.clear).keys() >= expected
    (listener,) = run.caches.fabric_nodes._listeners
    assert run.keys.after(listener, "nvidia").keys() >= expected
    assert run.keys.after(listener, "another") == {}
