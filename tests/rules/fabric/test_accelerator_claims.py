"""B10: detection of accelerators that pods request by resource claims only."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.configuration.types import Network
from grove.fabrics.requirements import of_template
from grove.rules import decode
from grove.rules.fabric import accelerator_claims, domains
from grove.rules.fabric.accelerator_claims import ClaimSource, device_classes_in
from grove.rules.podcliqueset import validation
from tests.rules.builders import FACTS, changed, workload
from tests.rules.messages import C, G, T

ON = msgspec.structs.replace(FACTS, network=Network(auto_mnnvl_enabled=True, auto_mnnvl_detect_dra=True))
AUTO, CLAIMS = "grove.io/auto-mnnvl", "grove.io/auto-mnnvl-claims"
CLAIMING = {
    f"{C}.spec.podSpec.resourceClaims": [
        {"name": "gpus", "resourceClaimTemplateName": "eight"},
        {"name": "disk", "resourceClaimName": "scratch"},
    ],
    f"{C}.spec.podSpec.containers[0].resources.claims": [{"name": "gpus"}],
}
EIGHT, SCRATCH = ClaimSource(False, "eight"), ClaimSource(True, "scratch")
GPU = frozenset({"gpu.nvidia.com"})
FABRICS = FACTS.fabrics


def body(**annotations):
    claiming = changed(workload(), CLAIMING)
    return {**claiming, "metadata": {**claiming["metadata"], "annotations": annotations}}


def with_claim_annotation(classes, facts=ON, **annotations):
    after, warnings = accelerator_claims.with_claim_annotation(body(**annotations), facts, classes)
    return domains.with_auto_annotation(after, facts)["metadata"]["annotations"], warnings


def test_b10_claims_are_read_only_if_detection_is_enabled():
    assert accelerator_claims.claim_sources(body(), ON) == (EIGHT, SCRATCH)
    assert accelerator_claims.claim_sources(body(), FACTS) is None
    without = msgspec.structs.replace(ON, network=Network(auto_mnnvl_enabled=True))
    assert accelerator_claims.claim_sources(body(), without) is None
    assert accelerator_claims.claim_sources(body(**{AUTO: "disabled"}), ON) is None
    assert accelerator_claims.claim_sources(body(**{CLAIMS: "router/gpus"}), ON) is None
    assert accelerator_claims.claim_sources({"metadata": 1}, ON) is None


def test_b10_gpu_claims_are_listed_in_an_annotation():
    assert with_claim_annotation({EIGHT: GPU, SCRATCH: frozenset({"disk"})}) == (
        {AUTO: "enabled", CLAIMS: "router/gpus"},
        [],
    )
    assert with_claim_annotation({EIGHT: GPU, SCRATCH: GPU}, **{AUTO: "enabled"})[0] == {
        AUTO: "enabled",
        CLAIMS: "router/gpus,router/disk",
    }


NAMED = {f"{C}.annotations": {"nvidia.com/computedomain": "team"}}


@pytest.mark.parametrize("automatic", [True, False])
def test_b10_claims_of_cliques_that_name_a_domain_count(automatic):
    network = Network(auto_mnnvl_enabled=automatic, auto_mnnvl_detect_dra=True)
    facts = msgspec.structs.replace(FACTS, network=network)
    opted_out = changed(body(**{AUTO: "disabled"}), NAMED)
    assert accelerator_claims.claim_sources(opted_out, facts) == (EIGHT, SCRATCH)
    after, warnings = accelerator_claims.with_claim_annotation(
        opted_out, facts, {EIGHT: GPU, SCRATCH: frozenset()}
    )
    assert (after["metadata"]["annotations"][CLAIMS], warnings) == ("router/gpus", [])
    assert validation.on_create(after, facts).warnings == ()
    (clique, *_) = decode.workload(after).template.cliques
    found = of_template("app", after["metadata"]["annotations"], decode.workload(after).template, FABRICS)
    assert found[clique.name][0].by_claim == ("gpus",)
    others = changed(body(**{AUTO: "disabled"}), {f"{T}.cliques[1].annotations": NAMED[f"{C}.annotations"]})
    assert accelerator_claims.claim_sources(others, facts) == ()


def test_b10_pods_of_a_named_domain_that_share_gpus_wait():
    shared = sharing(C, entry(scope="AllReplicas"), **NAMED)
    facts = msgspec.structs.replace(FACTS, network=Network(auto_mnnvl_detect_dra=True))
    _, (warning,) = accelerator_claims.with_claim_annotation(shared, facts, {})
    assert warning.endswith("and their node has one channel: all of them but one will wait")


def test_b10_unused_gpu_claim_does_not_enable_mnnvl():
    assert AUTO not in with_claim_annotation({EIGHT: frozenset(), SCRATCH: GPU})[0]


@pytest.mark.parametrize("classes", [frozenset(), frozenset({"mig.nvidia.com"}), frozenset({"cpu"})])
def test_b10_claims_for_other_devices_do_not_count(classes):
    assert with_claim_annotation({EIGHT: classes, SCRATCH: classes}) == ({}, [])


def test_b10_missing_claim_sources_are_warned_of():
    annotations, (first, second) = with_claim_annotation({EIGHT: None})
    assert annotations == {}
    assert first.startswith("ResourceClaimTemplate eight does not exist")
    assert second.startswith("ResourceClaim scratch does not exist")


# Claims of `resourceSharing`.


def entry(name="gpus", scope="PerReplica", **more):
    return {"name": name, "scope": scope, **more}


def sharing(where, *entries, **changes):
    """A set with a ResourceClaimTemplate for GPUs and these entries of `resourceSharing` at the path."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    own = {"name": "gpus", "templateSpec": {"spec": {"devices": {"requests": [request]}}}}
    return changed(
        workload(resourceClaimTemplates=[own]), {f"{where}.resourceSharing": list(entries), **changes}
    )


def detected(body, classes=None):
    """The annotation with the claims for GPUs, and the warnings."""
    after, warnings = accelerator_claims.with_claim_annotation(body, ON, classes or {})
    annotations = domains.with_auto_annotation(after, ON)["metadata"].get("annotations") or {}
    assert (AUTO in annotations) is (CLAIMS in annotations)
    return annotations.get(CLAIMS, ""), warnings


ROUTER_ALONE = {f"{C}.spec.replicas": 1, f"{C}.spec.minAvailable": 1}
SCALED = {f"{C}.spec.autoScalingConfig": {"maxReplicas": 4}}
FOR_ROUTER = {"filter": {"childCliqueNames": ["router"]}}
FOR_ENGINE = {"filter": {"childScalingGroupNames": ["engine"]}}
ONE_OF_EACH = {f"{T}.cliques[{at}].spec.replicas": 1 for at in range(3)}


@pytest.mark.parametrize(
    ("where", "shared", "changes", "annotation"),
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
def test_b10_shared_gpu_claims_count_if_one_pod_uses_each(where, shared, changes, annotation):
    assert detected(sharing(where, shared, **changes)) == (annotation, [])


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
def test_b10_pods_that_share_gpus_get_no_domain(where, shared, changes, path, pods):
    """They share a node, which has one channel."""
    assert detected(sharing(where, shared, **changes)) == (
        "",
        [
            f"{path}: up to {pods} pods share one claim for accelerators, and their node has one channel: "
            "they get no automatic domain"
        ],
    )


NOT_COUNTED = "it does not count for MNNVL; create it before the PodCliqueSet"


def test_b10_shared_templates_are_read_in_their_namespace():
    body = sharing(C, entry("local"), entry("far", namespace="other"), entry("gpus", namespace="else"))
    local, far, elsewhere = (
        ClaimSource(False, "local"),
        ClaimSource(False, "far", "other"),
        ClaimSource(False, "gpus", "else"),
    )
    assert accelerator_claims.claim_sources(body, ON) == (local, far, elsewhere)
    own_template = sharing(C, entry())
    assert accelerator_claims.claim_sources(own_template, ON) == ()
    none = frozenset({"disk"})
    assert detected(body, {local: none, far: none, elsewhere: none}) == ("", [])
    assert detected(body, {local: none, far: GPU, elsewhere: GPU}) == ("router/*", [])
    assert detected(body, {local: GPU, elsewhere: none}) == (
        "router/*",
        [
            "ResourceClaimTemplate other/far does not exist or is not shared with this namespace: "
            f"{NOT_COUNTED}"
        ],
    )


def test_b10_missing_shared_template_is_warned_of_once():
    body = sharing(T, entry("missing"))
    assert detected(body) == ("", [f"ResourceClaimTemplate missing does not exist: {NOT_COUNTED}"])


def test_b10_undecodable_template_is_ignored():
    """The API server refuses it."""
    malformed = {f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.requests": ["gpu"]}
    assert detected(sharing(C, entry(), **malformed)) == ("", [])


def test_b10_claim_annotation_is_immutable():
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
def test_b10_device_classes_are_read_in_every_api_version(request_):
    assert device_classes_in({"devices": {"requests": [request_]}}) == GPU
    assert device_classes_in({}) == frozenset()
