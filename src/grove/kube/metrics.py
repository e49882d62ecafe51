"""What the runtime counts about itself, in one place so that names never drift apart.

Metrics are process-wide (that is what Prometheus scrapes); label values come from closed sets:
verbs, resources and codes, never object names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prometheus_client import Counter, Gauge, Histogram

requests_total = Counter(
    "grove_kube_requests_total",
    "Requests to the API server, by what they asked and how they ended",
    ["verb", "resource", "code"],
)
request_seconds = Histogram(
    "grove_kube_request_seconds",
    "Time from sending a request to its whole reply",
    ["verb"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
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
cache_objects = Gauge("grove_kube_cache_objects", "Objects held in the cache", ["resource"])


@cache
def _request_counter(verb: str, resource: str, code: str) -> Counter:
    return requests_total.labels(verb, resource, code)


@cache
def _request_timer(verb: str) -> Histogram:
    return request_seconds.labels(verb)


def count_request(verb: str, resource: str, code: str, seconds: float) -> None:
    """One finished request; labelled children are kept, as looking them up costs more than counting."""
    _request_counter(verb, resource, code).inc()
    _request_timer(verb).observe(seconds)


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
