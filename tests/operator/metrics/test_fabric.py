"""Metrics of fabric domains."""

from __future__ import annotations

from prometheus_client import REGISTRY

from grove.operator.caches.registry import Caches
from grove.operator.metrics import fabric
from tests.fabrics.builders import BOTH, a_set, clique
from tests.plan.fabric.test_planner import managed_domain, terminating, with_meta


def sample(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0


def test_domain_metrics_follow_phase_and_time_to_ready():
    caches = Caches(fabrics=BOTH)
    cache = caches.domains["nvidia"]
    workload = a_set(clique("worker"), auto="enabled")
    domain = with_meta(managed_domain("inference-0", workload), creation_timestamp="2026-01-01T00:00:00Z")
    seconds = sample("grove_fabric_domain_ready_seconds_count")
    with fabric.track(caches):
        cache.replace([domain], "7")
        assert sample("grove_fabric_domains", vendor="nvidia", phase="pending") == 1
        nodes = [{"name": "a", "cliqueID": "x", "status": "NotReady"}]
        for version, status, phase in ((8, "NotReady", "forming"), (9, "Ready", "ready")):
            nodes[0]["status"] = status
            grown = with_meta(domain, resource_version=str(version))
            cache.apply_event("MODIFIED", type(grown)(grown.metadata, grown.spec, {"nodes": list(nodes)}))
            assert sample("grove_fabric_domains", vendor="nvidia", phase=phase) == 1
        assert sample("grove_fabric_domain_ready_seconds_count") == seconds + 1
        cache.apply_event("MODIFIED", with_meta(terminating(domain), resource_version="10"))
        assert sample("grove_fabric_domains", vendor="nvidia", phase="terminating") == 1
        assert sample("grove_fabric_domains", vendor="nvidia", phase="ready") == 0
    assert sample("grove_fabric_domains", vendor="nvidia", phase="terminating") == 0
