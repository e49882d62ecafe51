"""Gangs for which the operator holds nodes: their pods are nominated, and there is no room yet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.json import decode
from msgspec.structs import replace

from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.model import ClusterState
from grove.explanation.explain import Explainer
from grove.explanation.model import GangExplanation
from grove.kube.client.resource import PODS
from grove.operator.caches.resources import resource_of
from tests.cluster_state.states import shaped, with_objects
from tests.dashboard.pages.clusters import a_pod
from tests.dry_run.plans import SETUP, applied, with_gpus
from tests.plan.builders import a_set

HOSTS = [f"z0-b0-r0-h{i}" for i in range(4)]


def nominated(pod: dict[str, Any], node: str) -> dict[str, Any]:
    """A pod that waits for its release."""
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    gates = [{"name": "grove.io/podgang-pending-creation"}]
    return {**pod, "spec": {**spec, "schedulingGates": gates}, "status": {"nominatedNodeName": node}}


def nominated_state(*used: str) -> ClusterState:
    """A gang of 3 pods that is nominated for the first nodes; pods of others use all GPUs of some nodes."""
    state = applied(shaped("1x1x1x4"), with_gpus(a_set("a:3", name="other"), 8))
    known = state.kind(PODS)
    pods = [nominated(decode(item), HOSTS[n]) for n, item in enumerate(known.items)]
    others = [a_pod("ml", f"train-{node}", node, 8) for node in used]
    empty = replace(state, kinds={**state.kinds, PODS: replace(known, items=())})
    return with_objects(empty, PODS, *pods, *others)


def gangs_of(state: ClusterState, name: str = "other") -> tuple[GangExplanation, ...]:
    async def run() -> tuple[GangExplanation, ...]:
        return Explainer(state, SETUP).explain(f"set/{name}", "ns").gangs

    return asyncio.run(run())


def test_held_gang_has_domains_holders_and_remedies() -> None:
    (gang,) = gangs_of(nominated_state(*HOSTS[:2]))
    assert (gang.gang, gang.pods) == ("other-0", 3)
    assert [(row.free, row.total, row.need, row.room) for row in gang.domains] == [(16, 32, 24, 2)]
    assert {each.pod.name for each in gang.holders} == {f"train-{node}" for node in HOSTS[:2]}
    assert {"endPods", "addNodes"} <= {each.action for each in gang.remedies}


@pytest.mark.parametrize("used", [(), (HOSTS[3],)])
def test_gang_with_room_on_its_nodes_lacks_nothing(used: tuple[str, ...]) -> None:
    assert gangs_of(nominated_state(*used)) == ()


def test_gang_that_nodes_are_held_for_is_named_to_others() -> None:
    late = with_gpus(a_set("a:2", name="late"), 8)
    late["metadata"] |= {"uid": "late", "resourceVersion": "1", "generation": 1}
    sets = resource_of(PodCliqueSet.KIND)
    (gang,) = gangs_of(with_objects(nominated_state(*HOSTS[:2]), sets, late), "late")
    assert [row.reserved for row in gang.domains] == [{"ns/other-0": 3}]
    assert not [each for each in gang.remedies if each.action == "endPods"], "what gets free is held"
