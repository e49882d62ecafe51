"""Renders what an endpoint picker (type `epp`) needs: arguments, volumes, its configuration, and the
InferencePool that names it as the picker of the graph's workers."""

from __future__ import annotations

from typing import Any

import yaml

from grove.dynamo import keys, naming
from grove.dynamo.graph import EPP, Body, Graph, GraphComponent

POOL_GROUP = "inference.networking.k8s.io"
POOL_VERSION = f"{POOL_GROUP}/v1"
POOL_KIND = "InferencePool"
GRPC_PORT, _HEALTH_PORT, _METRICS_PORT = 9002, 9003, 9090
_FRONTEND_PORT = 8000
GRACE_SECONDS = 130
CONFIG_KEY = "epp-config-dynamo.yaml"
_CONFIG_FOLDER = "/etc/epp"
_CONFIG_HEADER = {"apiVersion": "inference.networking.x-k8s.io/v1alpha1", "kind": "EndpointPickerConfig"}
_CONFIG_VOLUME, _CACHE_VOLUME = "epp-config", "hf-cache"
RULES: list[Body] = [
    {"apiGroups": [POOL_GROUP], "resources": ["inferencepools"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["nvidia.com"], "resources": ["dynamoworkermetadatas"], "verbs": ["get", "list", "watch"]},
]
"""The rights of a picker in its namespace."""


def base_container(graph: Graph) -> Body:
    """The defaults of its container. The command is that of the image."""
    probe: Body = {"grpc": {"port": _HEALTH_PORT, "service": "inference-extension"}, "periodSeconds": 10}
    ports = {"grpc": GRPC_PORT, "grpc-health": _HEALTH_PORT, "metrics": _METRICS_PORT}
    return {
        "args": _arguments(graph),
        "ports": [
            {"containerPort": number, "name": name, "protocol": "TCP"} for name, number in ports.items()
        ],
        "livenessProbe": {**probe, "initialDelaySeconds": 5},
        "readinessProbe": {**probe, "initialDelaySeconds": 5},
        # It starts to serve when it has found workers.
        "startupProbe": {**probe, "failureThreshold": 180},
        "volumeMounts": [
            {"name": _CONFIG_VOLUME, "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": _CACHE_VOLUME, "mountPath": "/home/nonroot/.cache"},
        ],
    }


def variables(namespace: str) -> dict[str, str]:
    """The environment variables of its container, in a Dynamo namespace."""
    return {
        "USE_STREAMING": "true",
        "RUST_LOG": "info",
        "DYN_ENFORCE_DISAGG": "false",
        "DYN_NAMESPACE_PREFIX": namespace,
    }


def volumes(graph: Graph, component: GraphComponent) -> list[Body]:
    """The volumes of its pod."""
    picker = component.picker
    name = picker.config_map if picker and picker.config_map else naming.picker_config(graph)
    key = picker.key if picker and picker.key else CONFIG_KEY
    config = {"name": name, "items": [{"key": key, "path": CONFIG_KEY}]}
    return [{"name": _CONFIG_VOLUME, "configMap": config}, {"name": _CACHE_VOLUME, "emptyDir": {}}]


def config_map(graph: Graph, component: GraphComponent) -> Body | None:
    """The ConfigMap with its configuration; None if the user provides one."""
    if component.picker is None or component.picker.config is None:
        return None
    given = {key: value for key, value in component.picker.config.items() if key not in _CONFIG_HEADER}
    text = _as_yaml(_CONFIG_HEADER) + (_as_yaml(given) if given else "")
    metadata = _metadata(graph, component, naming.picker_config(graph))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {CONFIG_KEY: text}}


def inference_pool(graph: Graph, component: GraphComponent) -> Body:
    """The InferencePool of the graph's workers."""
    selected = {
        keys.COMPONENT_CLASS: keys.WORKER_CLASS,
        keys.NAMESPACE: graph.dynamo_namespace(component),
    }
    picker = {"kind": "Service", "name": naming.service(graph, component), "port": {"number": GRPC_PORT}}
    return {
        "apiVersion": POOL_VERSION,
        "kind": POOL_KIND,
        "metadata": _metadata(graph, component, naming.inference_pool(graph)),
        "spec": {
            "targetPorts": [{"number": _FRONTEND_PORT}],
            "selector": {"matchLabels": selected},
            "endpointPickerRef": picker,
        },
    }


def service_port() -> Body:
    """The port of its Service."""
    port = {"name": "grpc", "port": GRPC_PORT, "targetPort": GRPC_PORT, "protocol": "TCP"}
    return {**port, "appProtocol": "http2"}


def _arguments(graph: Graph) -> list[str]:
    flags = {
        "--pool-name": naming.inference_pool(graph),
        "--pool-namespace": graph.namespace,
        "--pool-group": POOL_GROUP,
        "-v": "4",
        "--zap-encoder": "json",
        "--grpc-port": str(GRPC_PORT),
        "--grpc-health-port": str(_HEALTH_PORT),
        "--config-file": f"{_CONFIG_FOLDER}/{CONFIG_KEY}",
    }
    return [word for flag in flags.items() for word in flag]


def _metadata(graph: Graph, component: GraphComponent, name: str) -> Body:
    labels = {keys.GRAPH: graph.name, keys.COMPONENT: component.name, keys.COMPONENT_TYPE: EPP}
    return {"name": name, "namespace": graph.namespace, "labels": labels}


class _Dumper(yaml.SafeDumper):
    """Quotes every text that a parser of another version of YAML may read as a number."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = not text or text[0].isalpha()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if plain else '"')


_Dumper.add_representer(str, _text)


def _as_yaml(value: Body) -> str:
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=10_000)
