"""Counts of requests in plain dicts, of which `grove.kube.metrics` makes metrics when they are scraped.

Counters and histograms of the library cost 4 us for a request, these less than 1; and most commands end
without importing it.
"""

from __future__ import annotations

from bisect import bisect_left


class RequestCounts:
    """Counts by verb, resource and status code, and times by verb."""

    bounds = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, str], int] = {}
        self.spans: dict[str, list[int]] = {}
        """By verb, the number of requests that took up to each of the bounds, and longer."""
        self.seconds: dict[str, float] = {}

    def count(self, verb: str, resource: str, code: str, seconds: float | None = None) -> None:
        """One request that was answered, or lost; `seconds` if the time to its reply is meaningful."""
        key = (verb, resource, code)
        self.counts[key] = self.counts.get(key, 0) + 1
        if seconds is None:
            return
        spans = self.spans.get(verb)
        if spans is None:
            spans = self.spans[verb] = [0] * (len(self.bounds) + 1)
        spans[bisect_left(self.bounds, seconds)] += 1
        self.seconds[verb] = self.seconds.get(verb, 0.0) + seconds


requests = RequestCounts()
"""Those of this process."""
