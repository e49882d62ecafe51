"""The chart with a values file of upstream's chart."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from grove.api.configuration import loading
from grove.api.configuration.types import CertProvisionMode, WebhookServer
from tests.chart import ADMISSION, CHART, NAMESPACE, Refused, one, render, run

pytestmark = pytest.mark.cluster  # Helm may have to be built

Body = dict[str, Any]
VALUES = Path(__file__).with_name("upstream-values.yaml")
OWN = "example.com/of"
OPERATOR = "grove-operator"


@cache
def rendered() -> tuple[Body, ...]:
    text = run("template", "grove", CHART, "--namespace", NAMESPACE, "--values", VALUES)
    return tuple(body for body in yaml.load_all(text, yaml.CSafeLoader) if body)


def found(kind: str, name: str = "") -> Body:
    return one(list(rendered()), kind, name)


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        ("ServiceAccount", OPERATOR, "service-account"),
        ("ConfigMap", "", "config-map"),
        ("Deployment", "", "deployment"),
        ("Service", "", "service"),
        ("ServiceMonitor", "grove-operator-monitor", "service-monitor"),
        ("ClusterRole", "grove:system:grove-operator", "cluster-role"),
        ("ClusterRoleBinding", "grove:system:grove-operator", "cluster-role-binding"),
        ("Role", "grove:system:grove-operator-lease", "lease-role"),
        ("RoleBinding", "grove:system:grove-operator-lease", "lease-role-binding"),
        ("ValidatingWebhookConfiguration", "podcliqueset-validating-webhook", "pcs-validation"),
        ("MutatingWebhookConfiguration", "podcliqueset-defaulting-webhook", "pcs-defaulting"),
        ("ValidatingWebhookConfiguration", "clustertopology-validating-webhook", "topology-validation"),
        ("ValidatingWebhookConfiguration", "authorizer-webhook", "authorizer"),
    ],
)
def test_object_has_its_labels_and_those_of_the_release(kind: str, name: str, label: str) -> None:
    labels = found(kind, name)["metadata"]["labels"]
    assert labels[OWN] == label
    assert labels["app.kubernetes.io/name"] == OPERATOR


def test_every_label_of_the_file_is_used() -> None:
    own = (body["metadata"] for body in rendered() if body["metadata"]["name"] != ADMISSION)
    labelled = [each["labels"][OWN] for each in own if OWN in each["labels"]]
    written = VALUES.read_text().count(OWN)
    assert len(set(labelled)) == len(labelled) == written - 1, (
        "all but that of the Secret, which is not rendered"
    )


@pytest.mark.parametrize(
    ("name", "annotation"),
    [
        ("podcliqueset-validating-webhook", "a/validation"),
        ("podcliqueset-defaulting-webhook", "a/defaulting"),
        ("clustertopology-validating-webhook", "a/topology"),
        ("authorizer-webhook", "a/authorizer"),
    ],
)
def test_each_webhook_has_its_own_annotations(name: str, annotation: str) -> None:
    (body,) = (each for each in rendered() if each["metadata"]["name"] == name)
    assert body["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": annotation}


def test_pods_keep_the_labels_of_the_selector() -> None:
    spec = found("Deployment")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert (labels["app.kubernetes.io/part-of"], labels[OWN]) == ("grove", "deployment")


def test_init_image_of_the_file_replaces_that_of_the_chart() -> None:
    (container,) = found("Deployment")["spec"]["template"]["spec"]["containers"]
    images = [each["value"] for each in container["env"] if each["name"] == "GROVE_INIT_CONTAINER_IMAGE"]
    assert images == ["registry.example.com/grove-initc"]


def test_empty_certificate_keys_have_their_defaults() -> None:
    configuration = loading.load(yaml.safe_load(found("ConfigMap")["data"]["config.yaml"]))
    webhooks = configuration.server.webhooks
    assert webhooks.cert_provision_mode is CertProvisionMode.AUTO
    assert webhooks.secret_name == WebhookServer().secret_name
    _, rule = found("Role", "grove:system:grove-operator-certificate")["rules"]
    assert rule["resourceNames"] == [webhooks.secret_name]


def test_empty_names_with_manual_certificates_have_defaults() -> None:
    """Where the chart mounts the certificate, the webhooks read it."""
    manual = {"certProvisionMode": "manual", "secretName": "", "serverCertDir": ""}
    objects = render({"config.server.webhooks": manual})
    spec = one(objects, "Deployment", ADMISSION)["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in spec["volumes"]}
    mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
    default = WebhookServer()
    assert volumes["certificates"]["secret"]["secretName"] == default.secret_name
    assert mounts["certificates"] == default.server_cert_dir


def test_digest_as_tag_is_a_digest() -> None:
    digest = "sha256:" + "0" * 64
    (container,) = one(render({"image.tag": digest}), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"grove-operator@{digest}"


def test_service_account_may_mount_its_token() -> None:
    account = one(render({"serviceAccount.automount": True}), "ServiceAccount", OPERATOR)
    assert account["automountServiceAccountToken"] is True
    assert found("ServiceAccount", OPERATOR)["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clusterRole.name", "mine"),
        ("leaseRoleBinding.name", "mine"),
        ("webhooks.podCliqueValidationWebhook", {}),
        ("webhookServerSecret.enable", True),
        ("serviceMonitor.enabled", True),
    ],
)
def test_what_cannot_have_an_effect_is_rejected(key: str, value: object) -> None:
    with pytest.raises(Refused, match="/" + key.partition(".")[0]):
        render({key: value})
