"""What the user of a kubeconfig may see, where there is no sign-in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from grove.dashboard.rights import Rights
from grove.explanation.reading import CLIQUES, GANGS, GROUPS, SETS
from grove.kube.client.client import Client
from grove.kube.client.resource import NODES, PODS, Resource

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
WORKLOADS = (SETS, GROUPS, CLIQUES, GANGS, PODS)
"""What must be readable in a namespace for its workloads to be shown."""
_VERBS = ("list", "watch")


class _Status(Struct, frozen=True):
    allowed: bool = False


class _Review(Struct, frozen=True):
    status: _Status = _Status()


async def own_rights(client: Client, namespace: str) -> Rights:
    """The rights of the user of the client: in all namespaces, or else in this one. Raises KubeError."""
    everywhere, here, nodes = await asyncio.gather(
        _denied(client, WORKLOADS, ""), _denied(client, WORKLOADS, namespace), _denied(client, (NODES,), "")
    )
    # Without all pods it is not known what is used of a node.
    no_nodes = [*nodes, *(each for each in everywhere if PODS.label == each.partition(" ")[2])]
    unread = [_line(no_nodes, "in the whole cluster", "nodes are not shown")] if no_nodes else []
    if not everywhere:
        return Rights(None, not no_nodes, tuple(unread))
    if here:
        unread.insert(0, _line(here, f"in namespace {namespace}", "no workloads are shown"))
        return Rights(frozenset(), not no_nodes, tuple(unread))
    only = f"only workloads of namespace {namespace} are shown"
    unread.insert(0, _line(everywhere, "in the whole cluster", only))
    return Rights(frozenset({namespace}), not no_nodes, tuple(unread))


def _line(denied: Iterable[str], where: str, so: str) -> str:
    return f"no right to {', '.join(denied)} {where}: {so}: ask for the right"


async def _denied(client: Client, resources: Iterable[Resource], namespace: str) -> list[str]:
    """What the user may not do, such as `list pods`."""
    asked = [(verb, resource) for resource in resources for verb in _VERBS]
    allowed = await asyncio.gather(*(_may(client, verb, each, namespace) for verb, each in asked))
    return [f"{verb} {each.label}" for (verb, each), may in zip(asked, allowed, strict=True) if not may]


async def _may(client: Client, verb: str, resource: Resource, namespace: str) -> bool:
    attributes = {
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "namespace": namespace,
    }
    body = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    return (await client.create(REVIEWS, body, as_type=_Review)).status.allowed
