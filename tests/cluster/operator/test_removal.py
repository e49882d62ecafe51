"""The end of a set: everything goes, whatever happens meanwhile; and nothing but what is the set's own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api import labels, marks
from grove.kube.executor import Executor
from grove.kube.outcome import State
from grove.kube.resource import (
    CONFIG_MAPS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from grove.kube.transport import HttpTransport
from grove.kube.wire import Object
from grove.operator.keys import SetKey
from grove.operator.observe import Observer
from grove.plan.end import Estate, plan_end
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.seen import GANGS, PARTS, SETS, answers
from tests.cluster.operator.workloads import GONE_LATER, clique, small, upstream, workload

OTHER_KINDS = (SERVICE_ACCOUNTS, SECRETS, ROLES, ROLE_BINDINGS, HORIZONTAL_POD_AUTOSCALERS)


def empty(world: World) -> bool:
    return not world.all(SETS) and not any(world.all(part) for part in PARTS)


async def test_everything_goes_with_the_set(world: World) -> None:
    async with operating(world):
        await world.create(SETS, upstream("workload1"))
        await world.create(SETS, small("other"))
        await world.until_whole()
        others = {pod.uid for pod in world.pods(part_of="other")}
        await world.delete(SETS, "workload1")
        await world.until(lambda: not any(world.all(kind, part_of="workload1") for kind in PARTS))
        await world.until(lambda: world.names(SETS) == ["other"])
        assert {pod.uid for pod in world.pods()} == others
    for kind in OTHER_KINDS:
        found = await world.client.list(
            kind, namespace=world.namespace, labels={labels.PART_OF: "workload1"}, as_type=Object
        )
        assert not found.items


async def test_a_set_can_go_while_its_pods_terminate_and_come_back(world: World) -> None:
    """The name is taken by what is on its way out: the new set waits for it, and gets everything anew."""
    slow = small()
    for template in slow["spec"]["template"]["cliques"]:
        template["annotations"] = {GONE_LATER: "1500ms"}
    async with operating(world):
        await world.create(SETS, slow)
        await world.until_whole()
        before = {pod.uid for pod in world.pods()}
        await world.delete(SETS, "small")
        await world.until(lambda: not world.all(SETS) and not world.pods())
        assert world.all(PODS), "they terminate still"
        await world.create(SETS, slow)
        await world.until(lambda: len(world.all(PODS)) == 5 and world.whole())
        assert not before & {pod.uid for pod in world.pods()}


async def test_a_set_deleted_while_nobody_operates_goes_when_somebody_does(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_whole()
    await world.delete(SETS, "small")
    assert world.get(SETS, "small").terminating
    async with operating(world):
        await world.until(lambda: empty(world))


@pytest.mark.parametrize("writes", [1, 3, 5])
async def test_an_operator_that_ends_in_the_middle_of_a_deletion_is_relieved(
    world: World, writes: int
) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_whole()
    async with operating(world, stop_after=writes) as mortal:
        await world.delete(SETS, "small")
        await mortal.stopped.wait()
    async with operating(world):
        await world.until(lambda: empty(world))


async def test_everything_goes_with_the_namespace(world: World) -> None:
    async with operating(world) as operator:
        await world.create(SETS, upstream("workload2"))
        await world.until_whole()
        await world.client.delete(NAMESPACES, world.namespace, as_type=Object)
        await world.until(lambda: empty(world))
        await operator.recorder.silence()
        assert len(operator.recorder.calls) < 150, "nobody fights the end of a namespace"


@pytest.mark.usefixtures("collector")
async def test_what_was_orphaned_is_taken_back(world: World) -> None:
    body = upstream("workload2")
    async with operating(world):
        await world.create(SETS, body)
        await world.until_whole()
        before = {found.uid for part in PARTS for found in world.all(part)}
        await world.delete(SETS, "workload2", propagation="Orphan")
        await world.until(lambda: not world.all(SETS))
        assert {found.uid for part in PARTS for found in world.all(part)} == before
        made = await world.create(SETS, body)
        await world.until(
            lambda: (
                all(
                    owner.uid == made.uid
                    for gang in world.all(GANGS)
                    for owner in gang.metadata.owner_references
                )
                and all(gang.metadata.owner_references for gang in world.all(GANGS))
                and world.whole()
            )
        )
        assert {found.uid for part in PARTS for found in world.all(part)} == before
        assert len(world.pods()) == 10
        assert all(map(answers, world.pods()))


async def test_pods_of_others_that_only_look_like_ours_are_left_alone(world: World) -> None:
    """With all of our labels, but controlled by somebody else: not counted, not deleted, not adopted."""
    async with operating(world):
        await world.create(SETS, workload("mine", clique("worker", 2)))
        await world.until_whole()
        ours = world.pods()
        owner = await world.create(CONFIG_MAPS, {"metadata": {"name": "somebody"}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": owner.uid}
        body = {
            "metadata": {
                "name": "stranger",
                "labels": ours[0].labels,
                "ownerReferences": [{**reference, "controller": True}],
            },
            "spec": {"containers": [{"name": "main", "image": "model:1"}]},
        }
        stranger = await world.create(PODS, body)
        await world.scale(SETS, "mine", 2)
        await world.until(lambda: len(world.pods()) == 5)
        await world.delete(PODS, ours[0].name)
        await world.until(lambda: len(world.pods()) == 5 and world.find(PODS, ours[0].name) is None)
        await world.scale(SETS, "mine", 1)
        await world.until(lambda: len(world.pods()) == 3)
        await world.delete(SETS, "mine")
        await world.until(lambda: not world.all(SETS) and world.names(PODS) == ["stranger"])
        await world.until(lambda: not any(world.all(part) for part in PARTS if part is not PODS))
        assert world.get(PODS, "stranger").uid == stranger.uid


async def test_the_finalizer_is_on_the_set_and_nowhere_else(world: World) -> None:
    async with operating(world):
        await world.create(SETS, small())
        await world.until_whole()
    assert world.get(SETS, "small").metadata.finalizers == (marks.SET_FINALIZER,)
    assert not [found.name for part in PARTS for found in world.all(part) if found.metadata.finalizers]


async def test_who_learns_late_that_a_set_has_gone_spares_its_successor(world: World) -> None:
    """A leader that was replaced in the middle of a deletion still sees the old set with all its parts, and
    goes on deleting by names that are by now the new one's."""
    key = SetKey(world.namespace, "small")
    async with operating(world) as operator:
        await world.create(SETS, small())
        await world.until_whole()
        old = operator.manager.caches.sets.get(*key)
        assert old is not None
        estate = Observer(operator.manager.caches).estate(key)
        transport = HttpTransport(world.config)
        late = Executor(transport, operator.manager.caches.resources)
        await world.delete(SETS, "small")
        await world.until(lambda: empty(world))
        await world.create(SETS, small())
        await world.until_whole()
        before = {found.uid for kind in (SETS, *PARTS) for found in world.all(kind)}
        ending = replace(old, metadata=replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        for view in (estate, replace(estate, pods=()), Estate()):
            plan = plan_end(ending, view)
            outcome = await late.execute(plan.intents)
            assert plan.intents
            assert all(result.state in (State.DONE, State.CONFLICT) for result in outcome.results)
        assert {found.uid for kind in (SETS, *PARTS) for found in world.all(kind)} == before
        assert not any(found.terminating for kind in (SETS, *PARTS) for found in world.all(kind))
        await transport.close()
