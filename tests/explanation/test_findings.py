"""The reasons of an object: from errors, pods, placement, conditions and the operator."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.api.types.pod import ContainerState, ContainerStatus, Pod, WaitingContainer
from grove.explanation.findings import find_reasons, state_text, waiting_replicas, waits
from grove.explanation.model import ObjectRef
from grove.explanation.subtree import Objects, Subtree, subtree
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import WaitReason
from tests.views.builders import a_simulator, found

NO_OPERATOR = WaitReason(Code.NO_OPERATOR_LEADING, "Lease was not renewed")
FULL = WaitReason(Code.INSUFFICIENT_RESOURCES, "no place now")


def bare(each):
    return replace(each, status=replace(each.status, conditions=()))


def a_tree(*, running: bool = False) -> Subtree:
    """Set demo without conditions; its pods wait, unless they run."""
    read = found(a_simulator(running=running))
    objects = Objects(
        (),
        *(tuple(map(bare, each)) for each in (read.sets, read.groups, read.cliques, read.gangs)),
        read.pods,
    )
    meta = read.sets[0].metadata
    return subtree(objects, ObjectRef("PodCliqueSet", meta.name, meta.namespace))


TREE, RUNNING = a_tree(), a_tree(running=True)


def codes(tree: Subtree, placement=None, planned=(), operator=None) -> list[Code]:
    return [each.code for each in find_reasons(tree, placement or {}, planned, operator)]


def with_condition(tree: Subtree, code: Code) -> Subtree:
    """The base gang with a reason in its status."""
    gang = tree.gangs[0]
    condition = Condition("Waiting", "True", code.value, "said by the operator", last_transition_time=None)
    written = replace(gang, status=replace(gang.status, conditions=(condition,)))
    return replace(tree, gangs=(written, *tree.gangs[1:]))


def with_pull_failure(tree: Subtree) -> Subtree:
    """The first pod is bound, and its image cannot be pulled."""
    pod: Pod = tree.pods[0]
    status = ContainerStatus("main", state=ContainerState(waiting=WaitingContainer("ErrImagePull")))
    bound = replace(
        pod,
        spec=replace(pod.spec, node_name="n1", scheduling_gates=()),
        status=replace(pod.status, container_statuses=(status,)),
    )
    return replace(tree, pods=(bound, *tree.pods[1:]))


def test_gang_without_place_has_the_reason_of_the_solver():
    (reason,) = find_reasons(TREE, {"demo-0": FULL}, (), None)
    assert (reason.code, str(reason.about)) == (Code.INSUFFICIENT_RESOURCES, "PodGang demo-0")


def test_operator_that_does_not_lead_is_first():
    assert codes(TREE, {"demo-0": FULL}, operator=NO_OPERATOR) == [
        Code.NO_OPERATOR_LEADING,
        Code.INSUFFICIENT_RESOURCES,
    ]


def test_errors_are_before_what_follows_from_them():
    error = LastError("ERR_SYNC_POD", "create pods: exceeded quota: few", "2026-01-01T00:00:00Z")
    clique = TREE.cliques[0]
    failed = replace(clique, status=replace(clique.status, last_errors=(error,)))
    tree = replace(TREE, cliques=(failed, *TREE.cliques[1:]))
    assert codes(tree, {"demo-0": FULL}) == [Code.QUOTA_EXCEEDED, Code.INSUFFICIENT_RESOURCES]


def test_gang_whose_pods_have_reasons_is_not_repeated():
    assert codes(with_pull_failure(TREE), {"demo-0": FULL}) == [Code.IMAGE_PULL_FAILED]


def test_written_condition_counts_while_an_operator_leads():
    tree = with_condition(TREE, Code.NODE_CORDONED)
    planned = [WaitReason(Code.NODE_TAINT)]
    assert codes(tree, {"demo-0": FULL}, planned) == [Code.NODE_CORDONED]
    assert codes(tree, {"demo-0": FULL}, planned, NO_OPERATOR) == [
        Code.NO_OPERATOR_LEADING,
        Code.NODE_TAINT,
        Code.INSUFFICIENT_RESOURCES,
    ]


@pytest.mark.parametrize(("status", "said"), [("True", True), ("False", False), ("Unknown", False)])
def test_levels_that_are_missing_are_the_last_reason(status, said):
    assert TREE.workload is not None
    condition = Condition(
        "TopologyLevelsUnavailable", status, "R", "no level rack", last_transition_time=None
    )
    workload = replace(TREE.workload, status=replace(TREE.workload.status, conditions=(condition,)))
    expected = [Code.INSUFFICIENT_RESOURCES, *([Code.TOPOLOGY_LEVELS_UNAVAILABLE] if said else [])]
    assert codes(replace(TREE, workload=workload), {"demo-0": FULL}) == expected


def test_planned_reasons_count_without_written_ones():
    assert codes(TREE, {}, [WaitReason(Code.BASE_GANG_NOT_SCHEDULED)]) == [Code.BASE_GANG_NOT_SCHEDULED]


def test_message_of_a_condition_loses_the_remedy():
    tree = with_condition(TREE, Code.NODE_CORDONED)
    gang = tree.gangs[0]
    (condition,) = gang.status.conditions
    message = "nodes a, b are cordoned; kubectl uncordon them, or add nodes"
    written = replace(gang.status, conditions=(replace(condition, message=message),))
    (reason,) = find_reasons(replace(tree, gangs=(replace(gang, status=written),)), {}, (), None)
    assert reason.message == "nodes a, b are cordoned"
    assert reason.advice == "kubectl uncordon them, or add nodes"


@pytest.mark.parametrize(
    ("tree", "waiting", "text"),
    [
        (TREE, True, "0/1 replicas available, 0/2 gangs running, 0/5 pods ready"),
        (RUNNING, False, "1/1 replicas available, 2/2 gangs running, 5/5 pods ready"),
    ],
)
def test_state_says_what_is_there(tree, waiting, text):
    assert (waits(tree), state_text(tree)) == (waiting, text)


def test_replicas_with_unready_pods_are_planned():
    assert waiting_replicas(TREE) == [0]
    assert waiting_replicas(RUNNING) == []
