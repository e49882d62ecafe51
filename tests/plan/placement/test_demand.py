"""Demands: the shape of pods, and pins beside the selectors of users."""

from __future__ import annotations

import msgspec
import pytest

from grove.plan.placement.demand import pinned_shape, pod_shape
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.model import Node, PodShape, Requirement, Term


def template(**spec: object) -> bytes:
    return msgspec.json.encode({"containers": [{"name": "main"}], **spec})


def test_limits_count_as_requests() -> None:
    containers = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "500m"}}}]
    shape = pod_shape(template(containers=containers), in_fabric=False, pins=())
    assert shape.requests == {"nvidia.com/gpu": 2, "cpu": 500, "pods": 1}


def test_pods_of_one_template_share_one_shape() -> None:
    assert pod_shape(template(), False, ()) is pod_shape(template(), False, ())


@pytest.mark.parametrize("affinity", [None, (Term((Requirement("zone", "Exists"),)),)])
def test_pin_does_not_override_the_selector_of_the_user(affinity: tuple[Term, ...] | None) -> None:
    user = PodShape({}, {"rack": "r1"}, affinity)
    agreed = pinned_shape(user, {"rack": "r1", "block": "b"})
    assert rejection(agreed, Node("n", {"rack": "r1", "block": "b", "zone": "z"})) is None
    contradicted = pinned_shape(user, {"rack": "r2"})
    assert contradicted.node_selector == {"rack": "r1"}
    for rack in ("r1", "r2"):
        assert rejection(contradicted, Node("n", {"rack": rack, "zone": "z"})) is not None
