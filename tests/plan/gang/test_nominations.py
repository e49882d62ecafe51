"""Nominations of existing pods: written, renewed and ended."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.naming import annotations as keys
from grove.api.naming import well_known
from grove.api.types.pod import Gate, Pod, PodSpecView, PodStatus
from grove.plan.gang.placement import GangPlacement
from grove.plan.members.membership import Member
from grove.plan.placement.assignment import Assignment, Decision, PodSlot, Waiting

SLOT = PodSlot("worker", 0)
NODES = {SLOT: "n1"}


def member(node: str, renewal: str = "", *, gated: bool = True) -> Member:
    """A pod that is nominated to a node."""
    meta = ObjectMeta(name="p", namespace="ns", uid="u", annotations={keys.NOMINATION: renewal})
    gates = (Gate(well_known.GANG_GATE),) if gated else ()
    pod = Pod(meta, PodSpecView(scheduling_gates=gates), PodStatus(nominated_node_name=node))  # type: ignore[arg-type]
    return Member("p", 0, pod)


def written(decision: Decision | None, found: Member) -> dict[str, Any] | None:
    patch = GangPlacement(applies=True, decision=decision).nominate(SLOT, found)
    return None if patch is None else patch.body


def nominated(renewal: str = "") -> Assignment:
    return Assignment(nodes=NODES, nominated=True, renewal=renewal)


@pytest.mark.parametrize("decision", [nominated(), Waiting("held", nodes=NODES)], ids=["nominated", "held"])
def test_gated_pod_is_nominated_to_its_node(decision: Decision) -> None:
    expected = {"metadata": {"uid": "u"}, "status": {"nominatedNodeName": "n1"}}
    assert written(decision, member("")) == expected
    assert written(decision, member("n2")) == expected
    assert written(decision, member("n1")) is None
    assert written(decision, member("", gated=False)) is None


def test_nomination_is_renewed_by_an_annotation() -> None:
    renewed = written(nominated("two"), member("n1", "one"))
    assert renewed is not None
    assert renewed["metadata"]["annotations"] == {keys.NOMINATION: "two"}
    assert renewed["status"] == {"nominatedNodeName": "n1"}
    assert written(nominated("two"), member("n1", "two")) is None


def test_nomination_is_renewed_while_others_are_preempted() -> None:
    """Of a gang that is released in two stages, only the pods of the first one are left alone."""
    first = replace(nominated("two"), released=True, hosts={PodSlot("other", 0): "h"}, preempting=True)
    renewed = written(first, member("n1", "one"))
    assert renewed is not None
    assert renewed["status"] == {"nominatedNodeName": "n1"}
    assert written(replace(first, hosts={SLOT: "n1"}), member("n1", "one")) is None


@pytest.mark.parametrize(
    "decision", [Waiting("full"), Assignment(nominated=True)], ids=["waits", "other pods"]
)
def test_nomination_that_is_not_decided_ends(decision: Decision) -> None:
    ended = written(decision, member("n1", "one"))
    assert ended == {"metadata": {"uid": "u"}, "status": {"nominatedNodeName": None}}
    assert written(decision, member("")) is None


@pytest.mark.parametrize(
    "decision",
    [None, Assignment(nodes=NODES), Assignment(nodes=NODES, nominated=True, released=True)],
    ids=["undecided", "slack", "released"],
)
def test_nomination_is_left_to_a_released_or_undecided_pod(decision: Decision | None) -> None:
    assert written(decision, member("n1")) is None
