"""The local cluster on the real binaries: its properties, and its behaviour at faults."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from datetime import datetime

import pytest

from grove.api.types.kubernetes_objects import Node
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS, SERVICE_ACCOUNTS, Resource
from grove.kube.errors import Forbidden, KubeError
from grove.local.cluster import lifecycle
from grove.local.cluster.cluster_shape import RACK
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.cluster.nodes import gpus_of, is_ready
from grove.local.cluster.processes import stop
from grove.local.cluster.status import read_status
from grove.local.errors import LocalError
from tests.clusters import programs
from tests.service_accounts import request_token

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


async def kubectl(started: LocalCluster, *arguments: str) -> None:
    program = programs()["kubectl"]
    process = await asyncio.create_subprocess_exec(program, "--kubeconfig", started.kubeconfig, *arguments)
    assert await process.wait() == 0


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def pod(name: str) -> dict[str, object]:
    container = {"name": "main", "image": "model", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


async def test_nodes_have_gpus_and_rack_labels(client) -> None:
    nodes = (await client.list(NODES, as_type=Node)).items
    assert len(nodes) == 16
    assert all(is_ready(node) and gpus_of(node) == 8 for node in nodes)
    assert len({node.metadata.labels[RACK] for node in nodes}) == 4


async def test_client_without_authority_rejects_server(cluster) -> None:
    port = cluster.record.ports.apiserver
    with socket.create_connection(("127.0.0.1", port)) as plain, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")


async def test_rbac_is_enforced(cluster, client, namespace) -> None:
    body = {"metadata": {"name": "unprivileged"}}
    await client.create(SERVICE_ACCOUNTS, body, namespace=namespace, as_type=Object)
    token = await request_token(client, namespace, "unprivileged")
    kubeconfig = json.loads(cluster.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    path = cluster.state.root / "unprivileged.kubeconfig"
    path.write_text(json.dumps(kubeconfig))
    async with Client(config.load(path)) as unprivileged:
        with pytest.raises(Forbidden):
            await unprivileged.list(NODES, as_type=Object)


async def test_audit_log_has_requests_of_clients(cluster, client, namespace) -> None:
    await client.create(CONFIG_MAPS, config_map("counted"), namespace=namespace, as_type=Object)
    written, _, _ = cluster.state.audit_log.read_text().rpartition(
        "\n"
    )  # other requests are still being written
    lines = [json.loads(line) for line in written.splitlines()]
    mine = [
        line["verb"]
        for line in lines
        if line.get("objectRef", {}).get("namespace") == namespace
        and line["objectRef"].get("name") == "counted"
    ]
    assert mine == ["create"]
    assert not {line["user"].get("username") for line in lines} & {"kwok", "system:kube-scheduler"}


class TestTrouble:
    """A separate cluster for tests that break it."""

    async def test_killed_component_is_reported_and_restarted(self, clusters) -> None:
        started = await clusters.start("killed")
        stop(lifecycle.running(started.state)["kube-scheduler"], 0)
        found = await read_status(started.state)
        assert {part.name: part.state for part in found.parts if part.state != "healthy"} == {
            "kube-scheduler": "exited"
        }
        assert not found.healthy
        assert all(part.last_words for part in found.parts if part.state == "exited")
        again = await clusters.start("killed")
        assert (await read_status(again.state)).healthy
        assert again.server == started.server

    async def test_restart_keeps_data_and_ports(self, clusters) -> None:
        started = await clusters.start("restarted")
        async with Client(config.load(started.kubeconfig)) as client:
            await client.create(CONFIG_MAPS, config_map("kept"), namespace="default", as_type=Object)
        assert lifecycle.down(started.state) == list(reversed(lifecycle.COMPONENTS))
        with pytest.raises(KubeError):
            async with Client(config.load(started.kubeconfig)) as client:
                await client.get(CONFIG_MAPS, "kept", namespace="default", as_type=Object)
        again = await clusters.start("restarted")
        async with Client(config.load(again.kubeconfig)) as client:
            kept = await client.get(CONFIG_MAPS, "kept", namespace="default", as_type=Object)
            nodes = (await client.list(NODES, as_type=Node)).items
        assert kept.metadata.name == "kept"
        assert len(nodes) == 4
        assert again.server == started.server, "an exported kubeconfig stays valid"

    async def test_two_clusters_are_independent(self, clusters) -> None:
        one = await clusters.start("one")
        two = await clusters.start("two", nodes=1, shape="1x1x1x1")
        async with Client(config.load(one.kubeconfig)) as client:
            await client.create(CONFIG_MAPS, config_map("mine"), namespace="default", as_type=Object)
        async with Client(config.load(two.kubeconfig)) as client:
            names = {item.metadata.name for item in (await client.list(CONFIG_MAPS, as_type=Object)).items}
            assert "mine" not in names
            assert len((await client.list(NODES, as_type=Node)).items) == 1

    async def test_second_up_rejects_other_options(self, clusters) -> None:
        started = await clusters.start("twice")
        before = lifecycle.running(started.state)
        await clusters.start("twice")
        assert lifecycle.running(started.state) == before
        down = f"run grove down --state-dir {started.state.root}"
        with pytest.raises(LocalError, match=f"--gpus 8, requested is 4: {down} --delete first"):
            await clusters.start("twice", gpus=4)
        with pytest.raises(LocalError, match=f"--pace fast, requested is slow: {down} first"):
            await clusters.start("twice", pace="slow")

    async def test_busy_port_is_one_line_and_starts_nothing(self, clusters) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(LocalError, match=f"port {port} is taken"):
                await clusters.start("busy", port=port)
        assert lifecycle.running(clusters.state("busy")) == {}

    async def test_component_exit_at_start_shows_its_log(self, clusters) -> None:
        with pytest.raises(LocalError, match=r"kube-apiserver exited while starting[\s\S]*NoSuchGate"):
            await clusters.start("gated", feature_gates={"NoSuchGate": True})
        assert lifecycle.running(clusters.state("gated")) == {}

    async def test_down_stops_partly_running_cluster(self, clusters) -> None:
        started = await clusters.start("half")
        for name in ("kube-apiserver", "kwok"):
            process = lifecycle.running(started.state)[name]
            stop(process, 0)
        assert set(lifecycle.down(started.state)) == {"etcd", "kube-controller-manager", "kube-scheduler"}
        assert lifecycle.running(started.state) == {}

    async def test_slow_pace_delays_pods(self, clusters) -> None:
        started = await clusters.start("slow", pace="slow", feature_gates={"MutablePVNodeAffinity": True})
        async with Client(config.load(started.kubeconfig)) as client:
            await client.create(PODS, pod("late"), namespace="default", as_type=Object)
            await kubectl(started, "wait", "--for=condition=Ready", "pod/late", "--timeout=3m")
            late = await client.get(PODS, "late", namespace="default", as_type=dict)
        since = {
            fact["type"]: datetime.fromisoformat(fact["lastTransitionTime"])
            for fact in late["status"]["conditions"]
        }
        assert (since["Ready"] - since["PodScheduled"]).total_seconds() >= 1

    async def test_node_can_be_lost_and_recovered(self, clusters) -> None:
        started = await clusters.start("lost", nodes=1, shape="1x1x1x1")
        await kubectl(started, "annotate", "node", "z0-b0-r0-h0", "node.grove.local/lost=yes")
        await kubectl(started, "wait", "--for=condition=Ready=false", "node/z0-b0-r0-h0", "--timeout=3m")
        await kubectl(started, "annotate", "node", "z0-b0-r0-h0", "node.grove.local/lost-")
        await kubectl(started, "wait", "--for=condition=Ready", "node/z0-b0-r0-h0", "--timeout=3m")
