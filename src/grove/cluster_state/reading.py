"""Reads the state of a cluster from its API server, all kinds at once, with the rights of the user.

A kind that the user may not list in the whole cluster is listed in one namespace. What cannot be read at all
is recorded with the reason, so that the rest can be used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from grove import timing
from grove.cluster_state.model import ClusterState, KindState, ReadKind
from grove.kube.client.client import Client
from grove.kube.errors import ApiError, Forbidden, MethodNotAllowed, NotFound, Unauthorized


class _Version(Struct, frozen=True):
    git_version: str = msgspec.field(name="gitVersion", default="")


async def read_state(
    client: Client, kinds: Iterable[ReadKind], namespace: str, *, only: str = "", source: str = ""
) -> ClusterState:
    """The state of the cluster. `namespace`: where objects are read that may not be listed in the whole
    cluster. `only`: read the objects of no other namespace. Raises KubeError if the server cannot be reached,
    or does not accept the credentials."""
    taken_at = time.time()
    version, found = await asyncio.gather(
        _server_version(client),
        asyncio.gather(*(_read_kind(client, kind, namespace, only) for kind in kinds)),
    )
    return ClusterState({each.resource: each for each in found}, taken_at, version, source)


async def _read_kind(client: Client, kind: ReadKind, namespace: str, only: str) -> KindState:
    resource = kind.resource
    scopes = [""]
    if resource.namespaced:
        scopes = [only] if only else ["", namespace]
    problem = ""
    for scope in scopes:
        try:
            return await _list(client, kind, scope)
        except Forbidden:
            problem = problem or _forbidden(kind, scope)
        except (NotFound, MethodNotAllowed):
            return KindState(resource, served=False)
        except Unauthorized:
            raise
        except ApiError as error:
            return KindState(resource, problem=str(error))
    return KindState(resource, problem=problem)


def _forbidden(kind: ReadKind, namespace: str) -> str:
    where = f"in namespace {namespace}" if namespace else "in the whole cluster"
    return f"no right to list {kind.resource.label} {where} (403 Forbidden)"


async def _list(client: Client, kind: ReadKind, namespace: str) -> KindState:
    found = await client.list(
        kind.resource,
        as_type=Raw,
        namespace=namespace or None,
        labels=kind.labels,
        fields=kind.fields,
        page=timing.STATE_PAGE,
    )
    return KindState(kind.resource, tuple(found.items), namespace=namespace)


async def _server_version(client: Client) -> str:
    try:
        reply = await client.raw("GET", "/version")
        return msgspec.json.decode(reply.body, type=_Version).git_version
    except Unauthorized:
        raise
    except (ApiError, msgspec.MsgspecError):
        return ""
