"""How many GPUs a pod gets by claims of its own, and which summaries depend on that.

Claims that several pods share are not counted: they belong to no pod, and often to no single gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.common import ResourceSharing, SharingScope
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import Cache
from grove.operator.caches.registry import Caches
from grove.operator.keys import set_of
from grove.plan.desired.pod_claims import claims_in
from grove.plan.desired.shared_claims import claim_spec, decoded_spec
from grove.plan.snapshot import ClaimObjects
from grove.topology.placement.needs.devices import DeviceCatalog, claimed

if TYPE_CHECKING:
    from grove.operator.caches.cluster_pods import ClusterPod
    from grove.operator.observers.cluster.free_slots import AcceleratorNames

Reader = tuple[str, ...]
"""A summary: namespace and name of a gang, or the name of a node."""
_Source = tuple[str, str, str]
"""What a summary has read: kind, namespace and name."""


class ClaimedGpus:
    """Counts GPUs of claims. `catalog`: the device classes, if they are known. `outdated` is called with each
    reader of a number that may have changed."""

    def __init__(
        self,
        caches: Caches,
        accelerators: AcceleratorNames,
        catalog: Callable[[], DeviceCatalog | None],
        outdated: Callable[[Reader], None],
    ) -> None:
        self._caches, self._accelerators = caches, accelerators
        self._catalog, self._outdated = catalog, outdated
        self._readers: dict[_Source, set[Reader]] = {}
        self._read: dict[Reader, set[_Source]] = {}
        for cache in (caches.sets, caches.cliques, caches.pods, caches.claim_templates):
            _subscribe(cache, self._on_change)

    def forget(self, reader: Reader) -> None:
        """The summary does not exist any more, or is computed again."""
        for source in self._read.pop(reader, ()):
            readers = self._readers[source]
            readers.discard(reader)
            if not readers:
                del self._readers[source]

    def reading(self, reader: Reader) -> Callable[[ClusterPod], int]:
        """Begin to compute a summary; counts the GPUs of the claims of a pod that is not bound."""
        self.forget(reader)
        return lambda pod: self._of_nominated(pod, reader)

    def _of_nominated(self, pod: ClusterPod, reader: Reader) -> int:
        """The GPUs of the claims of a pod that is not bound: nothing is allocated to them yet."""
        found = self._get(self._caches.pods, pod.namespace, pod.name, reader)
        name = found.metadata.labels.get(labels.CLIQUE, "") if found is not None else ""
        clique = self._get(self._caches.cliques, pod.namespace, name, reader) if name else None
        return self.of_clique(clique, reader) if clique is not None else 0

    def of_clique(self, clique: PodClique, reader: Reader) -> int:
        """The GPUs of the claims of each pod of a clique."""
        try:
            found = claimed(self._specs(clique, reader), self._catalog() or DeviceCatalog()).amounts
        except Exception:  # whatever a tenant wrote: the operator reports it
            return 0
        return sum(found[name] for name in self._accelerators(found))

    def on_catalog(self) -> None:
        """All numbers may have changed."""
        for reader in tuple(self._read):
            self._outdated(reader)

    def _specs(self, clique: PodClique, reader: Reader) -> Iterator[dict[str, Any]]:
        """The specs of the claims that each pod has for itself, as far as their templates exist."""
        namespace = clique.metadata.namespace
        for each in claims_in(bytes(clique.spec.pod_spec)).devices:
            if name := each.resource_claim_template_name:
                template = self._get(self._caches.claim_templates, namespace, name, reader)
                if template is not None:
                    yield decoded_spec(bytes(template.spec.spec))
        key = set_of(clique.metadata)
        workload = self._get(self._caches.sets, *key, reader) if key is not None else None
        if workload is None:
            return
        for own in _own_claims(workload, clique):
            place = own.namespace or namespace
            template = self._get(self._caches.claim_templates, place, own.name, reader)
            known = {(place, own.name): template} if template is not None else {}
            if (spec := claim_spec(workload, own, ClaimObjects(templates=known))) is not None:
                yield spec

    def _get(self, cache: Cache[Any], namespace: str, name: str, reader: Reader) -> Any:
        source = (cache.resource.label, namespace, name)
        self._readers.setdefault(source, set()).add(reader)
        self._read.setdefault(reader, set()).add(source)
        return cache.get(namespace, name)

    def _on_change(self, source: _Source) -> None:
        for reader in tuple(self._readers.get(source, ())):
            self._outdated(reader)


def _subscribe(cache: Cache[Any], listener: Callable[[_Source], None]) -> None:
    def on_change(old: Any, new: Any) -> None:
        meta = (new or old).metadata
        if old is None or new is None or _specs_differ(old.metadata, new.metadata):
            listener((cache.resource.label, meta.namespace, meta.name))

    cache.subscribe(on_change)


def _specs_differ(old: ObjectMeta, new: ObjectMeta) -> bool:
    """Whether specs may differ: statuses change all the time. Kinds without generations do not have any."""
    return old.generation != new.generation or not new.generation


def _own_claims(workload: PodCliqueSet, clique: PodClique) -> Iterator[ResourceSharing]:
    """The claims of which each pod of a clique gets one, by `resourceSharing`."""
    name = clique.metadata.labels.get(labels.CLIQUE_TEMPLATE, "")
    for template in workload.spec.template.cliques:
        if template.name == name:
            yield from (each for each in template.resource_sharing if each.scope is SharingScope.PER_REPLICA)
