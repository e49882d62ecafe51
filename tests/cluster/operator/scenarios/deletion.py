"""Deletion of a set: all of its objects are deleted, and no others; orphaned objects are adopted again."""

from __future__ import annotations

from grove.api.naming import labels
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CONFIG_MAPS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GANGS, PARTS, SETS, is_ready
from tests.cluster.operator.support.workloads import GONE_LATER, clique, small, upstream, workload

OTHER_KINDS = (SERVICE_ACCOUNTS, SECRETS, ROLES, ROLE_BINDINGS, HORIZONTAL_POD_AUTOSCALERS)


def empty(world: World) -> bool:
    return not world.all(SETS) and not any(world.all(part) for part in PARTS)


def uids(world: World) -> dict[str, str]:
    """The UIDs of all objects of sets, by kind and name."""
    return {f"{kind.kind} {found.name}": found.uid for kind in PARTS for found in world.all(kind)}


async def delete_one_of_two_sets(world: World) -> None:
    await world.create(SETS, upstream("workload1"))
    await world.create(SETS, small("other"))
    await world.checkpoint("created", 15)
    others = {pod.uid for pod in world.pods(part_of="other")}
    await world.stop_comparing_deletes()
    await world.delete(SETS, "workload1")
    await world.checkpoint("one deleted", 5)
    assert {pod.uid for pod in world.pods()} == others
    for kind in OTHER_KINDS:
        selected = {labels.PART_OF: "workload1"}
        found = await world.client.list(kind, namespace=world.namespace, labels=selected, as_type=Object)
        assert not found.items


async def recreate_set_while_pods_terminate(world: World) -> None:
    """Terminating objects still have the names: the new set waits for them, and creates its own objects."""
    slow = small()
    for template in slow["spec"]["template"]["cliques"]:
        template["annotations"] = {GONE_LATER: "1500ms"}
    await world.create(SETS, slow)
    await world.checkpoint("created", 5)
    before = {pod.uid for pod in world.pods()}
    await world.stop_comparing_deletes()
    await world.delete(SETS, "small")
    await world.until(lambda: not world.all(SETS) and not world.pods(), "the set deleted")
    await world.create(SETS, slow)
    await world.checkpoint("recreated", 5)
    assert not before & {pod.uid for pod in world.pods()}


async def orphaned_objects_are_adopted(world: World) -> None:
    body = upstream("workload2")
    await world.create(SETS, body)
    await world.checkpoint("created", 10)
    before = uids(world)
    await world.stop_comparing_deletes()
    await world.delete(SETS, "workload2", propagation="Orphan")
    await world.until(lambda: not world.all(SETS), "the set deleted")
    assert uids(world) == before, world.dump()
    recreated = await world.create(SETS, body)
    await world.until(
        lambda: all(gang.owners == (recreated.uid,) for gang in world.all(GANGS)), "the gangs adopted"
    )
    await world.checkpoint("adopted", 10)
    assert uids(world) == before, world.dump()
    assert all(map(is_ready, world.pods()))


async def foreign_pods_with_our_labels(world: World) -> None:
    """Pods with all of our labels that another controller owns, or that are copies under another name, are
    not counted, not deleted and not adopted."""
    await world.create(SETS, workload("mine", clique("worker", 2)))
    await world.checkpoint("created", 2)
    ours = world.pods()
    owner = await world.create(CONFIG_MAPS, {"metadata": {"name": "other-owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": owner.uid}
    metadata = {
        "name": "foreign",
        "labels": ours[0].labels,
        "ownerReferences": [{**reference, "controller": True}],
    }
    spec = {"containers": [{"name": "main", "image": "model:1"}]}
    foreign = await world.create(PODS, {"metadata": metadata, "spec": spec})
    copied = {"name": f"{ours[0].name}-debug", "labels": ours[0].labels}
    copy = await world.create(PODS, {"metadata": copied, "spec": spec})
    await world.scale(SETS, "mine", 2)
    await world.checkpoint("scaled out", when=lambda: len(world.pods()) == 6, compared=False)
    await world.delete(PODS, ours[0].name)
    await world.checkpoint(
        "pod replaced",
        when=lambda: len(world.pods()) == 6 and world.gone(PODS, ours[0]),
        compared=False,
    )
    await world.stop_comparing_deletes()
    await world.scale(SETS, "mine", 1)
    await world.checkpoint("scaled in", when=lambda: len(world.all(PODS)) == 4, compared=False)
    await world.delete(SETS, "mine")
    await world.checkpoint(
        "deleted",
        when=lambda: (
            not world.all(SETS)
            and set(world.names(PODS)) == {copy.name, foreign.name}
            and not any(world.all(part) for part in PARTS if part is not PODS)
        ),
        compared=False,
    )
    assert not world.gone(PODS, foreign)
    assert not world.gone(PODS, copy)


async def delete_namespace(world: World) -> None:
    await world.create(SETS, upstream("workload2"))
    await world.checkpoint("created", 10)
    await world.stop_comparing_deletes()
    await world.client.delete(NAMESPACES, world.namespace, as_type=Object)
    await world.checkpoint("deleted", when=lambda: empty(world))


SCENARIOS = {
    "delete one of two sets": delete_one_of_two_sets,
    "recreate set while pods terminate": recreate_set_while_pods_terminate,
    "orphaned objects are adopted": orphaned_objects_are_adopted,
    "foreign pods with our labels": foreign_pods_with_our_labels,
    "delete namespace": delete_namespace,
}
