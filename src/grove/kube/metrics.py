"""The metrics of the client, the caches, the queue and the executor, in one place so that names stay uniform.

Metrics are process-wide, as Prometheus scrapes a process. Label values come from closed sets: verbs,
resources and codes, never object names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from grove.kube.request_counts import RequestCounts, requests


class RequestMetrics(Collector):
    """The metrics of all requests, converted when scraped."""

    def __init__(self, counts: RequestCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """For the registry."""
        total = CounterMetricFamily(
            "grove_kube_requests_total",
            "Requests to the API server, by verb, resource and status code",
            labels=["verb", "resource", "code"],
        )
        for key, count in self._counts.counts.items():
            total.add_metric(key, count)
        yield total
        spans = HistogramMetricFamily(
            "grove_kube_request_seconds", "Time from sending a request to its whole reply", labels=["verb"]
        )
        bounds = [*(str(float(bound)) for bound in self._counts.bounds), "+Inf"]
        for verb, counts in self._counts.spans.items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            spans.add_metric([verb], buckets, self._counts.seconds[verb])
        yield spans


REGISTRY.register(RequestMetrics(requests))
retries_total = Counter(
    "grove_kube_retries_total",
    "Requests that were retried because a repetition is safe",
    ["verb", "resource", "reason"],
)
watch_events_total = Counter("grove_kube_watch_events_total", "Watch events received", ["resource"])
watch_restarts_total = Counter(
    "grove_kube_watch_restarts_total", "Watches that were started again, by reason", ["resource", "reason"]
)
undecodable_total = Counter(
    "grove_kube_undecodable_total", "Objects skipped because they do not fit their type", ["resource"]
)
handler_failures_total = Counter(
    "grove_kube_handler_failures_total",
    "Index functions and event handlers that failed on an object",
    ["resource"],
)
watch_failures_total = Counter(
    "grove_kube_watch_failures_total",
    "Watches that failed although the API server answered: a bug, or an object that is too large",
    ["resource"],
)
cache_objects = Gauge("grove_kube_cache_objects", "Objects in the cache", ["resource"])
queue_depth = Gauge("grove_kube_queue_depth", "Keys that are ready and wait for a worker", ["queue"])
queue_oldest_seconds = Gauge(
    "grove_kube_queue_oldest_seconds", "How long the key that waits longest has been ready", ["queue"]
)
work_seconds = Histogram(
    "grove_kube_work_seconds",
    "Duration of the work on one key",
    ["queue"],
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60),
)
work_retries_total = Counter(
    "grove_kube_work_retries_total", "Keys that were requeued because the work on them failed", ["queue"]
)
work_unexpected_errors_total = Counter(
    "grove_kube_work_unexpected_errors_total", "Work that failed with an error that is a bug", ["queue"]
)
intents_total = Counter("grove_kube_intents_total", "Intents, by kind and final state", ["intent", "state"])
in_flight_limit = Gauge(
    "grove_kube_in_flight_limit", "How many writes may be in flight, as the server's answers allow"
)

events_dropped_total = Counter("grove_kube_events_dropped_total", "Events that could not be published")


class QueueMetrics:
    """The metrics of one queue; depth and age are computed when scraped and cost nothing in between."""

    def __init__(self, queue: str, depth: Callable[[], float], oldest: Callable[[], float]) -> None:
        queue_depth.labels(queue).set_function(depth)
        queue_oldest_seconds.labels(queue).set_function(oldest)
        self.seconds = work_seconds.labels(queue)
        self.retries = work_retries_total.labels(queue)
        self.unexpected_errors = work_unexpected_errors_total.labels(queue)


@cache
def _intent_counter(intent: str, state: str) -> Counter:
    return intents_total.labels(intent.lower(), state)


def count_intent(intent: str, state: str) -> None:
    """Counts one intent in its final state."""
    _intent_counter(intent, state).inc()
