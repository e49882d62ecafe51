"""Causes that come about while sets exist: by what happens to a set that ran, by other sets, and by slow
writes. Some codes last for seconds only."""

from __future__ import annotations

import copy

import msgspec

from grove.api.naming import annotations as keys
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from grove.reasons.codes import ReasonCode as Code
from grove.timing import GANG_RESTARTS
from tests.cluster.operator.support.objects import GANGS, SETS, AnyObject, gated, is_ready
from tests.cluster.operator.support.workloads import Body, clique, workload
from tests.cluster.reasons.causes import (
    AFFINITY_NOT_MET,
    CAUSE,
    FULL,
    GPU,
    NAME,
    RUNNING,
    SLOW_START,
    Cause,
    CauseNode,
    constrained,
    container,
    pods,
    reported,
    starting,
)
from tests.cluster.reasons.seeded import Seeded

SLOW = "writes-slow"
"""The cause whose namespace has a webhook that does not answer in time."""
PLAIN = (CauseNode(gpus=0),)
OPEN = "example.com/open"
"""The label of a node that a set selects which must come second."""


def idle(**template: object) -> Body:
    """A set of one pod that becomes ready."""
    return workload(NAME, clique("a", **template))


def competitor(cause: str) -> Body:
    """A set that has nodes and cannot be bound: the scheduler refuses its affinity, which is not modelled."""
    limits = {"resources": {"limits": {GPU: "4"}}}
    spec = {"containers": [container(**limits)], "nodeSelector": {CAUSE: cause}, "affinity": AFFINITY_NOT_MET}
    return workload("first", clique("a", 2, pod=spec))


async def update_stalls(seeded: Seeded, cause: Cause) -> None:
    """The pods of a new template do not become ready."""
    await seeded.until_pods(cause, is_ready)
    cliques = copy.deepcopy(cause.body["spec"]["template"]["cliques"])
    for each in cliques:
        each["annotations"] = SLOW_START
        each["spec"]["podSpec"]["containers"][0]["image"] = "model:2"
    await seeded.patch(SETS, cause, NAME, {"spec": {"template": {"cliques": cliques}}})
    await seeded.until_pods(cause, lambda pod: SLOW_START.items() <= pod.metadata.annotations.items())


async def update_is_paused(seeded: Seeded, cause: Cause) -> None:
    await update_stalls(seeded, cause)
    await seeded.patch(SETS, cause, NAME, {"spec": {"updateStrategy": {"paused": True}}})


async def restarted_too_often(seeded: Seeded, cause: Cause) -> None:
    """The gang has the history of restarts in which it was never ready."""
    record = {"at": "2026-01-01T00:00:00Z", "count": GANG_RESTARTS}
    history = msgspec.json.encode({f"{NAME}-0": record}).decode()
    await seeded.patch(GANGS, cause, f"{NAME}-0", {"metadata": {"annotations": {keys.TERMINATIONS: history}}})


async def fails_twice(seeded: Seeded, cause: Cause) -> None:
    """The second failure in a row: the first is replaced at once."""
    before = ""
    for _ in range(2):
        (pod,) = await seeded.until_pods(
            cause, lambda pod, before=before: _is_bound(pod) and pod.uid != before
        )
        before = pod.uid
        await seeded.patch(PODS, cause, pod.name, {"status": {"phase": "Failed"}}, "status")


def _is_bound(pod: AnyObject) -> bool:
    return not pod.terminating and bool(pod.spec.get("nodeName")) and pod.status.get("phase") != "Failed"


async def node_is_reserved(seeded: Seeded, cause: Cause) -> None:
    """The node is open to the set once all of it is reserved for another one, whose pods are released."""

    def released() -> bool:
        return sum(not gated(pod) for pod in seeded.pods(cause)) == 2

    assert await seeded.until(released), "no reservation"
    body = {"metadata": {"labels": {OPEN: "true"}}}
    await seeded.client.patch(NODES, f"{cause.name}-0", body, as_type=Object)


COURSES = (
    Cause("update-paused", Code.UPDATE_PAUSED, idle(), PLAIN, gang=None, course=update_is_paused),
    Cause("update-overdue", Code.PROGRESS_DEADLINE_EXCEEDED,
          idle(rollingUpdate={"progressDeadline": "1s"}), PLAIN, course=update_stalls),
    Cause("restarts-spent", Code.TERMINATION_BUDGET_SPENT, starting("a"), PLAIN,
          pod_statuses={"a": reported(RUNNING, started=True)}, course=restarted_too_often),
    Cause("pod-failed", Code.POD_FAILED, starting("a"), PLAIN, course=fails_twice, passing=True),
    Cause("reserved", Code.RESERVED_BY_OTHER_GANG, pods(2, gpus=4, nodeSelector={OPEN: "true"}),
          (CauseNode(),), objects=((SETS, competitor("reserved")),), course=node_is_reserved, passing=True),
    Cause("attempt-failed", Code.PREVIOUS_ATTEMPT_FAILED,
          # With room for pods in flight, so that it is not nominated: then it would not start over.
          constrained("rack", pods(2, gpus=1, affinity=AFFINITY_NOT_MET)),
          (CauseNode(rack="r-failed"),) * 4, passing=True),
    Cause("pod-limit", Code.POD_LIMIT_EXCEEDED, workload(NAME, clique("a", 1000), replicas=10_000), (),
          gang=None),
    Cause("gang-size", Code.GANG_SIZE_EXCEEDED, workload(NAME, clique("a", 45_000)), (), gang=None),
    Cause("level-missing", Code.INSUFFICIENT_RESOURCES, constrained("zone", pods()), (FULL, FULL)),
)  # fmt: skip
OF_SLOW_WRITES = Cause(SLOW, Code.WRITES_SLOW, pods(1, gpus=0), PLAIN, gang=None, passing=True)
