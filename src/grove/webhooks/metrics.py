"""What is counted about admission. Names are part of the product: see docs/operator.md."""

from __future__ import annotations

from prometheus_client import Histogram

reviews = Histogram(
    "grove_admission_seconds",
    "From a review's arrival to its answer, by webhook and HTTP status",
    ["path", "code"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5),
)
