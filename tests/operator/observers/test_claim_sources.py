"""What is known about the claims of pods while not everything is listed."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.types.cluster.device_objects import AllocatedClaim
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


def test_named_claims_are_known_once_claims_are_listed() -> None:
    caches, body = Caches(placement=True), a_set("a:1")
    named = [{"name": each, "resourceClaimName": each} for each in ("there", "missing")]
    body["spec"]["template"]["cliques"] = [a_clique("a:1", resourceClaims=named)]
    assert caches.volumes is not None
    assert caches.devices is not None
    view = ClusterView(listed_nodes(), listed(), caches.devices)
    observer = ClaimSourcesObserver(caches, view, caches.volumes)
    assert observer.of(read_set(body), {}).claims is None
    metadata = {"name": "there", "namespace": "ns", "resourceVersion": "1"}
    caches.devices.claims.replace([msgspec.convert({"metadata": metadata}, AllocatedClaim)], "1")
    assert observer.of(read_set(body), {}).claims == {"there"}
