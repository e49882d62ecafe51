"""The end of a set: everything goes, whatever happens meanwhile; and nothing but what is the set's own."""

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
from tests.cluster.operator.support.objects import GANGS, PARTS, SETS, answers
from tests.cluster.operator.support.workloads import GONE_LATER, clique, small, upstream, workload

OTHER_KINDS = (SERVICE_ACCOUNTS, SECRETS, ROLES, ROLE_BINDINGS, HORIZONTAL_POD_AUTOSCALERS)


def empty(world: World) -> bool:
    return not world.all(SETS) and not any(world.all(part) for part in PARTS)


def uids(world: World) -> dict[str, str]:
    """Every part there is, by kind and name."""
    return {f"{kind.kind} {found.name}": found.uid for kind in PARTS for found in world.all(kind)}


async def one_of_two_sets(world: World) -> None:
    await world.create(SETS, upstream("workload1"))
    await world.create(SETS, small("other"))
    await world.rest("made", 15)
    others = {pod.uid for pod in world.pods(part_of="other")}
    await world.parent_goes()
    await world.delete(SETS, "workload1")
    await world.rest("one gone", 5)
    assert {pod.uid for pod in world.pods()} == others
    for kind in OTHER_KINDS:
        selected = {labels.PART_OF: "workload1"}
        found = await world.client.list(kind, namespace=world.namespace, labels=selected, as_type=Object)
        assert not found.items


async def back_while_its_pods_terminate(world: World) -> None:
    """The name is taken by what is on its way out: the new set waits for it, and gets everything anew."""
    slow = small()
    for template in slow["spec"]["template"]["cliques"]:
        template["annotations"] = {GONE_LATER: "1500ms"}
    await world.create(SETS, slow)
    await world.rest("made", 5)
    before = {pod.uid for pod in world.pods()}
    await world.parent_goes()
    await world.delete(SETS, "small")
    await world.until(lambda: not world.all(SETS) and not world.pods(), "the set gone")
    await world.create(SETS, slow)
    await world.rest("back", 5)
    assert not before & {pod.uid for pod in world.pods()}


async def orphaned_and_taken_back(world: World) -> None:
    body = upstream("workload2")
    await world.create(SETS, body)
    await world.rest("made", 10)
    before = uids(world)
    await world.parent_goes()
    await world.delete(SETS, "workload2", propagation="Orphan")
    await world.until(lambda: not world.all(SETS), "the set gone")
    assert uids(world) == before, world.dump()
    made = await world.create(SETS, body)
    await world.until(
        lambda: all(gang.owners == (made.uid,) for gang in world.all(GANGS)), "the gangs taken back"
    )
    await world.rest("taken back", 10)
    assert uids(world) == before, world.dump()
    assert all(map(answers, world.pods()))


async def among_pods_that_only_look_like_ours(world: World) -> None:
    """With all of our labels, but controlled by somebody else, or copied by hand and called otherwise: not
    counted, not deleted, not adopted."""
    await world.create(SETS, workload("mine", clique("worker", 2)))
    await world.rest("made", 2)
    ours = world.pods()
    owner = await world.create(CONFIG_MAPS, {"metadata": {"name": "somebody"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": owner.uid}
    metadata = {
        "name": "stranger",
        "labels": ours[0].labels,
        "ownerReferences": [{**reference, "controller": True}],
    }
    spec = {"containers": [{"name": "main", "image": "model:1"}]}
    stranger = await world.create(PODS, {"metadata": metadata, "spec": spec})
    copied = {"name": f"{ours[0].name}-debug", "labels": ours[0].labels}
    copy = await world.create(PODS, {"metadata": copied, "spec": spec})
    await world.scale(SETS, "mine", 2)
    await world.rest("one more replica", when=lambda: len(world.pods()) == 6, compared=False)
    await world.delete(PODS, ours[0].name)
    await world.rest(
        "one pod lost",
        when=lambda: len(world.pods()) == 6 and world.gone(PODS, ours[0]),
        compared=False,
    )
    await world.parent_goes()
    await world.scale(SETS, "mine", 1)
    await world.rest("one replica less", when=lambda: len(world.all(PODS)) == 4, compared=False)
    await world.delete(SETS, "mine")
    await world.rest(
        "gone",
        when=lambda: (
            not world.all(SETS)
            and world.names(PODS) == [copy.name, "stranger"]
            and not any(world.all(part) for part in PARTS if part is not PODS)
        ),
        compared=False,
    )
    assert not world.gone(PODS, stranger)
    assert not world.gone(PODS, copy)


async def with_the_namespace(world: World) -> None:
    await world.create(SETS, upstream("workload2"))
    await world.rest("made", 10)
    await world.parent_goes()
    await world.client.delete(NAMESPACES, world.namespace, as_type=Object)
    await world.rest("gone", when=lambda: empty(world))


SCENARIOS = {
    "one of two sets": one_of_two_sets,
    "back while its pods terminate": back_while_its_pods_terminate,
    "orphaned and taken back": orphaned_and_taken_back,
    "among pods that only look like ours": among_pods_that_only_look_like_ours,
    "with the namespace": with_the_namespace,
}
