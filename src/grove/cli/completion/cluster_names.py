"""Names for completion, from the cluster and the kubeconfig. Slow or failing servers have none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from grove import timing
from grove.kube.client.resource import NAMESPACES, Resource


class Cluster(NamedTuple):
    """The options of a command line that select a cluster and a namespace."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None


class ClusterNames:
    """The names of objects in a cluster, sorted."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def sets(self) -> list[str]:
        """The PodCliqueSets of the namespace."""
        return self._read(_grove("podcliquesets", "PodCliqueSet"))

    def of_kind(self, word: str) -> list[str]:
        """The objects of the namespace whose kind users write with this word, such as `gang`."""
        from grove.explanation.reading import RESOURCES  # imports our types, which take most of the time
        from grove.explanation.subtree import KINDS

        kind = KINDS.get(word.lower())
        return self._read(RESOURCES[kind]) if kind is not None else []

    def topologies(self) -> list[str]:
        """The ClusterTopologies."""
        return self._read(_grove("clustertopologies", "ClusterTopology", namespaced=False))

    def namespaces(self) -> list[str]:
        """All namespaces."""
        return self._read(NAMESPACES)

    def contexts(self) -> list[str]:
        """The contexts of the kubeconfig."""
        from grove.kube.auth import kubeconfig

        named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
        home = Path("~/.kube/config").expanduser()
        files = [self._cluster.kubeconfig] if self._cluster.kubeconfig else named or [home]
        found = kubeconfig.read(files)
        return sorted(found.contexts) if found is not None else []

    def _read(self, resource: Resource) -> list[str]:
        import asyncio

        from grove.kube.auth import config
        from grove.kube.client.client import Client
        from grove.kube.client.decoding import Object

        async def names() -> list[str]:
            connection = config.load(self._cluster.kubeconfig, self._cluster.context)
            place = (self._cluster.namespace or connection.namespace) if resource.namespaced else None
            async with Client(connection) as client, asyncio.timeout(timing.COMPLETION_TIMEOUT):
                found = await client.list(resource, as_type=Object, namespace=place)
            return sorted(each.metadata.name for each in found.items)

        return asyncio.run(names())


def _grove(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    """A resource of ours, without the import of its type."""
    return Resource("grove.io", "v1alpha1", plural, kind, namespaced)
