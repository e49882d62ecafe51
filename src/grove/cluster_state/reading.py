"""Reads the state of a cluster from its API server, all kinds at once, with the rights of the user.

A kind that the user may not list in the whole cluster is listed in one namespace. What cannot be read at all
is recorded with the reason, so that the rest can be used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from grove import timing
from grove.cluster_state.model import ClusterState, KindState, ReadKind, object_name
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
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
        server_version(client),
        asyncio.gather(*(_read_kind(client, kind, namespace, only) for kind in kinds)),
    )
    return ClusterState({each.resource: each for each in found}, taken_at, version, source)


def merged_state(states: Sequence[ClusterState]) -> ClusterState:
    """One state of those that were read in different namespaces. A kind that could be read in one of them
    counts as read."""
    kinds: dict[Resource, KindState] = {}
    for found in chain.from_iterable(state.kinds.values() for state in states):
        known = kinds.get(found.resource)
        kinds[found.resource] = found if known is None else _merged(known, found)
    return replace(states[0], kinds=kinds)


def _merged(known: KindState, more: KindState) -> KindState:
    if not (known.listed and more.listed):
        return known if known.listed else more
    return replace(
        known,
        items=known.items + more.items,
        namespace=f"{known.namespace}, {more.namespace}",
        undecodable=known.undecodable + more.undecodable,
    )


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
            return KindState(resource, problem=str(error), namespace=only)
    return KindState(resource, problem=problem, namespace=only)


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
    undecodable = tuple(map(object_name, found.undecodable))  # those that nest too deeply
    return KindState(kind.resource, tuple(found.items), namespace=namespace, undecodable=undecodable)


async def server_version(client: Client) -> str:
    """The version of the API server, such as `v1.37.1`; empty if it does not say. Raises KubeError if it
    cannot be reached, or does not accept the credentials."""
    try:
        reply = await client.raw("GET", "/version")
        return msgspec.json.decode(reply.body, type=_Version).git_version
    except Unauthorized:
        raise
    except (ApiError, msgspec.MsgspecError):
        return ""
