"""Names that the driver uses, and the objects that it installs."""

from __future__ import annotations

from typing import Any

from grove.api.naming.external_keys import NVIDIA_DRIVER_COMPUTE_DOMAIN
from grove.fabrics.nvidia import CHANNEL_CLASS, COMPUTE_DOMAIN, Nvidia
from grove.kube.client.resource import Resource

Body = dict[str, Any]

NAME = "dra-standin"
DRIVER = Nvidia.driver
DAEMON_CLASS = "compute-domain-daemon.nvidia.com"
KEY = NVIDIA_DRIVER_COMPUTE_DOMAIN
"""The driver's finalizer, and its label with the domain's UID on objects of a domain."""
TARGET = "resource.nvidia.com/computeDomainTarget"

PREPARED = "dra-standin/prepared"
NEVER_READY = "dra-standin/never-ready"
FLIP = "dra-standin/flip"
DELAY = "dra-standin/delay"
CLIQUE = "dra-standin/clique"
NO_CHANNEL = "dra-standin/no-channel"
KEEP_LABEL = "dra-standin/keep-label"
SKIP_TEMPLATE = "dra-standin/skip-template"
TEMPLATE_DELAY = "dra-standin/template-delay"
DEAD_CONTROLLER = "dra-standin/dead-controller"

DOMAINS = Resource(COMPUTE_DOMAIN.group, COMPUTE_DOMAIN.version, COMPUTE_DOMAIN.plural, COMPUTE_DOMAIN.name)


def definition() -> Body:
    """A CustomResourceDefinition that accepts the same objects as the driver's own."""
    text = {"type": "string"}
    template = {"type": "object", "required": ["name"], "properties": {"name": text}}
    channel = {
        "type": "object",
        "required": ["resourceClaimTemplate"],
        "properties": {
            "resourceClaimTemplate": template,
            "allocationMode": {"type": "string", "enum": ["All", "Single"], "default": "Single"},
        },
    }
    spec = {
        "type": "object",
        "required": ["channel"],
        "properties": {"numNodes": {"type": "integer", "default": 0, "minimum": 0}, "channel": channel},
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "spec is immutable"}],
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": COMPUTE_DOMAIN.crd_name},
        "spec": {
            "group": COMPUTE_DOMAIN.group,
            "scope": "Namespaced",
            "names": {
                "kind": COMPUTE_DOMAIN.name,
                "listKind": f"{COMPUTE_DOMAIN.name}List",
                "plural": COMPUTE_DOMAIN.plural,
                "singular": "computedomain",
            },
            "versions": [
                {
                    "name": COMPUTE_DOMAIN.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def device_classes() -> list[Body]:
    """The DeviceClasses of channels and of daemons."""
    return [_device_class(CHANNEL_CLASS, "channel"), _device_class(DAEMON_CLASS, "daemon")]


def _device_class(name: str, type_: str) -> Body:
    attributes = f'device.attributes["{DRIVER}"]'
    chosen = f'device.driver == "{DRIVER}" && {attributes}.type == "{type_}" && {attributes}.id == 0'
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": chosen}}]}}


def resource_slice(node: str, uid: str) -> Body:
    """The ResourceSlice of a node: one exclusive channel, and one daemon device."""
    devices = [
        {"name": f"{type_}-0", "attributes": {"type": {"string": type_}, "id": {"int": 0}}}
        for type_ in ("channel", "daemon")
    ]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "metadata": {"name": f"{node}-{DRIVER}", "ownerReferences": [owner]},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def claim_template(name: str, namespace: str, uid: str, mode: str) -> Body:
    """The ResourceClaimTemplate for the pods of a domain."""
    parameters = {
        "apiVersion": COMPUTE_DOMAIN.api_version,
        "kind": "ComputeDomainChannelConfig",
        "domainID": uid,
        "allocationMode": mode,
    }
    devices = {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}],
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {KEY: uid, TARGET: "Workload"},
            "finalizers": [KEY],
        },
        "spec": {"spec": {"devices": devices}},
    }
