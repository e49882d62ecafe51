"""The status of a set's fabric domains (B1, B6)."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.types.common import LastError
from grove.api.types.podcliqueset import ComputeDomainSummary
from grove.fabrics.domain_pods import DomainPodCount, DomainPods, HeldNode
from grove.fabrics.membership import memberships
from grove.fabrics.provider import Domain
from grove.fabrics.resolved import DomainReport, DomainState, ResolvedDomain
from grove.plan.fabric.phase import phase_events
from grove.plan.fabric.status import with_domains
from grove.plan.model import ReplicaSummary
from tests.fabrics.builders import BOTH, a_set, clique

NVIDIA = BOTH.of("nvidia")
SET = a_set(clique("worker"), auto="enabled")
SET = replace(SET, spec=replace(SET.spec, replicas=3))
MEMBERSHIPS = memberships(SET, BOTH, lambda *_: 1)


def a_domain(index, state=DomainState.USABLE, nodes=(), failure=None, there=True):
    name = f"inference-{index}"
    status = {
        "nodes": [
            {"name": f"n{number}", "cliqueID": clique_id, "status": "Ready" if ready else "NotReady"}
            for number, (clique_id, ready) in enumerate(nodes)
        ]
    }
    created = {"creationTimestamp": "1970-01-01T00:00:10Z"}
    body = {"metadata": {"name": name, "uid": f"uid-{name}", **created}, "status": status}
    found = msgspec.convert(body, Domain) if there else None
    report = DomainReport(failure=failure)
    return ResolvedDomain(NVIDIA, name, MEMBERSHIPS["nvidia", name], state, "channels", found, report=report)


def status_of(*domains, workload=SET, now=0.0, shortage="", pods=()):
    """The status of a set. `pods`: of each domain, how many pods the set wants, and how many have nodes."""
    counts = tuple(DomainPodCount("nvidia", f"inference-{index}", *count) for index, *count in pods)
    report = ReplicaSummary(channel_shortage=shortage, domain_pods=counts)
    return with_domains(workload.status, workload, domains, now, [report])


def on(domain, *nodes, **more):
    """The domain, with pods on these nodes."""
    return replace(domain, pods=DomainPods(frozenset(nodes), **more))


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
        (
            [a_domain(0, DomainState.MISSING, there=False)],
            "False",
            "WaitingForPods",
            "clique worker waits for inference-0, which does not exist yet",
        ),
        (
            [a_domain(0, nodes=FORMING), a_domain(1)],
            "False",
            "NodesNotReady",
            "inference-0: 1/2 nodes ready, not n1; no pod of inference-1 has a node yet",
        ),
        (
            [on(a_domain(0, nodes=READY), "n0", "n7")],
            "False",
            "NodesNotReady",
            "inference-0: 1/2 nodes ready, not n7",
        ),
        ([on(a_domain(0), "n7")], "False", "NodesNotReady", "0/1 nodes ready, not n7"),
        ([on(a_domain(0, nodes=READY), "n0")], "True", "AllReady", "1 of 1"),
        (
            [a_domain(0, DomainState.TERMINATING, READY)],
            "False",
            "ComputeDomainTerminating",
            "is being deleted",
        ),
        ([a_domain(0, DomainState.CONFLICT)], "False", "NameConflict", "belongs to another owner"),
        ([a_domain(0, DomainState.CONFLICT)], "False", "NameConflict", "(needed by clique worker)"),
        (
            [a_domain(0, DomainState.TEMPLATE_CONFLICT)],
            "False",
            "NameConflict",
            "ResourceClaimTemplate channels, by which",
        ),
        (
            [replace(a_domain(0), report=DomainReport("ns/other holds n1"))],
            "False",
            "ImexChannelBusy",
            "ns/other holds n1; no pod of inference-0 has a node yet",
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
            "False",
            "FabricSplit",
            "inference-0 is split over 2 partitions (a, b), between which the fabric has no links",
        ),
        (
            [on(a_domain(0, nodes=READY), "n0", "n7", partitions=frozenset({"b"}))],
            "False",
            "FabricSplit",
            "2 partitions (a, b), between which",
        ),
        ([on(a_domain(0, nodes=READY), "n0", partitions=frozenset({"a"}))], "True", "AllReady", "1 of 1"),
        ([a_domain(0, nodes=[("", True)])], "True", "AllReady", "1 of 1"),
        (
            [a_domain(0, nodes=[("a", True), ("", True)])],
            "False",
            "FabricSplit",
            "nodes n1 of ComputeDomain inference-0 are in no partition, so the fabric does not join them",
        ),
        ([a_domain(0, nodes=[("", True), ("", True)])], "False", "FabricSplit", "nodes n0, n1 of"),
        (
            [on(a_domain(0, nodes=READY), "n0", former=("p", "q"))],
            "False",
            "ComputeDomainRecreated",
            "inference-0 was created again, and pods p, q use claims of the former one: delete these pods",
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
        ComputeDomainSummary(
            "inference-0", "auto", (0,), "uid-inference-0", "Forming", 1, 2, ("a",), "NodesNotReady"
        ),
        ComputeDomainSummary("inference-1", "auto", (1,), "", "Missing", reason="WaitingForPods"),
    )


def with_channels(domain, channels):
    return replace(domain, channels=channels)


@pytest.mark.parametrize(
    ("domain", "pods", "reason", "words"),
    [
        (a_domain(0, nodes=READY), (1, 1), "AllReady", "1 of 1 domains are ready"),
        (a_domain(0, nodes=READY), (2, 1), "PodsWaiting", "inference-0: 1 of 2 pods have a node"),
        (with_channels(a_domain(0, nodes=READY), 2), (2, 1), "PodsWaiting", "inference-0: 1 of 2 pods"),
        (
            with_channels(a_domain(0, nodes=READY), 1),
            (2, 1),
            "OneMemberPodPerNode",
            "inference-0: 1 of 2 pods have a node; each needs one of its own, and 1 node has a channel",
        ),
        (
            a_domain(0, DomainState.NOT_OWNED_YET, READY, LastError("ERR", "denied", "")),
            (1, 0),
            "CreateFailed",
            "inference-0 could not be joined: denied (needed by clique worker)",
        ),
    ],
)
def test_domain_whose_pods_of_the_set_are_missing_is_not_ready(domain, pods, reason, words):
    """Its nodes are ready: with other pods of it, or with those of another set."""
    status = status_of(domain, pods=[(0, *pods)])
    (condition,), (summary,) = status.conditions, status.compute_domains
    assert condition.reason == reason
    assert condition.message.startswith(words)
    assert (summary.phase, summary.reason) == ("Ready", reason.replace("AllReady", ""))


@pytest.mark.parametrize(
    ("domain", "now", "reason"),
    [
        (a_domain(0, DomainState.TEMPLATE_MISSING), 39.9, "WaitingForPods"),
        (a_domain(0, DomainState.TEMPLATE_MISSING), 40.0, "ClaimNotCreated"),
        (on(a_domain(0), "n7", held=(HeldNode("n7", 20.0),)), 29.9, "NodesNotReady"),
        (on(a_domain(0), "n7", held=(HeldNode("n7", 20.0),)), 30.0, "NodeHeldByOtherDomain"),
    ],
)
def test_problem_is_reported_after_a_while(domain, now, reason):
    (condition,) = status_of(domain, now=now).conditions
    assert (condition.status, condition.reason) == ("False", reason)


def test_more_pods_than_channels_is_not_blamed_on_others():
    busy = replace(a_domain(0), report=DomainReport("ns/other holds n1"))
    (condition,) = status_of(busy, shortage="3 pods need a node each").conditions
    assert (condition.reason, "holds" in condition.message) == ("OneMemberPodPerNode", False)
    assert condition.message.startswith("3 pods need a node each")


TWO_READY = [("a", True), ("a", True)]


def events_after(before, *domains, pods=()):
    """The phase of the first domain, and the events of the change."""
    workload = replace(SET, status=before)
    status = status_of(*domains, workload=workload, pods=pods)
    found = [(each.reason, each.note) for each in phase_events(workload, status, domains)]
    return status, status.compute_domains[0].phase, found


def test_domain_that_loses_a_node_is_degraded_until_it_recovers():
    ready, _, none = events_after(SET.status, a_domain(0, nodes=TWO_READY))
    assert none == []
    lost = on(a_domain(0, nodes=FORMING), "n0", "n1", started=frozenset({"n0", "n1"}))
    status, phase, events = events_after(ready, lost)
    note = "nodes were lost: inference-0: 1/2 nodes ready, not n1"
    assert (phase, events) == ("Degraded", [("ComputeDomainDegraded", note)])
    assert [condition.reason for condition in status.conditions] == ["DomainDegraded"]
    again = on(a_domain(0, nodes=FORMING), "n0", "n2")
    status, phase, events = events_after(status, again)
    assert (phase, events) == ("Degraded", []), "one event, until all nodes are ready"
    for nodes in (READY, ()):
        status, phase, events = events_after(status, a_domain(0, nodes=nodes), pods=[(0, 2, len(nodes))])
        assert (phase, events) == ("Degraded", []), "the pods of the lost nodes are not back"
    _, phase, events = events_after(status, a_domain(0, nodes=TWO_READY), pods=[(0, 2, 2)])
    assert (phase, [reason for reason, _ in events]) == ("Ready", ["ComputeDomainRecovered"])


def test_domain_whose_new_node_is_not_ready_is_forming():
    ready, *_ = events_after(SET.status, a_domain(0, nodes=READY))
    grown = on(a_domain(0, nodes=FORMING), "n0", "n1", started=frozenset({"n0"}))
    _, phase, events = events_after(ready, grown)
    assert (phase, events) == ("Forming", [])
    two, *_ = events_after(SET.status, a_domain(0, nodes=TWO_READY))
    replaced = on(a_domain(0, nodes=FORMING), "n0", "n1", started=frozenset({"n0"}))
    _, phase, events = events_after(two, replaced)
    assert (phase, events) == ("Forming", []), "another pod of it has not started yet"
    early = on(a_domain(0, nodes=FORMING), "n0", "n1", started=frozenset({"n0", "n1"}))
    _, phase, events = events_after(ready, early)
    assert (phase, events) == ("Forming", []), "the pod is seen before its node is"


def test_set_without_domains_has_no_condition():
    before = replace(SET, status=status_of(a_domain(0, nodes=READY)))
    after = status_of(workload=before)
    assert after.compute_domains == ()
    assert after.conditions == ()


def marked(domain, annotations=(), **labels):
    """The domain as one that Grove manages, with these annotations and labels."""
    managed = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/component": "pcs-computedomain",
    }
    metadata = replace(domain.found.metadata, labels=managed | labels, annotations=dict(annotations))
    return replace(domain, found=replace(domain.found, metadata=metadata))


def message_of(*domains):
    (condition,) = status_of(*domains).conditions
    return condition.message


def owned_by(index, name):
    return marked(a_domain(index, DomainState.CONFLICT), **{"app.kubernetes.io/part-of": name})


def test_condition_gives_each_terminating_domain_its_own_advice():
    going = [marked(a_domain(index, DomainState.TERMINATING)) for index in (0, 1, 2)]
    going[1] = marked(going[1], {"grove.io/recreate": "true"})
    again = "is being deleted, and is created again when its pods are gone"
    message = message_of(*going)
    assert message.startswith("ComputeDomain inference-0, inference-2 is being deleted while it is needed")
    assert f"; ComputeDomain inference-1 {again} (needed by clique worker)" in message


def test_condition_names_the_owner_of_each_conflicting_domain():
    advice = "use another name for this set or its domain"
    assert message_of(owned_by(0, "red"), owned_by(1, "blue"), owned_by(2, "red")) == (
        f"ComputeDomain inference-0, inference-2 belongs to PodCliqueSet red: {advice}; "
        f"ComputeDomain inference-1 belongs to PodCliqueSet blue: {advice} (needed by clique worker)"
    )


def test_condition_names_the_cause_of_each_failure():
    failed = [
        a_domain(index, DomainState.MISSING, failure=LastError("ERR", cause, ""), there=False)
        for index, cause in enumerate(("quota", "denied", "quota"))
    ]
    assert message_of(*failed) == (
        "inference-0, inference-2 could not be created: quota; inference-1 could not be created: denied "
        "(needed by clique worker)"
    )
