"""Shared by `grove get` and `grove tree`: reading the objects of sets, printing lines."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from rich.console import Console

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaim
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.cli.printable import escaped_json
from grove.cli.views.pod_reason import ReasonedPod
from grove.cli.views.set_view import SetObjects, SetView, set_views
from grove.cli.views.text_layout import TextLine, coloured
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS, RESOURCE_CLAIMS, Resource
from grove.kube.errors import Forbidden, KubeError, NotFound
from grove.operator.caches.resources import resource_of
from grove.plan.desired.resource_sharing import has_shared_claims

T = TypeVar("T")


class SetNotFound(KubeError):
    """The requested set does not exist, or the request is ambiguous."""


def read_set_views(
    name: str | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    all_namespaces: bool,
) -> tuple[SetView, ...]:
    """Read the requested sets. Raises KubeError with a message that names the remedy."""
    connection, place = load_config(kubeconfig, context, name, namespace, all_namespaces)
    return set_views(asyncio.run(read(connection, place, name)), time.time())


def load_config(
    kubeconfig: Path | None,
    context: str | None,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
) -> tuple[Config, str | None]:
    """The connection, and the namespace to read; None: all. Raises KubeError, also for options that exclude
    each other."""
    if all_namespaces and namespace:
        raise SetNotFound(f"--namespace {namespace} and --all-namespaces exclude each other: use one of them")
    if all_namespaces and name:
        raise SetNotFound(f"{name}: a name needs a namespace: replace --all-namespaces with --namespace")
    connection = config.load(kubeconfig, context)
    return connection, None if all_namespaces else namespace or connection.namespace


async def read(connection: Config, namespace: str | None, name: str | None) -> SetObjects:
    """Read the sets of one or all namespaces, or one set, with the objects that belong to them."""
    chosen = labels.managed(name) if name else labels.MANAGED_BY_OPERATOR
    async with Client(connection) as client:

        async def listed(resource: Resource, as_type: type[T]) -> tuple[T, ...]:
            return tuple(
                (await client.list(resource, as_type=as_type, namespace=namespace, labels=chosen)).items
            )

        parts = asyncio.gather(
            listed(resource_of(PodCliqueScalingGroup.KIND), PodCliqueScalingGroup),
            listed(resource_of(PodClique.KIND), PodClique),
            listed(resource_of(PodGang.KIND), PodGang),
            listed(PODS, ReasonedPod),
        )
        # If the sets cannot be read, that is the error to report; those of the parts are its consequence.
        parts.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            sets = await _sets(client, connection, namespace, name)
            groups, cliques, gangs, pods = await parts
        finally:
            parts.cancel()
        claims: tuple[ResourceClaim, ...] = ()
        if any(has_shared_claims(found.spec.template) for found in sets):
            with suppress(NotFound, Forbidden):  # without access to claims the rest is shown
                claims = await listed(RESOURCE_CLAIMS, ResourceClaim)
    return SetObjects(sets, groups, cliques, gangs, pods, claims)


async def _sets(
    client: Client, connection: Config, namespace: str | None, name: str | None
) -> tuple[PodCliqueSet, ...]:
    resource = resource_of(PodCliqueSet.KIND)
    try:
        fields = f"metadata.name={name}" if name else ""
        found = await client.list(resource, as_type=PodCliqueSet, namespace=namespace, fields=fields)
    except NotFound:
        raise SetNotFound(
            f"{connection.server} does not serve PodCliqueSets: "
            "install the CRDs with grove crds | kubectl apply --server-side -f -"
        ) from None
    if name and not found.items:
        raise SetNotFound(
            f"no PodCliqueSet {name} in namespace {namespace}: grove get -A lists all there are"
        )
    return tuple(found.items)


def show_json(views: Iterable[SetView], **more: object) -> None:
    """Print sets, and what else a command has found."""
    encoded = msgspec.json.format(msgspec.json.encode({"items": tuple(views), **more}), indent=2)
    sys.stdout.write(escaped_json(encoded.decode()) + "\n")


def output_width(console: Console) -> int | None:
    """The width of the terminal; None (unlimited) if the output is not a terminal."""
    return console.width if console.is_terminal else None


def show(lines: Iterable[TextLine], console: Console) -> None:
    """Print lines, coloured on a terminal, plain elsewhere; never wrapped."""
    for line in lines:
        if console.is_terminal:
            console.print(coloured(line), no_wrap=True, overflow="crop", crop=False)
        else:
            sys.stdout.write(line.text + "\n")
