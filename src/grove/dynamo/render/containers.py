"""Renders the containers of Dynamo: defaults of the component's type, overridden by the user's fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grove.dynamo import keys
from grove.dynamo.decode.normalize import merged_env
from grove.dynamo.graph import EPP, FRONTEND, MAIN, PLANNER, WORKERS, Body, Graph, GraphComponent
from grove.dynamo.render import endpoint_picker
from grove.dynamo.worker_generation import generation

_METRICS, _SYSTEM, _NIXL, _HTTP = 9085, 9090, 19090, 8000


def main_container(graph: Graph, component: GraphComponent) -> Body:
    """The main container of a component."""
    given = {**component.main, "name": MAIN}
    given["env"] = merged_env(graph.env, component.main.get("env", ()))
    return _with_type_defaults(graph, component, component.type, given)


def frontend_sidecar(graph: Graph, component: GraphComponent, given: Body, mounts: Iterable[Body]) -> Body:
    """A frontend sidecar, with the volume mounts of the main container that it lacks."""
    found = _with_type_defaults(graph, component, FRONTEND, given)
    own = found.get("volumeMounts", [])
    paths = {each.get("mountPath") for each in own}
    if mounts := [*own, *(each for each in mounts if each.get("mountPath") not in paths)]:
        found["volumeMounts"] = mounts
    return found


def _with_type_defaults(graph: Graph, component: GraphComponent, kind: str, given: Body) -> Body:
    """The container with the defaults of a type, and variables sorted by name. Fields of the user take
    precedence; lists replace lists."""
    found = {
        **_base(graph, kind),
        **{key: value for key, value in given.items() if value not in ({}, [], "")},
    }
    defaults = _variables(graph, component, kind, given["name"])
    env = merged_env(defaults, given.get("env", ()))
    return {**found, "env": sorted(env, key=lambda each: str(each["name"]))}


def _base(graph: Graph, kind: str) -> Body:
    if kind == FRONTEND:
        return {
            "command": ["python3"],
            "args": ["-m", "dynamo.frontend"],
            "ports": [_port("http", _HTTP)],
            "livenessProbe": _probe("/live", "http", delay=15, period=10, timeout=1, failures=3),
            "readinessProbe": _probe("/health", "http", delay=10, period=10, timeout=3, failures=3),
        }
    if kind == EPP:
        return endpoint_picker.base_container(graph)
    shell: Body = {"command": ["/bin/sh", "-c"]}
    if kind in WORKERS:
        return shell | _watched() | {"ports": [_port("system", _SYSTEM), _port("nixl", _NIXL)]}
    if kind == PLANNER:
        return shell | _watched() | {"ports": [_port("metrics", _METRICS), _port("system", _SYSTEM)]}
    return shell


def _watched() -> Body:
    return {
        "livenessProbe": _probe("/live", "system", period=5, timeout=4, failures=1),
        "readinessProbe": _probe("/health", "system", period=10, timeout=4, failures=3),
        "startupProbe": _probe("/live", "system", period=10, timeout=5, failures=720),
    }


def _port(name: str, number: int) -> Body:
    return {"containerPort": number, "name": name, "protocol": "TCP"}


def _probe(path: str, port: str, *, period: int, timeout: int, failures: int, delay: int = 0) -> Body:
    found: Body = {
        "httpGet": {"path": path, "port": port},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
    return found | {"initialDelaySeconds": delay} if delay else found


def _variables(graph: Graph, component: GraphComponent, kind: str, name: str) -> list[Body]:
    namespace = graph.dynamo_namespace(component)
    values = {
        "DYN_NAMESPACE": namespace,
        "DYN_PARENT_DGD_K8S_NAME": graph.name,
        "DYN_PARENT_DGD_K8S_NAMESPACE": graph.namespace,
    }
    if kind:
        values["DYN_COMPONENT"] = kind
    if graph.discovered_by_kubernetes:
        values["DYN_DISCOVERY_BACKEND"] = keys.KUBERNETES
        mode = {**graph.own_annotations, **component.pod_annotations}.get(keys.DISCOVERY_MODE)
        if mode == "container":
            values |= {"CONTAINER_NAME": name, "DYN_KUBE_DISCOVERY_MODE": mode}
    if kind == FRONTEND:
        values |= {"DYNAMO_PORT": str(_HTTP), "DYN_HTTP_PORT": str(_HTTP), "DYN_NAMESPACE_PREFIX": namespace}
    elif kind in WORKERS:
        values |= _WORKER
        if known := generation(graph):
            values["DYN_NAMESPACE_WORKER_SUFFIX"] = known
    elif kind == PLANNER:
        values |= {"PLANNER_PROMETHEUS_PORT": str(_METRICS), "DYN_SYSTEM_PORT": str(_SYSTEM)}
    elif kind == EPP:
        values |= endpoint_picker.variables(namespace)
    fields = [field_env("POD_NAME", "metadata.name"), field_env("POD_NAMESPACE", "metadata.namespace")]
    fields.append(field_env("POD_UID", "metadata.uid"))
    return [{"name": name, "value": value} for name, value in values.items()] + fields


_WORKER = {
    "DYN_SYSTEM_ENABLED": "true",
    "DYN_SYSTEM_PORT": str(_SYSTEM),
    "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]',
    "DYN_HEALTH_CHECK_ENABLED": "false",
    "NIXL_TELEMETRY_ENABLE": "n",
    "NIXL_TELEMETRY_EXPORTER": "prometheus",
    "NIXL_TELEMETRY_PROMETHEUS_PORT": str(_NIXL),
    "DYN_FORWARDPASS_METRIC_PORT": "20380",
}


def field_env(name: str, field: str) -> Body:
    """An environment variable with a field of the pod (downward API)."""
    found: dict[str, Any] = {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
    return found
