"""Reads the object that a user has named and what belongs to it, with a few small requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.model import ObjectRef
from grove.explanation.operator_lease import Leases, read_leases
from grove.explanation.subtree import (
    Objects,
    Subtree,
    UnknownObject,
    find,
    kind_and_name,
    set_name_of,
    subtree,
)
from grove.explanation.suggestions import unknown_name
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, Resource
from grove.kube.client.undecodable import Undecodable
from grove.kube.errors import ApiError, ConfigError, NotFound
from grove.operator.caches.owners import owning_graph
from grove.operator.caches.resources import resource_of

if TYPE_CHECKING:
    from grove.kube.client.label_selector import Labels

T = TypeVar("T")
GRAPHS, SETS, GROUPS, CLIQUES, GANGS = (
    resource_of(each.KIND)
    for each in (DynamoGraphDeployment, PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang)
)
RESOURCES = {each.kind: each for each in (GRAPHS, SETS, GROUPS, CLIQUES, GANGS, PODS)}
"""By kind, the resources of all objects that a user can name, from wide to narrow."""
_INSTALL = "install the CRDs with grove crds | kubectl apply --server-side -f -"


class MissingObject(UnknownObject):
    """No object of the name could be read; `problems`: the kinds that may have one."""

    def __init__(self, message: str, problems: Mapping[Resource, ApiError]) -> None:
        super().__init__(message)
        self.problems = problems


class SubtreeReader:
    """Reads objects of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self.namespace = client, namespace
        self.skipped: dict[Resource, list[Undecodable]] = {}
        """Objects that exist and could not be decoded."""

    async def read(self, written: str) -> Subtree:
        """The object that a user has named, and what belongs to it. Raises MissingObject, or ApiError if a
        part cannot be read."""
        objects, about = await self.find(written)
        set_name = set_name_of(objects, about)
        if set_name is not None:
            objects = await self._members(objects, set_name)
        return subtree(objects, about)

    async def find(self, written: str) -> tuple[Objects, ObjectRef]:
        """The object that a user has named, among all objects of that name, and the sets of a graph. Raises
        MissingObject."""
        named, problems = await self._named(*kind_and_name(written))
        try:
            about = find(named, written, self.namespace)
        except UnknownObject as unknown:
            raise MissingObject(str(unknown), problems) from None
        if about.kind == DynamoGraphDeployment.KIND.name:
            named = Objects(named.graphs, await self._list(SETS, PodCliqueSet))
        return named, about

    async def leases(self, name: str) -> Leases:
        """The Leases of operators, as far as known."""
        return await read_leases(self._client, name)

    async def _named(self, kind: str, name: str) -> tuple[Objects, dict[Resource, ApiError]]:
        """The objects of this name, of one kind or of all kinds."""
        problems: dict[Resource, ApiError] = {}

        async def read(resource: Resource, as_type: type[T]) -> tuple[T, ...]:
            if kind not in ("", resource.kind) or not name:
                return ()
            try:
                found = await self._client.get(resource, name, as_type=as_type, namespace=self.namespace)
            except ApiError as error:
                problems[resource] = error
                return ()
            return (found,)

        objects = Objects(
            *await asyncio.gather(
                read(GRAPHS, DynamoGraphDeployment),
                read(SETS, PodCliqueSet),
                read(GROUPS, PodCliqueScalingGroup),
                read(CLIQUES, PodClique),
                read(GANGS, PodGang),
                read(PODS, Pod),
            )
        )
        return objects, problems

    async def _members(self, named: Objects, set_name: str) -> Objects:
        """A set with all objects that belong to it, and the graph that it belongs to."""
        chosen = labels.managed(set_name)
        sets, *parts = await asyncio.gather(
            self._set(named, set_name),
            self._list(GROUPS, PodCliqueScalingGroup, chosen),
            self._list(CLIQUES, PodClique, chosen),
            self._list(GANGS, PodGang, chosen),
            self._list(PODS, Pod, chosen),
        )
        return Objects(named.graphs or await self._graph(sets), sets, *parts)  # type: ignore[arg-type]

    async def _graph(self, sets: Iterable[PodCliqueSet]) -> tuple[DynamoGraphDeployment, ...]:
        """The graph that a set was created for, unless this user may not read it."""
        for key in filter(None, (owning_graph(each.metadata) for each in sets)):
            with suppress(ApiError):
                found = self._client.get(
                    GRAPHS, key.name, as_type=DynamoGraphDeployment, namespace=key.namespace
                )
                return (await found,)
        return ()

    async def _set(self, named: Objects, name: str) -> tuple[PodCliqueSet, ...]:
        if known := tuple(each for each in named.sets if each.metadata.name == name):
            return known
        try:
            return (await self._client.get(SETS, name, as_type=PodCliqueSet, namespace=self.namespace),)
        except NotFound:  # deleted, and its parts are terminating
            return ()

    async def _list(self, resource: Resource, as_type: type[T], chosen: Labels = "") -> tuple[T, ...]:
        found = await self._client.list(resource, as_type=as_type, namespace=self.namespace, labels=chosen)
        if found.undecodable:
            self.skipped.setdefault(resource, []).extend(found.undecodable)
        return tuple(found.items)


async def explain_missing(client: Client, written: str, namespace: str, missing: MissingObject) -> Exception:
    """The error for an object that was not found: that a kind is not served, that a right is missing, or that
    there is no such object, with the name of one that may be meant."""
    problems = missing.problems
    unserved = {resource for resource, problem in problems.items() if _is_unserved(problem)}
    for resource in (SETS, *(unserved if len(problems) == 1 else ())):
        if resource in unserved:
            return ConfigError(f"the cluster does not serve {resource.kind}s: {_INSTALL}")
    if (problem := _first_problem(problems)) is not None:
        return problem
    kind, name = kind_and_name(written)
    kinds = [each for each in RESOURCES.values() if kind in ("", each.kind)]
    found = await asyncio.gather(*(_names(client, each, namespace) for each in kinds))
    wide = [each for each in kinds if each in (GRAPHS, SETS)] or kinds
    everywhere = await asyncio.gather(*(_names(client, each, None, name) for each in wide))
    known = chain.from_iterable((*found, *everywhere))
    return UnknownObject(unknown_name(kind or "workload", name, namespace, known))


def _is_unserved(problem: ApiError) -> bool:
    """Whether the server does not know the resource; if only the object is missing, it names the object."""
    details = problem.status.details
    return isinstance(problem, NotFound) and (details is None or not details.name)


def _first_problem(problems: Mapping[Resource, ApiError]) -> ApiError | None:
    """Why the kind could not be read that the object is likely of: the one that was named, or sets. Without
    Dynamo, for example, many users have no right to read graphs."""
    found = {each: problem for each, problem in problems.items() if not isinstance(problem, NotFound)}
    return found.get(SETS) or (next(iter(found.values()), None) if len(problems) == 1 else None)


async def _names(
    client: Client, resource: Resource, namespace: str | None, name: str = ""
) -> Iterable[tuple[str, str]]:
    """Namespaces and names of objects; none if they may not be listed, as they only serve as suggestions."""
    chosen = labels.MANAGED_BY_OPERATOR if resource == PODS else ""
    fields = f"metadata.name={name}" if name else ""
    try:
        listed = await client.list(
            resource, as_type=Object, namespace=namespace, labels=chosen, fields=fields
        )
    except ApiError:
        return ()
    return [(each.metadata.namespace, each.metadata.name) for each in listed.items]
