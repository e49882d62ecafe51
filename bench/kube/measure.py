"""The measurements: each contender in a separate process; contenders take turns."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Raw
from rich.console import Console

from bench.kube.ours import Pod
from bench.kube.sample import pod
from grove.kube.auth import config
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import NAMESPACES, PODS, SERVICE_ACCOUNTS
from grove.kube.errors import AlreadyExists
from grove.local.build import binaries
from grove.local.build.versions import default_minor
from grove.local.cluster import lifecycle
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

OTHERS = ("official", "official_asyncio")
NAMES = {
    "ours": "grove.kube",
    "bare": "bare aiohttp",
    "official": "kubernetes",
    "official_asyncio": "kubernetes-asyncio",
}
PODS_A_SLICE, SLICES, IN_FLIGHT = 100, 15, 32
ROUNDS = 2
PODS_LISTED, PODS_RECORDED = 5000, 100
EVENTS = {"ours": 50_000, "official": 4_000, "official_asyncio": 4_000}


def _command(name: str, task: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.kube.contender", name, task, *map(str, arguments)]


def run(name: str, task: str, *arguments: object) -> dict[str, float]:
    """Run one contender on one task in a separate process."""
    done = subprocess.run(
        _command(name, task, *arguments), capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise SystemExit(f"{NAMES[name]} failed at {task}:\n{done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


@contextmanager
def control_plane(console: Console) -> Iterator[Path]:
    """A new cluster for this run."""
    reporter = ProgressReporter(console)
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        state = StateDir(Path(folder) / "cluster")
        try:
            wanted = ClusterSettings(kubernetes=default_minor(), nodes=4, gpus=8, shape="1x1x1x4")
            yield lifecycle.up(
                state, wanted, lambda minor: binaries.find(minor, reporter), reporter
            ).kubeconfig
        finally:
            lifecycle.down(state, delete=True)


async def make_namespace(kubeconfig: Path, name: str) -> None:
    """A namespace in which pods can be created at once."""
    async with Client(config.load(kubeconfig)) as client:
        await client.create(NAMESPACES, {"metadata": {"name": name}}, as_type=Raw)
        with suppress(
            AlreadyExists
        ):  # pods are rejected until the account exists; a controller would create it later
            account = {"metadata": {"name": "default"}}
            await client.create(SERVICE_ACCOUNTS, account, namespace=name, as_type=Raw)


def creates(kubeconfig: Path, console: Console) -> dict[str, dict[str, float]]:
    """CPU per pod created: the median of many small slices in which contenders take turns."""
    running: dict[str, subprocess.Popen[str]] = {}
    slices: dict[str, list[float]] = {name: [] for name in NAMES}
    try:
        for name in NAMES:
            namespace = name.replace("_", "-")
            asyncio.run(make_namespace(kubeconfig, namespace))
            command = _command(name, "create", kubeconfig, namespace, PODS_A_SLICE, IN_FLIGHT)
            running[name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        for _ in range(SLICES):
            for name, contender in running.items():
                slices[name].append(_slice(contender) / PODS_A_SLICE)
    finally:
        for contender in running.values():
            contender.kill()
            contender.communicate()
    found = {}
    for name, costs in slices.items():
        ratios = [cost / bare for cost, bare in zip(costs, slices["bare"], strict=True)]
        found[name] = {"cpu": statistics.median(costs), "times_bare": statistics.median(ratios)}
        console.print(f"  create, {NAMES[name]}: {found[name]['cpu'] * 1e6:.0f} us CPU per pod")
    return found


def _slice(contender: subprocess.Popen[str]) -> float:
    """Run one slice of a waiting contender."""
    assert contender.stdin is not None
    assert contender.stdout is not None
    contender.stdin.write("go\n")
    line = contender.stdout.readline()
    if not line:
        raise SystemExit("a contender exited early: its error is above")
    return float(json.loads(line)["cpu"])


async def record(kubeconfig: Path) -> bytes:
    """A list of 5,000 pods: copies with different names of real pods that run on KWOK nodes."""
    async with Client(config.load(kubeconfig)) as client:
        for number in range(PODS_RECORDED):
            await client.create(PODS, pod(f"pod-{number}", "default"), namespace="default", as_type=Raw)
        await _until_running(client)
        listing = await client.list(PODS, namespace="default", as_type=dict)
    items = []
    for number in range(PODS_LISTED):
        item = json.loads(json.dumps(listing.items[number % PODS_RECORDED]))
        item["metadata"] |= {"name": f"pod-{number}", "uid": f"{number:08d}{item['metadata']['uid'][8:]}"}
        items.append(item)
    body = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "999"}, "items": items}
    return msgspec.json.encode(body)


async def _until_running(client: Client) -> None:
    cache = Cache(PODS, Pod, namespace="default")
    all_run = asyncio.Event()

    def look(_: Pod | None, __: Pod | None) -> None:
        if len(cache) == PODS_RECORDED and all(found.status.phase == "Running" for found in cache):
            all_run.set()

    cache.subscribe(look)
    reflecting = asyncio.create_task(Reflector(client, cache).run())
    async with asyncio.timeout(120):
        await all_run.wait()
    reflecting.cancel()


def decoding(path: Path, console: Console) -> dict[str, dict[str, float]]:
    """CPU to decode the list, and memory per cached pod."""
    best: dict[str, dict[str, float]] = {}
    for name in ("ours", *OTHERS):
        for _ in range(ROUNDS):
            cost = run(name, "decode", path)
            cost["bytes_per_pod"] = cost.pop("bytes") / cost["pods"]
            before = best.get(name, cost)
            best[name] = {key: min(value, before[key]) for key, value in cost.items()}
        console.print(f"  decode, {NAMES[name]}: {best[name]['cpu'] * 1e3:.0f} ms CPU for {PODS_LISTED} pods")
    return best


def watching(path: Path, console: Console) -> dict[str, dict[str, float]]:
    """Watch events processed per second of CPU."""
    best: dict[str, dict[str, float]] = {}
    command = [sys.executable, "-m", "bench.kube.replay", str(path), str(max(EVENTS.values()))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            for name in ("ours", *OTHERS):
                for _ in range(ROUNDS):
                    cost = run(name, "stream", address, EVENTS[name])
                    rate = {"events_per_cpu_second": EVENTS[name] / cost["cpu"]}
                    best[name] = max(rate, best.get(name, rate), key=lambda one: one["events_per_cpu_second"])
                rate_now = best[name]["events_per_cpu_second"]
                console.print(f"  watch, {NAMES[name]}: {rate_now:,.0f} events per second of CPU")
        finally:
            server.terminate()
    return best
