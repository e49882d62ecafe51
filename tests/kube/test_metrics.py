"""The request metrics in the text format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from grove.kube.metrics import RequestMetrics
from grove.kube.request_counts import RequestCounts


def test_request_metrics_have_verb_resource_and_code() -> None:
    requests, registry = RequestCounts(), CollectorRegistry()
    registry.register(RequestMetrics(requests))
    requests.count("create", "pods", "201", 0.003)
    requests.count("create", "pods", "201", 0.3)
    requests.count("create", "pods", "lost", 40.0)
    requests.count("watch", "pods", "200")
    text = generate_latest(registry).decode()
    for line in (
        'grove_kube_requests_total{code="201",resource="pods",verb="create"} 2.0',
        'grove_kube_requests_total{code="lost",resource="pods",verb="create"} 1.0',
        'grove_kube_requests_total{code="200",resource="pods",verb="watch"} 1.0',
        'grove_kube_request_seconds_bucket{le="0.002",verb="create"} 0.0',
        'grove_kube_request_seconds_bucket{le="0.005",verb="create"} 1.0',
        'grove_kube_request_seconds_bucket{le="0.5",verb="create"} 2.0',
        'grove_kube_request_seconds_bucket{le="+Inf",verb="create"} 3.0',
        'grove_kube_request_seconds_count{verb="create"} 3.0',
        'grove_kube_request_seconds_sum{verb="create"} 40.303',
    ):
        assert line in text
    assert 'request_seconds_count{verb="watch"}' not in text
