"""How many pods each set asks for, kept up to date as cliques and groups come, go and are scaled.

Each event costs the same, however large the set is: of the parts made from one template only their number and
the sum of their counts are kept (`grove.api.types.pod_counts`). So the limit holds where admission is not asked: for
`/scale`, for autoscalers, and in a cluster without our webhooks.
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
from grove.operator.keys import SetKey, replica_of, set_of
from grove.operator.watches.object_changes import edition


class Excess(Struct, frozen=True, gc=False):
    """A set asks for more pods than it may have."""

    asked: int
    limit: int


class _Parts:
    """What exists of one set, by name of the template."""

    __slots__ = ("asked", "cliques", "groups", "over")

    def __init__(self) -> None:
        self.cliques: dict[str, Live] = {}
        self.groups: dict[str, Live] = {}
        self.asked = 0
        self.over = False


class Sizes:
    """Follows the caches of sets, cliques and groups."""

    def __init__(
        self,
        sets: Cache[PodCliqueSet],
        cliques: Cache[PodClique],
        groups: Cache[PodCliqueScalingGroup],
        limit: int = PODS_PER_SET,
    ) -> None:
        self.limit = limit
        self._sets = sets
        self._known: dict[SetKey, _Parts] = {}
        self._listeners: list[Callable[[SetKey], None]] = []
        sets.subscribe(self._on_set)
        cliques.subscribe(self._on_clique)
        groups.subscribe(self._on_group)

    def on_crossing(self, listener: Callable[[SetKey], None]) -> None:
        """Call `listener` with each set that comes to ask for more than the limit, or no longer does."""
        self._listeners.append(listener)

    def excess(self, workload: PodCliqueSet) -> Excess | None:
        """What a set asks for, if that is more than it may."""
        asked = self.asked(workload)
        return Excess(asked, self.limit) if asked > self.limit else None

    def asked(self, workload: PodCliqueSet) -> int:
        """How many pods a set asks for, as of the latest event."""
        known = self._known.get(SetKey(workload.metadata.namespace, workload.metadata.name))
        return (
            known.asked
            if known is not None
            else pod_counts.of_set(workload.spec.replicas, workload.spec.template)
        )

    def _on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        if old is not None and new is not None and edition(old) == edition(new):
            return
        found = new or old
        assert found is not None
        self._compare(SetKey(found.metadata.namespace, found.metadata.name))

    def _on_clique(self, old: PodClique | None, new: PodClique | None) -> None:
        for sign, found in ((-1, old), (1, new)):
            if found is not None and (key := set_of(found.metadata)) is not None:
                name = found.metadata.labels.get(labels.CLIQUE_TEMPLATE, "")
                live = Live(sign, sign * pod_counts.of_clique(found.spec.replicas))
                _add(self._known.setdefault(key, _Parts()).cliques, name, live)
        self._note(old, new)

    def _on_group(self, old: PodCliqueScalingGroup | None, new: PodCliqueScalingGroup | None) -> None:
        for sign, found in ((-1, old), (1, new)):
            if found is not None and (key := set_of(found.metadata)) is not None:
                spec = found.spec
                live = Live(sign, sign * pod_counts.of_group(spec.replicas, spec.min_available))
                _add(self._known.setdefault(key, _Parts()).groups, _template_of(found), live)
        self._note(old, new)

    def _note(
        self, old: PodClique | PodCliqueScalingGroup | None, new: PodClique | PodCliqueScalingGroup | None
    ) -> None:
        if old is not None and new is not None and old.spec.replicas == new.spec.replicas:
            return
        found = new or old
        if found is not None and (key := set_of(found.metadata)) is not None:
            self._compare(key)

    def _compare(self, key: SetKey) -> None:
        """Tell the listeners if a set has crossed the limit, in either direction."""
        workload, known = self._sets.get(key.namespace, key.name), self._known.setdefault(key, _Parts())
        known.asked = 0
        if workload is not None:
            spec = workload.spec
            known.asked = pod_counts.of_set(spec.replicas, spec.template, known.cliques, known.groups)
        over = known.asked > self.limit
        if known.over != over:
            known.over = over
            for listener in self._listeners:
                listener(key)
        if workload is None and not known.cliques and not known.groups:
            del self._known[key]


def _add(known: dict[str, Live], name: str, live: Live) -> None:
    if (total := known.get(name, NONE) + live) == NONE:
        known.pop(name, None)
    else:
        known[name] = total


def _template_of(group: PodCliqueScalingGroup) -> str:
    """The name of a group in its set: its own, without those of the set and the replica."""
    place = replica_of(group.metadata)
    return group.metadata.name.removeprefix(f"{place.set_name}-{place.replica}-") if place else ""
