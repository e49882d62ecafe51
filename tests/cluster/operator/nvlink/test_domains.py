"""NVLink domains on the real control plane: claims are made by Kubernetes, allocated by its scheduler, and
prepared by a stand-in for the driver, without which no enrolled pod becomes ready."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from grove.fabrics.registry import providers
from grove.kube import config
from grove.kube.client import Client
from grove.kube.faults import Rates
from grove.kube.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.resource import EVENTS, NODES, Resource
from grove.kube.wire import Object
from grove.local.cluster import Cluster
from grove.plan import seats
from tests.chart import Account
from tests.cluster.operator import fabric
from tests.cluster.operator.fabric import DOMAINS, FINALIZER, ISLANDS, NVIDIA, automatic, gpus, named
from tests.cluster.operator.harness import World, operating, succession
from tests.cluster.operator.seen import CLIQUES, GANGS, GROUPS, PODS, SETS
from tests.cluster.operator.workloads import clique, group, workload
from tests.cluster.webhooks.harness import eventually, refusal
from tests.fabrics.dummy import Example

CLAIMS, TEMPLATES = fabric.RESOURCE_CLAIMS, fabric.RESOURCE_CLAIM_TEMPLATES


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def nvlink(cluster: Cluster, crds: object) -> AsyncIterator[None]:
    """The driver's CRD, for the tests of this module."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        await fabric.install(client)
        yield
        await fabric.uninstall(client)


@pytest.fixture
async def world(nvlink: None, world: World) -> AsyncIterator[World]:
    """With a stand-in for the driver, and an eye on domains and claims."""
    await world.watch(DOMAINS, CLAIMS, TEMPLATES)
    async with fabric.driver(world.client):
        yield world
        world.check()
        world.operators.clear()
        await world.clear()
        await fabric.let_go(world)
        await world.until(lambda: not world.all(CLAIMS) and not world.all(TEMPLATES), "no claims")


def domains(world: World) -> list[str]:
    return [domain.name for domain in world.all(DOMAINS) if not domain.terminating]


async def events(world: World, name: str) -> list[tuple[str, str]]:
    listed = await world.client.list(EVENTS, as_type=dict, namespace=world.namespace)
    return [
        (event["reason"], event["note"])
        for event in listed.items
        if event["regarding"]["name"] == name and event["reason"].startswith(("ComputeDomain", "ImexChannel"))
    ]


async def test_one_domain_for_each_replica_and_claims_for_gpu_containers_only(world: World) -> None:
    body = automatic(
        "app",
        clique("router"),
        gpus("prefill"),
        gpus("worker"),
        groups=(group("model", 2, 1, "worker"),),
        replicas=2,
    )
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, body)
        await world.until_whole()
        assert domains(world) == ["app-0", "app-1"]
        for pod in world.pods():
            enrolled = "router" not in pod.name
            claims = [claim["resourceClaimTemplateName"] for claim in pod.spec.get("resourceClaims", ())]
            assert claims == ([f"app-{pod.name.split('-')[1]}"] if enrolled else [])
            used = {each["name"]: each["resources"].get("claims") for each in pod.spec["containers"]}
            if enrolled:
                assert used == {"model": [{"name": "mnnvl-claim"}], "sidecar": None}
        assert [found.metadata.annotations for found in world.all(GROUPS)] == [fabric.AUTO, fabric.AUTO]
        assert len(world.all(CLAIMS)) == 6
        await world.until(lambda: ready(world, "app") == "True", "ComputeDomainsReady")
        lines = world.get(SETS, "app").status["computeDomains"]
        assert [(line["name"], line["phase"], line["readyNodes"]) for line in lines] == [
            ("app-0", "Ready", 3),
            ("app-1", "Ready", 3),
        ]
        told = await events(world, "app")
        assert sorted(told) == [
            ("ComputeDomainCreated", f"ComputeDomain app-{index} created") for index in range(2)
        ]
        await world.delete(SETS, "app")
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS), "all gone")
        assert not world.all(PODS)
        await world.until(lambda: not world.all(TEMPLATES), "the templates gone")


def ready(world: World, name: str) -> str:
    conditions = {fact["type"]: fact for fact in world.get(SETS, name).status.get("conditions", ())}
    return str(conditions.get("ComputeDomainsReady", {}).get("status", ""))


async def test_replicas_of_a_group_may_have_domains_of_their_own(world: World) -> None:
    notes = {"nvidia.com/computedomain": "team", "nvidia.com/computedomain-scope": "scaling-group-replica"}
    body = workload("app", gpus("worker", annotations=notes), groups=(group("model", 1, 1, "worker"),))
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, body)
        await world.until_whole()
        assert domains(world) == ["team-0-0"]
        await world.scale(GROUPS, "app-0-model", 3)
        await world.until(lambda: len(world.pods()) == 3 and world.whole(), "three replicas of the group")
        assert domains(world) == ["team-0-0", "team-0-1", "team-0-2"]
        await world.scale(GROUPS, "app-0-model", 1)
        await world.until(lambda: world.names(DOMAINS) == ["team-0-0"])
        await world.until_whole()


def reason(world: World, name: str) -> str:
    said = world.get(SETS, name).status.get("conditions", ())
    return next((str(fact["reason"]) for fact in said if fact["type"] == "ComputeDomainsReady"), "")


def message(world: World, kind: Resource, name: str, about: str) -> str:
    said = world.get(kind, name).status.get("conditions", ())
    return next((str(fact["message"]) for fact in said if fact["type"] == about), "")


async def test_domains_come_with_replicas_and_go_after_their_pods(world: World) -> None:
    """Scaled out and in; what is opted out, or without GPUs, has nothing to do with it."""

    def domain_without_pods_is_let_go_only() -> list[str]:
        """A domain that goes must have no pods any more."""
        claimed = {
            claim["resourceClaimTemplateName"]
            for pod in world.all(PODS)
            for claim in pod.spec.get("resourceClaims", ())
        }
        return [
            domain.name
            for domain in world.all(DOMAINS)
            if domain.name in claimed and FINALIZER not in domain.metadata.finalizers
        ]

    async with operating(world, fabrics=NVIDIA):
        with fabric.never(world, domain_without_pods_is_let_go_only):
            out = workload("out", gpus("worker"))
            out["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "disabled"}
            await world.create(SETS, out)
            await world.create(SETS, automatic("cpu", clique("worker")))
            body = automatic("app")
            slow = {"pod-gone.grove.local/delay": "1s"}
            body["spec"]["template"]["cliques"][0]["annotations"] = slow
            await world.create(SETS, body)
            await world.until_whole()
            assert domains(world) == ["app-0"]
            uid = world.get(DOMAINS, "app-0").uid
            await world.scale(SETS, "app", 3)
            await world.until(lambda: len(world.pods(part_of="app")) == 3 and world.whole(), "three replicas")
            assert domains(world) == ["app-0", "app-1", "app-2"]
            await world.scale(SETS, "app", 1)
            await world.until(lambda: not world.find(DOMAINS, "app-1") and not world.find(DOMAINS, "app-2"))
            await world.until_whole()
            assert world.get(DOMAINS, "app-0").uid == uid
            await world.delete(SETS, "app")
            await world.until(lambda: not world.find(SETS, "app") and not world.all(DOMAINS))
            assert len(world.pods()) == 2
    assert ("ComputeDomainDeleted", "ComputeDomain app-2 deleted") in await events(world, "app")


async def test_deleted_by_hand_it_is_held_told_and_made_again_after_scaling_in_and_out(world: World) -> None:
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, automatic("app"))
        await world.until_whole()
        uid = world.get(DOMAINS, "app-0").uid
        await world.delete(DOMAINS, "app-0")
        await world.until(lambda: reason(world, "app") == "ComputeDomainTerminating", "the condition")
        assert world.get(DOMAINS, "app-0").metadata.finalizers == (FINALIZER,)
        (pod,) = world.pods()
        await world.delete(PODS, pod.name)
        await world.until(lambda: world.get(CLIQUES, "app-0-worker").status.get("lastErrors"), "it is held")
        assert world.pods() == []
        await world.scale(SETS, "app", 0)
        await world.until(lambda: not world.all(DOMAINS), "the domain is let go")
        await world.scale(SETS, "app", 1)
        await world.until_whole()
        assert world.get(DOMAINS, "app-0").uid != uid
        told = [event for event, _ in await events(world, "app")]
        assert told.count("ComputeDomainTerminating") == 1


async def test_two_sets_share_a_domain_and_the_last_one_takes_it_along(world: World) -> None:
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, named("one", "team", replicas=2))
        await world.create(SETS, named("two", "team"))
        await world.create(SETS, named("own", "mine", notes={"nvidia.com/computedomain-scope": "replica"}))
        await world.until_whole()
        assert domains(world) == ["mine-0", "team"]
        owners = [world.get(SETS, name).uid for name in ("one", "two")]
        assert sorted(world.get(DOMAINS, "team").owners) == sorted(owners)
        await world.delete(SETS, "one")
        await world.until(lambda: not world.find(SETS, "one"))
        await world.until(lambda: list(world.get(DOMAINS, "team").owners) == owners[1:], "one owner")
        assert world.get(DOMAINS, "team").labels["app.kubernetes.io/part-of"] == "two"
        await world.delete(SETS, "two")
        await world.until(lambda: not world.find(SETS, "two"))
        assert domains(world) == ["mine-0"]


async def test_what_somebody_else_made_is_used_by_name_in_the_way_of_automation_and_never_touched(
    world: World,
) -> None:
    async with operating(world, fabrics=NVIDIA):
        await world.create(DOMAINS, fabric.theirs("team", "channels"))
        await world.create(DOMAINS, fabric.theirs("app-0", "other"))
        await world.create(SETS, named("user", "team"))
        await world.create(SETS, automatic("app", clique("router"), gpus("worker")))
        await world.create(TEMPLATES, fabric.claims_nothing("bare-0"))
        await world.create(SETS, automatic("bare"))
        await world.until(lambda: [pod.name for pod in world.pods(part_of="user") if fabric.answers(pod)])
        (pod,) = world.pods(part_of="user")
        assert [each["resourceClaimTemplateName"] for each in pod.spec["resourceClaims"]] == ["channels"]
        await world.until(lambda: reason(world, "app") == "NameConflict", "the condition")
        assert [pod.labels["grove.io/clique"] for pod in world.pods(part_of="app")] == ["router"]
        await world.delete(SETS, "user")
        await world.until(lambda: not world.find(SETS, "user"))
        assert FINALIZER not in world.get(DOMAINS, "team").metadata.finalizers
        await world.delete(DOMAINS, "team")
        await world.delete(DOMAINS, "app-0")
        await world.until(lambda: reason(world, "bare") == "NameConflict", "CD6: the template is taken")
        assert not world.pods(part_of="bare")
        await world.delete(TEMPLATES, "bare-0")
        await world.until_whole()
        assert len(world.pods(part_of="app")) == 2
    assert [event for event, _ in await events(world, "user")] == ["ComputeDomainReferenced"]
    for name in ("app", "bare"):
        assert "ComputeDomainConflict" in [event for event, _ in await events(world, name)]


async def test_two_domains_compete_for_a_node_and_a_node_that_is_not_ready_holds_its_pod(
    world: World, agents: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has the node is told (B4), and so is a gang that is too large for the nodes that there are (B8)."""
    monkeypatch.setattr(seats, "PATIENCE", 1.0)
    here = {"nodeSelector": {"kubernetes.io/hostname": agents[0]}}

    def pinned(name: str) -> dict[str, object]:
        body = automatic(name)
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"].update(here)
        return body

    async def annotate(value: str | None) -> None:
        body = {"metadata": {"annotations": {"dra-standin/never-ready": value}}}
        await world.client.patch(NODES, agents[0], body, as_type=dict)

    async with operating(world, fabrics=NVIDIA):
        await annotate("true")
        await world.create(SETS, pinned("first"))
        await world.until(lambda: reason(world, "first") == "NodesNotReady", "the condition")
        assert not any(map(fabric.answers, world.pods()))
        await annotate(None)
        await world.until_whole()
        await world.create(SETS, pinned("second"))
        await world.until(
            lambda: any(pod.condition("PodScheduled") == "False" for pod in world.pods(part_of="second")),
            "the scheduler has looked",
        )
        busy = f"ComputeDomain {world.namespace}/first-0 of PodCliqueSet first holds {agents[0]}"
        await world.until(lambda: busy in message(world, SETS, "second", "ComputeDomainsReady"), "B4")
        await world.delete(SETS, "first")
        await world.until(lambda: not world.find(SETS, "first"))
        await world.until_whole()
        assert busy not in message(world, SETS, "second", "ComputeDomainsReady")
        await world.create(SETS, automatic("many", gpus("worker", len(agents) + 1)))
        await world.until(
            lambda: (
                world.find(GANGS, "many-0")
                and f"{len(agents)} nodes have a channel" in message(world, GANGS, "many-0", "Scheduled")
            ),
            "B8",
        )
        told = {fact["type"]: fact["reason"] for fact in world.get(GANGS, "many-0").status["conditions"]}
        assert told["Scheduled"] == "OneEnrolledPodPerNode"
        await world.delete(SETS, "many")
        await world.until(lambda: not world.find(SETS, "many"))
    assert [said.endswith(busy) for event, said in await events(world, "second") if "Imex" in event] == [True]


async def test_without_the_crd_only_who_needs_it_waits_and_it_may_come_and_go(world: World) -> None:
    await world.client.delete(CRDS, fabric.CRD, as_type=Object)
    try:
        await fabric.gone(world.client)
        async with operating(world, fabrics=NVIDIA):
            notes = {"nvidia.com/computedomain": "team"}
            body = workload("app", clique("router"), gpus("worker", annotations=notes))
            await world.create(SETS, body)
            await world.until(lambda: reason(world, "app") == "ComputeDomainCRDMissing", "the condition")
            await world.until(lambda: world.get(CLIQUES, "app-0-worker").status.get("lastErrors"))
            assert [pod.labels["grove.io/clique"] for pod in world.pods()] == ["router"]
            (error,) = world.get(CLIQUES, "app-0-worker").status["lastErrors"]
            assert f"{fabric.CRD} is not served: install the NVIDIA DRA driver" in error["description"]
            await fabric.install(world.client)
            await world.until_whole()
            assert domains(world) == ["team"]
            # With the CRD its domains go, and the finalizer holds them as if somebody had deleted them.
            await world.client.delete(CRDS, fabric.CRD, as_type=Object)
            await world.until(lambda: reason(world, "app") == "ComputeDomainTerminating", "the condition")
            assert len(world.pods()) == 2  # who runs is left alone
            await world.delete(SETS, "app")
            await world.until(lambda: not world.find(SETS, "app"), "nothing holds it")
            await fabric.gone(world.client)
    finally:
        await fabric.install(world.client)


async def test_through_bad_weather_nothing_is_left_behind(world: World) -> None:
    rates = Rates(conflict=0.05, error=0.05, lose=0.05, delay=0.1, cut=0.02)
    async with operating(world, fabrics=NVIDIA, rates=rates, seed=7):
        await world.create(SETS, automatic("app", gpus("worker"), replicas=2))
        await world.create(SETS, named("sharer", "team"))
        await world.until_whole()
        assert domains(world) == ["app-0", "app-1", "team"]
        await world.scale(SETS, "app", 1)
        await world.until(lambda: domains(world) == ["app-0", "team"])
        await world.delete(SETS, "app")
        await world.delete(SETS, "sharer")
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS))


async def test_a_domain_that_cannot_be_made_is_told_of_and_tried_again(world: World) -> None:
    await fabric.install(world.client, "something")
    try:
        body = fabric.theirs("probe", "probe")

        async def refused() -> bool:
            return "something" in await refusal(world.client, DOMAINS, body, namespace=world.namespace)

        await eventually(refused)
        async with operating(world, fabrics=NVIDIA):
            await world.create(SETS, automatic("app"))
            await world.until(lambda: reason(world, "app") == "CreateFailed", "the condition")
            (error,) = world.get(SETS, "app").status["lastErrors"]
            assert error["code"] == "ERR_SYNC_COMPUTEDOMAIN"
            assert not world.pods()
            await fabric.install(world.client)
            await world.until_whole()
    finally:
        await fabric.install(world.client)
    told = dict(await events(world, "app"))
    assert told["ComputeDomainFailed"].startswith("Failed to create ComputeDomain for replica 0: ")


async def test_operators_that_end_after_every_few_writes_leave_nothing_undone(world: World) -> None:
    lives = itertools.chain([1, 2, 1, 3], itertools.cycle([8, 5, 9]))
    async with succession(world, lives, fabrics=NVIDIA):
        await world.create(SETS, automatic("app", replicas=2))
        await world.create(SETS, named("sharer", "team"))
        await world.until_whole()
        assert domains(world) == ["app-0", "app-1", "team"]
        await world.scale(SETS, "app", 1)
        await world.until(lambda: domains(world) == ["app-0", "team"])
        for name in ("app", "sharer"):
            await world.delete(SETS, name)
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS))


async def test_a_second_vendor_needs_nothing_but_its_module_and_its_rights(
    world: World, operator_account: Account
) -> None:
    """Until it has the right to see its domains, only its users wait."""
    await fabric.install_islands(world.client)
    await world.watch(ISLANDS)
    both = providers(("nvidia", "example"), {"example": Example})
    notes = {"example.com/fabric": "isle", "nvidia.com/computedomain": "team"}
    body = workload("app", clique("router"), gpus("worker", annotations=notes))
    try:
        async with fabric.rights_to_islands(world.client), operating(world, fabrics=both):
            await world.create(SETS, body)
            await world.until(lambda: len(world.pods()) == 2, "both pods")
            assert [(island.name, island.spec) for island in world.all(ISLANDS)] == [
                ("isle", {"template": "isle-berth"})
            ]
            (pod,) = (pod for pod in world.pods() if "worker" in pod.name)
            assert [
                (each["name"], each["resourceClaimTemplateName"]) for each in pod.spec["resourceClaims"]
            ] == [
                ("island", "isle-berth"),
                ("mnnvl-claim", "team"),
            ]
            await world.delete(SETS, "app")
            await world.until(
                lambda: not world.all(SETS) and not world.all(ISLANDS) and not world.all(DOMAINS)
            )
        async with operating(world, fabrics=both):
            await world.create(SETS, body)
            await world.until(lambda: reason(world, "app") == "ComputeDomainCRDMissing", "the condition")
            assert [pod.labels["grove.io/clique"] for pod in world.pods()] == ["router"]
            await world.delete(SETS, "app")
            await world.until(lambda: not world.all(SETS))
    finally:
        await world.client.delete(CRDS, "islands.example.com", as_type=Object)
