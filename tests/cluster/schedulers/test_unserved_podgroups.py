"""Gang scheduling on a cluster that does not serve PodGroups, as every cluster without the feature gates."""

from __future__ import annotations

from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.schedulers.native import IN_TREE


async def test_unserved_podgroups_are_an_error_with_flags(world: World) -> None:
    async with operating(world, backends=IN_TREE) as operator:
        await world.create(SETS, workload("wl", clique("a", 2)))
        await world.until(lambda: "GenericWorkload=true" in _errors(world), "the flags in lastErrors")
        assert "ERR_SYNC_PODGROUP" in _errors(world)
        assert world.pods() == []
        writes = [call for call in operator.recorder.calls if "podgroups" in call.request.path]
        assert writes == [], "what is not served is not written"


def _errors(world: World) -> str:
    found = world.find(CLIQUES, "wl-0-a")
    return str(found.status.get("lastErrors") or "") if found else ""
