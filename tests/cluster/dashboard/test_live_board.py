"""What the dashboard shows of a real cluster, with an operator that places gangs."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from grove.api.naming import labels
from grove.dashboard.problems import MAY_NOT_LIST
from grove.dashboard.rights import Rights
from grove.dashboard.state.live import LiveBoard, live_board
from grove.dashboard.state.own_rights import own_rights
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import LEASES, NODES, PODS
from grove.kube.errors import NotFound
from grove.kube.leader.lease import Lease
from tests.cluster.cli.commands import tenant_kubeconfig
from tests.cluster.cli.test_status import packed
from tests.cluster.kube.reflector_harness import wired
from tests.cluster.operator.scheduling.test_placement import PLACING, topology
from tests.cluster.operator.support.harness import operating, watching
from tests.cluster.operator.support.objects import SETS
from tests.dashboard.state.page import Page, open_page

LEASE = "dashboard-test"
STRANGER = Rights(frozenset({"another-namespace"}))


async def pods_by_node(client: Client, namespace: str) -> dict[str, Counter[str]]:
    """What the API says: by node, how many GPUs each gang uses."""
    found: dict[str, Counter[str]] = {}
    listed = await client.list(PODS, as_type=dict[str, Any], namespace=namespace)
    for pod in listed.items:
        gang = f"{namespace}/{pod['metadata']['labels'][labels.GANG]}"
        if node := pod["spec"].get("nodeName"):
            gpus = pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
            found.setdefault(node, Counter())[gang] += int(gpus)
    return found


def shown_by_node(page: Page, namespace: str) -> dict[str, Counter[str]]:
    return {
        name: found
        for name, cells in page.nodes.items()
        if (
            found := Counter(
                {use.gang: use.gpus for use in cells.uses if use.gang.startswith(f"{namespace}/")}
            )
        )
    }


def foreign_pod(name: str, node: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "3"}}}
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}}


def lease(seconds: int) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "operator-1", "leaseDurationSeconds": seconds, "renewTime": now}
    return {"metadata": {"name": LEASE}, "spec": spec}


async def test_page_of_a_set_that_starts(client, crds, placing_account, namespace):
    demo, large = f"{namespace}/demo", f"{namespace}/large"
    async with (
        watching(client, placing_account.config, namespace) as world,
        topology(client),
        live_board(client, lease=f"{namespace}/{LEASE}") as board,
        open_page(board, Rights()) as page,
        open_page(board, STRANGER) as other,
    ):
        async with operating(world, topology_aware=True, backends=PLACING):
            await world.create(SETS, packed("demo", 2))
            await world.create(SETS, packed("large", 5))
            await page.until(lambda: demo in page.sets and page.sets[demo].verdict == "Healthy")
            await page.until(lambda: large in page.sets and page.sets[large].verdict == "Waiting")
            await page.until(lambda: page.gangs[f"{large}-0"].waiting is not None)
            truth = await pods_by_node(client, namespace)
        assert shown_by_node(page, namespace) == truth
        gang, waiting = page.gangs[f"{demo}-0"], page.gangs[f"{large}-0"]
        assert (gang.set, gang.phase, gang.pods, gang.ready, gang.gpus) == (demo, "Running", 2, 2, 16)
        assert gang.waiting is None
        assert gang.score == 1.0
        rack = {page.nodes[name].domains["topology.kubernetes.io/rack"] for name in truth}
        assert {each.domain for each in gang.placed} == rack
        assert waiting.waiting.code == "GangTooLarge"
        assert page.sets[large].reasons[0].code == "GangTooLarge"
        assert [each.name for each in page.fields["topologies"][0].levels] == ["zone", "block", "rack"]
        assert page.fields["operator"].alive is False  # one without a Lease
        assert any(each.about.name == "large-0" for each in page.events.values())
        # Everything that is shown equals a picture that is read now, and another user sees only numbers.
        assert Page(board.picture(Rights())).contents[1:4] == page.contents[1:4]
        assert (other.gangs, other.sets, other.events) == ({}, {}, {})
        assert all(use.gang == "" for cells in other.nodes.values() for use in cells.uses)
        used = {name: sum(use.gpus for use in other.nodes[name].uses) for name in truth}
        assert used == {name: sum(gangs.values()) for name, gangs in truth.items()}
        assert namespace not in "".join(other.sent)
        await check_lease(client, page, namespace, demo)
        await check_lease_of_others(client, board, namespace)
        await check_pod_that_moves(client, page, namespace)
        assert not any(each.operator for each in page.deltas)  # renewals are not sent


async def check_pod_that_moves(client: Client, page: Page, namespace: str) -> None:
    """Only the nodes of a pod change when it moves."""
    first, second = [name for name in sorted(page.nodes) if not page.nodes[name].uses][:2]
    page.deltas.clear()
    for name, node in (("a", first), ("b", second)):
        await client.create(PODS, foreign_pod(name, node), namespace=namespace, as_type=Object)
        await page.until(lambda node=node: [use.gpus for use in page.nodes[node].uses] == [3])
        await client.delete(PODS, name, namespace=namespace, as_type=Object, grace_seconds=0)
        await page.until(lambda node=node: not page.nodes[node].uses)
    assert {name for delta in page.deltas for name in delta.nodes} == {first, second}
    await client.patch(NODES, first, {"spec": {"unschedulable": True}}, as_type=Object)
    await page.until(lambda: page.nodes[first].cordoned)
    await client.patch(NODES, first, {"spec": {"unschedulable": None}}, as_type=Object)
    await page.until(lambda: not page.nodes[first].cordoned)


async def check_lease(client: Client, page: Page, namespace: str, demo: str) -> None:
    """A Lease that is not renewed sends no event, and the page says so all the same."""
    await client.create(LEASES, lease(3), namespace=namespace, as_type=Object)
    await page.until(lambda: page.fields["operator"].alive)
    assert page.fields["operator"].holder == "operator-1"
    await page.until(lambda: not page.fields["operator"].alive)
    await page.until(lambda: page.sets[demo].verdict == "Unknown")
    await client.patch(LEASES, LEASE, lease(30), namespace=namespace, as_type=Object)
    await page.until(lambda: page.sets[demo].verdict == "Healthy")
    await client.patch(LEASES, LEASE, lease(60), namespace=namespace, as_type=Object)


async def check_lease_of_others(client: Client, board: LiveBoard, namespace: str) -> None:
    """Explanations read the Lease in its namespace alone, and miss nothing."""
    await client.create(LEASES, lease(60), namespace="default", as_type=Object)
    try:
        state = await board.state()
    finally:
        await client.delete(LEASES, LEASE, namespace="default", as_type=Object)
    assert [each.metadata.namespace for each in state.objects(LEASES, Lease)] == [namespace]
    assert not any(each.resource == LEASES.label for each in state.unread)


async def test_page_while_the_api_server_is_away(cluster, crds, namespace):
    async with (
        wired(cluster) as (wire, over_wire),
        Client(over_wire) as far,
        live_board(far, lease=LEASE) as board,
        open_page(board, Rights()) as page,
    ):
        assert page.fields["connection"].connected
        wire.is_down = True
        wire.cut()
        await page.until(lambda: not page.fields["connection"].connected)
        assert page.fields["connection"].problem
        assert page.fields["connection"].since
        wire.is_down = False
        await page.until(lambda: page.fields["connection"].connected)
        assert page.nodes == board.picture(Rights()).nodes
        assert len(page.nodes) == 16


async def test_page_of_a_user_of_one_namespace(client, cluster, crds, namespace, tmp_path):
    await client.create(SETS, packed("demo", 2), namespace=namespace, as_type=Object)
    tenant = await tenant_kubeconfig(client, cluster, namespace, tmp_path)
    async with Client(config.load(Path(tenant))) as user:
        rights = await own_rights(user, namespace)
        assert (rights.namespaces, rights.nodes) == (frozenset({namespace}), False)
        assert [line.rpartition(": ask")[0].rpartition(": ")[2] for line in rights.unread] == [
            f"only workloads of namespace {namespace} are shown",
            "nodes are not shown",
        ]
        async with live_board(user, namespaces=[namespace], lease=LEASE) as board:
            picture = board.picture(replace(rights, own=True))  # as OwnAccess has them
            assert list(picture.sets) == [f"{namespace}/demo"]
            assert picture.nodes == {}
            assert picture.operator is None
            assert any(line.startswith("leases.coordination.k8s.io: ") for line in picture.unread)
            assert picture.connection.connected
            others = "".join(board.picture(rights).unread[len(rights.unread) :])
            assert (MAY_NOT_LIST in others, "tenant-of-one" in others) == (True, False)
            assert board.namespaces() == {namespace}
            read = await board.read(SETS, namespace, "demo")
            assert read["metadata"]["name"] == "demo"
            assert await board.state() is await board.state()
        assert (await own_rights(user, "default")).namespaces == frozenset()
    assert (await own_rights(client, namespace)) == Rights()
    with suppress(NotFound):
        await client.delete(SETS, "demo", namespace=namespace, as_type=Object)
