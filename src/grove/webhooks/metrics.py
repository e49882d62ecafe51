"""Metrics of admission. The names are part of the interface: see docs/operator.md."""

from __future__ import annotations

from prometheus_client import Histogram

reviews = Histogram(
    "grove_admission_seconds",
    "Time from the arrival of an admission review to its response, by webhook and HTTP status",
    ["path", "code"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5),
)
