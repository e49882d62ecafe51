"""The `kubernetes-asyncio` package."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from kubernetes_asyncio import client, config, watch

from bench.kube.sample import NO_SCHEDULER, Meter, metered, pod, read_list, resident_bytes


async def create(kubeconfig: str, namespace: str, count: int, in_flight: int) -> None:
    """Creates pods from dict bodies (its cheapest form); replies are decoded into its models."""
    settings = client.Configuration()
    await config.load_kube_config(kubeconfig, client_configuration=settings)
    settings.connection_pool_maxsize = in_flight
    async with client.ApiClient(settings) as connection:
        api = client.CoreV1Api(connection)

        async def worker(names: Iterator[str]) -> None:
            for name in names:
                await api.create_namespaced_pod(namespace, pod(name, namespace, NO_SCHEDULER))

        await metered(worker, count, in_flight)


async def decode(path: str) -> dict[str, float]:
    """Decodes a list into its models with its own deserialiser."""
    async with client.ApiClient(client.Configuration()) as api:
        _deserialize(api, '{"items": []}')  # imports are not measured
        text = read_list(path).decode()
        before = resident_bytes()
        meter = Meter()
        kept = _deserialize(api, text)
        cost = meter.read()
        return cost | {"bytes": resident_bytes() - before, "pods": len(kept.items)}


def _deserialize(api: client.ApiClient, text: str) -> client.V1PodList:
    return api.deserialize(SimpleNamespace(data=text), "V1PodList")


async def stream(server: str, count: int) -> dict[str, float]:
    """Watch events, decoded into its models."""
    settings = client.Configuration()
    settings.host = server
    async with client.ApiClient(settings) as connection:
        api = client.CoreV1Api(connection)
        watching = watch.Watch()
        meter = Meter()
        seen = 0
        async for _ in watching.stream(api.list_pod_for_all_namespaces):
            seen += 1
            if seen == count:
                watching.stop()
        return meter.read()
