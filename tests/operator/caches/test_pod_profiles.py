"""Profiles of pods: what is read of a pod, and which pods share a profile."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from grove.operator.caches.pod_profiles import PodProfiles
from grove.topology.placement.model import Requirement, Term, Toleration
from tests.operator.cluster_builders import pod

GATES = [{"name": "g"}]


def scheduled(status: str, reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": status, "reason": reason, "message": "m"}]}


def test_requests_are_those_that_the_scheduler_counts():
    containers = [{"name": "main", "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": "2"}}}]
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
    init = {"name": "i", "resources": {"requests": {"cpu": "1", "memory": "1Ki"}}}
    found = pod(containers=containers, initContainers=[sidecar, init], overhead={"cpu": "10m"})
    assert PodProfiles().of(found).requests == {"cpu": 1110, "memory": 1024, "nvidia.com/gpu": 2, "pods": 1}


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}, **more}


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
SIDECAR = {"containers": [], "initContainers": [container("1", restartPolicy="Always")]}


@pytest.mark.parametrize(
    ("spec", "status", "cpu"),
    [
        ({}, {"containerStatuses": [container("3")]}, 3000),
        ({}, {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "3"}}]}, 3000),
        (SIDECAR, {"initContainerStatuses": [container("3")]}, 3000),
        ({}, {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}, 3000),
        ({}, {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"cpu": "9"}, {"containerStatuses": [container("3")]}, 9000),
        ({"cpu": "9"}, {"containerStatuses": [container("3")], "conditions": [INFEASIBLE]}, 3000),
    ],
    ids=["actual", "allocated", "sidecar", "pod allocated", "pod actual", "pending", "infeasible"],
)
def test_resized_pod_counts_with_the_largest_amount(spec, status, cpu):
    assert PodProfiles().of(pod(node="a", status=status, **spec)).requests == {"cpu": cpu, "pods": 1}


def test_pod_level_requests_replace_those_of_containers():
    assert PodProfiles().of(pod(resources={"requests": {"cpu": "5"}})).requests == {"cpu": 5000, "pods": 1}


def test_quantity_that_is_no_number_counts_as_a_pod_only():
    assert PodProfiles().of(pod(cpu="1e99999")).requests == {"pods": 1}


@pytest.mark.parametrize(
    ("found", "flags"),
    [
        (pod(), (False, False, False)),
        (pod(schedulingGates=GATES, status=scheduled("False", "SchedulingGated")), (True, False, False)),
        (pod(status=scheduled("False", "SchedulingGated")), (False, False, False)),
        (pod(status=scheduled("False", "Unschedulable")), (False, True, False)),
        (pod(status=scheduled("False", "SchedulerError")), (False, True, False)),
        (pod(node="a", status=scheduled("True", "")), (False, False, False)),
        (pod(node="a", deletionTimestamp="2026-01-01T00:00:10Z"), (False, False, True)),
    ],
    ids=["new", "gated", "just ungated", "unschedulable", "scheduler error", "bound", "terminating"],
)
def test_flags_of_pod(found, flags):
    profile = PodProfiles().of(found)
    assert (profile.gated, profile.unschedulable, profile.terminating) == flags


def test_shape_is_kept_of_unbound_ungated_pods_only():
    profiles = PodProfiles()
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}], "matchFields": []}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
        "podAffinity": {},
    }
    spec = {
        "nodeSelector": {"zone": "z"},
        "affinity": affinity,
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    }
    shape = profiles.of(pod(**spec)).shape
    assert shape is not None
    assert shape.requests == {"cpu": 1000, "pods": 1}
    assert shape.node_selector == {"zone": "z"}
    assert shape.affinity == (Term((Requirement("gpu", "Exists"),)),)
    assert shape.tolerations == (Toleration("k", "Exists", "", "NoExecute"),)
    assert profiles.of(pod(node="a", **spec)).shape is None
    assert profiles.of(pod(schedulingGates=GATES, **spec)).shape is None


def test_pod_without_required_affinity_has_no_terms():
    shape = PodProfiles().of(pod(affinity={"nodeAffinity": {}})).shape
    assert shape is not None
    assert shape.affinity is None


def test_pod_with_unreadable_selector_may_go_anywhere():
    shape = PodProfiles().of(pod(nodeSelector={"zone": 1})).shape
    assert shape is not None
    assert (shape.node_selector, shape.affinity) == ({}, None)
    assert shape.tolerations == (Toleration(operator="Exists"),)


def test_equal_pods_share_a_profile_until_the_last_is_gone():
    profiles = PodProfiles()
    bound = [profiles.of(pod(f"p{i}", node=f"n{i}", nodeSelector={"i": str(i)})) for i in range(3)]
    assert bound[0] is bound[1] is bound[2]
    different = [
        profiles.of(each)
        for each in (pod(), pod(cpu="2"), pod(priority=1), pod(schedulerName="kai"), pod(nodeSelector={}))
    ]
    assert len({id(each) for each in (*bound, *different)}) == 6
    assert len(profiles) == 6
    del bound, different
    gc.collect()
    assert len(profiles) == 0
