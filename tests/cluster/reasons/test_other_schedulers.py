"""The condition `Waiting` of gangs of KAI and Volcano, from what these write on their own CRDs and on pods;
and `grove explain`, which has the view of the solver beside it."""

from __future__ import annotations

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.cluster_state.reading import read_state
from grove.explanation.explain import Preparation
from grove.explanation.model import Explanation
from grove.kube.client.resource import PODS
from grove.reasons.codes import ReasonCode as Code
from grove.schedulers.registry import backends
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS
from tests.cluster.operator.support.workloads import Body, clique, workload
from tests.cluster.reasons.explained import LEASE
from tests.cluster.schedulers.conftest import world
from tests.cluster.schedulers.test_waiting_reasons import AT, OF_KAI, OF_VOLCANO, from_kai, from_volcano

__all__ = ["world"]

IN_USE = backends(Scheduler((SchedulerProfile("kai-scheduler"), SchedulerProfile("volcano"))))
KAI_WORDS = "no nodes with enough resources were found for the pod: 16 node(s) didn't have enough GPUs"
VOLCANO_WORDS = "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable"
VOLCANO_POD_WORDS = "0/16 nodes are unavailable: 16 Insufficient nvidia.com/gpu."


def too_large(name: str, scheduler: str) -> Body:
    """A gang whose pods have more GPUs than a node."""
    container = {"name": "main", "image": "model:1", "resources": {"limits": {"nvidia.com/gpu": "99"}}}
    body = workload(name, clique("a", 2, pod={"schedulerName": scheduler, "containers": [container]}))
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    return body


async def report_on_pods(world: World, name: str, words: str) -> None:
    """What a scheduler writes on pods that it found no node for."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": words,
        "lastTransitionTime": AT,
    }
    for pod in world.pods(part_of=name):
        body = {"status": {"conditions": [condition]}}
        await world.patch(PODS, pod.name, body, subresource="status")


def codes(world: World, name: str) -> list[str]:
    """The codes of gang, clique and set."""
    objects = ((GANGS, f"{name}-0"), (CLIQUES, f"{name}-0-a"), (SETS, name))
    return [found.waits_for if (found := world.find(*each)) else "" for each in objects]


async def explained(world: World, name: str) -> Explanation:
    preparation = Preparation(LEASE)
    state = await read_state(world.client, preparation.kinds, world.namespace)
    return preparation.explainer(state).explain(name, world.namespace)


async def test_words_of_kai_and_volcano_have_codes(world: World) -> None:
    async with operating(world, backends=IN_USE):
        await world.create(SETS, too_large("k", "kai-scheduler"))
        await world.create(SETS, too_large("v", "volcano"))
        await world.until(lambda: len(world.pods()) == 4, "all pods")
        await world.patch(OF_KAI, "k-0", {"status": from_kai(KAI_WORDS)}, subresource="status")
        await world.patch(OF_VOLCANO, "v-0", {"status": from_volcano(VOLCANO_WORDS)})
        said = [Code.SCHEDULER_MESSAGE.value] * 3
        await world.until(lambda: codes(world, "k") == codes(world, "v") == said, "words on the groups")
        for name, words in (("k", KAI_WORDS), ("v", VOLCANO_WORDS)):
            found = await explained(world, name)
            first = found.reasons[0]
            assert (first.code, words in first.message) == (Code.SCHEDULER_MESSAGE, True)
            (gang,) = found.gangs
            assert gang.gang == f"{name}-0"
            assert gang.domains, "the solver's view stands beside the scheduler's words"
        # What pods say is narrower than what Volcano says about their group.
        await report_on_pods(world, "v", VOLCANO_POD_WORDS)
        short = [Code.INSUFFICIENT_RESOURCES.value] * 3
        await world.until(lambda: codes(world, "v") == short, "words on the pods")
        assert (await explained(world, "v")).reasons[0].code is Code.INSUFFICIENT_RESOURCES
