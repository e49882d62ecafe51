"""The `kubernetes` package: synchronous, so it runs in threads."""

from __future__ import annotations

import json
import queue
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from kubernetes import client, config, watch

from bench.kube.sample import NO_SCHEDULER, Meter, pod, read_list, resident_bytes


def create(kubeconfig: str, namespace: str, count: int, in_flight: int) -> None:
    """Creates pods from dict bodies (its cheapest form); replies are decoded into its models."""
    settings = client.Configuration()
    config.load_kube_config(kubeconfig, client_configuration=settings)
    settings.connection_pool_maxsize = in_flight
    api = client.CoreV1Api(client.ApiClient(settings))

    def worker(todo: queue.SimpleQueue[str]) -> None:
        with suppress(queue.Empty):
            while True:
                api.create_namespaced_pod(namespace, pod(todo.get_nowait(), namespace, NO_SCHEDULER))

    _in_threads(worker, [f"warm-{number}" for number in range(in_flight)], in_flight)
    for waiter, _ in enumerate(sys.stdin):
        meter = Meter()
        _in_threads(worker, [f"pod-{waiter}-{number}" for number in range(count)], in_flight)
        print(json.dumps(meter.read()), flush=True)


def _in_threads(worker: Callable[[queue.SimpleQueue[str]], None], names: list[str], threads: int) -> None:
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        todo.put(name)
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(worker, todo) for _ in range(threads)]:
            done.result()


def decode(path: str) -> dict[str, float]:
    """Decodes a list into its models with its own deserialiser."""
    api = client.ApiClient(client.Configuration())
    api.deserialize('{"items": []}', "V1PodList", "application/json")  # imports are not measured
    text = read_list(path).decode()
    before = resident_bytes()
    meter = Meter()
    kept = api.deserialize(text, "V1PodList", "application/json")
    cost = meter.read()
    return cost | {"bytes": resident_bytes() - before, "pods": len(kept.items)}


def stream(server: str, count: int) -> dict[str, float]:
    """Watch events, decoded into its models."""
    settings = client.Configuration()
    settings.host = server
    api = client.CoreV1Api(client.ApiClient(settings))
    watching = watch.Watch()
    meter = Meter()
    for seen, _ in enumerate(watching.stream(api.list_pod_for_all_namespaces), start=1):
        if seen == count:
            watching.stop()
    return meter.read()
