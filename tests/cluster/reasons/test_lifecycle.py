"""A reason appears once it lasts, once as an event, and goes with the fact."""

from __future__ import annotations

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import EVENTS, NODES
from grove.reasons.codes import ReasonCode as Code
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS, AnyObject
from tests.cluster.operator.support.world import World
from tests.cluster.reasons.causes import CORDONED, NAME, Cause, CauseNode, pods
from tests.cluster.reasons.seeded import Seeded
from tests.cluster.reasons.test_causes import SCHEDULERS, account

__all__ = ["account"]

CAUSE = Cause("lifecycle", Code.NODE_CORDONED, pods(), (CauseNode(spec=CORDONED), CauseNode()))
HEALTHY = Cause("healthy", Code.NODE_CORDONED, pods(2))
OBJECTS = ((GANGS, f"{NAME}-0"), (CLIQUES, f"{NAME}-0-a"), (SETS, NAME))


async def test_reason_is_one_event_and_goes_with_the_fact(client: Client, account) -> None:
    seeded = Seeded(client, (CAUSE, HEALTHY), "others-of-lifecycle")
    world = World(client, account.config, seeded.others)

    def codes() -> set[str]:
        return {seeded.code(resource, CAUSE, name) for resource, name in OBJECTS}

    async with seeded.watched(), operating(world, backends=SCHEDULERS) as operator:
        try:
            await seeded.create()
            assert await seeded.until(lambda: codes() == {"NodeCordoned"}), codes()
            await operator.recorder.until_quiet()
            events = (await client.list(EVENTS, namespace=CAUSE.name, as_type=AnyObject)).items
            found = [
                (each.regarding["kind"], each.reason) for each in events if each.reason == "NodeCordoned"
            ]
            assert found == [("PodGang", "NodeCordoned")]
            for resource, name in OBJECTS:
                assert seeded.code(resource, HEALTHY, name) == ""
            await client.patch(NODES, "lifecycle-0", {"spec": {"unschedulable": None}}, as_type=Object)
            assert await seeded.until(lambda: codes() == {""}), codes()
        finally:
            await seeded.delete()
