"""Waits until the cliques that a pod starts after are ready: watches their pods and counts the ready ones.

A watch that starts without a resourceVersion first sends the existing objects, then the changes, on every
Kubernetes version. Each new watch starts a new count, so that a missed event cannot leave a wrong one.
Pods are selected by their labels. A watch that fails is started again, without a limit.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

from grove import timing
from grove.api.naming import labels
from grove.initc.arguments import PodContext, WaitArguments
from grove.initc.watch_stream import Server, WatchInterrupted, lines

Log = Callable[[str], None]


class ReadyCount:
    """The ready pods of each clique, from the events of one watch."""

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self._wanted = wanted
        self._ready: dict[str, set[str]] = {name: set() for name in wanted}

    def apply(self, line: bytes) -> None:
        """Count one watch event. Raises WatchInterrupted for an ERROR event."""
        event: dict[str, Any] = json.loads(line)
        pod: dict[str, Any] = event["object"]
        if event["type"] == "ERROR":
            raise WatchInterrupted(f"the server ended the watch: {pod.get('message', 'no reason given')}")
        if event["type"] == "BOOKMARK":
            return
        name = pod["metadata"]["name"]
        for pods in self._ready.values():
            pods.discard(name)
        clique = pod["metadata"].get("labels", {}).get(labels.CLIQUE)
        if clique in self._ready and event["type"] != "DELETED" and _is_ready(pod):
            self._ready[clique].add(name)

    @property
    def complete(self) -> bool:
        return all(len(self._ready[name]) >= count for name, count in self._wanted.items())

    def __str__(self) -> str:
        missing = [
            f"{name} ({len(self._ready[name])} of {count} ready)"
            for name, count in self._wanted.items()
            if len(self._ready[name]) < count
        ]
        return f"waiting for {', '.join(missing)}" if missing else "all are ready"


def _is_ready(pod: dict[str, Any]) -> bool:
    """Whether the pod is ready; a terminating pod does not count as ready."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions: Iterable[dict[str, Any]] = pod.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


async def wait(arguments_: WaitArguments, context: PodContext, log: Log) -> None:
    """Returns once every clique has as many ready pods as the arguments ask for, all at the same time."""
    server = Server(context.host, context.port, arguments_.service_account)
    log_once = _without_repeats(log)
    await _wait_for_token(arguments_, log_once)
    failures = 0
    while True:
        count = ReadyCount(arguments_.cliques)
        try:
            stream = cast(AsyncGenerator[bytes, None], lines(server, _path(arguments_, context)))
            async with aclosing(stream):
                async for line in stream:
                    failures = 0
                    count.apply(line)
                    log_once(str(count))
                    if count.complete:
                        return
        except WatchInterrupted as problem:
            log_once(f"{problem}; trying again")
        await asyncio.sleep(_pause(failures, *timing.INIT_BACKOFF))
        failures += 1


async def _wait_for_token(arguments_: WaitArguments, log_once: Log) -> None:
    """Checks until the token is mounted. Kubernetes fills the Secret and the kubelet mounts it some time
    later, without a notification."""
    checks = 0
    files = [arguments_.service_account / name for name in ("token", "ca.crt")]
    while not all(file.exists() and file.stat().st_size for file in files):
        log_once(
            f"waiting for {arguments_.service_account}/token, which comes from the service account's Secret"
        )
        await asyncio.sleep(_pause(checks, *timing.INIT_TOKEN_BACKOFF))
        checks += 1


def _path(arguments_: WaitArguments, context: PodContext) -> str:
    cliques = "%2C".join(arguments_.cliques)
    gang, clique = (key.replace("/", "%2F") for key in (labels.GANG, labels.CLIQUE))
    lifetime = random.randint(*timing.WATCH_LIFETIME)  # noqa: S311 - spreads the reconnects of many pods
    return (
        f"/api/v1/namespaces/{context.namespace}/pods?watch=true&allowWatchBookmarks=true"
        f"&labelSelector={gang}%3D{context.gang}%2C{clique}%20in%20({cliques})&timeoutSeconds={lifetime}"
    )


def _pause(attempt: int, first: float, most: float) -> float:
    """Exponential back-off with jitter: a server that comes back gets the requests of a thousand pods."""
    span: float = min(most, first * 2.0 ** min(attempt, 16))
    return span * (0.5 + random.random() / 2)  # noqa: S311


def _without_repeats(log: Log) -> Log:
    """A log function that drops a line which equals the line before."""
    last = ""

    def log_once(text: str) -> None:
        nonlocal last
        if text != last:
            last = text
            log(text)

    return log_once
