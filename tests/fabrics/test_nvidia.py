"""NVIDIA's provider: which containers have GPUs (G), claim injection (J), the domain object (CD) and
preflight checks (P)."""

from __future__ import annotations

import copy

import pytest
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.fabrics.nvidia import CHANNEL_CLASS, COMPUTE_DOMAIN, Nvidia
from grove.fabrics.pod_claims import CLAIMS
from grove.fabrics.provider import (
    Discovery,
    Domain,
    DomainRequest,
    DomainView,
    FabricDomainProvider,
    Policy,
    Scope,
    Severity,
)
from grove.local.standins.dra.objects import resource_slice

NVIDIA = Nvidia()
ONLY, OR_ALL = Policy.ACCELERATED_ONLY, Policy.ACCELERATED_OR_ALL
CLAIM = {"name": "mnnvl-claim", "resourceClaimTemplateName": "inference-0"}


@pytest.mark.parametrize(
    ("resources", "counts"),
    [
        ({"limits": {"nvidia.com/gpu": "8"}}, True),
        ({"requests": {"nvidia.com/gpu": 1}}, True),
        ({"limits": {"nvidia.com/gpu": "1k"}}, True),
        ({"limits": {"nvidia.com/gpu": "0"}}, False),
        ({"limits": {"nvidia.com/gpu": 0}, "requests": {"nvidia.com/gpu": "0m"}}, False),
        ({"limits": {"amd.com/gpu": "8"}}, False),
        ({"limits": {"nvidia.com/mig-1g.5gb": "1", "nvidia.com/gpu.shared": "1"}}, False),
        ({"claims": [{"name": "gpu"}]}, False),
        ({"limits": None}, False),
        (None, False),
    ],
    ids=str,
)
def test_g1_g4_which_resources_count_as_gpus(resources, counts):
    assert NVIDIA.uses_accelerator({"name": "main", "resources": resources}) is counts
    assert not NVIDIA.uses_accelerator({"name": "main"})


def gpu(name="gpu", **more):
    return {"name": name, "resources": {"limits": {"nvidia.com/gpu": "8"}, **more}}


def test_j_claim_is_added_to_gpu_containers_only():
    spec = {
        "containers": [gpu(), {"name": "sidecar"}],
        "initContainers": [{"name": "fetch"}, gpu("warm-up")],
        "tolerations": [{"key": "x"}],
    }
    before = copy.deepcopy(spec)
    joined = NVIDIA.inject(spec, "inference-0", ONLY)
    assert spec == before
    assert joined["resourceClaims"] == [CLAIM]
    claims = [{"name": "mnnvl-claim"}]
    assert joined["containers"] == [gpu(claims=claims), {"name": "sidecar"}]
    assert joined["initContainers"] == [{"name": "fetch"}, gpu("warm-up", claims=claims)]
    assert joined["tolerations"] == [{"key": "x"}]


def test_j2_without_gpus_claim_is_added_by_name_only():
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "c"}]}
    assert NVIDIA.inject(spec, "t", ONLY) is spec
    joined = NVIDIA.inject(spec, "t", OR_ALL)
    assert [each["resources"]["claims"] for each in joined["containers"]] == [[{"name": "mnnvl-claim"}]] * 2
    assert joined["initContainers"] == spec["initContainers"]


@pytest.mark.parametrize("policy", list(Policy))
def test_j3_inject_is_idempotent_and_keeps_user_claims(policy):
    own = {"name": "mine", "resourceClaimName": "shared"}
    spec = {"containers": [gpu(claims=[{"name": "mine"}])], "resourceClaims": [own]}
    once = NVIDIA.inject(spec, "inference-0", policy)
    assert once["resourceClaims"] == [own, CLAIM]
    assert once["containers"][0]["resources"]["claims"] == [{"name": "mine"}, {"name": "mnnvl-claim"}]
    assert NVIDIA.inject(once, "inference-0", policy) == once


def test_cd_domain_is_elastic_and_names_its_template():
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "x", "uid": "1"}
    body = NVIDIA.build_domain(DomainRequest("x-0", "ns", {"a": "b"}, (owner,), ("f",)))
    assert body == {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {
            "name": "x-0",
            "namespace": "ns",
            "labels": {"a": "b"},
            "finalizers": ["f"],
            "ownerReferences": [owner],
        },
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "x-0"}}},
    }
    found = Domain(ObjectMeta(name="x-0"), body["spec"])
    assert NVIDIA.template_name(found) == "x-0"
    foreign = Domain(ObjectMeta(name="foreign"), {"channel": {"resourceClaimTemplate": {"name": "other"}}})
    assert NVIDIA.template_name(foreign) == "other"
    assert NVIDIA.template_name(Domain(ObjectMeta(name="bare"))) == "bare"


@pytest.mark.parametrize(
    ("status", "view"),
    [
        (None, DomainView()),
        ({"status": "Ready"}, DomainView()),
        (
            {
                "nodes": [
                    {"name": "a", "cliqueID": "c.1", "status": "Ready"},
                    {"name": "b", "cliqueID": "c.0", "status": "NotReady"},
                    {"name": "c", "cliqueID": "", "status": "Ready"},
                ]
            },
            DomainView(2, 3, ("c.0", "c.1"), ("a", "b", "c"), ("b",), ("c",)),
        ),
    ],
)
def test_b1_domain_state_comes_from_its_nodes(status, view):
    assert NVIDIA.observe(Domain(ObjectMeta(), status=status)) == view


def served(*apis):
    return Discovery(frozenset((api.group, api.version, api.plural) for api in apis))


def test_p_preflight_reports_missing_apis():
    (missing,) = NVIDIA.preflight(served(CLAIMS))
    assert missing.severity is Severity.FATAL
    for text in ("MNNVL is enabled", "ComputeDomain CRD (computedomains.resource.nvidia.com)"):
        assert text in missing.message
    assert "install the NVIDIA DRA driver, or disable automatic MNNVL" in missing.message
    assert NVIDIA.preflight(served(CLAIMS, COMPUTE_DOMAIN)) == []
    (warning,) = NVIDIA.preflight(served(COMPUTE_DOMAIN))
    assert warning.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("classes", "devices", "messages"),
    [
        (None, None, []),
        (frozenset({CHANNEL_CLASS}), True, []),
        (frozenset(), True, [f"DeviceClass {CHANNEL_CLASS} is missing"]),
        (frozenset({CHANNEL_CLASS}), False, ["no ResourceSlice of compute-domain.nvidia.com"]),
    ],
)
def test_p5_preflight_reports_missing_driver_objects(classes, devices, messages):
    discovery = replace(served(CLAIMS, COMPUTE_DOMAIN), device_classes=classes, devices=devices)
    found = NVIDIA.preflight(discovery)
    assert [each.severity for each in found] == [Severity.WARNING] * len(messages)
    assert all(message in each.message for each, message in zip(found, messages, strict=True))


def test_channels_and_gpus_are_counted():
    devices = resource_slice("node-1", "uid")["spec"]["devices"]
    assert [device["name"] for device in devices] == ["channel-0", "daemon-0"]
    assert NVIDIA.channels(devices) == 1
    assert NVIDIA.channels([{"name": "odd"}]) == 0
    amounts = [{"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": 4}, {"cpu": "8"}, {"nvidia.com/gpu": "x"}]
    assert [NVIDIA.amount(each) for each in amounts] == [8, 4, 0, 0]


def test_p2_other_crd_version_is_fatal():
    other = Discovery(frozenset({("resource.nvidia.com", "v1alpha1", "computedomains")}))
    (finding,) = NVIDIA.preflight(other)
    assert finding.severity is Severity.FATAL
    assert "serves only v1alpha1 and not v1beta1: install the NVIDIA DRA driver in a" in finding.message


@pytest.mark.parametrize(
    ("value", "scope", "message"),
    [
        ("", Scope.SHARED, "must not be empty"),
        ("Team", Scope.SHARED, "must consist of lower case"),
        ("a.b", Scope.SHARED, "must consist of lower case"),
        ("a" * 64, Scope.SHARED, "no more than 63"),
        ("a" * 59, Scope.REPLICA, "no more than 58 characters with scope replica"),
        ("a" * 54, Scope.GROUP_REPLICA, "no more than 53"),
    ],
)
def test_v5_invalid_domain_names_are_rejected(value, scope, message):
    (wrong,) = NVIDIA.validate(value, scope)
    assert message in wrong


@pytest.mark.parametrize(
    ("value", "scope"), [("a" * 63, Scope.SHARED), ("a" * 58, Scope.REPLICA), ("a", Scope.GROUP_REPLICA)]
)
def test_v5_valid_domain_names_are_accepted(value, scope):
    assert NVIDIA.validate(value, scope) == []


def test_nvidia_implements_the_provider_protocol():
    assert isinstance(NVIDIA, FabricDomainProvider)
