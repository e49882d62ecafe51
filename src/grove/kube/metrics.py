"""What the runtime counts about itself, in one place so that names never drift apart.

Metrics are process-wide (that is what Prometheus scrapes); label values come from closed sets:
verbs, resources and codes, never object names.
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
    """Requests, counted in plain dicts and handed over when scraped.

    Once for every request: the library's own counters and histograms cost 4 us of it, this less than 1.
    """

    bounds = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._spans: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def count(self, verb: str, resource: str, code: str, seconds: float | None = None) -> None:
        """One request that was answered, or lost; `seconds` where the time to its reply says something."""
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
        """What Prometheus asks for."""
        total = CounterMetricFamily(
            "grove_kube_requests_total",
            "Requests to the API server, by what they asked and how they ended",
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
    "grove_kube_retries_total", "Requests sent again because that was safe", ["verb", "resource", "reason"]
)
watch_events_total = Counter("grove_kube_watch_events_total", "Watch events taken in", ["resource"])
watch_restarts_total = Counter(
    "grove_kube_watch_restarts_total", "Watches begun anew, and why", ["resource", "reason"]
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
    "grove_kube_watch_failures_total", "Watches that failed for a reason of the operator's own", ["resource"]
)
cache_objects = Gauge("grove_kube_cache_objects", "Objects held in the cache", ["resource"])
queue_depth = Gauge("grove_kube_queue_depth", "Keys that are ready and wait for a worker", ["queue"])
queue_oldest_seconds = Gauge(
    "grove_kube_queue_oldest_seconds", "How long the key that waits longest has been ready", ["queue"]
)
work_seconds = Histogram(
    "grove_kube_work_seconds",
    "Time of one pass over one key",
    ["queue"],
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60),
)
work_retries_total = Counter(
    "grove_kube_work_retries_total", "Passes that failed and are made again", ["queue"]
)
intents_total = Counter(
    "grove_kube_intents_total", "Intents, by what was asked and how it ended", ["intent", "state"]
)
in_flight_limit = Gauge(
    "grove_kube_in_flight_limit", "How many writes may be in flight, as the server's answers allow"
)

events_dropped_total = Counter("grove_kube_events_dropped_total", "Events that could not be told")


class QueueMetrics:
    """What one queue counts; depth and age are asked for when scraped and cost nothing in between."""

    def __init__(self, queue: str, depth: Callable[[], float], oldest: Callable[[], float]) -> None:
        queue_depth.labels(queue).set_function(depth)
        queue_oldest_seconds.labels(queue).set_function(oldest)
        self.seconds = work_seconds.labels(queue)
        self.retries = work_retries_total.labels(queue)


@cache
def _intent_counter(intent: str, state: str) -> Counter:
    return intents_total.labels(intent.lower(), state)


def count_intent(intent: str, state: str) -> None:
    """One intent that came to its end."""
    _intent_counter(intent, state).inc()
