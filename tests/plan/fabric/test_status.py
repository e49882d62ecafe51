"""The status of a set's fabric domains (B1, B6)."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.types.common import LastError
from grove.api.types.podcliqueset import ComputeDomainSummary
from grove.fabrics.membership import memberships
from grove.fabrics.provider import Domain
from grove.fabrics.resolved import DomainReport, DomainState, ResolvedDomain
from grove.plan.fabric.status import with_domains
from tests.fabrics.builders import BOTH, a_set, clique

NVIDIA = BOTH.of("nvidia")
SET = a_set(clique("worker"), auto="enabled")
MEMBERSHIPS = memberships(SET, BOTH, lambda *_: 1)


def a_domain(index, state=DomainState.USABLE, nodes=(), failure=None, there=True):
    name = f"inference-{index}"
    status = {
        "nodes": [
            {"name": f"n{number}", "cliqueID": clique_id, "status": "Ready" if ready else "NotReady"}
            for number, (clique_id, ready) in enumerate(nodes)
        ]
    }
    body = {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": status}
    found = msgspec.convert(body, Domain) if there else None
    report = DomainReport(failure=failure)
    return ResolvedDomain(NVIDIA, name, MEMBERSHIPS["nvidia", name], state, "channels", found, report=report)


def status_of(*domains, workload=SET):
    return with_domains(workload.status, workload, domains, 0.0)


READY = [("a", True)]
FORMING = [("a", True), ("a", False)]


@pytest.mark.parametrize(
    ("domains", "status", "reason", "words"),
    [
        (
            [a_domain(0, nodes=READY), a_domain(1, nodes=READY)],
            "True",
            "AllReady",
            "2 of 2 domains are ready",
        ),
        (
            [a_domain(0, nodes=READY), a_domain(1)],
            "False",
            "WaitingForPods",
            "no pod of inference-1 has a node",
        ),
        ([a_domain(0, DomainState.MISSING, there=False)], "False", "WaitingForPods", "inference-0"),
        (
            [a_domain(0, nodes=FORMING), a_domain(1)],
            "False",
            "NodesNotReady",
            "inference-0: 1/2 nodes ready",
        ),
        (
            [replace(a_domain(0, nodes=READY), nodes=frozenset({"n0", "n7"}))],
            "False",
            "NodesNotReady",
            "inference-0: 1/2 nodes ready",
        ),
        ([replace(a_domain(0), nodes=frozenset({"n7"}))], "False", "NodesNotReady", "0/1 nodes ready"),
        ([replace(a_domain(0, nodes=READY), nodes=frozenset({"n0"}))], "True", "AllReady", "1 of 1"),
        (
            [a_domain(0, DomainState.TERMINATING, READY)],
            "False",
            "ComputeDomainTerminating",
            "is being deleted",
        ),
        ([a_domain(0, DomainState.CONFLICT)], "False", "NameConflict", "belongs to another owner"),
        (
            [a_domain(0, DomainState.TEMPLATE_CONFLICT)],
            "False",
            "NameConflict",
            "ResourceClaimTemplate channels, by which",
        ),
        (
            [replace(a_domain(0), report=DomainReport("ns/other holds n1"))],
            "False",
            "WaitingForPods",
            "no pod of inference-0 has a node yet; ns/other holds n1",
        ),
        (
            [a_domain(0, DomainState.MISSING, failure=LastError("ERR", "quota", ""), there=False)],
            "False",
            "CreateFailed",
            "inference-0 could not be created: quota",
        ),
        (
            [
                a_domain(0, DomainState.NOT_SERVED, there=False),
                a_domain(1, DomainState.NOT_SERVED, there=False),
            ],
            "False",
            "ComputeDomainCRDMissing",
            "wait for ComputeDomain inference-0, inference-1: computedomains.resource.nvidia.com is not",
        ),
        (
            [a_domain(0, nodes=[("a", True), ("b", True)])],
            "True",
            "AllReady",
            "inference-0 is split over 2 partitions: a, b",
        ),
    ],
)
def test_domains_ready_condition(domains, status, reason, words):
    (condition,) = status_of(*domains).conditions
    assert (condition.type, condition.status, condition.reason) == ("ComputeDomainsReady", status, reason)
    assert words in condition.message


def test_status_has_one_entry_per_domain():
    status = status_of(a_domain(0, nodes=FORMING), a_domain(1, DomainState.MISSING, there=False))
    assert status.compute_domains == (
        ComputeDomainSummary("inference-0", "auto", (0,), "uid-inference-0", "Forming", 1, 2, ("a",)),
        ComputeDomainSummary("inference-1", "auto", (1,), "", "Missing"),
    )


def test_domain_that_was_ready_is_degraded():
    before = replace(SET, status=status_of(a_domain(0, nodes=READY)))
    (line,) = status_of(a_domain(0, nodes=FORMING), workload=before).compute_domains
    assert line.phase == "Degraded"


def test_set_without_domains_has_no_condition():
    before = replace(SET, status=status_of(a_domain(0, nodes=READY)))
    after = status_of(workload=before)
    assert after.compute_domains == ()
    assert after.conditions == ()
