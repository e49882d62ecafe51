"""The pods that the scheduler may be about to bind to the nodes of nominated gangs.

Thousands of pods may be undecided, and hundreds of gangs nominated. Pods of one template share one profile,
and where the profiles that could go to the nodes of a gang are the same, so are the pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from grove.operator.caches.cluster_pods import ClusterPod


class PodsInFlight:
    """The undecided pods at one moment. `could_go`: whether a pod could be bound to a node, which depends on
    its profile only."""

    def __init__(self, undecided: Iterable[ClusterPod], could_go: Callable[[ClusterPod, str], bool]) -> None:
        self._could_go = could_go
        self._by_profile: dict[int, list[ClusterPod]] = {}
        for pod in undecided:
            self._by_profile.setdefault(id(pod.profile), []).append(pod)
        self._hosts: dict[tuple[int, str], bool] = {}
        self._uids: dict[tuple[int, ...], frozenset[str]] = {}

    def to(self, hosts: Collection[str], own: Collection[str]) -> frozenset[str]:
        """The UIDs of the pods that could go to one of these nodes, without those of the gang itself."""
        profiles = tuple(
            each for each in self._by_profile if any(self._goes(each, host) for host in set(hosts))
        )
        found = self._uids.get(profiles)
        if found is None:
            found = frozenset(pod.uid for each in profiles for pod in self._by_profile[each])
            self._uids[profiles] = found
        return found if found.isdisjoint(own) else found.difference(own)

    def _goes(self, profile: int, host: str) -> bool:
        known = self._hosts.get((profile, host))
        if known is None:
            known = self._hosts[profile, host] = self._could_go(self._by_profile[profile][0], host)
        return known
