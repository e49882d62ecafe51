"""Requested pods of sets, counted from watch events: the same as a sum over all objects."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from grove.api.naming import labels
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import Caches
from grove.operator.caches.set_sizes import Excess
from grove.operator.keys import SetKey
from tests.plan.builders import a_set

KEY = SetKey("ns", "wl")
HUGE = 2**31 - 1


class Events:
    """Applies watch events to caches."""

    def __init__(self, limit: int = 50) -> None:
        self.caches = Caches(pods_per_set=limit)
        self.crossed: list[SetKey] = []
        self.caches.sizes.on_limit_crossed(self.crossed.append)
        self._version = 0

    def _meta(self, name: str, **object_labels: str) -> dict[str, Any]:
        self._version += 1
        return {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "generation": self._version,
            "resourceVersion": str(self._version),
            "labels": {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", **object_labels},
        }

    def set(self, replicas: int, **meta: Any) -> None:
        body = a_set("a:2 b:3", "x:4/1=b", replicas=replicas)
        body["metadata"] = self._meta("wl") | meta
        found = msgspec.json.decode(msgspec.json.encode(body), type=PodCliqueSet)
        self.caches.sets.apply_event("MODIFIED", found)

    def clique(self, name: str, template: str, count: int, kind: str = "MODIFIED") -> None:
        meta = self._meta(name, **{labels.CLIQUE_TEMPLATE: template, labels.SET_REPLICA: "0"})
        body = {"metadata": meta, "spec": {"podSpec": Raw(b"{}"), "replicas": count}}
        self.caches.cliques.apply_event(kind, msgspec.convert(body, PodClique))

    def group(self, count: int, kind: str = "MODIFIED") -> None:
        meta = self._meta("wl-0-x", **{labels.SET_REPLICA: "0"})
        body = {"metadata": meta, "spec": {"cliqueNames": ["b"], "replicas": count, "minAvailable": 1}}
        self.caches.groups.apply_event(kind, msgspec.convert(body, PodCliqueScalingGroup))

    @property
    def excess(self) -> Excess | None:
        found = self.caches.sets.get("ns", "wl")
        assert found is not None
        return self.caches.sizes.excess(found)


def test_set_replicas_cross_limit_and_back():
    events = Events()
    events.set(3)  # 3 x (2 + 4 x 3) = 42
    assert (events.excess, events.crossed) == (None, [])
    events.set(HUGE)
    assert events.excess == Excess(HUGE * 14, 50)
    events.set(4)
    events.set(2)
    assert (events.excess, events.crossed) == (None, [KEY, KEY])


def test_clique_and_group_replicas_cross_limit():
    events = Events()
    events.set(3)
    events.clique("wl-0-a", "a", 2)
    events.group(4)
    assert events.crossed == []
    events.clique("wl-0-a", "a", HUGE)
    assert events.excess == Excess(40 + HUGE, 50)
    events.clique("wl-0-a", "a", 1)
    events.group(HUGE)
    assert events.excess == Excess(1 + 4 + 24 + 3 * HUGE, 50)
    events.group(0)
    assert events.excess is None
    assert events.crossed == [KEY] * 4


def test_recreated_set_is_counted_again():
    events = Events()
    events.set(3, uid="first", generation=1)
    events.set(HUGE, uid="second", generation=1)
    assert events.crossed == [KEY]


def test_deleted_set_is_forgotten():
    events = Events()
    events.clique("wl-0-a", "a", HUGE)
    events.set(1)
    assert events.crossed == [KEY]
    found = events.caches.sets.get("ns", "wl")
    assert found is not None
    events.caches.sets.apply_event("DELETED", found)
    events.clique("wl-0-a", "a", HUGE, "DELETED")
    assert events.caches.sizes._counts == {}


CHANGES = st.lists(
    st.tuples(st.sampled_from(["wl-0-a", "wl-1-a", "wl-0-x-0-b"]), st.none() | st.integers(0, 9)), max_size=12
)


@given(CHANGES)
def test_requested_pods_equal_sum_after_any_events(changes):
    events = Events(limit=0)
    events.set(2)
    live: dict[str, int] = {}
    for name, count in changes:
        template = name[-1]
        if count is None:
            if name in live:
                events.clique(name, template, live.pop(name), "DELETED")
        else:
            live[name] = count
            events.clique(name, template, count)
    in_a = [live.get(f"wl-{index}-a", 2) for index in (0, 1)]
    in_b = [live.get("wl-0-x-0-b", 3)] + [3] * 7
    assert events.excess == Excess(sum(max(1, count) for count in in_a + in_b), 0)


def test_repaired_label_of_a_clique_is_counted_again() -> None:
    events = Events(limit=13)
    events.set(1)  # a: 2, b: 4 x 3
    events.clique("wl-0-a", "", 2)
    assert events.caches.sizes.excess(workload(events)) is not None, "a is counted as missing, too"
    events.clique("wl-0-a", "a", 2)
    assert events.caches.sizes.requested(workload(events)) == 14
    events.clique("wl-0-a", "a", 1)
    assert events.caches.sizes.excess(workload(events)) is None


def workload(events: Events) -> PodCliqueSet:
    found = events.caches.sets.get("ns", "wl")
    assert found is not None
    return found
