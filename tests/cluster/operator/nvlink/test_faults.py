"""NVLink domains with faults: of operators, of the driver, of its CRD and of nodes."""

from __future__ import annotations

import itertools

from grove.fabrics.registry import providers
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.client.resource import NODES
from grove.kube.testing.faults import FaultRates
from tests.chart import Account
from tests.cluster.conftest import removed
from tests.cluster.operator.nvlink.domain_status import domains, events, message, reason, reasons
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import DOMAINS, FINALIZER, ISLANDS, NVIDIA, automatic, gpus, named
from tests.cluster.operator.support.harness import World, operating, successive_operators
from tests.cluster.operator.support.objects import CLIQUES, PODS, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.operator.support.world import GARBAGE
from tests.cluster.webhooks.harness import eventually, refusal
from tests.fabrics.example_vendor import Example


async def test_unready_or_occupied_node_delays_pods_of_domains(world: World, agents: list[str]) -> None:
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
        assert not any(map(fabric.is_ready, world.pods()))
        await annotate(None)
        await world.until_ready()
        await world.create(SETS, pinned("second"))
        await world.until(
            lambda: any(pod.condition("PodScheduled") == "False" for pod in world.pods(part_of="second")),
            "unschedulable",
        )
        await world.delete(SETS, "first")
        await world.until(lambda: not world.find(SETS, "first"))
        await world.until_ready()


async def test_missing_crd_delays_gangs_that_need_it(world: World) -> None:
    await world.client.delete(CRDS, fabric.CRD, as_type=Object)
    try:
        await fabric.until_crd_deleted(world.client)
        async with operating(world, fabrics=NVIDIA):
            notes = {"nvidia.com/computedomain": "team"}
            body = workload("app", clique("router"), gpus("worker", annotations=notes))
            await world.create(SETS, body)
            await world.until(lambda: reason(world, "app") == "ComputeDomainCRDMissing", "the condition")
            await world.until(lambda: world.get(CLIQUES, "app-0-worker").status.get("lastErrors"))
            assert world.pods() == [], "the gang is not begun"
            (error,) = world.get(CLIQUES, "app-0-worker").status["lastErrors"]
            assert f"{fabric.CRD} is not served: install the NVIDIA DRA driver" in error["description"]
            await fabric.install_outdated(world.client)
            await world.until(lambda: reason(world, "app") == "ComputeDomainCRDOutdated", "the condition")
            assert f"{fabric.CRD} does not serve v1beta1" in message(
                world, SETS, "app", "ComputeDomainsReady"
            )
            await fabric.install(world.client)
            await world.until_ready()
            assert domains(world) == ["team"]
            # With the CRD its domains are deleted; the finalizer keeps them terminating.
            await world.client.delete(CRDS, fabric.CRD, as_type=Object)
            await world.until(lambda: reason(world, "app") == "ComputeDomainTerminating", "the condition")
            assert len(world.pods()) == 2  # running pods stay
            await world.delete(SETS, "app")
            await world.until(lambda: not world.find(SETS, "app"), "the set deleted")
            await fabric.until_crd_deleted(world.client)
    finally:
        await fabric.install(world.client)


async def test_x10_two_leaders_with_faults_create_domains_once(world: World) -> None:
    """Both operators act as leaders, and both create the domain that two sets share."""
    rates = FaultRates(conflict=0.05, error=0.05, lose=0.05, delay=0.1, cut=0.02)
    both = Recorder(world.namespace)
    async with (
        operating(world, fabrics=NVIDIA, rates=rates, seed=7, recorder=both),
        operating(world, fabrics=NVIDIA, rates=rates, seed=8, recorder=both),
    ):
        await world.create(SETS, automatic("app", gpus("worker"), replicas=2))
        await world.create(SETS, named("sharer", "team"))
        await world.create(SETS, named("joiner", "team"))
        await world.until_ready()
        writes = both.creates_and_deletes().items()
        domain_writes = {write: count for write, count in writes if "computedomains" in write}
        assert sorted(domain_writes.values()) == [1, 1, 1], domain_writes
        names = {found.uid: found.name for found in world.all(SETS)}
        owners = {names[uid] for uid in world.get(DOMAINS, "team").owners}
        assert owners == {"sharer", "joiner"}
        assert domains(world) == ["app-0", "app-1", "team"]
        await world.scale(SETS, "app", 1)
        await world.until(lambda: domains(world) == ["app-0", "team"])
        for name in ("app", "sharer", "joiner"):
            await world.delete(SETS, name)
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS))


async def test_refused_domain_is_reported_and_retried(world: World) -> None:
    await fabric.install(world.client, "something")
    try:
        body = fabric.foreign_domain("probe", "probe")

        async def refused() -> bool:
            return "something" in await refusal(world.client, DOMAINS, body, namespace=world.namespace)

        await eventually(refused)
        async with operating(world, fabrics=NVIDIA):
            await world.create(SETS, automatic("app"))
            await world.until(lambda: reason(world, "app") == "CreateFailed", "the condition")
            (error,) = world.get(SETS, "app").status["lastErrors"]
            assert error["code"] == "ERR_SYNC_COMPUTEDOMAIN"
            assert not world.pods()
            await world.until(lambda: "ComputeDomainFailed" in reasons(world, "app"), "the event")
            note = dict(events(world, "app"))["ComputeDomainFailed"]
            assert note.startswith("Failed to create ComputeDomain for replica 0: ")
            await fabric.install(world.client)
            await world.until_ready()
    finally:
        await fabric.install(world.client)


async def test_orphaned_domain_stays_and_is_adopted(world: World) -> None:
    """After `--cascade=orphan`. First the test waits until the garbage collector knows the kind: before that
    it orphans no object."""
    missing_owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": "0"}
    dangling = fabric.foreign_domain("dangling", "dangling")
    dangling["metadata"]["ownerReferences"] = [missing_owner]
    await world.create(DOMAINS, dangling)
    await world.until(lambda: not world.all(DOMAINS), "the garbage collector", GARBAGE)
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, automatic("app"))
        await world.until_ready()
        before = {found.uid for kind in (DOMAINS, PODS) for found in world.all(kind)}
        await world.delete(SETS, "app", propagation="Orphan")
        await world.until(lambda: not world.all(SETS), "the set deleted")
        orphan = world.get(DOMAINS, "app-0")
        assert (orphan.owners, orphan.terminating) == ((), False)
        assert FINALIZER in orphan.metadata.finalizers
        recreated = await world.create(SETS, automatic("app"))
        await world.until(lambda: world.get(DOMAINS, "app-0").owners == (recreated.uid,), "it is adopted")
        await world.until_ready()
        assert {found.uid for kind in (DOMAINS, PODS) for found in world.all(kind)} == before
        await world.delete(SETS, "app")
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS))


async def test_domains_complete_despite_operator_restarts(world: World) -> None:
    write_limits = itertools.chain([1, 2, 1, 3], itertools.cycle([8, 5, 9]))
    async with successive_operators(world, write_limits, fabrics=NVIDIA):
        await world.create(SETS, automatic("app", replicas=2))
        await world.create(SETS, named("sharer", "team"))
        await world.until_ready()
        assert domains(world) == ["app-0", "app-1", "team"]
        await world.scale(SETS, "app", 1)
        await world.until(lambda: domains(world) == ["app-0", "team"])
        for name in ("app", "sharer"):
            await world.delete(SETS, name)
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS))


async def test_second_vendor_needs_only_its_module_and_rights(
    world: World, operator_account: Account
) -> None:
    """Without the rights to the vendor's kind, only the gangs that use it wait."""
    await fabric.install_islands(world.client)
    await world.watch(ISLANDS)
    both = providers(("nvidia", "example"), {"example": Example})
    notes = {"example.com/fabric": "isle", "nvidia.com/computedomain": "team"}
    body = workload("app", clique("router"), gpus("worker", annotations=notes))
    try:
        async with fabric.rights_to_islands(world.client), operating(world, fabrics=both):
            await world.create(SETS, body)
            await world.until(lambda: world.all(ISLANDS), "the island")
            await world.create(fabric.RESOURCE_CLAIM_TEMPLATES, fabric.foreign_claim_template("isle-berth"))
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
            assert world.pods() == []
            await world.delete(SETS, "app")
            await world.until(lambda: not world.all(SETS))
    finally:
        await world.delete(fabric.RESOURCE_CLAIM_TEMPLATES, "isle-berth")
        await removed(world.client, "islands.example.com")


async def test_b1_b6_driver_faults_are_reported(world: World) -> None:
    """A node is no longer ready (B1), nodes are in different partitions (B6), and a gang waits for a template
    that the driver does not create."""

    async def annotate(node: str, **notes: str | None) -> None:
        body = {"metadata": {"annotations": {f"dra-standin/{key}": value for key, value in notes.items()}}}
        await world.client.patch(NODES, node, body, as_type=dict)

    def phase() -> str:
        return str(world.get(SETS, "app").status["computeDomains"][0]["phase"])

    foreign = fabric.foreign_domain("team", "channels")
    foreign["metadata"]["annotations"] = {"dra-standin/skip-template": "true"}
    async with fabric.one_partition(world.client), operating(world, fabrics=NVIDIA):
        await world.create(DOMAINS, foreign)
        await world.create(SETS, named("user", "team"))
        await world.create(SETS, automatic("app", gpus("worker", 2)))
        await world.until(lambda: reason(world, "app") == "AllReady", "the domain is ready")
        first, second = (pod.spec["nodeName"] for pod in world.pods(part_of="app"))
        try:
            await annotate(first, flip="true")
            await world.until(
                lambda: phase() == "Degraded" and reason(world, "app") == "DomainDegraded", "B1"
            )
            assert f"1/2 nodes ready, not {first}" in message(world, SETS, "app", "ComputeDomainsReady")
            await annotate(first, flip=None)
            await world.until(lambda: reason(world, "app") == "AllReady", "it recovers")
            changes = ["ComputeDomainDegraded", "ComputeDomainRecovered"]
            await world.until(
                lambda: sorted(set(changes).intersection(reasons(world, "app"))) == changes, "the events"
            )
            assert len(reasons(world, "app")) == 3, "one each, and that of its creation"
            await annotate(first, clique="here.1")
            await annotate(second, clique="there.1")
            split = "app-0 is split over 2 partitions (here.1, there.1)"
            await world.until(
                lambda: split in message(world, SETS, "app", "ComputeDomainsReady") and phase() == "Ready",
                "B6",
            )
            assert reason(world, "app") == "FabricSplit"
            await annotate(second, clique="")
            outside = f"nodes {second} of ComputeDomain app-0 are in no partition"
            await world.until(
                lambda: outside in message(world, SETS, "app", "ComputeDomainsReady"), "a node without fabric"
            )
            assert reason(world, "app") == "FabricSplit"
        finally:
            for node in (first, second):
                await annotate(node, flip=None, clique=None)
        assert world.pods(part_of="user") == [], "the template is missing"
        nothing = {"metadata": {"annotations": {"dra-standin/skip-template": None}}}
        await world.patch(DOMAINS, "team", nothing)
        await world.until_ready()
        await world.delete(SETS, "user")
        await world.until(lambda: not world.find(SETS, "user"))
        await world.delete(DOMAINS, "team")
