"""The condition `ComputeDomainsReady` says what keeps pods from using their domain, and gangs do not begin
before it can be used. The driver fails in ways that it does not report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from grove import timing
from grove.fabrics.nvidia import CHANNEL_CLASS
from grove.kube.client.resource import DEVICE_CLASSES, EVENTS, NODES
from grove.local.standins.dra.objects import KEY
from tests.chart import Account
from tests.cluster.operator.nvlink.domain_status import domains, message, reason, reasons
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import DOMAINS, NVIDIA, automatic, gpus, named
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, PODS, SETS
from tests.cluster.operator.support.recorder import Call
from tests.cluster.operator.support.workloads import clique

READY = "ComputeDomainsReady"


def noted(**notes: str | None) -> dict[str, Any]:
    """A patch of the stand-in's annotations."""
    annotations = {f"dra-standin/{key.replace('_', '-')}": value for key, value in notes.items()}
    return {"metadata": {"annotations": annotations}}


async def driver(world: World, **notes: str | None) -> None:
    """Lets the whole driver fail, or recover."""
    await world.client.patch(DEVICE_CLASSES, CHANNEL_CLASS, noted(**notes), as_type=dict)


def failed_claims(world: World) -> list[str]:
    """Events about pods whose claims could not be created."""
    return [event.note for event in world.all(EVENTS) if event.reason == "FailedResourceClaimCreation"]


def is_create(call: Call) -> bool:
    return call.request.verb == "create"


def condition(world: World, kind: Any, name: str, type_: str) -> str:
    return message(world, kind, name, type_) if world.find(kind, name) else ""


async def test_gang_begins_when_the_driver_has_created_the_template(world: World, monkeypatch: Any) -> None:
    """No pod of the gang exists before, also none that is in no domain; and no pod waits for a claim."""
    monkeypatch.setattr(timing, "CLAIM_TEMPLATE_WAIT", 1.0)

    body = automatic("app", clique("router"), gpus("worker"))
    async with operating(world, fabrics=NVIDIA):
        try:
            await driver(world, dead_controller="true")
            await world.create(SETS, body)
            await world.until(lambda: reason(world, "app") == "ClaimNotCreated", "the driver is reported")
            words = "ComputeDomain app-0 has no ResourceClaimTemplate app-0 after 1 s"
            assert words in message(world, SETS, "app", READY)
            waiting = "PodClique app-0-worker needs it"
            for name in ("app-0-router", "app-0-worker"):
                await world.until(
                    lambda name=name: waiting in condition(world, CLIQUES, name, "Waiting"), name
                )
            assert world.all(PODS) == world.all(GANGS) == []
            await driver(world, dead_controller=None, template_delay="1.5")
            await world.until_ready()
            await world.until(lambda: reason(world, "app") == "AllReady", "the domain is ready")
            assert failed_claims(world) == []
        finally:
            await driver(world, dead_controller=None, template_delay=None)


async def test_healthy_start_of_a_domain_has_few_calls(world: World, automatic_account: Account) -> None:
    """What is reported about the domain is written with statuses that are written anyway."""
    world.config = automatic_account.config
    body = automatic("app", clique("router"), gpus("worker", 2))
    async with (
        fabric.one_partition(world.client),
        operating(world, fabrics=NVIDIA, auto_fabric=True) as operator,
    ):
        await world.create(SETS, body)
        await world.until(lambda: reason(world, "app") == "AllReady" and world.all_ready(), "all ready")
        await operator.recorder.until_quiet()
        writes = operator.recorder.writes()
        created = Counter(str(call.request.path).rpartition("/")[2] for call in writes if is_create(call))
        objects = {"services": 1, "podcliques": 2, "computedomains": 1, "podgangs": 1, "pods": 3}
        assert created == {**objects, "events": 1}, "the event says that the domain was created"
        statuses = [call for call in writes if "/status" in call.request.path]
        assert len(writes) - len(statuses) - created.total() == 2, "the set's finalizer, and its confirmation"
        assert len(writes) == len(operator.recorder.calls)
        assert reasons(world, "app") == ["ComputeDomainCreated"]
        assert failed_claims(world) == []


async def test_pod_on_node_with_a_stale_label_is_reported(
    world: World, agents: list[str], automatic_account: Account, monkeypatch: Any
) -> None:
    """The scheduler chooses the node, as its channel is free, and the driver refuses to prepare the pod."""
    monkeypatch.setattr(timing, "HELD_NODE_WAIT", 1.0)
    world.config, node = automatic_account.config, agents[0]

    def pinned(name: str, pods: int = 1) -> dict[str, Any]:
        body = automatic(name, gpus("worker", pods))
        here = {"nodeSelector": {"kubernetes.io/hostname": node}}
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"].update(here)
        return body

    async with operating(world, fabrics=NVIDIA, auto_fabric=True):
        try:
            await world.client.patch(NODES, node, noted(keep_label="true"), as_type=dict)
            await world.create(SETS, pinned("first"))
            await world.until_ready()
            await world.delete(SETS, "first")
            await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS), "the first set deleted")
            await world.create(SETS, pinned("second"))
            await world.until(lambda: reason(world, "second") == "NodeHeldByOtherDomain", "the stale label")
            words = f"pods of ComputeDomain second-0 cannot start on {node}: label {KEY} of the node names"
            assert words in message(world, SETS, "second", READY)
            await world.until(lambda: words in condition(world, GANGS, "second-0", "Ready"), "its gang")
            await world.until(lambda: words in condition(world, GANGS, "second-0", "Waiting"), "its reason")
        finally:
            await world.client.patch(NODES, node, noted(keep_label=None), as_type=dict)
        await world.until_ready()
        await world.until(lambda: reason(world, "second") == "AllReady", "the label is removed")
        assert words not in message(world, GANGS, "second-0", "Ready")
        await world.delete(SETS, "second")
        await world.create(SETS, pinned("third", 2))
        await world.until(
            lambda: reason(world, "third") == "PodsWaiting", "one node has no room for both pods"
        )


async def test_node_that_another_domain_takes_later_is_reported(
    world: World, automatic_account: Account, monkeypatch: Any
) -> None:
    """The pod runs on it already, and the driver does not notice the label: only the node changes."""
    monkeypatch.setattr(timing, "HELD_NODE_WAIT", 1.0)
    world.config = automatic_account.config

    async def relabel(value: str | None) -> None:
        metadata = {**noted(keep_label=value)["metadata"], "labels": {KEY: value}}
        await world.client.patch(NODES, node, {"metadata": metadata}, as_type=dict)

    async with operating(world, fabrics=NVIDIA, auto_fabric=True) as operator:
        await world.create(SETS, automatic("app", gpus("worker", 1)))
        await world.until_ready()
        await world.until(lambda: reason(world, "app") == "AllReady", "the domain")
        (node,) = (pod.spec["nodeName"] for pod in world.all(PODS))
        try:
            await driver(world, dead_controller="true")
            await operator.recorder.until_quiet()
            await relabel("another")
            await world.until(lambda: reason(world, "app") == "NodeHeldByOtherDomain", "the new label")
            words = f"pods of ComputeDomain app-0 cannot start on {node}"
            assert words in message(world, SETS, "app", READY)
        finally:
            await relabel(None)
            await driver(world, dead_controller=None)
        await world.until(lambda: reason(world, "app") == "AllReady", "the label is removed")


async def test_recreated_domain_is_reported_until_pods_use_it(world: World) -> None:
    """A domain that loses its finalizers is gone at once; the pods keep claims of it. A set that joins a
    domain has an event."""
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, named("one", "team"))
        await world.until_ready()
        await world.create(SETS, named("two", "team"))
        await world.until_ready()
        await world.until(lambda: "ComputeDomainJoined" in reasons(world, "two"), "the event")
        assert "ComputeDomainJoined" not in reasons(world, "one")
        await world.delete(SETS, "two")
        await world.until(lambda: not world.find(SETS, "two"), "the second set deleted")
        former, (pod,) = world.get(DOMAINS, "team").uid, world.pods()
        await world.delete(DOMAINS, "team")
        await world.patch(DOMAINS, "team", {"metadata": {"finalizers": None}})
        await world.until(lambda: domains(world) == ["team"] and world.get(DOMAINS, "team").uid != former)
        await world.until(lambda: reason(world, "one") == "ComputeDomainRecreated", "the condition")
        assert f"pods {pod.name} use claims of the former one" in message(world, SETS, "one", READY)
        await world.delete(PODS, pod.name)
        await world.until_ready()
        await world.until(lambda: reason(world, "one") == "AllReady", "a new pod uses it")


async def test_sets_that_share_a_domain_follow_its_pods(world: World) -> None:
    """The driver does not list the node of another set's pod, and the domain itself does not change."""
    async with fabric.one_partition(world.client), operating(world, fabrics=NVIDIA) as operator:
        await world.create(SETS, named("one", "team"))
        await world.create(SETS, named("two", "team"))
        await world.until(lambda: reason(world, "one") == reason(world, "two") == "AllReady", "both sets")
        try:
            await driver(world, dead_controller="true")
            await operator.recorder.until_quiet()
            await world.patch(CLIQUES, "two-0-worker", {"spec": {"replicas": 2}})
            for name in ("one", "two"):
                await world.until(lambda name=name: reason(world, name) == "NodesNotReady", name)
            await world.patch(CLIQUES, "two-0-worker", {"spec": {"replicas": 1}})
            for name in ("one", "two"):
                await world.until(lambda name=name: reason(world, name) == "AllReady", name)
        finally:
            await driver(world, dead_controller=None)
