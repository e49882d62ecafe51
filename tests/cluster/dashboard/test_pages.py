"""The pages of the dashboard on the real control plane, with an operator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from itertools import groupby
from typing import Any

import msgspec
import pytest
import yaml

from grove.dashboard.board import Board
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.explanation import explanation_page
from grove.dashboard.pages.model import WorkloadPage
from grove.dashboard.pages.node import node_page
from grove.dashboard.pages.object_yaml import object_yaml
from grove.dashboard.pages.search import search_hits
from grove.dashboard.pages.workload import workload_page
from grove.dashboard.rights import Rights
from grove.dashboard.state.live import live_board
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import EVENTS, NAMESPACES, NODES, PODS
from grove.kube.errors import NotFound
from tests.cluster.cli.commands import grove
from tests.cluster.cli.test_status import NO_LEASE, packed, waits
from tests.cluster.operator.scenarios.updates import change
from tests.cluster.operator.scheduling.test_placement import PLACING, RACK, topology
from tests.cluster.operator.support.harness import PATIENCE, operating, watching
from tests.cluster.operator.support.nodes import cordoned
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.operator.support.updates import updated
from tests.cluster.operator.support.workloads import clique, workload
from tests.namespaces import make_namespace

LEASE = NO_LEASE[1]
ALL = Rights()


async def shown(board: Board, rights: Rights, condition: Callable[[], Any]) -> None:
    """Wait until the board has what a test has seen, checked after each delta."""
    deltas = board.deltas(rights, board.picture(rights).version)
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await anext(deltas)


def phases(page: WorkloadPage) -> list[str]:
    """The kinds of the time line, without placement, and each once in a row."""
    kinds = (str(each.kind) for each in page.timeline if each.kind not in ("placement", "other"))
    return [kind for kind, _ in groupby(kinds)]


def titles(page: WorkloadPage, kind: str) -> list[str]:
    return [each.title for each in page.timeline if each.kind == kind]


async def test_time_line_of_start_update_and_recovery(client, crds, operator_account, namespace):
    body = workload("demo", clique("worker", 2))
    body["spec"]["template"]["terminationDelay"] = "1s"
    nodes = [each.metadata.name for each in (await client.list(NODES, as_type=Object)).items]
    async with (
        watching(client, operator_account.config, namespace) as world,
        operating(world),
        live_board(client, lease=LEASE) as board,
    ):
        await world.watch(EVENTS)
        await world.create(SETS, body)
        await world.until_ready()
        started = await page_of(board, namespace)
        assert phases(started) == ["start"]
        await change(world, "demo", "model:2", "worker")
        await world.until(lambda: updated(world, "demo"), "the update")
        before = {pod.uid for pod in world.pods()}
        async with cordoned(world, nodes):
            await world.delete(PODS, world.pods()[0].name)
            await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)}, "gang termination")
        await world.until_ready()
        await world.until(lambda: "Recovered" in {each.reason for each in world.all(EVENTS)}, "the event")
        page = await page_of(board, namespace)
    assert phases(page) == ["start", "rollout", "recovery"], page.timeline
    assert {"UpdateStarted", "UpdateFinished", "PodCreateSuccessful"} <= set(titles(page, "rollout"))
    recovery = titles(page, "recovery")
    assert recovery.index("PodCliqueSetReplicaDeleteSuccessful") < recovery.index("Recovered")
    assert "Ready" in recovery
    assert titles(page, "rollout").count("UpdateStarted") == 1, "the condition and the event are one entry"
    assert not {"Update started", "Gang termination"} & {each.title for each in page.timeline}
    assert (page.unread, page.left_out, page.status.summary) == (
        (),
        0,
        "1/1 replicas available, 1/1 gangs running, 2/2 pods ready",
    )
    seconds = [each.time[:19] for each in page.timeline]
    assert seconds == sorted(seconds)


async def page_of(board: Board, namespace: str) -> WorkloadPage:
    gangs = lambda: board.objects(namespace).gangs  # noqa: E731
    await shown(board, ALL, lambda: gangs() and all(each.status.phase == "Running" for each in gangs()))
    return await workload_page(board, ALL, namespace, "demo")


def a_foreign_pod(name: str, node: str) -> dict[str, Any]:
    """A pod that uses a whole node and belongs to no set."""
    resources = {"limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "main", "image": "other:1", "resources": resources}
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}}


@asynccontextmanager
async def foreign_pods(client: Client, namespace: str, nodes: list[str]) -> AsyncIterator[None]:
    """A pod on each of the nodes, in a namespace of their own, until the block is left."""
    await make_namespace(client, namespace)
    names = [f"secret-pod-{number}" for number in range(len(nodes))]
    try:
        for name, node in zip(names, nodes, strict=True):
            await client.create(PODS, a_foreign_pod(name, node), namespace=namespace, as_type=Object)
        yield
    finally:
        for name in names:
            with suppress(NotFound):
                await client.delete(PODS, name, namespace=namespace, as_type=Object)
        await client.delete(NAMESPACES, namespace, as_type=Object)


async def one_node_of_each_rack(client: Client) -> list[str]:
    racks = {
        each.metadata.labels[RACK]: each.metadata.name
        for each in (await client.list(NODES, as_type=Object)).items
    }
    return sorted(racks.values())


def without_ages(found: Any) -> Any:
    """What two answers of different moments have in common."""
    if isinstance(found, dict):
        return {
            key: without_ages(value) for key, value in found.items() if key not in ("ageSeconds", "count")
        }
    return [without_ages(each) for each in found] if isinstance(found, list) else found


async def test_gang_that_waits_and_a_viewer_of_one_namespace(
    client, cluster, crds, placing_account, namespace
):
    hidden, nodes = f"{namespace}-secret", await one_node_of_each_rack(client)
    tenant, blind = Rights(frozenset({namespace})), Rights(frozenset({namespace}), nodes=False)
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig), *NO_LEASE)
    async with (
        foreign_pods(client, hidden, nodes),
        watching(client, placing_account.config, namespace) as world,
        topology(client),
        operating(world, topology_aware=True, backends=PLACING),
        live_board(client, lease=LEASE) as board,
    ):
        await world.create(SETS, packed("large", 4))
        reporting = ((GANGS, "large-0"), (SETS, "large"))
        await world.until(lambda: all(waits(world.find(*each)) for each in reporting), "the reason")
        key = f"{namespace}/large-0"
        await shown(board, ALL, lambda: (found := board.picture(ALL).gangs.get(key)) and found.waiting)
        page, printed = await asyncio.gather(
            explanation_page(board, ALL, namespace, "gang/large-0"),
            grove("explain", "gang/large-0", "-o", "json", *where),
        )
        assert printed.code == 0, printed.err
        said = json.loads(msgspec.json.encode(page.explanation))
        assert without_ages(said) == without_ages(json.loads(printed.out))
        assert [each["domain"] for each in said["gangs"][0]["domains"]] != []
        assert "secret-pod-0" in json.dumps(said)

        for rights in (tenant, blind):
            answers = (
                await explanation_page(board, rights, namespace, "gang/large-0"),
                await workload_page(board, rights, namespace, "large"),
                search_hits(board, rights, "e"),
                search_hits(board, rights, "secret"),
            )
            assert "secret" not in msgspec.json.encode(answers).decode()
            assert answers[0].explanation.reasons[0].code == page.explanation.reasons[0].code
        assert answers[0].explanation.gangs[0].domains == ()
        on_node = node_page(board, tenant, nodes[0])
        assert (on_node.others.pods >= 1, on_node.others.gpus) == (True, 8)
        assert "secret" not in msgspec.json.encode(on_node).decode()

        text = await object_yaml(board, tenant, namespace, "podgang", "large-0")
        assert yaml.safe_load(text)["metadata"]["name"] == "large-0"
        assert "managedFields" not in text
        for refused in (
            object_yaml(board, tenant, hidden, "pod", "secret-pod-0"),
            object_yaml(board, ALL, hidden, "pod", "secret-pod-0"),
            workload_page(board, tenant, hidden, "large"),
            explanation_page(board, tenant, hidden, "gang/large-0"),
        ):
            with pytest.raises(PageError) as raised:
                await refused
            assert raised.value.status == HTTPStatus.NOT_FOUND
