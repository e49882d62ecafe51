"""B10: accelerators that are asked for by claims only."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.config import Network
from grove.rules import fabric, fabric_claims, validate
from grove.rules.fabric_claims import Source, classes_in
from tests.rules.builders import FACTS, changed, workload
from tests.rules.words import C

ON = msgspec.structs.replace(FACTS, network=Network(auto_mnnvl_enabled=True, auto_mnnvl_detect_dra=True))
AUTO, CLAIMS = "grove.io/auto-mnnvl", "grove.io/auto-mnnvl-claims"
ASKED = {
    f"{C}.spec.podSpec.resourceClaims": [
        {"name": "gpus", "resourceClaimTemplateName": "eight"},
        {"name": "disk", "resourceClaimName": "scratch"},
    ],
    f"{C}.spec.podSpec.containers[0].resources.claims": [{"name": "gpus"}],
}
EIGHT, SCRATCH = Source(False, "eight"), Source(True, "scratch")
GPU = frozenset({"gpu.nvidia.com"})


def body(**annotations):
    made = changed(workload(), ASKED)
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}


def counted(classes, facts=ON, **annotations):
    after, warnings = fabric_claims.counted(body(**annotations), facts, classes)
    return fabric.marked(after, facts)["metadata"]["annotations"], warnings


def test_only_where_it_is_wanted_claims_are_looked_at():
    assert fabric_claims.sources(body(), ON) == (EIGHT, SCRATCH)
    assert fabric_claims.sources(body(), FACTS) == ()
    without = msgspec.structs.replace(ON, network=Network(auto_mnnvl_enabled=True))
    assert fabric_claims.sources(body(), without) == ()
    assert fabric_claims.sources(body(**{AUTO: "disabled"}), ON) == ()
    assert fabric_claims.sources(body(**{CLAIMS: "router/gpus"}), ON) == ()
    assert fabric_claims.sources({"metadata": 1}, ON) == ()


def test_a_set_whose_claims_are_for_gpus_is_marked_and_says_which():
    assert counted({EIGHT: GPU, SCRATCH: frozenset({"disk"})}) == (
        {AUTO: "enabled", CLAIMS: "router/gpus"},
        [],
    )
    assert counted({EIGHT: GPU, SCRATCH: GPU}, **{AUTO: "enabled"})[0] == {
        AUTO: "enabled",
        CLAIMS: "router/gpus,router/disk",
    }


def test_a_claim_that_no_container_uses_does_not_make_a_gpu_workload():
    assert AUTO not in counted({EIGHT: frozenset(), SCRATCH: GPU})[0]


@pytest.mark.parametrize("classes", [frozenset(), frozenset({"mig.nvidia.com"}), frozenset({"cpu"})])
def test_nothing_else_counts(classes):
    assert counted({EIGHT: classes, SCRATCH: classes}) == ({}, [])


def test_what_is_not_there_is_told():
    said, (one, other) = counted({EIGHT: None})
    assert said == {}
    assert one.startswith("ResourceClaimTemplate eight is not there")
    assert other.startswith("ResourceClaim scratch is not there")


def test_it_stays_as_it_was():
    (error,) = validate.on_update(body(**{CLAIMS: "router/gpus"}), body(), ON).errors
    assert (
        str(error) == f"metadata.annotations.{CLAIMS}: Forbidden: {CLAIMS} cannot be removed after creation"
    )


@pytest.mark.parametrize(
    "request_",
    [
        {"exactly": {"deviceClassName": "gpu.nvidia.com"}},
        {"deviceClassName": "gpu.nvidia.com"},
        {"firstAvailable": [{"deviceClassName": "gpu.nvidia.com"}]},
    ],
)
def test_classes_in_every_version(request_):
    assert classes_in({"devices": {"requests": [request_]}}) == GPU
    assert classes_in({}) == frozenset()
