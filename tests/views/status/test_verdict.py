"""The verdict on a workload."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import ComputeDomainSummary, PodCliqueSetUpdateProgress
from grove.cli.commands.inspection.status import EXIT_CODES
from grove.cli.exit_codes import ExitCode
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.status import GraphStatus
from grove.explanation.model import ObjectRef
from grove.explanation.subtree import Subtree
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import WaitReason
from grove.views.status.model import Verdict
from grove.views.status.verdict import verdict
from tests.explanation.test_findings import RUNNING, TREE

NOW = 1_800_000_000.0


def with_set(tree: Subtree, **status: object) -> Subtree:
    """The set with another status, of its latest generation."""
    workload = tree.workload
    assert workload is not None
    status = {"observed_generation": workload.metadata.generation, **status}
    return replace(tree, workload=replace(workload, status=replace(workload.status, **status)))


HEALTHY = with_set(RUNNING)
UNENFORCED = Condition("TopologyConstraintsEnforced", "False", "UnsupportedByScheduler", "")
UNHEALTHY = Condition("Unhealthy", "True", "TerminationBudgetSpent", "")
DEGRADED = ComputeDomainSummary("demo-0", phase="Degraded")
SPLIT = ComputeDomainSummary("demo-0", phase="Ready", reason="FabricSplit")
FAILED_WRITE = LastError("ERR_X", "failed", "2027-01-15T08:00:00Z")
UPDATING = PodCliqueSetUpdateProgress("2027-01-15T08:00:00Z")
GONE = replace(TREE.workload.metadata, deletion_timestamp="2027-01-15T08:00:00Z")  # type: ignore[union-attr]


def gang_with(tree: Subtree, condition: Condition) -> Subtree:
    gang = tree.gangs[0]
    return replace(
        tree, gangs=(replace(gang, status=replace(gang.status, conditions=(condition,))), *tree.gangs[1:])
    )


@pytest.mark.parametrize(
    ("tree", "codes", "expected"),
    [
        (HEALTHY, (), Verdict.HEALTHY),
        (with_set(TREE), (), Verdict.PROGRESSING),
        (with_set(RUNNING, observed_generation=-1), (), Verdict.PROGRESSING),
        (with_set(RUNNING, update_progress=UPDATING), (), Verdict.PROGRESSING),
        (with_set(RUNNING, update_progress=UPDATING), (Code.UPDATE_PAUSED,), Verdict.WAITING),
        (with_set(RUNNING, update_progress=UPDATING), (Code.PROGRESS_DEADLINE_EXCEEDED,), Verdict.DEGRADED),
        (with_set(TREE), (Code.INSUFFICIENT_RESOURCES,), Verdict.WAITING),
        (with_set(TREE), (Code.INIT_CONTAINER_WAITS,), Verdict.PROGRESSING),
        (with_set(TREE), (Code.INSUFFICIENT_RESOURCES, Code.CONTAINER_CRASHING), Verdict.DEGRADED),
        (gang_with(HEALTHY, UNHEALTHY), (), Verdict.DEGRADED),
        (with_set(RUNNING, conditions=(UNENFORCED,)), (), Verdict.DEGRADED),
        (with_set(TREE, conditions=(UNENFORCED,)), (), Verdict.PROGRESSING),
        (with_set(RUNNING, compute_domains=(DEGRADED,)), (), Verdict.DEGRADED),
        (with_set(RUNNING, compute_domains=(SPLIT,)), (), Verdict.DEGRADED),
        (with_set(RUNNING, last_errors=(FAILED_WRITE,)), (), Verdict.DEGRADED),
        (HEALTHY, (Code.NO_OPERATOR_LEADING,), Verdict.UNKNOWN),
        (replace(HEALTHY, workload=replace(HEALTHY.workload, metadata=GONE)), (), Verdict.TERMINATING),
    ],
)
def test_verdict_follows_from_statuses_and_reasons(tree, codes, expected):
    assert verdict(tree, map(WaitReason, codes), NOW) == expected


def test_usual_reason_that_lasts_is_waiting():
    for since, expected in ((1.0, Verdict.PROGRESSING), (timing.MOMENT + 1, Verdict.WAITING)):
        reason = WaitReason(Code.SCHEDULER_MESSAGE, since=NOW - since)
        assert verdict(with_set(TREE), [reason], NOW) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("successful", Verdict.HEALTHY),
        ("pending", Verdict.PROGRESSING),
        ("failed", Verdict.DEGRADED),
    ],
)
def test_graph_without_set_is_judged_by_its_status(state, expected):
    graph = DynamoGraphDeployment(status=GraphStatus(state=state))
    tree = Subtree(ObjectRef("DynamoGraphDeployment", "g", "team"), graph)
    assert verdict(tree, (), NOW) == expected


def test_failed_graph_with_a_running_set_is_degraded():
    graph = DynamoGraphDeployment(status=GraphStatus(state="failed"))
    tree = replace(HEALTHY, about=ObjectRef("DynamoGraphDeployment", "g", "team"), graph=graph)
    assert verdict(tree, (), NOW) == Verdict.DEGRADED


def test_only_healthy_ends_with_exit_code_0():
    codes = {each: EXIT_CODES.get(each, ExitCode.PROBLEM) for each in Verdict}
    assert [each for each, code in codes.items() if code == 0] == [Verdict.HEALTHY]
    assert [each for each, code in codes.items() if code == 3] == [Verdict.UNKNOWN]
