"""Finds the workload that a command acts on: a set, or the set of a DynamoGraphDeployment."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import NoReturn, TypeVar

from msgspec import Struct

from grove.api.formats import durations
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.subtree import Objects, UnknownObject, find, kind_and_name, set_name_of
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.errors import ConfigError, Forbidden, NotFound
from grove.operator.caches.owners import owning_graph
from grove.operator.caches.resources import resource_of

T = TypeVar("T")
SETS = resource_of(PodCliqueSet.KIND)
GRAPHS = resource_of(DynamoGraphDeployment.KIND)
INSTALL_CRDS = "install the CRDs with grove crds --apply"


class Workload(Struct, frozen=True):
    """A set, and the graph that it was created for."""

    workload: PodCliqueSet
    graph: DynamoGraphDeployment | None = None


async def find_workload(client: Client, written: str, namespace: str) -> Workload:
    """The set that a user has named, by its own name or that of its graph. Raises KubeError."""
    kind, name = kind_and_name(written)
    if kind not in ("", SETS.kind, GRAPHS.kind):
        raise UnknownObject(f"{written}: name a PodCliqueSet or a DynamoGraphDeployment, not a {kind}")
    workload, graph = await asyncio.gather(
        named(client, SETS, PodCliqueSet, name, namespace, asked=kind in ("", SETS.kind)),
        named(client, GRAPHS, DynamoGraphDeployment, name, namespace, asked=kind in ("", GRAPHS.kind)),
    )
    if graph is not None:
        return await _of_graph(client, graph, workload)
    if workload is None:
        await raise_unknown(client, written, namespace)
    key = owning_graph(workload.metadata)
    if key is None:
        return Workload(workload)
    return Workload(workload, await named(client, GRAPHS, DynamoGraphDeployment, key.name, key.namespace))


async def _of_graph(client: Client, graph: DynamoGraphDeployment, same_name: PodCliqueSet | None) -> Workload:
    """The set of a graph, which usually has its name."""
    meta = graph.metadata
    if same_name is not None:
        key = owning_graph(same_name.metadata)
        return Workload(same_name, graph if key is not None and key.name == meta.name else None)
    sets = await client.list(SETS, as_type=PodCliqueSet, namespace=meta.namespace)
    objects = Objects((graph,), tuple(sets.items))
    owned = set_name_of(objects, find(objects, f"{GRAPHS.kind}/{meta.name}", meta.namespace))
    for workload in sets.items:
        if workload.metadata.name == owned:
            return Workload(workload, graph)
    raise UnknownObject(
        f"DynamoGraphDeployment {meta.name} has no PodCliqueSet: grove explain {meta.name} says why"
    )


async def named(
    client: Client, resource: Resource, as_type: type[T], name: str, namespace: str, *, asked: bool = True
) -> T | None:
    """An object, if there is one. Of graphs, which most clusters do not have, a missing right is no error."""
    if not asked:
        return None
    try:
        return await client.get(resource, name, as_type=as_type, namespace=namespace)
    except NotFound:
        return None
    except Forbidden:
        if resource == GRAPHS:
            return None
        raise


async def raise_unknown(client: Client, written: str, namespace: str) -> NoReturn:
    """Raise for a workload that does not exist: with a similar name, or that the CRDs are missing."""
    try:
        sets = await client.list(SETS, as_type=PodCliqueSet, namespace=namespace)
    except NotFound:
        raise UnknownObject(f"the cluster does not serve PodCliqueSets: {INSTALL_CRDS}") from None
    except Forbidden:
        sets = None
    find(Objects((), tuple(sets.items) if sets is not None else ()), written, namespace)
    raise UnknownObject(f"{written} was created in namespace {namespace} a moment ago: try again")


def parsed_timeout(text: str) -> float | None:
    """Seconds of an option such as 5m; None for 0: no limit. Raises ConfigError."""
    try:
        wanted = durations.parse(text)
    except ValueError as problem:
        raise ConfigError(f"--timeout {text}: {problem}") from None
    if wanted < timedelta():
        raise ConfigError(f"--timeout {text}: must not be negative: write 0 for no limit")
    return wanted.total_seconds() or None
