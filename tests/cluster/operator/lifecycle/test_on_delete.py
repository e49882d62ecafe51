"""Update strategy OnDelete: only pods that are deleted get a changed template (upstream's OD1 to OD9)."""

from __future__ import annotations

from grove.kube.client.resource import PODS
from tests.cluster.operator.scenarios.updates import change
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS, AnyObject
from tests.cluster.operator.support.updates import current, progress_of, slow, updated
from tests.cluster.operator.support.workloads import upstream


async def test_od_update_replaces_deleted_pods_only(world: World) -> None:
    """OD1, OD2, OD3, OD5, OD7."""
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream("workload-ondelete"), 2))
        await world.until_ready()
        before = {pod.uid for pod in world.pods()}
        await change(world, "workload-ondelete", "next:1", "pc-a", "pc-b", "pc-c")
        await world.until(lambda: world.get(SETS, "workload-ondelete").settled and world.all_ready())
        await operator.recorder.until_quiet()
        assert {pod.uid for pod in world.pods()} == before
        progress = world.get(SETS, "workload-ondelete").status["updateProgress"]
        assert progress["updateStartedAt"] == progress["updateEndedAt"]
        assert "currentlyUpdating" not in progress
        assert progress["updatedPodCliquesCount"] == 0
        assert progress["totalPodCliquesCount"] == 2

        for clique in ("workload-ondelete-1-pc-a", "workload-ondelete-0-sg-x-0-pc-c"):
            lost = world.pods(clique=clique)[0]
            await world.delete(PODS, lost.name)
            await world.until(lambda lost=lost: world.find(PODS, lost.name) is None and world.all_ready())
            await world.until(
                lambda clique=clique: world.get(CLIQUES, clique).status.get("updatedReplicas") == 1
            )
        assert sum(map(current, world.pods())) == 2

        await world.scale(CLIQUES, "workload-ondelete-1-pc-a", 1)
        await world.until(lambda: len(world.all(PODS)) == 19 and world.all_ready())
        (left,) = world.pods(clique="workload-ondelete-1-pc-a")
        assert current(left), "scale in deletes the outdated pod"


async def test_od4_od6_od8_groups_and_pod_moved_off_failed_node(world: World) -> None:
    name = "workload-ondelete"

    async def replaced(pod: AnyObject) -> AnyObject:
        before = {one.uid for one in world.pods()}
        await world.delete(PODS, pod.name)
        await world.until(lambda: world.find(PODS, pod.name) is None and world.all_ready())
        (new,) = (one for one in world.pods() if one.uid not in before)
        assert {one.uid for one in world.pods()} == before - {pod.uid} | {new.uid}, "no other pod"
        return new

    async def untouched_by(*cliques: str, image: str) -> None:
        before = {pod.uid for pod in world.all(PODS)}
        await change(world, name, image, *cliques)
        await world.until(lambda: world.get(SETS, name).settled and world.all_ready())
        await operator.recorder.until_quiet()
        assert {pod.uid for pod in world.all(PODS)} == before
        for kind, part in ((SETS, name), (GROUPS, f"{name}-0-sg-x"), (CLIQUES, f"{name}-0-sg-x-1-pc-b")):
            assert world.get(kind, part).status["updateProgress"]["updateEndedAt"]

    async with operating(world) as operator:
        await world.create(SETS, slow(upstream(name)))
        await world.until_ready()
        await untouched_by("pc-b", image="next:1")
        await untouched_by("pc-a", "pc-b", "pc-c", image="next:2")
        assert current(await replaced(world.pods(clique=f"{name}-0-pc-a")[0]), "next:2")
        assert current(await replaced(world.pods(clique=f"{name}-0-sg-x-1-pc-c")[0]), "next:2")

        lost = world.pods(clique=f"{name}-0-pc-a")[0]
        failed = lost.spec["nodeName"]
        template = world.get(SETS, name).spec["template"]
        for clique in template["cliques"]:
            if clique["name"] == "pc-a":
                avoid = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [failed]}
                terms = clique["spec"]["podSpec"]["affinity"]["nodeAffinity"]
                terms = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
                terms[0]["matchExpressions"].append(avoid)
        await world.patch(SETS, name, {"spec": {"template": {"cliques": template["cliques"]}}})
        await world.until(lambda: world.get(SETS, name).settled and world.all_ready())
        assert (await replaced(lost)).spec["nodeName"] != failed


async def test_od9_strategy_at_template_change_decides(world: World) -> None:
    name = "workload-ondelete"
    async with operating(world) as operator:
        await world.create(SETS, slow(upstream(name)))
        await world.until_ready()
        await change(world, name, "next:1", "pc-a")
        await world.until(lambda: world.get(SETS, name).settled and progress_of(world, name))
        await world.patch(SETS, name, {"spec": {"updateStrategy": {"type": "RollingRecreate"}}})
        await world.until(lambda: world.get(SETS, name).settled)
        await operator.recorder.until_quiet()
        assert not any(map(current, world.pods())), "a change of strategy rolls nothing"
        await change(world, name, "next:2", "pc-b")
        await world.until(lambda: updated(world, name))
        assert len([pod for pod in world.pods() if current(pod)]) == 2, (
            "pods of earlier revisions are updated too"
        )
        await world.patch(SETS, name, {"spec": {"updateStrategy": {"type": "OnDelete"}}})
        await change(world, name, "next:3", "pc-a")
        await world.until(lambda: world.get(SETS, name).settled)
        await operator.recorder.until_quiet()
        assert not any(current(pod, "next:3") for pod in world.pods())
