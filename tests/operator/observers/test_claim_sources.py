"""What is known about the claims of pods while not everything is listed."""

from __future__ import annotations

import pytest

from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.registry import Caches
from grove.operator.caches.volumes import Volumes
from grove.operator.observers.claim_sources import ClaimSourcesObserver
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.plan.placement.needs import ClaimSources
from tests.operator.cluster_builders import listed, listed_nodes
from tests.plan.builders import a_clique, a_set, read_set

VOLUME = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
DEVICE = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two"}]}


def sources(pods: ClusterPods, **pod_spec: object) -> ClaimSources:
    caches, body = Caches(placement=True), a_set("a:1")
    body["spec"]["template"]["cliques"] = [a_clique("a:1", **pod_spec)]
    assert caches.volumes is not None
    view = ClusterView(listed_nodes(), pods, Devices())
    return ClaimSourcesObserver(caches, view, caches.volumes).of(read_set(body), {})


@pytest.mark.parametrize(
    ("pod_spec", "owner", "delay"),
    [
        (VOLUME, Volumes, "volumes: 500 broken"),
        (DEVICE, Devices, "devices: 500 broken"),
        ({}, Volumes, ""),
        ({}, Devices, ""),
    ],
    ids=["volumes", "devices", "no volumes", "no devices"],
)
def test_reason_is_known_why_claims_are_not_listed(
    pod_spec: dict[str, object], owner: type, delay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "problem", "500 broken")
    found = sources(listed(), **pod_spec)
    assert (found.delay, found.problem) == (delay, "")
