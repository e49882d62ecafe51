"""Finds out when a peer reconciles: a small set gets its first pod, and is deleted again."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from bench.core.pod_timing import all_gone, watching
from bench.core.setup import CLIQUES, GANGS, SETS, new_namespace, template
from bench.peer.errors import PeerError
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.errors import AlreadyExists, ApiError, ServerError

NAMESPACE, NAME = "peer-probe", "scale-test"
PATIENCE = 60.0  # seconds until the first pod, and until everything is deleted again
PAUSE = 0.2  # seconds between two attempts: there is no event for a webhook that is served


async def wait_until_reconciling(client: Client) -> None:
    """Raises PeerError if the set is refused, gets no pod or is not deleted in time."""
    with suppress(AlreadyExists):
        await new_namespace(client, NAMESPACE)
    async with watching(client, NAMESPACE) as stopwatch:
        await _create(client)
        try:
            async with asyncio.timeout(PATIENCE):
                await stopwatch.created(1, time.monotonic())
        except TimeoutError:
            remedy = "see whether it watches PodCliqueSets of all namespaces"
            raise PeerError(f"no pod of a new PodCliqueSet within {PATIENCE:.0f} s: {remedy}") from None
        try:
            async with asyncio.timeout(PATIENCE):
                await client.delete(SETS, NAME, namespace=NAMESPACE, as_type=Object)
                await stopwatch.at_most(0, time.monotonic())
                for resource in (SETS, CLIQUES, GANGS):
                    await all_gone(client, resource, NAMESPACE)
        except TimeoutError:
            remedy = "see what its finalizers wait for"
            raise PeerError(f"a PodCliqueSet is not deleted within {PATIENCE:.0f} s: {remedy}") from None


async def _create(client: Client) -> None:
    """Create the set; while the peer's webhooks are not served, the API server fails with 500."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            await client.create(SETS, template(NAME, 1), namespace=NAMESPACE, as_type=Object)
        except ServerError as error:
            if time.monotonic() > deadline:
                raise PeerError(f"no PodCliqueSet can be created: {error}: serve the webhooks") from None
            await asyncio.sleep(PAUSE)
        except ApiError as error:
            raise PeerError(f"a PodCliqueSet is refused: {error}: see the CRDs in PEER_DIR") from None
        else:
            return
