"""Graphs without Grove in Kueue's queues: which components Kueue admits, and why it does not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.api.meta import Condition, ObjectMeta
from grove.dynamo.admission import graph_validation
from grove.dynamo.api.kueue_workload import KueueWorkload
from grove.dynamo.api.status import NOT_ADMITTED, READY
from grove.dynamo.backends.kueue import WORKLOAD_NOT_ADMITTED
from grove.dynamo.context import GraphContext
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.render.topology_affinity import QUEUE, requests_nothing
from grove.dynamo.snapshot import ChildObject, GraphSnapshot
from grove.plan.conditions import find
from tests.dynamo.backends.test_lws import BACKENDS, DURING, GPU, KUEUE, near, packed, snapshot, workloads
from tests.dynamo.builders import alpha, component, graph, service, with_stored
from tests.dynamo.reconcile.test_planner import events_of, status_of

NO_FLAVOR = "failed to assign flavors to pod set main: no TAS flavor assigned"


def pod(**spec):
    body = component()
    body["podTemplate"]["spec"] |= spec
    return body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (component(), True),
        (component(main={"resources": {}}), True),
        (component(main={"resources": {"requests": {"cpu": "0"}, "limits": {"memory": 0}}}), True),
        (component(main={"resources": {"requests": {"cpu": "100m"}}}), False),
        (component(main=GPU), False),
        (pod(resources={"requests": {"cpu": "1"}}), False),
        (pod(initContainers=[{"name": "i", "image": "i:1", **GPU}]), False),
        (pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}]), False),
    ],
)
def test_requests_of_a_component(body, expected):
    (found,) = graph(packed(body)).components
    assert requests_nothing(found) is expected


def test_component_without_requests_stays_out_of_the_queue():
    body = packed(component("Web", "frontend"), component("Worker", main=GPU, multinode={}, **near("rack")))
    queues = {
        name: each["metadata"]["labels"].get(QUEUE) for name, each in workloads(snapshot(body, KUEUE)).items()
    }
    assert queues == {"app-web": None, "app-worker-0": "gpus"}


def test_component_out_of_the_queue_keeps_its_constraint():
    (body,) = workloads(snapshot(packed(component(**near("rack"))), KUEUE)).values()
    assert QUEUE not in body["metadata"]["labels"]
    assert body["spec"]["template"]["spec"]["affinity"]["podAffinity"][DURING]


@pytest.mark.parametrize("spec", [{}, {"topologyConstraint": {"packDomain": "zone"}}])
def test_packed_replicas_without_requests_are_rejected(spec):
    body = packed(component(multinode={}, **(near("rack") if not spec else {})), **spec)
    (error,) = graph_validation.on_create(body, GraphContext(KUEUE, leader_worker_sets=True)).errors
    assert error.path == "spec.components[0].podTemplate.spec.containers[main].resources"
    assert "Kueue places pods by their requests" in error.detail


def test_packed_services_without_requests_are_rejected():
    body = alpha(Worker=service(multinode={"nodeCount": 2}, topologyConstraint={"packDomain": "rack"}))
    body["metadata"]["annotations"] = {"nvidia.com/enable-grove": "false"}
    (error,) = graph_validation.on_create(body, GraphContext(KUEUE, leader_worker_sets=True)).errors
    assert error.path == "spec.services[Worker].resources"


def conditions(**statuses: tuple[str, str, str]):
    return [
        {"type": type_, "status": status, "reason": reason, "message": message}
        for type_, (status, reason, message) in statuses.items()
    ]


def a_workload(name: str = "w", checks=(), **statuses: tuple[str, str, str]) -> KueueWorkload:
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"queueName": "gpus", "podSets": [{"name": "main"}]},
        "status": {"conditions": conditions(**statuses), "admissionChecks": list(checks)},
    }
    return msgspec.convert(body, KueueWorkload)


PENDING = ("False", "NoMatchingFlavor", NO_FLAVOR)


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (a_workload(), ""),
        (a_workload(QuotaReserved=PENDING), f"NoMatchingFlavor: {NO_FLAVOR}"),
        (a_workload(QuotaReserved=("True", "QuotaReserved", "reserved")), ""),
        (
            a_workload(
                checks=[{"name": "provisioning", "state": "Pending", "message": "waits"}],
                QuotaReserved=("True", "QuotaReserved", "reserved"),
            ),
            "admission check provisioning is Pending: waits",
        ),
        (a_workload(QuotaReserved=("True", "", ""), Admitted=("True", "Admitted", "admitted")), ""),
        (
            a_workload(
                QuotaReserved=("True", "", ""), Admitted=("False", "UnsatisfiedChecks", "check x failed")
            ),
            "UnsatisfiedChecks: check x failed",
        ),
        (
            a_workload(
                QuotaReserved=("False", "PendingEvaluation", "in the queue"),
                Admitted=("False", "NoReservation", "The workload has no reservation"),
            ),
            "",
        ),
        (a_workload(QuotaReserved=PENDING, Finished=("True", "Succeeded", "done")), ""),
    ],
)
def test_refusal_is_in_the_words_of_kueue(workload, expected):
    assert workload.refusal == expected


def waiting(*queued: KueueWorkload, **main) -> GraphSnapshot:
    """A snapshot with a Deployment none of whose pods is ready."""
    found = snapshot(packed(component(main=main, **near("rack"))), KUEUE)
    (body,) = workloads(found).values()
    status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}
    stored = ChildObject(
        ObjectMeta("app-worker", "ns", "d", generation=1, annotations=body["metadata"]["annotations"]),
        spec=body["spec"],
        status=status,
    )
    children = {**found.children, ("Deployment", "app-worker"): stored}
    return replace(found, children=children, queued={"Worker": queued})


def status_condition(found: GraphSnapshot, type_: str) -> Condition | None:
    return find(status_of(plan_graph(found, BACKENDS, 0.0)).conditions, type_)


def test_refusal_is_in_ready_and_in_an_event():
    found = waiting(
        a_workload("pod-b", QuotaReserved=PENDING), a_workload("pod-a", QuotaReserved=PENDING), **GPU
    )
    ready = status_condition(found, READY)
    assert ready is not None
    assert ready.reason == "insufficient_capacity"
    assert ready.message == (
        "Worker: 0 of 1 ready. WorkloadNotAdmitted: Worker: Kueue does not admit Workload pod-a "
        f"(and 1 more): NoMatchingFlavor: {NO_FLAVOR}; lower requests of Worker, or change quotas or "
        "flavors of LocalQueue gpus"
    )
    (event,) = (
        each for each in events_of(plan_graph(found, BACKENDS, 0.0)) if each.reason == WORKLOAD_NOT_ADMITTED
    )
    assert event.warning
    assert NO_FLAVOR in event.note


def test_remedy_of_a_component_without_requests_is_to_set_some():
    """It was queued before such components stayed out of the queue."""
    ready = status_condition(waiting(a_workload(QuotaReserved=PENDING)), READY)
    assert ready is not None
    assert ready.message.endswith("; set resource requests of Worker")


def test_refusal_goes_once_the_workload_is_admitted():
    found = waiting(a_workload(QuotaReserved=PENDING), **GPU)
    assert found.stored is not None
    desired = status_of(plan_graph(found, BACKENDS, 0.0))
    later = with_stored(
        replace(found, queued={"Worker": (a_workload(Admitted=("True", "Admitted", "")),)}),
        replace(found.stored, status=desired),
    )
    assert status_condition(later, NOT_ADMITTED) is None
    ready = status_condition(later, READY)
    assert ready is not None
    assert ready.message == "Worker: 0 of 1 ready"


@given(st.text(max_size=5000), st.text(max_size=100))
def test_any_words_of_kueue_fit_into_a_condition(message, reason):
    found = waiting(a_workload(QuotaReserved=("False", reason, message)))
    ready = status_condition(found, READY)
    assert ready is not None
    assert len(ready.message) < 2000
