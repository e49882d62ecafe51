"""A service of v1alpha1 as a component of v1beta1.

Values of the wrong type are left out here: they are preserved, and admission reports them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from grove.dynamo.conversion import resources
from grove.dynamo.conversion.container_merge import merged
from grove.dynamo.graph import MAIN, Body, mapping

SIDECAR = "sidecar-frontend"
"""Name of the container for `frontendSidecar` of v1alpha1."""
SUB_TYPES = ("prefill", "decode")
ALPHA_FIELDS = frozenset(
    {
        *(
            "annotations",
            "autoscaling",
            "checkpoint",
            "componentType",
            "dynamoNamespace",
            "envFromSecret",
            "envs",
        ),
        *("extraPodMetadata", "extraPodSpec", "failover", "frontendSidecar", "gpuMemoryService", "ingress"),
        *("labels", "livenessProbe", "readinessProbe", "resources", "scalingAdapter", "serviceName"),
        *("sharedMemory", "subComponentType", "volumeMounts"),
    }
)
"""Fields of a service that a component does not have, or has with another type."""
BETA_FIELDS = frozenset(
    {
        *("compilationCache", "frontendSidecar", "name", "podTemplate", "scalingAdapter", "sharedMemorySize"),
        "type",
    }
)
"""Fields of a component that a service does not have, or has with another type."""


def to_component(name: str, service: Body) -> Body:
    """The component of a service. Fields that both versions have are copied."""
    component: Body = {"name": name}
    component |= {
        key: value for key, value in service.items() if key not in ALPHA_FIELDS and key not in BETA_FIELDS
    }
    kind, sub = service.get("componentType"), service.get("subComponentType")
    if kind == "worker" and sub in SUB_TYPES:
        component["type"] = sub
    elif isinstance(kind, str):
        component["type"] = kind
    if template := _pod_template(service):
        component["podTemplate"] = template
    if isinstance(service.get("frontendSidecar"), dict):
        component["frontendSidecar"] = SIDECAR
    memory = mapping(service.get("sharedMemory"))
    if memory.get("disabled") is True:
        component["sharedMemorySize"] = "0"
    elif memory.get("size") is not None:
        component["sharedMemorySize"] = memory["size"]
    if mapping(service.get("scalingAdapter")).get("enabled") is True:
        component["scalingAdapter"] = {}
    if (cache := _cache(service)) is not None:
        path = {"mountPath": cache["mountPoint"]} if "mountPoint" in cache else {}
        component["compilationCache"] = {"pvcName": cache.get("name", ""), **path}
    return component


def _pod_template(service: Body) -> Body:
    found: Body = {}
    if isinstance(service.get("extraPodMetadata"), dict):
        found["metadata"] = service["extraPodMetadata"]
    extra = mapping(service.get("extraPodSpec"))
    main = _main(service, mapping(extra.get("mainContainer")))
    given = extra.get("containers")
    containers = list(given) if isinstance(given, list) else []
    if main or isinstance(extra.get("mainContainer"), dict):
        containers.insert(0, {**main, "name": MAIN})
    if isinstance(sidecar := service.get("frontendSidecar"), dict):
        containers.append(_sidecar(sidecar))
    spec = {key: value for key, value in extra.items() if key not in ("containers", "mainContainer")}
    if containers or isinstance(given, list):
        spec["containers"] = containers
    if spec or isinstance(service.get("extraPodSpec"), dict):
        found["spec"] = spec
    return found


def _main(service: Body, given: Body) -> Body:
    """The main container, as `decode.normalize` has it: fields of the service, `mainContainer` over them."""
    main: Body = {}
    if amounts := resources.to_beta(service.get("resources")):
        main["resources"] = amounts
    if secret := service.get("envFromSecret"):
        main["envFrom"] = [{"secretRef": {"name": secret}}]
    main |= {key: service[key] for key in ("livenessProbe", "readinessProbe") if service.get(key) is not None}
    main = merged(main, given)
    if env := merged_env(_list(service.get("envs")), _list(given.get("env"))):
        main["env"] = env
    if mounts := [*_list(given.get("volumeMounts")), *_plain_mounts(service)]:
        main["volumeMounts"] = mounts
    return main


def merged_env(weak: list[Any], strong: list[Any]) -> list[Any]:
    """Environment variables merged by name, as `decode.normalize` does: of several the last one, and `strong`
    takes precedence. Values without a name are kept."""
    last = {_variable_key("strong", number, each): each for number, each in enumerate(strong)}
    keyed = ((_variable_key("weak", number, each), each) for number, each in enumerate(weak))
    others = {key: each for key, each in keyed if key not in last}
    return [*others.values(), *last.values()]


def _variable_key(of: str, number: int, variable: Any) -> Hashable:
    name = mapping(variable).get("name")
    return name if isinstance(name, str) else (of, number)


def _sidecar(written: Body) -> Body:
    found: Body = {"name": SIDECAR} | {key: written[key] for key in ("image", "args") if key in written}
    if secret := written.get("envFromSecret"):
        found["envFrom"] = [{"secretRef": {"name": secret}}]
    return found | ({"env": written["envs"]} if "envs" in written else {})


def _cache(service: Body) -> Body | None:
    """The mount of the compilation cache: the first one that is marked as such."""
    mounts = _list(service.get("volumeMounts"))
    return next((each for each in mounts if mapping(each).get("useAsCompilationCache") is True), None)


def _plain_mounts(service: Body) -> list[Body]:
    cache = _cache(service)
    return [
        {"name": each.get("name", ""), "mountPath": each.get("mountPoint", "")}
        for each in _list(service.get("volumeMounts"))
        if isinstance(each, dict) and each is not cache
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
