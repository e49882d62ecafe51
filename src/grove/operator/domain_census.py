"""What is counted about fabric domains: how many there are in which state, and how long they take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from prometheus_client import Counter as Count
from prometheus_client import Gauge, Histogram

from grove.api import times
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.operator.caches import Caches
from grove.plan.domain_states import is_managed

_PHASES = ("pending", "forming", "ready", "terminating")
_WAITING = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)

domains = Gauge(
    "grove_fabric_domains", "Fabric domains that we manage, by vendor and phase", ["vendor", "phase"]
)
nodes = Gauge(
    "grove_fabric_nodes",
    "Nodes with accelerators, by vendor and whether they have a channel; counted in the automatic mode only",
    ["vendor", "channel"],
)
domain_ready_seconds = Histogram(
    "grove_fabric_domain_ready_seconds",
    "From a domain's creation to its nodes' first being ready",
    buckets=_WAITING,
)
domain_failures = Count(
    "grove_fabric_domain_failures_total", "Writes of fabric domains that failed", ["vendor", "intent"]
)


def phase_of(provider: FabricDomainProvider, domain: Domain) -> str:
    """Where a domain is in its life, in one word."""
    if domain.metadata.deletion_timestamp is not None:
        return "terminating"
    view = provider.observe(domain)
    if not view.total_nodes:
        return "pending"
    return "ready" if view.ready_nodes == view.total_nodes else "forming"


class Readiness:
    """How long domains take to be ready for the first time."""

    def __init__(self, provider: FabricDomainProvider, clock: Callable[[], float] = time.time) -> None:
        self._provider, self._clock = provider, clock
        self._begun: dict[str, float] = {}

    def follow(self, old: Domain | None, new: Domain | None) -> None:
        """A domain that came, changed or went; one that was there before us is known to the second."""
        if new is None:
            if old is not None:
                self._begun.pop(old.metadata.uid, None)
        elif not is_managed(new) or new.metadata.deletion_timestamp is not None:
            self._begun.pop(new.metadata.uid, None)
        elif phase_of(self._provider, new) == "ready":
            if (begun := self._begun.pop(new.metadata.uid, None)) is not None:
                domain_ready_seconds.observe(max(0.0, self._clock() - begun))
        elif old is None:
            created = new.metadata.creation_timestamp
            self._begun[new.metadata.uid] = times.parse(created).timestamp() if created else self._clock()


def count(caches: Caches) -> ExitStack:
    """Count on these caches until the stack is closed."""
    undo = ExitStack()
    for provider in caches.fabrics:
        cache, readiness = caches.domains[provider.vendor], Readiness(provider)
        for domain in cache:
            readiness.follow(None, domain)
        undo.callback(cache.subscribe(readiness.follow))
        for phase in _PHASES:
            gauge = domains.labels(provider.vendor, phase)
            gauge.set_function(partial(_in_phase, caches, provider, phase))
            undo.callback(gauge.set_function, lambda: 0)
        for having in (True, False):
            gauge = nodes.labels(provider.vendor, "yes" if having else "no")
            gauge.set_function(partial(_surveyed, caches, provider, having))
            undo.callback(gauge.set_function, lambda: 0)
    return undo


def _surveyed(caches: Caches, provider: FabricDomainProvider, having: bool) -> int:
    found = caches.channels.survey(provider.vendor)
    if found is None:
        return 0
    return found.accelerated - len(found.bare) if having else len(found.bare)


def _in_phase(caches: Caches, provider: FabricDomainProvider, phase: str) -> int:
    managed = filter(is_managed, caches.domains[provider.vendor])
    return Counter(phase_of(provider, domain) for domain in managed)[phase]
