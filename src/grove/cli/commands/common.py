"""Shared by commands on sets: reading the objects of sets, printing lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from rich.console import Console

from grove import timing
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaim
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.cli.views.text_layout import TextLine, coloured
from grove.explanation.suggestions import unknown_name
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, RESOURCE_CLAIMS, Resource
from grove.kube.errors import ApiError, Forbidden, KubeError, NotFound
from grove.operator.caches.resources import resource_of
from grove.plan.desired.resource_sharing import has_shared_claims
from grove.views.pod_reason import ReasonedPod
from grove.views.set_view import SetObjects

T = TypeVar("T")
SETS = resource_of(PodCliqueSet.KIND)


class SetNotFound(KubeError):
    """The requested set does not exist, or the cluster does not serve sets."""


async def read(
    connection: Config,
    namespace: str | None,
    name: str | None,
    selector: str | None = None,
    *,
    pods: bool = True,
    early: Callable[[SetObjects], None] | None = None,
) -> SetObjects:
    """Read the sets of one or all namespaces, or one set, with the objects that belong to them.

    `early` is called with the sets alone, as soon as they are known."""
    chosen = labels.managed(name) if name else labels.MANAGED_BY_OPERATOR
    async with Client(connection) as client:

        async def listed(resource: Resource, as_type: type[T]) -> tuple[T, ...]:
            found = await client.list(
                resource, as_type=as_type, namespace=namespace, labels=chosen, page=timing.STATE_PAGE
            )
            return tuple(found.items)

        parts = asyncio.gather(
            listed(resource_of(PodCliqueScalingGroup.KIND), PodCliqueScalingGroup),
            listed(resource_of(PodClique.KIND), PodClique),
            listed(resource_of(PodGang.KIND), PodGang),
            *((listed(PODS, ReasonedPod),) if pods else ()),
        )
        # If the sets cannot be read, that is the error to report; those of the parts are its consequence.
        parts.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            sets = await _sets(client, connection, namespace, name, selector)
            if early is not None:
                early(SetObjects(sets))
            groups, cliques, gangs, *rest = await parts
        finally:
            parts.cancel()
        claims: tuple[ResourceClaim, ...] = ()
        if any(has_shared_claims(found.spec.template) for found in sets):
            with suppress(NotFound, Forbidden):  # without access to claims the rest is shown
                claims = await listed(RESOURCE_CLAIMS, ResourceClaim)
    return SetObjects(sets, groups, cliques, gangs, rest[0] if rest else None, claims)


async def _sets(
    client: Client, connection: Config, namespace: str | None, name: str | None, selector: str | None
) -> tuple[PodCliqueSet, ...]:
    try:
        found = await client.list(
            SETS,
            as_type=PodCliqueSet,
            namespace=namespace,
            labels=selector or "",
            fields=f"metadata.name={name}" if name else "",
        )
    except NotFound:
        raise SetNotFound(
            f"{connection.server} does not serve PodCliqueSets: "
            "install the CRDs with grove crds | kubectl apply --server-side -f -"
        ) from None
    if name and not found.items:
        known = await set_names(client, namespace)
        raise SetNotFound(unknown_name(SETS.kind, name, namespace or "", known))
    return tuple(found.items)


async def set_names(client: Client, namespace: str | None) -> list[tuple[str, str]]:
    """Namespace and name of all sets that this user may list; at least those of the namespace are tried."""
    for place in (None, namespace):
        with suppress(ApiError):
            found = await client.list(SETS, as_type=Object, namespace=place)
            return [(each.metadata.namespace, each.metadata.name) for each in found.items]
    return []


def report_no_sets(selector: str | None, *, all_namespaces: bool) -> None:
    """Say on stderr that there is nothing to show."""
    which = f"PodCliqueSets with labels {selector}" if selector else "PodCliqueSets"
    elsewhere = "this namespace: grove get -A lists those of all namespaces"
    sys.stderr.write(f"no {which} in {'any namespace' if all_namespaces else elsewhere}\n")


def show(lines: Iterable[TextLine], console: Console) -> None:
    """Print lines, coloured on a terminal, plain elsewhere; never wrapped."""
    for line in lines:
        if console.is_terminal:
            console.print(coloured(line), no_wrap=True, overflow="crop", crop=False)
        else:
            sys.stdout.write(line.text + "\n")
