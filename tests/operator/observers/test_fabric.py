"""Domains read from the caches: those of a replica, of a set, and the snapshot of one domain."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.fabrics.provider import Domain
from grove.fabrics.resolved import DomainReport, DomainState
from grove.operator.caches.registry import Caches
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import DomainKey, ReplicaKey
from grove.operator.observers.fabric import FabricLookup
from grove.operator.observers.workload import Observer
from grove.plan.replica import plan_replica
from tests.fabrics.builders import BOTH, a_set, clique

LABELS = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/part-of": "inference",
    "grove.io/podcliqueset-replica-index": "0",
}
WORKER = clique("worker", computedomain="two", scope="scaling-group-replica")
GROUPED = a_set(WORKER, groups=[{"name": "g", "cliqueNames": ["worker"], "replicas": 3, "minAvailable": 1}])
AUTO = a_set(clique("worker"), auto="enabled")


def meta(name: str, uid: str = "uid-inference", **more: Any) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "PodCliqueSet", "name": "x", "uid": uid, "controller": True}
    common = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "2"}
    return {**common, "labels": LABELS, "ownerReferences": [owner], **more}


def a_domain(name: str) -> Domain:
    managed = {**LABELS, "app.kubernetes.io/component": "pcs-computedomain"}
    return msgspec.convert({"metadata": meta(name, labels=managed)}, Domain)


def a_pod(name: str, template: str, node: str) -> Pod:
    claims = [{"name": "mnnvl-claim", "resourceClaimTemplateName": template}]
    return msgspec.convert(
        {"metadata": meta(name), "spec": {"nodeName": node, "resourceClaims": claims}}, Pod
    )


def caches_with(workload: Any, *domains: Domain, **options: Any) -> Caches:
    caches = Caches(fabrics=BOTH, **options)
    caches.sets.replace([workload], "1")
    for cache in caches.domains.values():
        cache.replace([], "1")
    for domain in domains:
        caches.domains["nvidia"].apply_event("ADDED", domain)
    return caches


@pytest.mark.parametrize(
    ("metadata", "indices"),
    [
        (meta("inference-0-g"), [0]),
        (meta("inference-0-g", uid="another"), [0, 1, 2]),
        (meta("inference-0-g", deletionTimestamp="2026-01-01T00:00:00Z"), [0, 1, 2]),
    ],
    ids=["owned", "foreign", "terminating"],
)
def test_domains_are_resolved_for_the_group_replicas_of_the_plan(metadata: Any, indices: list[int]) -> None:
    """The plan ignores a group that is foreign or terminating, and counts by the template."""
    caches = caches_with(GROUPED)
    body = {"metadata": metadata, "spec": {"replicas": 1, "minAvailable": 1, "cliqueNames": ["worker"]}}
    caches.groups.apply_event("ADDED", msgspec.convert(body, PodCliqueScalingGroup))
    snapshot = Observer(caches).replica(ReplicaKey("ns", "inference", 0))
    assert snapshot is not None
    assert list(snapshot.domains["worker"]) == indices
    created = [intent.target.kind for intent in plan_replica(snapshot, 0.0).intents]
    assert created.count("PodClique") == len(indices)


def test_held_replica_has_domains_of_existing_cliques_only() -> None:
    caches = caches_with(GROUPED, pods_per_set=1)
    body = {"metadata": meta("inference-0-g-1-worker"), "spec": {"replicas": 1, "podSpec": {}}}
    caches.cliques.apply_event("ADDED", msgspec.json.decode(msgspec.json.encode(body), type=PodClique))
    snapshot = Observer(caches).replica(ReplicaKey("ns", "inference", 0))
    assert snapshot is not None
    assert snapshot.held
    assert list(snapshot.domains["worker"]) == [1]
    plan_replica(snapshot, 0.0)


def test_set_has_domains_with_nodes_and_reports() -> None:
    caches = caches_with(AUTO, a_domain("inference-0"))
    caches.pods.apply_event("ADDED", a_pod("p", "inference-0", "node-a"))
    report = DomainReport(busy="other holds node-a")
    lookup = FabricLookup(caches)
    first, second = lookup.of_set(
        AUTO, lambda key: report if key == DomainKey("nvidia", "ns", "inference-1") else DomainReport()
    )
    assert (first.name, first.state, first.pods.nodes) == ("inference-0", DomainState.USABLE, {"node-a"})
    assert (second.name, second.state, second.report) == ("inference-1", DomainState.MISSING, report)
    assert FabricLookup(caches_with(AUTO, pods_per_set=1)).of_set(AUTO, lambda _: report) == ()


def test_replica_has_the_report_of_its_domain() -> None:
    states, report = KeyStates(), DomainReport(busy="other holds node-a")
    states.of(DomainKey("nvidia", "ns", "inference-0")).report = report
    snapshot = Observer(caches_with(AUTO, a_domain("inference-0")), states).replica(
        ReplicaKey("ns", "inference", 0)
    )
    assert snapshot is not None
    ((domain,),) = snapshot.domains["worker"].values()
    assert domain.report == report


def test_domain_snapshot_has_state_for_each_consumer() -> None:
    intruder = a_set(clique("worker", computedomain="inference-0"), name="intruder")
    caches = caches_with(AUTO, a_domain("inference-0"))
    caches.sets.apply_event("ADDED", intruder)
    snapshot = FabricLookup(caches).snapshot(DomainKey("nvidia", "ns", "inference-0"))
    assert snapshot is not None
    assert {consumer.workload.metadata.name: consumer.state for consumer in snapshot.consumers} == {
        "inference": DomainState.USABLE,
        "intruder": DomainState.CONFLICT,
    }
