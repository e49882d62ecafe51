"""Reads what the pods of a fabric domain, and the labels of their nodes, say about it."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.types.pod import Pod
from grove.fabrics.domain_pods import NO_PODS, DomainPods, HeldNode
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.operator.caches.fabric_nodes import FabricNodes
from grove.plan.members.pod_state import has_started, scheduled_since, terminating


def domain_pods(
    nodes: FabricNodes, provider: FabricDomainProvider, found: Domain, claiming: Iterable[Pod]
) -> DomainPods:
    """What those that claim from the template of a domain say about it."""
    pods = [pod for pod in claiming if not terminating(pod)]
    if not pods:
        return NO_PODS
    created = found.metadata.creation_timestamp or ""
    former = {pod.metadata.name for pod in pods if (pod.metadata.creation_timestamp or created) < created}
    bound = sorted((pod for pod in pods if pod.spec.node_name), key=lambda pod: pod.spec.node_name)
    names = frozenset(pod.spec.node_name for pod in bound)
    unlisted = names.difference(provider.observe(found).nodes)
    partitions = {nodes.partition_of_node(provider.vendor, name) for name in unlisted}
    started = (pod for pod in bound if has_started(pod) and pod.metadata.name not in former)
    held = (pod for pod in bound if _is_held(nodes, provider, found, pod.spec.node_name))
    return DomainPods(
        names,
        frozenset(pod.spec.node_name for pod in started),
        tuple(sorted(former)),
        frozenset(filter(None, partitions)),
        tuple(HeldNode(pod.spec.node_name, scheduled_since(pod)) for pod in held),
    )


def _is_held(nodes: FabricNodes, provider: FabricDomainProvider, found: Domain, name: str) -> bool:
    """Whether the label of a node puts it into another domain."""
    return nodes.domain_of_node(provider.vendor, name) not in ("", found.metadata.uid)
