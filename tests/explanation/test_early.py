"""What is said about an object before the whole cluster is read."""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.explanation.early import early_answer
from grove.kube.leader.lease import Lease, LeaseSpec
from grove.reasons.codes import ReasonCode as Code
from tests.explanation.test_findings import RUNNING, TREE, with_condition, with_pull_failure

NOW = 1_800_000_000.0
HELD = Lease(ObjectMeta("lease"), LeaseSpec("me", renew_time="2100-01-01T00:00:00.000000Z"))
LOST = Lease(ObjectMeta("lease"), LeaseSpec("me", renew_time="2020-01-01T00:00:00.000000Z"))
WRITTEN = with_condition(replace(TREE, gangs=TREE.gangs[:1]), Code.NODE_CORDONED)


def codes(tree, leases=(HELD,)):
    """The reasons that are said early; None if they are not known yet."""
    early = early_answer(tree, leases, NOW)
    return [each.code for each in early.explanation.reasons] if early.has_reasons else None


def test_reasons_of_conditions_are_said_early():
    early = early_answer(WRITTEN, (HELD,), NOW)
    assert early.explanation.waits
    assert early.explanation.state == "0/1 replicas available, 0/1 gangs running, 0/5 pods ready"
    assert codes(WRITTEN) == [Code.NODE_CORDONED]


def test_leases_that_cannot_be_read_do_not_matter():
    assert codes(WRITTEN, None) == [Code.NODE_CORDONED]


def test_nothing_that_waits_is_an_early_answer():
    assert codes(RUNNING) == []
    assert not early_answer(RUNNING, (HELD,), NOW).explanation.waits


def test_conditions_of_an_operator_that_is_gone_do_not_count():
    assert codes(WRITTEN, (LOST,)) is None


def test_gang_without_reason_needs_the_solver():
    assert codes(TREE) is None
    assert codes(with_condition(TREE, Code.NODE_CORDONED)) is None


def test_replica_without_gang_needs_the_solver():
    workload = WRITTEN.workload
    assert workload is not None
    more = replace(WRITTEN, workload=replace(workload, spec=replace(workload.spec, replicas=2)))
    assert codes(more) is None


def test_gang_whose_pods_have_reasons_needs_no_solver():
    assert codes(with_pull_failure(WRITTEN)) == [Code.NODE_CORDONED, Code.IMAGE_PULL_FAILED]
