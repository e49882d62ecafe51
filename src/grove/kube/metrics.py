"""The metrics of the client, the caches, the queue and the executor, in one place so that names stay uniform.

Metrics are process-wide, as Prometheus scrapes a process. Label values come from closed sets: verbs,
resources and codes, never object names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class RequestMetrics(Collector):
    """Requests, counted in plain dicts and converted when scraped.

    `count` runs for every request: the library's counters and histograms cost 4 us, this costs less than 1.
    """

    bounds = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._spans: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def count(self, verb: str, resource: str, code: str, seconds: float | None = None) -> None:
        """One request that was answered, or lost; `seconds` if the time to its reply is meaningful."""
        key = (verb, resource, code)
        self._counts[key] = self._counts.get(key, 0) + 1
        if seconds is None:
            return
        spans = self._spans.get(verb)
        if spans is None:
            spans = self._spans[verb] = [0] * (len(self.bounds) + 1)
        spans[bisect_left(self.bounds, seconds)] += 1
        self._seconds[verb] = self._seconds.get(verb, 0.0) + seconds

    def collect(self) -> Iterator[Metric]:
        """The metrics of all requests, for the registry."""
        total = CounterMetricFamily(
            "grove_kube_requests_total",
            "Requests to the API server, by verb, resource and status code",
            labels=["verb", "resource", "code"],
        )
        for key, count in self._counts.items():
            total.add_metric(key, count)
        yield total
        spans = HistogramMetricFamily(
            "grove_kube_request_seconds", "Time from sending a request to its whole reply", labels=["verb"]
        )
        for verb, counts in self._spans.items():
            bounds = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
            spans.add_metric([verb], list(zip(bounds, accumulate(counts), strict=True)), self._seconds[verb])
        yield spans


requests = RequestMetrics()
REGISTRY.register(requests)
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
