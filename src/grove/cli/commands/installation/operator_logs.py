"""Reads the logs of the operator's pods."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from grove import timing
from grove.api.meta import ObjectMeta
from grove.cli.commands.installation.bundle import Missing
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS, query
from grove.kube.errors import ApiError, BadRequest, Unauthorized
from grove.webhooks.registrations import SERVICE

_SELECTOR = {"app.kubernetes.io/name": SERVICE}


class _ContainerStatus(Struct, frozen=True, rename="camel"):
    restart_count: int = 0


class _Status(Struct, frozen=True, rename="camel"):
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _Pod(Struct, frozen=True):
    metadata: ObjectMeta
    status: _Status = _Status()


async def operator_logs(client: Client, homes: list[str]) -> tuple[dict[str, bytes], list[Missing]]:
    """The end of each log, by file name; also of the container before, where one was restarted."""
    try:
        pods = await _pods(client, homes)
    except Unauthorized:
        raise
    except ApiError as error:
        return {}, [Missing("operator logs", str(error))]
    if not pods:
        return {}, [Missing("operator logs", "there are no pods of the chart")]
    found: dict[str, bytes] = {}
    missing: list[Missing] = []
    reads = [_read(client, pod, previous) for pod in pods for previous in _runs(pod)]
    for part in await asyncio.gather(*reads):
        if isinstance(part, Missing):
            missing.append(part)
        else:
            found |= part
    return found, missing


async def _pods(client: Client, homes: list[str]) -> list[_Pod]:
    """The pods of the chart, in the whole cluster, or where the operator is expected."""
    for home in (None, *dict.fromkeys(homes)):
        try:
            found = await client.list(PODS, as_type=_Pod, namespace=home, labels=_SELECTOR)
        except ApiError as error:
            problem = error
        else:
            if found.items:
                return found.items[: timing.BUNDLE_LOGS]
            if home is None:
                return []
    raise problem


def _runs(pod: _Pod) -> tuple[bool, ...]:
    restarted = any(each.restart_count for each in pod.status.container_statuses)
    return (False, True) if restarted else (False,)


async def _read(client: Client, pod: _Pod, previous: bool) -> dict[str, bytes] | Missing:
    meta = pod.metadata
    file = f"logs/{meta.namespace}/{meta.name}{'.previous' if previous else ''}.log"
    wanted = {
        "tailLines": timing.BUNDLE_LOG_LINES,
        "limitBytes": timing.BUNDLE_LOG_BYTES,
        "previous": previous,
    }
    path = PODS.path(meta.namespace, meta.name, "log") + query(wanted)
    try:
        return {file: (await client.raw("GET", path)).body}
    except BadRequest as error:  # the container has not started
        return Missing(file, error.status.message)
    except ApiError as error:
        return Missing(file, str(error))
