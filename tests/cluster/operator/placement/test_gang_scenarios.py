"""Upstream's gang scheduling scenarios (GS1 to GS12) on the unmodified scheduler with all feature gates at
their defaults. Room for pods is added step by step. What upstream calls pending is gated here.

All scenarios run at the same time with one operator, each with nodes of its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.naming import labels
from grove.kube.client.client import Client
from grove.schedulers.registry import backends
from tests.cluster.operator.placement.extra_nodes import Room, room
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, GROUPS, SETS, AnyObject, gated
from tests.cluster.operator.support.workloads import upstream

PLACING = backends(
    Scheduler((SchedulerProfile("default-scheduler", {"placement": "All", "visibleAfter": "Never"}),))
)
FULL, PARTIAL = "workload1", "workload2"
"""Upstream's workloads of ten pods: all of them are the minimum, or three of the base gang and two of each
scaled gang."""
BASE_MINIMUM = {"pc-a": 1, "pc-b": 1, "pc-c": 1}
SCALED_MINIMUM = {"pc-b": 1, "pc-c": 1}


class Run:
    """One scenario: a set, and the nodes for its pods."""

    def __init__(self, world: World, room: Room) -> None:
        self._world, self._room = world, room
        self.name = room.name
        self._at_once = False

    async def deploy(self, kind: str, nodes: int) -> None:
        """Create the set, with so many nodes. Of a set with pods beyond the minimum, they are slots of one
        node: nodes would become ready one after another, and each would be used at once."""
        self._at_once = kind == PARTIAL
        await self.grow(nodes)
        await self._world.create(SETS, self._room.confine(upstream(kind)))

    async def scale(self, replicas: int) -> None:
        await self._world.scale(SETS, self.name, replicas)

    async def scale_group(self, replicas: int, of: int = 0) -> None:
        """Scale the scaling group of one replica of the set."""
        group = f"{self.name}-{of}-sg-x"
        await self._world.until(lambda: self._world.find(GROUPS, group), f"{group} exists")
        await self._world.scale(GROUPS, group, replicas)

    async def grow(self, nodes: int) -> None:
        """Add room for so many pods."""
        await (self._room.widen if self._at_once else self._room.grow)(nodes)

    async def expect(self, bound: int, pending: int) -> None:
        """Wait until so many pods are bound, and all others gated because their gangs wait for nodes."""
        await self._world.until(lambda: self._counts() == (bound, pending), self._what(bound, pending))
        await self._world.until(
            lambda: all(map(self._waits, self._pods())), f"{self.name}: gangs ask for nodes"
        )
        assert self._counts() == (bound, pending), self._what(bound, pending)
        nodes = [pod.spec.get("nodeName") for pod in self._pods() if pod.spec.get("nodeName")]
        assert self._at_once or len(set(nodes)) == len(nodes), f"{self.name}: one pod a node"

    def bound_roles(self, gang: str) -> dict[str, int]:
        """How many pods of each role of a gang are bound; `gang` without the name of the set."""
        pods = self._pods_of(f"{self.name}-{gang}")
        roles = (pod.labels[labels.CLIQUE][-4:] for pod in pods if pod.spec.get("nodeName"))
        return dict(sorted(Counter(roles).items()))

    def _what(self, bound: int, pending: int) -> str:
        return f"{self.name}: {bound} bound and {pending} gated, is {self._counts()}"

    def _pods(self) -> list[AnyObject]:
        return self._world.pods(part_of=self.name)

    def _pods_of(self, gang: str) -> list[AnyObject]:
        return self._world.pods(gang=gang)

    def _counts(self) -> tuple[int, int]:
        pods = self._pods()
        return sum(bool(pod.spec.get("nodeName")) for pod in pods), sum(map(gated, pods))

    def _waits(self, pod: AnyObject) -> bool:
        """Whether a gated pod is known to wait for a node: its gang says so, or has its minimum, or must not
        ask because its base gang has none."""
        found = self._world.find(GANGS, pod.labels[labels.GANG])
        base = pod.labels.get(labels.BASE_GANG)
        if not gated(pod) or (base and not any(each.spec.get("nodeName") for each in self._pods_of(base))):
            return True
        if found is None:
            return False
        conditions = found.status.get("conditions") or ()
        scheduled = next((each for each in conditions if each["type"] == "Scheduled"), None)
        return scheduled is not None and (scheduled["status"] == "True" or "no place" in scheduled["message"])


async def gs1(run: Run) -> None:
    await run.deploy(FULL, nodes=9)
    await run.expect(0, 10)
    await run.grow(1)
    await run.expect(10, 0)


async def gs2(run: Run) -> None:
    await run.deploy(FULL, nodes=10)
    await run.expect(10, 0)
    await run.scale_group(3)
    await run.expect(10, 4)
    await run.grow(3)
    await run.expect(10, 4)
    await run.grow(1)
    await run.expect(14, 0)


async def gs3(run: Run) -> None:
    await run.deploy(FULL, nodes=10)
    await run.expect(10, 0)
    await run.scale(2)
    await run.expect(10, 10)
    await run.grow(9)
    await run.expect(10, 10)
    await run.grow(1)
    await run.expect(20, 0)


async def gs4(run: Run) -> None:
    await run.deploy(FULL, nodes=10)
    await run.expect(10, 0)
    await run.scale_group(3)
    await run.expect(10, 4)
    await run.grow(4)
    await run.expect(14, 0)
    await run.scale(2)
    await run.expect(14, 10)
    await run.grow(10)
    await run.expect(24, 0)
    await run.scale_group(3, of=1)
    await run.expect(24, 4)
    await run.grow(4)
    await run.expect(28, 0)


async def gs5(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=3)
    await run.expect(3, 7)
    assert run.bound_roles("0") == BASE_MINIMUM
    await run.grow(7)
    await run.expect(10, 0)


async def gs6(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=10)
    await run.expect(10, 0)
    await run.scale_group(3)
    await run.expect(10, 4)
    await run.grow(2)
    await run.expect(12, 2)
    assert run.bound_roles("0-sg-x-1") == SCALED_MINIMUM
    await run.grow(2)
    await run.expect(14, 0)


async def gs7(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=2)
    await run.expect(0, 10)
    await run.grow(1)
    await run.expect(3, 7)
    assert run.bound_roles("0") == BASE_MINIMUM
    await run.grow(2)
    await run.expect(5, 5)
    assert run.bound_roles("0-sg-x-0") == SCALED_MINIMUM
    await run.grow(5)
    await run.expect(10, 0)
    await run.scale_group(3)
    await run.expect(10, 4)
    await run.grow(2)
    await run.expect(12, 2)
    assert run.bound_roles("0-sg-x-1") == SCALED_MINIMUM
    await run.grow(2)
    await run.expect(14, 0)


async def gs8(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=0)
    await run.scale_group(3)
    await run.expect(0, 14)
    await run.grow(3)
    await run.expect(3, 11)
    assert run.bound_roles("0") == BASE_MINIMUM
    await run.grow(4)
    await run.expect(7, 7)
    assert run.bound_roles("0-sg-x-0") == run.bound_roles("0-sg-x-1") == SCALED_MINIMUM
    await run.grow(7)
    await run.expect(14, 0)


async def gs9(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=10)
    await run.expect(10, 0)
    await run.scale(2)
    await run.expect(10, 10)
    await run.grow(3)
    await run.expect(13, 7)
    assert run.bound_roles("1") == BASE_MINIMUM
    await run.grow(7)
    await run.expect(20, 0)


async def gs10(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=0)
    await run.scale(2)
    await run.expect(0, 20)
    await run.grow(6)
    await run.expect(6, 14)
    assert run.bound_roles("0") == run.bound_roles("1") == BASE_MINIMUM
    await run.grow(4)
    await run.expect(10, 10)
    assert run.bound_roles("0-sg-x-0") == run.bound_roles("1-sg-x-0") == SCALED_MINIMUM
    await run.grow(10)
    await run.expect(20, 0)


async def gs11(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=10)
    await run.expect(10, 0)
    await run.scale_group(3)
    await run.expect(10, 4)
    await run.grow(2)
    await run.expect(12, 2)
    assert run.bound_roles("0-sg-x-1") == SCALED_MINIMUM
    await run.grow(2)
    await run.expect(14, 0)
    await run.scale(2)
    await run.expect(14, 10)
    await run.grow(3)
    await run.expect(17, 7)
    assert run.bound_roles("1") == BASE_MINIMUM
    await run.grow(7)
    await run.expect(24, 0)
    await run.scale_group(3, of=1)
    await run.expect(24, 4)
    await run.grow(2)
    await run.expect(26, 2)
    assert run.bound_roles("1-sg-x-1") == SCALED_MINIMUM
    await run.grow(2)
    await run.expect(28, 0)


async def gs12(run: Run) -> None:
    await run.deploy(PARTIAL, nodes=0)
    await run.scale(2)
    for replica in range(2):
        await run.scale_group(3, of=replica)
    await run.expect(0, 28)
    await run.grow(6)
    await run.expect(6, 22)
    assert run.bound_roles("0") == run.bound_roles("1") == BASE_MINIMUM
    await run.grow(8)
    await run.expect(14, 14)
    scaled = [run.bound_roles(f"{replica}-sg-x-{number}") for replica in range(2) for number in range(2)]
    assert scaled == [SCALED_MINIMUM] * 4
    await run.grow(14)
    await run.expect(28, 0)


STORIES: dict[str, Callable[[Run], Awaitable[None]]] = {
    each.__name__: each for each in (gs1, gs2, gs3, gs4, gs5, gs6, gs7, gs8, gs9, gs10, gs11, gs12)
}


async def test_gangs_are_bound_whole_with_their_minimum_first(world: World, client: Client) -> None:
    async def tell(name: str, story: Callable[[Run], Awaitable[None]]) -> None:
        async with room(client, name) as nodes:
            await story(Run(world, nodes))

    async with operating(world, backends=PLACING):
        results = await asyncio.gather(
            *(tell(name, story) for name, story in STORIES.items()), return_exceptions=True
        )
    failed = {
        name: str(result).splitlines()[0]
        for name, result in zip(STORIES, results, strict=True)
        if isinstance(result, BaseException)
    }
    assert failed == {}
