"""The pods that every contender creates and decodes, and the meter of a process's cost."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

NO_SCHEDULER = "absent"  # no scheduler has this name, so that created pods cause no further work


def pod(name: str, namespace: str, scheduler: str = "default-scheduler") -> dict[str, Any]:
    """A pod of a multi-node worker as the operator creates it: labels, gates, resources, environment."""
    labels = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "llama",
        "app.kubernetes.io/name": "llama-0-decode",
        "grove.io/podclique": "llama-0-decode",
        "grove.io/podgang": "llama-0",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/pod-template-hash": "b8c7f5d9c",
    }
    variables = [{"name": f"GROVE_VARIABLE_{number}", "value": f"value-{number}"} for number in range(8)]
    container = {
        "name": "worker",
        "image": "registry.example.com/worker:1",
        "command": ["python3", "-m", "worker"],
        "env": variables,
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "10m", "memory": "10Mi"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 5},
    }
    owner = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "name": "llama-0-decode",
        "uid": "5cdb9c4e-4f3b-4b2f-9d6f-0f3c9a1f7a11",
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, "schedulerName": scheduler},
    }


class Meter:
    """CPU seconds of this process (user and system, all threads), and its memory."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def read(self) -> dict[str, float]:
        """CPU seconds since the meter was created."""
        return {"cpu": time.process_time() - self._cpu, "wall": time.perf_counter() - self._wall}


async def metered(worker: Callable[[Iterator[str]], Awaitable[None]], count: int, in_flight: int) -> None:
    """For each line on standard input create that many pods, and print the cost.

    Connections are opened before. Contenders take turns in small slices, so that the noise of a shared
    machine affects all of them equally.
    """
    await asyncio.gather(*(worker(iter([f"warm-{number}"])) for number in range(in_flight)))
    for waiter, _ in enumerate(sys.stdin):
        names = iter([f"pod-{waiter}-{number}" for number in range(count)])
        meter = Meter()
        await asyncio.gather(*(worker(names) for _ in range(in_flight)))
        print(json.dumps(meter.read()), flush=True)


def resident_bytes() -> int:
    """Memory in use after a garbage collection."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def read_list(path: str) -> bytes:
    """A recorded list of pods."""
    return Path(path).read_bytes()
