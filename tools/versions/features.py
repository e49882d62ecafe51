"""What Grove claims for each scheduler: the rows of the page of Kubernetes versions.

A claim is proved by tests, which name it in a mark: `@pytest.mark.proves("gang", scheduler="kai-scheduler")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ANY = "any"
DEFAULT = "default-scheduler"
UNPLACED = "default-scheduler+placement=Off"
GANGS = "default-scheduler+gangScheduling"
KAI = "kai-scheduler"
VOLCANO = "volcano"

SCHEDULERS = {
    ANY: "Whatever the scheduler",
    DEFAULT: "`default-scheduler`",
    UNPLACED: "`default-scheduler` with `placement: Off`",
    GANGS: "`default-scheduler` with `gangScheduling: true` and `placement: Off`",
    KAI: "`kai-scheduler`",
    VOLCANO: "`volcano`",
}
"""The tables of the page, in its order, with their headings."""

YES, OBJECTS, REFUSED, NO = "yes", "objects", "refused", "no"


class Claim(NamedTuple):
    """What holds for one feature with one scheduler."""

    answer: str
    """YES: the test saw it hold. OBJECTS: the test saw the objects that the scheduler needs, without the
    scheduler. REFUSED: the test saw admission refuse it. NO: not supported, which needs no test."""
    remark: str = ""
    since: str = ""
    """The first minor version of Kubernetes that can do it; on older ones the answer is NO."""


class Feature(NamedTuple):
    """A row of the page."""

    title: str
    claims: Mapping[str, Claim]


_PLACED = "the operator [places the gang](placement.md)"
_ONE_BY_ONE = "it schedules pods one by one"
_GATES = "alpha or beta in Kubernetes: needs [feature gates](topology.md#schedulers)"
_ONE_LEVEL = "a PodGroup of Kubernetes has one level"
_NO_TOPOLOGY = "the backend passes no topology to Volcano"
_POD_PRIORITY = "set `priorityClassName` in the pod specs"

FEATURES: dict[str, Feature] = {
    "admission": Feature(
        "invalid sets and topologies are refused with the field and the reason", {ANY: Claim(YES)}
    ),
    "schemas": Feature("the API server accepts and stores our CRDs unchanged", {ANY: Claim(YES)}),
    "start-order": Feature("cliques start in their order", {ANY: Claim(YES)}),
    "termination": Feature(
        "a gang that stays below `minAvailable` restarts once, and alone", {ANY: Claim(YES)}
    ),
    "updates": Feature("an update replaces one pod and one replica at a time", {ANY: Claim(YES)}),
    "autoscaling": Feature("autoscalers scale cliques, groups and sets", {ANY: Claim(YES)}),
    "scale-to-zero": Feature(
        "autoscalers scale to 0 and back, never to between 0 and `minAvailable`",
        {ANY: Claim(YES, "`HPAScaleToZero` is on by default from 1.37, a feature gate before")},
    ),
    "shared-claims": Feature(
        "pods share devices by ResourceClaims", {ANY: Claim(YES, "`resource.k8s.io/v1`", since="1.34")}
    ),
    "nvlink": Feature(
        "ComputeDomains follow their replicas",
        {ANY: Claim(OBJECTS, "with a stand-in for NVIDIA's DRA driver", since="1.34")},
    ),
    "topology-changes": Feature("levels and topologies may change while pods run", {ANY: Claim(YES)}),
    "gang": Feature(
        "a gang is bound completely, or no pod of it",
        {
            DEFAULT: Claim(YES, _PLACED),
            UNPLACED: Claim(NO, _ONE_BY_ONE),
            GANGS: Claim(YES, _GATES, since="1.36"),
            KAI: Claim(OBJECTS),
            VOLCANO: Claim(OBJECTS),
        },
    ),
    "required-gang": Feature(
        "`pack.required` for all pods of a gang",
        {
            DEFAULT: Claim(YES, _PLACED),
            UNPLACED: Claim(REFUSED, _ONE_BY_ONE),
            GANGS: Claim(YES, "needs `TopologyAwareWorkloadScheduling`, alpha", since="1.36"),
            KAI: Claim(OBJECTS),
            VOLCANO: Claim(REFUSED, _NO_TOPOLOGY),
        },
    ),
    "required-nested": Feature(
        "`pack.required` of groups and cliques within a gang",
        {
            DEFAULT: Claim(YES, _PLACED),
            UNPLACED: Claim(REFUSED, _ONE_BY_ONE),
            GANGS: Claim(REFUSED, _ONE_LEVEL),
            KAI: Claim(OBJECTS),
            VOLCANO: Claim(REFUSED, _NO_TOPOLOGY),
        },
    ),
    "preferred": Feature(
        "`pack.preferred`",
        {
            DEFAULT: Claim(YES, _PLACED),
            UNPLACED: Claim(YES, "as preferred affinity of the pods"),
            GANGS: Claim(YES, "as preferred affinity of the pods", since="1.36"),
            KAI: Claim(OBJECTS),
            VOLCANO: Claim(REFUSED, _NO_TOPOLOGY),
        },
    ),
    "priority": Feature(
        "`priorityClassName` of a set applies to its gangs",
        {
            DEFAULT: Claim(NO, _POD_PRIORITY),
            UNPLACED: Claim(NO, _POD_PRIORITY),
            GANGS: Claim(OBJECTS, "its PodGroups and pods have it", since="1.37"),
            KAI: Claim(OBJECTS),
            VOLCANO: Claim(OBJECTS),
        },
    ),
    "queues": Feature(
        "a set without a usable queue is refused or reported",
        {
            DEFAULT: Claim(NO, "it has no queues"),
            UNPLACED: Claim(NO, "it has no queues"),
            GANGS: Claim(NO, "it has no queues"),
            KAI: Claim(YES),
            VOLCANO: Claim(YES),
        },
    ),
    "waiting-reason": Feature(
        "the PodGang says why the scheduler does not bind it",
        {
            DEFAULT: Claim(YES, "the operator's own reason"),
            UNPLACED: Claim(NO, "see the conditions of the pods"),
            GANGS: Claim(YES, since="1.36"),
            KAI: Claim(OBJECTS, "the test writes the scheduler's message"),
            VOLCANO: Claim(OBJECTS, "the test writes the scheduler's message"),
        },
    ),
    "topology-sync": Feature(
        "the scheduler gets each ClusterTopology as an object of its own",
        {
            DEFAULT: Claim(NO, "it reads node labels"),
            UNPLACED: Claim(NO, "it reads node labels"),
            GANGS: Claim(NO, "it reads node labels"),
            KAI: Claim(OBJECTS),
            VOLCANO: Claim(NO, _NO_TOPOLOGY),
        },
    ),
}


def mark_problem(feature: object, scheduler: object) -> str:
    """Why a mark names nothing that a test can prove; empty if it does."""
    if feature not in FEATURES:
        return f"unknown feature {feature!r}; choose one of {', '.join(FEATURES)}"
    claims = FEATURES[str(feature)].claims
    if scheduler not in claims:
        return f"feature {feature!r} has no scheduler {scheduler!r}; choose one of {', '.join(claims)}"
    if claims[str(scheduler)].answer == NO:
        return f"{scheduler} does not support {feature!r}: change the claim in tools/versions/features.py"
    return ""
