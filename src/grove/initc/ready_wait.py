"""Wait until the cliques that a pod starts after are ready: watch their pods, count, and never give up.

A watch that begins without a version first tells what is there, then what changes, on every Kubernetes. Each
of them starts to count anew, so that nothing that was missed in between can be wrong. Pods are known by
their labels.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

from grove.api.naming import labels
from grove.initc.arguments import PodContext, WaitArguments
from grove.initc.watch_stream import Server, WatchInterrupted, lines

Log = Callable[[str], None]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LOOK_FOR_TOKEN = (0.05, 1.0)  # seconds between looks, growing
_LIFETIME = (300, 600)


class ReadyCount:
    """The ready pods of each clique, as the events of one watch tell them."""

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self._wanted = wanted
        self._ready: dict[str, set[str]] = {name: set() for name in wanted}

    def take(self, line: bytes) -> None:
        """Learn from one event. Raises Interrupted where the server says that it cannot go on."""
        event: dict[str, Any] = json.loads(line)
        found: dict[str, Any] = event["object"]
        if event["type"] == "ERROR":
            raise WatchInterrupted(f"the server ended the watch: {found.get('message', 'no reason given')}")
        if event["type"] == "BOOKMARK":
            return
        name = found["metadata"]["name"]
        for pods in self._ready.values():
            pods.discard(name)
        clique = found["metadata"].get("labels", {}).get(labels.CLIQUE)
        if clique in self._ready and event["type"] != "DELETED" and _is_ready(found):
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
    """A pod that is on its way out is nobody to build on."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions: Iterable[dict[str, Any]] = pod.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


async def wait(arguments_: WaitArguments, context: PodContext, log: Log) -> None:
    """Return once every clique has as many ready pods as it should."""
    server = Server(context.host, context.port, arguments_.service_account)
    log_once = _without_repeats(log)
    await _token(arguments_, log_once)
    failures = 0
    while True:
        count = ReadyCount(arguments_.cliques)
        try:
            stream = cast(AsyncGenerator[bytes, None], lines(server, _path(arguments_, context)))
            async with aclosing(stream):
                async for line in stream:
                    failures = 0
                    count.take(line)
                    log_once(str(count))
                    if count.complete:
                        return
        except WatchInterrupted as problem:
            log_once(f"{problem}; trying again")
        await asyncio.sleep(_pause(failures, _FIRST_PAUSE, _LONGEST_PAUSE))
        failures += 1


async def _token(arguments_: WaitArguments, log_once: Log) -> None:
    """Kubernetes fills the Secret in its own time, and the kubelet follows: nothing tells us when."""
    looks = 0
    files = [arguments_.service_account / name for name in ("token", "ca.crt")]
    while not all(file.exists() and file.stat().st_size for file in files):
        log_once(
            f"waiting for {arguments_.service_account}/token, which comes with the service account's Secret"
        )
        await asyncio.sleep(_pause(looks, *_LOOK_FOR_TOKEN))
        looks += 1


def _path(arguments_: WaitArguments, context: PodContext) -> str:
    cliques = "%2C".join(arguments_.cliques)
    gang, clique = (key.replace("/", "%2F") for key in (labels.GANG, labels.CLIQUE))
    lifetime = random.randint(*_LIFETIME)  # noqa: S311 - so that not all come back at once
    return (
        f"/api/v1/namespaces/{context.namespace}/pods?watch=true&allowWatchBookmarks=true"
        f"&labelSelector={gang}%3D{context.gang}%2C{clique}%20in%20({cliques})&timeoutSeconds={lifetime}"
    )


def _pause(attempt: int, first: float, most: float) -> float:
    """Growing, with jitter: when a server comes back, a thousand pods ask it."""
    span: float = min(most, first * 2.0 ** min(attempt, 16))
    return span * (0.5 + random.random() / 2)  # noqa: S311


def _without_repeats(log: Log) -> Log:
    """The same thing twice in a row is said once."""
    last = ""

    def log_once(text: str) -> None:
        nonlocal last
        if text != last:
            last = text
            log(text)

    return log_once
