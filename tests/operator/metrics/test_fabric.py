"""Metrics of fabric domains."""

from __future__ import annotations

import msgspec
from prometheus_client import REGISTRY

from grove.api.types.pod import Pod
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
    lost = sample("grove_fabric_domain_degradations_total", vendor="nvidia")
    with fabric.track(caches):
        cache.replace([domain], "7")
        assert sample("grove_fabric_domains", vendor="nvidia", phase="pending") == 1
        nodes = [{"name": "a", "cliqueID": "x", "status": "NotReady"}]
        for version, status, phase in ((8, "NotReady", "forming"), (9, "Ready", "ready")):
            nodes = [{**nodes[0], "status": status}]
            grown = with_meta(domain, resource_version=str(version))
            cache.apply_event("MODIFIED", type(grown)(grown.metadata, grown.spec, {"nodes": nodes}))
            assert sample("grove_fabric_domains", vendor="nvidia", phase=phase) == 1
        assert sample("grove_fabric_domain_ready_seconds_count") == seconds + 1
        assert sample("grove_fabric_domain_degradations_total", vendor="nvidia") == lost
        for version in (10, 11):
            later = with_meta(domain, resource_version=str(version))
            down = [{"name": "a", "cliqueID": "x", "status": "NotReady"}]
            cache.apply_event("MODIFIED", type(later)(later.metadata, later.spec, {"nodes": down}))
        assert sample("grove_fabric_domain_degradations_total", vendor="nvidia") == lost + 1
        for version, listed in enumerate((nodes, [], nodes), 12):  # a node that has no pod is not lost
            again = with_meta(domain, resource_version=str(version))
            cache.apply_event("MODIFIED", type(again)(again.metadata, again.spec, {"nodes": listed}))
        assert sample("grove_fabric_domain_degradations_total", vendor="nvidia") == lost + 1
        claim = {"name": "mnnvl-claim", "resourceClaimTemplateName": "inference-0"}
        spec = {"nodeName": "a", "resourceClaims": [claim]}
        caches.pods.apply_event(
            "ADDED", msgspec.convert({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}, Pod)
        )
        gone = with_meta(domain, resource_version="15")
        cache.apply_event("MODIFIED", type(gone)(gone.metadata, gone.spec, {"nodes": []}))
        assert sample("grove_fabric_domain_degradations_total", vendor="nvidia") == lost + 2
        cache.apply_event("MODIFIED", with_meta(terminating(domain), resource_version="16"))
        assert sample("grove_fabric_domains", vendor="nvidia", phase="terminating") == 1
        assert sample("grove_fabric_domains", vendor="nvidia", phase="ready") == 0
    assert sample("grove_fabric_domains", vendor="nvidia", phase="terminating") == 0
