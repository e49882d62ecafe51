"""The checks of `grove doctor`, from what is known of an installation."""

from __future__ import annotations

import base64
import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec.structs import replace

from grove.api.configuration import loading
from grove.api.crds import crd
from grove.cli.commands.installation.check_model import Check, State
from grove.cli.commands.installation.doctor import all_checks, check_lines
from grove.cli.commands.installation.facts import Installation, OperatorDeployment, Unreadable
from grove.dynamo.api import crd_definitions
from grove.kube.leader.lease import Lease
from grove.webhooks.registrations import ServiceAddress, configurations, served

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
LEASE = "grove-operator-leader-election"
NO_RIGHT = Unreadable("no right to list things")


def authority(days: int) -> str:
    """A CA bundle that expires after so many days."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(NOW - timedelta(days=9)).not_valid_after(NOW + timedelta(days=days))
    signed = builder.sign(key, hashes.SHA256())
    return base64.b64encode(signed.public_bytes(Encoding.PEM)).decode()


def definitions(**changes: Any) -> dict[str, Any]:
    conditions = {"conditions": [{"type": "Established", "status": "True"}]}
    found = {each["metadata"]["name"]: {**each, "status": conditions} for each in crd.all_definitions()}
    found |= {each["metadata"]["name"]: None for each in crd_definitions.all_definitions()}
    return found | changes


def webhooks(bundle: str) -> dict[str, Any]:
    found: dict[str, Any] = {each.name: None for each in served(authorizer=True, dynamo=True)}
    for body in configurations(ServiceAddress("grove-system"), authorizer=True, ca_bundle=b"x"):
        for each in body["webhooks"]:
            each["clientConfig"]["caBundle"] = bundle
        found[body["metadata"]["name"]] = body
    return found


def lease(renewed: str = "2027-01-15T07:59:58.000000Z") -> Lease:
    spec = {"holderIdentity": "grove-operator-1", "leaseDurationSeconds": 15, "renewTime": renewed}
    body = {"metadata": {"name": LEASE, "namespace": "grove-system"}, "spec": spec}
    return msgspec.convert(body, type=Lease)


def deployment(image: str = "registry.example.com:5000/grove-operator:1.2.3", **status: Any) -> Any:
    body = {
        "metadata": {"name": "grove-operator", "namespace": "grove-system"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "operator", "image": image}]}}},
        "status": {"readyReplicas": 2, **status},
    }
    return msgspec.convert(body, type=OperatorDeployment)


HEALTHY = Installation(
    version="1.2.3",
    server="https://cluster",
    server_version="v1.37.1",
    definitions=definitions(),
    leases=(lease(),),
    deployments=(deployment(),),
    configuration=loading.load({"scheduler": {"profiles": [{"name": "kai-scheduler"}]}}),
    webhooks=webhooks(authority(365)),
    review='admission webhook "pcs.validating.webhooks.grove.io" denied the request: spec.x',
    served={
        "resource.k8s.io": ("v1",),
        "scheduling.k8s.io": ("v1",),
        "scheduling.run.ai": ("v2alpha2",),
        "kai.scheduler": ("v1alpha1",),
        "scheduling.volcano.sh": (),
        "resource.nvidia.com": ("v1beta1",),
    },
    gates={"HPAScaleToZero": False},
    now=NOW.timestamp(),
)


def shown(found: Installation) -> str:
    return "".join(f"{line}\n" for each in all_checks(found, LEASE) for line in check_lines(each, None))


def test_webhooks_with_pods_of_their_own_are_checked():
    labels = {"app.kubernetes.io/component": "admission"}
    metadata = replace(deployment().metadata, name="grove-admission", labels=labels)
    apart = replace(deployment(readyReplicas=0), metadata=metadata)
    lines = shown(replace(HEALTHY, deployments=(apart, deployment())))
    assert "ok       operator pods: Deployment grove-system/grove-operator: 2 of 2 pods are ready\n" in lines
    assert "fail     webhook pods: Deployment grove-system/grove-admission: 0 of 2 pods are ready\n" in lines
    assert "ok       versions: grove and the operator are 1.2.3\n" in lines


def test_healthy_installation():
    assert shown(HEALTHY) == (
        "ok       API server: Kubernetes v1.37.1 is supported\n"
        "ok       operator leads: grove-operator-1 leads, and renewed Lease "
        "grove-system/grove-operator-leader-election 2s ago\n"
        "ok       operator pods: Deployment grove-system/grove-operator: 2 of 2 pods are ready\n"
        "ok       versions: grove and the operator are 1.2.3\n"
        "ok       CRDs: all 6 are installed, and those of this version\n"
        "ok       CRDs of Dynamo: not installed: only dynamo.enabled needs them\n"
        "ok       webhooks: 4 are configured\n"
        "ok       certificates: the CA of the webhooks is valid until 2028-01-15\n"
        "ok       admission: a set that breaks a rule is refused (tried in a dry run)\n"
        "ok       schedulers: configured: kai-scheduler\n"
        "ok       feature gates: HPAScaleToZero is off: minReplicas: 0 of autoscalers is refused\n"
        "ok       NVIDIA driver: installed, and resource.k8s.io/v1 is served\n"
    )


def other_crd() -> dict[str, Any]:
    body = copy.deepcopy(definitions()["podgangs.scheduler.grove.io"])
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "older"
    return body


def with_dynamo() -> Any:
    return loading.load({"dynamo": {"enabled": True}})


def with_mnnvl() -> Any:
    return loading.load({"network": {"autoMNNVLEnabled": True}})


CASES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"server_version": "v1.33.9"}, "API server", "fail", "Kubernetes v1.33.9 is not supported"),
    ({"server_version": "v1.99.0"}, "API server", "warn", "Kubernetes v1.99.0 is newer than 1.37"),
    ({"server_version": ""}, "API server", "unknown", "cannot be known: https://cluster reports no version"),
    ({"leases": ()}, "operator leads", "warn", "no Lease"),
    ({"leases": (), "deployments": ()}, "operator leads", "fail", "no Lease"),
    ({"leases": (lease("2027-01-15T07:00:00.000000Z"),)}, "operator leads", "fail", "none leads"),
    ({"leases": NO_RIGHT}, "operator leads", "unknown", "cannot be known: no right to list things"),
    ({"deployments": ()}, "operator pods", "ok", "the operator runs outside of the cluster"),
    ({"deployments": (), "leases": ()}, "operator pods", "fail", "there is no Deployment of the chart"),
    ({"deployments": (deployment(readyReplicas=0),)}, "operator pods", "fail", "0 of 2 pods are ready"),
    ({"deployments": (deployment(readyReplicas=1),)}, "operator pods", "warn", "1 of 2 pods are ready"),
    ({"deployments": (deployment(), deployment())}, "operator pods", "fail", "installed more than once"),
    ({"deployments": (deployment("a/b:v1.0.0"),)}, "versions", "warn", "grove is 1.2.3, the operator v1.0.0"),
    ({"deployments": (deployment("a/b@sha256:12"),)}, "versions", "unknown", "a/b@sha256:12 has no tag"),
    ({"definitions": NO_RIGHT}, "CRDs", "unknown", "no right to list things"),
    (
        {"definitions": definitions(**{"podgangs.scheduler.grove.io": None})},
        "CRDs", "fail", "not installed: podgangs.scheduler.grove.io",
    ),
    (
        {"definitions": definitions(**{"podgangs.scheduler.grove.io": {**other_crd(), "status": {}}})},
        "CRDs", "fail", "not established: podgangs.scheduler.grove.io",
    ),
    (
        {"definitions": definitions(**{"podgangs.scheduler.grove.io": other_crd()})},
        "CRDs", "warn", "not those of this version: podgangs.scheduler.grove.io",
    ),
    ({"configuration": with_dynamo()}, "CRDs of Dynamo", "fail", "not installed: dynamo"),
    ({"webhooks": NO_RIGHT}, "webhooks", "unknown", "no right to list things"),
    ({"webhooks": {}}, "webhooks", "fail", "not configured: podcliqueset-defaulting-webhook, "),
    ({"webhooks": webhooks("")}, "webhooks", "fail", "without a CA bundle"),
    ({"webhooks": webhooks("bm90aGluZw==")}, "certificates", "fail", "is no certificate"),
    ({"webhooks": webhooks("%")}, "certificates", "fail", "is no certificate"),
    ({"webhooks": webhooks(authority(-1))}, "certificates", "fail", "expired on 2027-01-14"),
    ({"webhooks": webhooks(authority(3))}, "certificates", "warn", "expires on 2027-01-18"),
    ({"webhooks": {}}, "certificates", "unknown", "no webhook configuration has a CA bundle"),
    ({"review": ""}, "admission", "fail", "accepts a set that breaks a rule"),
    ({"review": "failed calling webhook\n x"}, "admission", "fail", "failed calling webhook x"),
    ({"review": "no, by policy"}, "admission", "warn", "not by the webhook: no, by policy"),
    ({"review": NO_RIGHT}, "admission", "unknown", "no right to list things"),
    ({"served": {}}, "schedulers", "fail", "configured and not installed: kai-scheduler"),
    (
        {"configuration": loading.load({})},
        "schedulers", "ok", "configured: default-scheduler; installed and not configured: kai-scheduler",
    ),
    ({"configuration": NO_RIGHT}, "schedulers", "unknown", "list things; installed: kai-scheduler"),
    ({"gates": NO_RIGHT}, "feature gates", "unknown", "no right to list things"),
    ({"gates": {}}, "feature gates", "unknown", "the API server reports none"),
    ({"served": {}}, "NVIDIA driver", "ok", "not installed: only NVLink domains need it"),
    ({"served": {}, "configuration": with_mnnvl()}, "NVIDIA driver", "fail", "autoMNNVLEnabled needs"),
    ({"served": {"resource.nvidia.com": ("v1",)}}, "NVIDIA driver", "warn", "v1beta1 is not served, only v1"),
    ({"served": {"resource.nvidia.com": ("v1beta1",)}}, "NVIDIA driver", "fail", "resource.k8s.io/v1 is not"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "name", "state", "message"), CASES)
def test_check_names_problem_and_remedy(changes, name, state, message):
    (found,) = (each for each in all_checks(replace(HEALTHY, **changes), LEASE) if each.name == name)
    assert found.state == state
    assert message in found.message
    assert bool(found.remedy) is (state in ("warn", "fail"))


def test_lines_fit_a_narrow_terminal():
    check = Check("CRDs", State.FAIL, "not installed: podgangs.scheduler.grove.io", "grove crds --apply")
    assert "\n".join(check_lines(check, 40)) == (
        "fail     CRDs: not installed:\n         podgangs.scheduler.grove.io\n         do: grove crds --apply"
    )


def test_control_characters_of_answers_are_not_printed():
    (line, *_) = check_lines(Check("admission", State.WARN, "a\x1b[31mb", "c"), None)
    assert "\x1b" not in line
