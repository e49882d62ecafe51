"""What `grove get` and `grove tree` have in common: which cluster, what is read from it, how it is shown."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.cluster import ResourceClaim
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.sets import PodCliqueSet
from grove.cli.overview import Found, SetView, overview
from grove.cli.plights import LookedAtPod
from grove.cli.rows import Line
from grove.kube import config
from grove.kube.client import Client
from grove.kube.config import Config
from grove.kube.errors import Forbidden, KubeError, NotFound
from grove.kube.resource import PODS, RESOURCE_CLAIMS, Resource
from grove.operator.caches import OURS, resource_of
from grove.plan.sharing import shares

T = TypeVar("T")

KubeconfigOption = Annotated[Path | None, Parameter(help="The way to the cluster; without it KUBECONFIG.")]
ContextOption = Annotated[
    str | None, Parameter(help="A context of the kubeconfig other than its current one.")
]
NamespaceOption = Annotated[str | None, Parameter(alias="-n", help="Where to look; else the context's.")]
AllOption = Annotated[bool, Parameter(alias="-A", negative=(), help="Look in all namespaces.")]
OutputOption = Annotated[Literal["text", "json"], Parameter(alias="-o", help="For people, or for programs.")]


class NotThere(KubeError):
    """What was asked for does not exist."""


def look(
    name: str | None, kubeconfig: Path | None, context: str | None, namespace: str | None, everywhere: bool
) -> tuple[SetView, ...]:
    """The sets that were asked for. Raises KubeError with what a person can do about it."""
    if everywhere and namespace:
        raise NotThere(f"--namespace {namespace} and --all-namespaces contradict each other: choose one")
    if everywhere and name:
        raise NotThere(f"{name} has to be looked for in one namespace: say which with --namespace")
    connection = config.load(kubeconfig, context)
    place = None if everywhere else namespace or connection.namespace
    return overview(asyncio.run(read(connection, place, name)))


async def read(connection: Config, namespace: str | None, name: str | None) -> Found:
    """All that belongs to the sets of a namespace, or of all; or to one set."""
    chosen = labels.managed(name) if name else OURS
    async with Client(connection) as client:

        async def listed(resource: Resource, as_type: type[T]) -> tuple[T, ...]:
            return tuple(
                (await client.list(resource, as_type=as_type, namespace=namespace, labels=chosen)).items
            )

        sets = await _sets(client, connection, namespace, name)
        groups, cliques, gangs, pods = await asyncio.gather(
            listed(resource_of(PodCliqueScalingGroup.KIND), PodCliqueScalingGroup),
            listed(resource_of(PodClique.KIND), PodClique),
            listed(resource_of(PodGang.KIND), PodGang),
            listed(PODS, LookedAtPod),
        )
        claims: tuple[ResourceClaim, ...] = ()
        if any(shares(found.spec.template) for found in sets):
            with suppress(NotFound, Forbidden):  # where there are no claims to be seen, the rest is shown
                claims = await listed(RESOURCE_CLAIMS, ResourceClaim)
    return Found(sets, groups, cliques, gangs, pods, claims)


async def _sets(
    client: Client, connection: Config, namespace: str | None, name: str | None
) -> tuple[PodCliqueSet, ...]:
    resource = resource_of(PodCliqueSet.KIND)
    try:
        fields = f"metadata.name={name}" if name else ""
        found = await client.list(resource, as_type=PodCliqueSet, namespace=namespace, fields=fields)
    except NotFound:
        raise NotThere(
            f"{connection.server} does not know PodCliqueSets: "
            "install our kinds with grove crds | kubectl apply --server-side -f -"
        ) from None
    if name and not found.items:
        raise NotThere(f"no PodCliqueSet {name} in namespace {namespace}: grove get -A lists all there are")
    return tuple(found.items)


def show_json(views: Iterable[SetView]) -> None:
    encoded = msgspec.json.format(msgspec.json.encode({"items": tuple(views)}), indent=2)
    sys.stdout.write(encoded.decode() + "\n")


def room(console: Console) -> int | None:
    """How wide a line may be; where there is no terminal, as wide as it takes."""
    return console.width if console.is_terminal else None


def show(lines: Iterable[Line], console: Console) -> None:
    """Coloured on a terminal, plain elsewhere; never wrapped."""
    for line in lines:
        if console.is_terminal:
            console.print(coloured(line), no_wrap=True, overflow="crop", crop=False)
        else:
            sys.stdout.write(line.text + "\n")


def coloured(line: Line) -> Text:
    return Text.assemble((line.guides, "dim"), (line.name, "bold"), "  ", (line.facts, line.mood))
