"""A component of v1beta1 as a service of v1alpha1.

Values of the wrong type are left out here: they are preserved, and admission reports them.
"""

from __future__ import annotations

from typing import Any

from grove.dynamo.conversion import resources
from grove.dynamo.conversion.preservation import same
from grove.dynamo.conversion.services import ALPHA_FIELDS, BETA_FIELDS, SIDECAR, SUB_TYPES
from grove.dynamo.graph import MAIN, Body, mapping


def to_service(component: Body) -> Body:
    """The service of a component. Fields that both versions have are copied."""
    service: Body = {
        key: value for key, value in component.items() if key not in ALPHA_FIELDS and key not in BETA_FIELDS
    }
    kind = component.get("type")
    if kind in SUB_TYPES:
        service |= {"componentType": "worker", "subComponentType": kind}
    elif isinstance(kind, str):
        service["componentType"] = kind
    service |= _pod_fields(component)
    size = component.get("sharedMemorySize")
    if size is not None:
        service["sharedMemory"] = {"disabled": True} if same(size, "0") else {"size": size}
    if isinstance(component.get("scalingAdapter"), dict):
        service["scalingAdapter"] = {"enabled": True}
    if isinstance(cache := component.get("compilationCache"), dict):
        mount: Body = {"name": cache.get("pvcName", ""), "useAsCompilationCache": True}
        if "mountPath" in cache:
            mount["mountPoint"] = cache["mountPath"]
        service["volumeMounts"] = [mount]
    return service


def _pod_fields(component: Body) -> Body:
    template = mapping(component.get("podTemplate"))
    found: Body = {}
    if isinstance(template.get("metadata"), dict):
        found["extraPodMetadata"] = template["metadata"]
    if not isinstance(template.get("spec"), dict):
        return found
    spec = template["spec"]
    extra = {key: value for key, value in spec.items() if key not in ("containers", "mainContainer")}
    if isinstance(spec.get("containers"), list):
        containers = list(spec["containers"])
        found |= _take_sidecar(component, containers)
        index = next((i for i, each in enumerate(containers) if _name(each) == MAIN), None)
        if index is not None:
            main = containers.pop(index)
            own, extra["mainContainer"] = _split_main({key: main[key] for key in main if key != "name"})
            found |= own
        if containers or (index is None and "frontendSidecar" not in found):
            extra["containers"] = containers
    if extra or "frontendSidecar" not in found:
        found["extraPodSpec"] = extra
    return found


def _split_main(main: Body) -> tuple[Body, Body]:
    """The fields of the main container that a service has itself, and the rest. Dynamo's planner reads the
    resources there."""
    own: Body = {}
    if isinstance(written := main.get("resources"), dict):
        found = resources.to_alpha(written)
        if same(resources.to_beta(found), written):
            own["resources"] = found
    if secret := _secret_name(main.get("envFrom")):
        own["envFromSecret"] = secret
    taken = {"resources"} & own.keys() | ({"envFrom"} if secret else set())
    return own, {key: value for key, value in main.items() if key not in taken}


def _take_sidecar(component: Body, containers: list[Any]) -> Body:
    """Remove the last container if v1alpha1 describes it by `frontendSidecar`, and return that."""
    if component.get("frontendSidecar") != SIDECAR or not containers or _name(containers[-1]) != SIDECAR:
        return {}
    container = containers[-1]
    found = {key: container[key] for key in ("image", "args") if key in container}
    found |= {"envs": container["env"]} if "env" in container else {}
    sources = container.get("envFrom")
    if sources is not None:
        secret = _secret_name(sources)
        if not secret:
            return {}
        found["envFromSecret"] = secret
    if not {"name", "image", "args", "env", "envFrom"} >= container.keys():
        return {}
    containers.pop()
    return {"frontendSidecar": found}


def _secret_name(sources: Any) -> str:
    """The name of the Secret if it is the only source."""
    if not isinstance(sources, list) or len(sources) != 1:
        return ""
    name = mapping(mapping(sources[0]).get("secretRef")).get("name")
    return name if isinstance(name, str) and same(sources, [{"secretRef": {"name": name}}]) else ""


def _name(container: Any) -> Any:
    return mapping(container).get("name")
