"""Metrics of fabric domains: how many are in which phase, their time to ready, and failed writes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from prometheus_client import Counter as Count
from prometheus_client import Gauge, Histogram

from grove import timing
from grove.api.formats import timestamps
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.operator.caches.registry import BY_CLAIM, Caches
from grove.plan.fabric.state import is_managed
from grove.plan.members.pod_state import terminating

_PHASES = ("pending", "forming", "ready", "terminating")

domains = Gauge(
    "grove_fabric_domains",
    "Fabric domains that the operator manages, by vendor and phase",
    ["vendor", "phase"],
)
nodes = Gauge(
    "grove_fabric_nodes",
    "Nodes with accelerators, by vendor and whether they have a channel; counted in the automatic mode only",
    ["vendor", "channel"],
)
domain_ready_seconds = Histogram(
    "grove_fabric_domain_ready_seconds",
    "Time from the creation of a fabric domain until all of its nodes are ready for the first time",
    buckets=timing.STARTUP_BUCKETS,
)
domain_degradations = Count(
    "grove_fabric_domain_degradations_total",
    "How often nodes of fabric domains that the operator manages were ready and are not any more",
    ["vendor"],
)
domain_failures = Count(
    "grove_fabric_domain_failures_total", "Writes of fabric domains that failed", ["vendor", "intent"]
)


def phase_of(provider: FabricDomainProvider, domain: Domain) -> str:
    """The phase of a domain, as the label `phase` shows it."""
    if domain.metadata.deletion_timestamp is not None:
        return "terminating"
    view = provider.observe(domain)
    if not view.total_nodes:
        return "pending"
    return "ready" if view.ready_nodes == view.total_nodes else "forming"


class DomainReadyTimer:
    """Measures how long domains take to be ready for the first time."""

    def __init__(self, provider: FabricDomainProvider, clock: Callable[[], float] = time.time) -> None:
        self._provider, self._clock = provider, clock
        self._started_at: dict[str, float] = {}

    def on_domain(self, old: Domain | None, new: Domain | None) -> None:
        """A domain was added, updated or deleted. Its creation time is known to the second."""
        if new is None:
            if old is not None:
                self._started_at.pop(old.metadata.uid, None)
        elif not is_managed(new) or new.metadata.deletion_timestamp is not None:
            self._started_at.pop(new.metadata.uid, None)
        elif phase_of(self._provider, new) == "ready":
            if (started_at := self._started_at.pop(new.metadata.uid, None)) is not None:
                domain_ready_seconds.observe(max(0.0, self._clock() - started_at))
        elif old is None:
            created = new.metadata.creation_timestamp
            self._started_at[new.metadata.uid] = (
                timestamps.parse(created).timestamp() if created else self._clock()
            )


def count_degradation(
    caches: Caches, provider: FabricDomainProvider, old: Domain | None, new: Domain | None
) -> None:
    """Count a change of a domain by which a node of it is no longer ready, or no longer listed although
    it has a pod of the domain."""
    if old is None or new is None or not is_managed(new) or old.metadata.uid != new.metadata.uid:
        return
    if new.metadata.deletion_timestamp is not None:
        return
    before, after = provider.observe(old), provider.observe(new)
    were_ready = set(before.nodes).difference(before.not_ready)
    unlisted = were_ready.difference(after.nodes)
    if unlisted:
        claim = (new.metadata.namespace, provider.template_name(new))
        pods = (pod for pod in caches.pods.by_index(BY_CLAIM, claim) if not terminating(pod))
        unlisted = unlisted.intersection(pod.spec.node_name for pod in pods)
    if unlisted or not were_ready.isdisjoint(after.not_ready):
        domain_degradations.labels(provider.vendor).inc()


def track(caches: Caches) -> ExitStack:
    """Publish metrics from these caches until the stack is closed."""
    undo = ExitStack()
    for provider in caches.fabrics:
        cache, readiness = caches.domains[provider.vendor], DomainReadyTimer(provider)
        for domain in cache:
            readiness.on_domain(None, domain)
        undo.callback(cache.subscribe(readiness.on_domain))
        undo.callback(cache.subscribe(partial(count_degradation, caches, provider)))
        for phase in _PHASES:
            gauge = domains.labels(provider.vendor, phase)
            gauge.set_function(partial(_domain_count, caches, provider, phase))
            undo.callback(gauge.set_function, lambda: 0)
        for with_channel in (True, False):
            gauge = nodes.labels(provider.vendor, "yes" if with_channel else "no")
            gauge.set_function(partial(_node_count, caches, provider, with_channel))
            undo.callback(gauge.set_function, lambda: 0)
    return undo


def _node_count(caches: Caches, provider: FabricDomainProvider, with_channel: bool) -> int:
    found = caches.fabric_nodes.channel_coverage(provider.vendor)
    if found is None:
        return 0
    return found.accelerated - len(found.without_channel) if with_channel else len(found.without_channel)


def _domain_count(caches: Caches, provider: FabricDomainProvider, phase: str) -> int:
    managed = filter(is_managed, caches.domains[provider.vendor])
    return Counter(phase_of(provider, domain) for domain in managed)[phase]
