"""B10: accelerators that are asked for by claims only."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.configuration.types import Network
from grove.rules.fabric import accelerator_claims, domains
from grove.rules.fabric.accelerator_claims import ClaimSource, device_classes_in
from grove.rules.podcliqueset import validation
from tests.rules.builders import FACTS, changed, workload
from tests.rules.messages import C, G, T

ON = msgspec.structs.replace(FACTS, network=Network(auto_mnnvl_enabled=True, auto_mnnvl_detect_dra=True))
AUTO, CLAIMS = "grove.io/auto-mnnvl", "grove.io/auto-mnnvl-claims"
ASKED = {
    f"{C}.spec.podSpec.resourceClaims": [
        {"name": "gpus", "resourceClaimTemplateName": "eight"},
        {"name": "disk", "resourceClaimName": "scratch"},
    ],
    f"{C}.spec.podSpec.containers[0].resources.claims": [{"name": "gpus"}],
}
EIGHT, SCRATCH = ClaimSource(False, "eight"), ClaimSource(True, "scratch")
GPU = frozenset({"gpu.nvidia.com"})


def body(**annotations):
    made = changed(workload(), ASKED)
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}


def with_claim_annotation(classes, facts=ON, **annotations):
    after, warnings = accelerator_claims.with_claim_annotation(body(**annotations), facts, classes)
    return domains.with_auto_annotation(after, facts)["metadata"]["annotations"], warnings


def test_only_where_it_is_wanted_claims_are_looked_at():
    assert accelerator_claims.claim_sources(body(), ON) == (EIGHT, SCRATCH)
    assert accelerator_claims.claim_sources(body(), FACTS) is None
    without = msgspec.structs.replace(ON, network=Network(auto_mnnvl_enabled=True))
    assert accelerator_claims.claim_sources(body(), without) is None
    assert accelerator_claims.claim_sources(body(**{AUTO: "disabled"}), ON) is None
    assert accelerator_claims.claim_sources(body(**{CLAIMS: "router/gpus"}), ON) is None
    assert accelerator_claims.claim_sources({"metadata": 1}, ON) is None


def test_a_set_whose_claims_are_for_gpus_is_marked_and_says_which():
    assert with_claim_annotation({EIGHT: GPU, SCRATCH: frozenset({"disk"})}) == (
        {AUTO: "enabled", CLAIMS: "router/gpus"},
        [],
    )
    assert with_claim_annotation({EIGHT: GPU, SCRATCH: GPU}, **{AUTO: "enabled"})[0] == {
        AUTO: "enabled",
        CLAIMS: "router/gpus,router/disk",
    }


def test_a_claim_that_no_container_uses_does_not_make_a_gpu_workload():
    assert AUTO not in with_claim_annotation({EIGHT: frozenset(), SCRATCH: GPU})[0]


@pytest.mark.parametrize("classes", [frozenset(), frozenset({"mig.nvidia.com"}), frozenset({"cpu"})])
def test_nothing_else_counts(classes):
    assert with_claim_annotation({EIGHT: classes, SCRATCH: classes}) == ({}, [])


def test_what_is_not_there_is_told():
    said, (one, other) = with_claim_annotation({EIGHT: None})
    assert said == {}
    assert one.startswith("ResourceClaimTemplate eight is not there")
    assert other.startswith("ResourceClaim scratch is not there")


# Claims that the set shares.


def entry(name="gpus", scope="PerReplica", **more):
    return {"name": name, "scope": scope, **more}


def sharing(where, *entries, **changes):
    """A set with a template of its own for GPUs, that shares claims there."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    own = {"name": "gpus", "templateSpec": {"spec": {"devices": {"requests": [request]}}}}
    return changed(
        workload(resourceClaimTemplates=[own]), {f"{where}.resourceSharing": list(entries), **changes}
    )


def noted(body, classes=None):
    """What the set says of its claims, and what its author is told."""
    after, warnings = accelerator_claims.with_claim_annotation(body, ON, classes or {})
    with_auto_annotation = domains.with_auto_annotation(after, ON)["metadata"].get("annotations") or {}
    assert (AUTO in with_auto_annotation) is (CLAIMS in with_auto_annotation)
    return with_auto_annotation.get(CLAIMS, ""), warnings


ROUTER_ALONE = {f"{C}.spec.replicas": 1, f"{C}.spec.minAvailable": 1}
SCALED = {f"{C}.spec.autoScalingConfig": {"maxReplicas": 4}}
FOR_ROUTER = {"filter": {"childCliqueNames": ["router"]}}
FOR_ENGINE = {"filter": {"childScalingGroupNames": ["engine"]}}
ONE_OF_EACH = {f"{T}.cliques[{at}].spec.replicas": 1 for at in range(3)}


@pytest.mark.parametrize(
    ("where", "shared", "changes", "note"),
    [
        (C, entry(), {}, "router/*"),
        (C, entry(scope="AllReplicas"), ROUTER_ALONE, "router/*"),
        (T, entry(**FOR_ROUTER), ROUTER_ALONE, "router/*"),
        (T, entry(scope="AllReplicas", **FOR_ROUTER), ROUTER_ALONE, "router/*"),
        (
            G,
            entry(filter={"childCliqueNames": ["prefill"]}),
            {f"{T}.cliques[1].spec.replicas": 1},
            "prefill/*",
        ),
        (f"{T}.cliques[2]", entry(), {}, "decode/*"),
    ],
)
def test_shared_claims_for_gpus_count_where_each_pod_has_its_own(where, shared, changes, note):
    assert noted(sharing(where, shared, **changes)) == (note, [])


@pytest.mark.parametrize(
    ("where", "shared", "changes", "path", "pods"),
    [
        (C, entry(scope="AllReplicas"), {}, f"{C}.resourceSharing[0]", 2),
        (C, entry(scope="AllReplicas"), {**ROUTER_ALONE, **SCALED}, f"{C}.resourceSharing[0]", 4),
        (T, entry(), {}, f"{T}.resourceSharing[0]", 12),
        (T, entry(), ONE_OF_EACH, f"{T}.resourceSharing[0]", 5),
        (T, entry(**FOR_ENGINE), {}, f"{T}.resourceSharing[0]", 10),
        (
            T,
            entry(scope="AllReplicas", **FOR_ROUTER),
            {"spec.replicas": 3, **ROUTER_ALONE},
            f"{T}.resourceSharing[0]",
            3,
        ),
        (G, entry(), {}, f"{G}.resourceSharing[0]", 5),
        (G, entry(scope="AllReplicas"), {}, f"{G}.resourceSharing[0]", 10),
        (f"{T}.cliques[2]", entry(scope="AllReplicas"), {}, f"{T}.cliques[2].resourceSharing[0]", 3),
    ],
)
def test_pods_that_share_gpus_share_a_node_and_its_one_channel_so_they_are_in_no_domain(
    where, shared, changes, path, pods
):
    assert noted(sharing(where, shared, **changes)) == (
        "",
        [
            f"{path}: up to {pods} pods share one claim for accelerators, and their node has one channel: "
            "they get no domain by themselves"
        ],
    )


def test_templates_of_shared_claims_are_looked_up_where_they_are():
    body = sharing(C, entry("there"), entry("far", namespace="other"), entry("gpus", namespace="else"))
    there, far, elsewhere = (
        ClaimSource(False, "there"),
        ClaimSource(False, "far", "other"),
        ClaimSource(False, "gpus", "else"),
    )
    assert accelerator_claims.claim_sources(body, ON) == (there, far, elsewhere)
    assert accelerator_claims.claim_sources(sharing(C, entry()), ON) == (), (
        "what the set says itself is known"
    )
    none = frozenset({"disk"})
    assert noted(body, {there: none, far: none, elsewhere: none}) == ("", [])
    assert noted(body, {there: none, far: GPU, elsewhere: GPU}) == ("router/*", [])
    assert noted(body, {there: GPU, elsewhere: none}) == (
        "router/*",
        [
            "ResourceClaimTemplate other/far does not exist or is not shared with this namespace: whether "
            "it is for accelerators is not known"
        ],
    )


def test_who_shares_a_claim_is_told_once():
    body = sharing(T, entry("there"))
    assert noted(body) == (
        "",
        ["ResourceClaimTemplate there is not there: whether it is for accelerators is not known"],
    )


def test_a_template_that_nobody_can_read_is_for_the_api_server_to_refuse():
    odd = {f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.requests": ["gpu"]}
    assert noted(sharing(C, entry(), **odd)) == ("", [])


def test_it_stays_as_it_was():
    (error,) = validation.on_update(body(**{CLAIMS: "router/gpus"}), body(), ON).errors
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
    assert device_classes_in({"devices": {"requests": [request_]}}) == GPU
    assert device_classes_in({}) == frozenset()
