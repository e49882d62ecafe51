"""Metrics of gangs that wait for nodes: autoscalers do not see gated pods, so what these need is published.

Names and labels are part of the interface: see docs/operator.md.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from prometheus_client import Gauge

from grove.plan.placement.assignment import GangName
from grove.plan.placement.demand import Demand, walk

waiting_gangs = Gauge(
    "grove_placement_waiting_gangs",
    "Gangs that wait for nodes, by the node label of the level that must hold each of them",
    ["level"],
)
unmet_requests = Gauge(
    "grove_placement_unmet_requests",
    "What the pods of these gangs without a node request together, CPU in thousandths",
    ["level", "resource"],
)


class _Unmet(Struct, frozen=True):
    demand: Demand
    level: str
    requests: Counter[str]


class UnmetDemand:
    """Publishes what gangs that wait for nodes need."""

    def __init__(self) -> None:
        self._by_gang: dict[GangName, _Unmet] = {}

    def set(self, gang: GangName, demand: Demand | None) -> None:
        """A gang waits with this demand; None: it does not wait."""
        known = self._by_gang.get(gang)
        if (known.demand if known is not None else None) is demand:
            return
        if known is not None:
            del self._by_gang[gang]
            _count(known, -1)
        if demand is not None:
            self._by_gang[gang] = _unmet(demand)
            _count(self._by_gang[gang], 1)


def _unmet(demand: Demand) -> _Unmet:
    requests: Counter[str] = Counter()
    for unit in walk(demand.unit):
        for pod in unit.pods:
            if not pod.node:
                requests.update(pod.shape.requests)
    level = next((unit.required for unit in walk(demand.unit) if unit.required), "")
    return _Unmet(demand, level, requests)


def _count(unmet: _Unmet, sign: int) -> None:
    waiting_gangs.labels(unmet.level).inc(sign)
    for resource, amount in unmet.requests.items():
        unmet_requests.labels(unmet.level, resource).inc(sign * amount)
