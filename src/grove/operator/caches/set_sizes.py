"""How many pods each set requests, updated as cliques and groups are created, deleted and scaled.

Each event costs the same, however large the set is: of the cliques or groups of one template only their
number and the sum of their counts are kept (`grove.api.types.pod_counts`). So the limit on pods also holds
where no admission webhook is called: for `/scale`, for autoscalers, and in a cluster without our webhooks.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from grove.api.configuration.types import PODS_PER_SET
from grove.api.naming import labels
from grove.api.types import pod_counts
from grove.api.types.pod_counts import NONE, Live
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.cache.cache import Cache
from grove.operator.caches.predicates import spec_changed
from grove.operator.keys import SetKey, replica_of, set_of


class Excess(Struct, frozen=True, gc=False):
    """A set requests more pods than the limit allows."""

    requested: int
    limit: int


class _SetCounts:
    """The cliques and groups of one set that exist, by the name of their template."""

    __slots__ = ("cliques", "groups", "over", "requested")

    def __init__(self) -> None:
        self.cliques: dict[str, Live] = {}
        self.groups: dict[str, Live] = {}
        self.requested = 0
        self.over = False


class SetSizes:
    """Counts the pods that sets request, from the caches of sets, cliques and groups."""

    def __init__(
        self,
        sets: Cache[PodCliqueSet],
        cliques: Cache[PodClique],
        groups: Cache[PodCliqueScalingGroup],
        limit: int = PODS_PER_SET,
    ) -> None:
        self.limit = limit
        self._sets = sets
        self._counts: dict[SetKey, _SetCounts] = {}
        self._listeners: list[Callable[[SetKey], None]] = []
        sets.subscribe(self._on_set)
        cliques.subscribe(self._on_clique)
        groups.subscribe(self._on_group)

    def on_limit_crossed(self, listener: Callable[[SetKey], None]) -> None:
        """Call `listener` with each set that begins or ceases to request more pods than the limit."""
        self._listeners.append(listener)

    def excess(self, workload: PodCliqueSet) -> Excess | None:
        """What a set requests, if that is more than the limit; else None."""
        requested = self.requested(workload)
        return Excess(requested, self.limit) if requested > self.limit else None

    def requested(self, workload: PodCliqueSet) -> int:
        """How many pods a set requests, as of the latest watch event."""
        counts = self._counts.get(SetKey(workload.metadata.namespace, workload.metadata.name))
        return (
            counts.requested
            if counts is not None
            else pod_counts.of_set(workload.spec.replicas, workload.spec.template)
        )

    def _on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        if not spec_changed(old, new):
            return
        found = new or old
        assert found is not None
        self._compare(SetKey(found.metadata.namespace, found.metadata.name))

    def _on_clique(self, old: PodClique | None, new: PodClique | None) -> None:
        for sign, found in ((-1, old), (1, new)):
            if found is not None and (key := set_of(found.metadata)) is not None:
                name = found.metadata.labels.get(labels.CLIQUE_TEMPLATE, "")
                live = Live(sign, sign * pod_counts.of_clique(found.spec.replicas))
                _add(self._counts.setdefault(key, _SetCounts()).cliques, name, live)
        self._note(old, new)

    def _on_group(self, old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> None:
        for sign, found in ((-1, old), (1, new)):
            if found is not None and (key := set_of(found.metadata)) is not None:
                spec = found.spec
                live = Live(sign, sign * pod_counts.of_group(spec.replicas, spec.min_available))
                _add(self._counts.setdefault(key, _SetCounts()).groups, _template_of(found), live)
        self._note(old, new)

    def _note(
        self, old: PodClique | PodCliqueScalingGroup | None, new: PodClique | PodCliqueScalingGroup | None
    ) -> None:
        if old is not None and new is not None and _counted(old) == _counted(new):
            return
        keys = dict.fromkeys(set_of(found.metadata) for found in (old, new) if found is not None)
        for key in filter(None, keys):
            self._compare(key)

    def _compare(self, key: SetKey) -> None:
        """Call the listeners if a set has crossed the limit, in either direction."""
        workload, counts = self._sets.get(key.namespace, key.name), self._counts.setdefault(key, _SetCounts())
        counts.requested = 0
        if workload is not None:
            spec = workload.spec
            counts.requested = pod_counts.of_set(spec.replicas, spec.template, counts.cliques, counts.groups)
        over = counts.requested > self.limit
        if counts.over != over:
            counts.over = over
            for listener in self._listeners:
                listener(key)
        if workload is None and not counts.cliques and not counts.groups:
            del self._counts[key]


def _counted(found: PodClique | PodCliqueScalingGroup) -> tuple[object, ...]:
    """What the counts of a set depend on; labels say of which set and template the object is."""
    return found.spec.replicas, found.spec.min_available, found.metadata.labels


def _add(counts: dict[str, Live], name: str, live: Live) -> None:
    if (total := counts.get(name, NONE) + live) == NONE:
        counts.pop(name, None)
    else:
        counts[name] = total


def _template_of(group: PodCliqueScalingGroup) -> str:
    """The name of a group in the template of its set: its own, without set and replica."""
    key = replica_of(group.metadata)
    return group.metadata.name.removeprefix(f"{key.set_name}-{key.replica}-") if key else ""
