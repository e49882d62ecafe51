"""Renders pod specs, labels and annotations of a component, or of one role of it."""

from __future__ import annotations

from typing import Any

from grove.api.formats import quantities
from grove.dynamo import keys, naming
from grove.dynamo.graph import EPP, PLANNER, Body, Graph, GraphComponent
from grove.dynamo.render import containers, endpoint_picker, engines
from grove.dynamo.render.engines import ComponentRole
from grove.dynamo.worker_generation import generation

_SHARED_MEMORY = "shared-memory"
_DEFAULT_SHM_SIZE = "8Gi"
_MEMORY_PATH = "/dev/shm"  # noqa: S108 - a mount of the container
_GRACE_SECONDS = 60


def pod_spec(part: ComponentRole) -> Body:
    """The pod spec: defaults of the type and the engine, overridden by the user's fields. Without discovered
    image pull Secrets: `image_pull_secrets` adds them."""
    graph, component = part.graph, part.component
    main = _with_cache(graph, component, containers.main_container(graph, component))
    launched = engines.launch(part, main)
    grace = endpoint_picker.GRACE_SECONDS if component.type == EPP else _GRACE_SECONDS
    spec: Body = {"restartPolicy": "Always", "terminationGracePeriodSeconds": grace}
    spec |= {key: value for key, value in component.pod.items() if value != []}
    if not component.pod.get("securityContext"):
        spec["securityContext"] = {"fsGroup": 1000}
    if not spec.get("serviceAccountName") and (account := _account(graph, component)):
        spec["serviceAccountName"] = account
    volumes = [*component.pod.get("volumes", ()), *launched.volumes]
    if component.type == EPP:
        volumes = [*endpoint_picker.volumes(graph, component), *volumes]
    spec["containers"] = [main, *_sidecars(graph, component, main)]
    spec["containers"][0], volumes = _with_memory(component, launched.container, volumes)
    if volumes := _ordered_volumes(spec["containers"][0], volumes):
        spec["volumes"] = volumes
    if init := [*component.pod.get("initContainers", ()), *launched.init_containers]:
        spec["initContainers"] = init
    return spec


def _sidecars(graph: Graph, component: GraphComponent, main: Body) -> list[Body]:
    """The sidecars. A frontend gets the mounts of the main container, but not those of its engine or of
    shared memory."""
    mounts = main.get("volumeMounts", ())
    return [
        containers.frontend_sidecar(graph, component, each, mounts)
        if each.get("name") == component.frontend
        else each
        for each in component.sidecars
    ]


def labels(graph: Graph, component: GraphComponent) -> dict[str, str]:
    """The labels of its pods. The user cannot override those that selectors use."""
    identity = {
        keys.SELECTOR: naming.child_object(graph, component),
        keys.GRAPH: graph.name,
        keys.COMPONENT: component.name,
        keys.NAMESPACE: graph.dynamo_namespace(component),
    }
    if component.type:
        identity[keys.COMPONENT_TYPE] = component.type
    if component.type in ("prefill", "decode"):
        identity[keys.SUB_COMPONENT_TYPE] = component.type
    if component.runs_engine and graph.has_picker:
        identity[keys.COMPONENT_CLASS] = keys.WORKER_CLASS
    if component.runs_engine and (known := generation(graph)):
        identity[keys.WORKER_HASH] = known
    generated = {}
    if graph.own_annotations.get(keys.ENABLE_METRICS, "").lower() != "false":
        generated[keys.METRICS_ENABLED] = "true"
    if component.model:
        identity[keys.BASE_MODEL_HASH] = naming.model_hash(component.model)
    generated |= discovery_labels(graph)
    return {**generated, **graph.labels, **component.labels, **component.pod_labels, **identity}


def discovery_labels(graph: Graph) -> dict[str, str]:
    """The labels by which frontends discover workers."""
    if not graph.discovered_by_kubernetes:
        return {}
    return {keys.DISCOVERY_BACKEND: keys.KUBERNETES, keys.DISCOVERY_ENABLED: "true"}


def pod_annotations(graph: Graph, component: GraphComponent) -> dict[str, str]:
    """The annotations of its pods."""
    own = graph.own_annotations
    down = {key: own[key] for key in keys.INHERITED if key in own}
    down.setdefault(keys.DISCOVERY_BACKEND, keys.KUBERNETES)
    down.setdefault(keys.ORIGIN_VERSION, keys.ORIGIN)
    return {**down, **graph.annotations, **component.annotations, **component.pod_annotations}


def _account(graph: Graph, component: GraphComponent) -> str:
    if component.type == PLANNER:
        return naming.PLANNER_ACCOUNT
    if component.type == EPP:
        return naming.PICKER_ACCOUNT
    return naming.account(graph) if graph.discovered_by_kubernetes else ""


def _with_cache(graph: Graph, component: GraphComponent, main: Body) -> Body:
    """Mounts the compilation cache, unless the container mounts something at its path: validation checks that
    this is the cache."""
    path, mounts = engines.cache_path(graph, component), main.get("volumeMounts", [])
    if component.cache is None or not path or any(each.get("mountPath") == path for each in mounts):
        return main
    return {**main, "volumeMounts": [*mounts, {"name": component.cache.claim, "mountPath": path}]}


def _with_memory(component: GraphComponent, main: Body, volumes: list[Body]) -> tuple[Body, list[Body]]:
    """Adds the volume `/dev/shm`; it replaces a mount of the user at this path."""
    size = component.shared_memory or _DEFAULT_SHM_SIZE
    if not quantities.parse(size):
        return main, volumes
    mounts = [
        each
        for each in main.get("volumeMounts", ())
        if each.get("name") != _SHARED_MEMORY and each.get("mountPath") != _MEMORY_PATH
    ]
    mount = {"name": _SHARED_MEMORY, "mountPath": _MEMORY_PATH}
    volume = {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": size}}
    kept = [each for each in volumes if each.get("name") != _SHARED_MEMORY]
    return {**main, "volumeMounts": [*mounts, mount]}, [*kept, volume]


def _ordered_volumes(main: Body, volumes: list[Body]) -> list[Body]:
    """The volumes in the order in which the main container mounts them. A mounted volume that is not declared
    is a PersistentVolumeClaim of that name."""
    named: dict[Any, Body] = {each.get("name"): each for each in volumes}
    mounted = list(dict.fromkeys(each.get("name") for each in main.get("volumeMounts", ())))
    first = [named.get(name, _claim(str(name))) for name in mounted]
    return [*first, *(each for name, each in named.items() if name not in mounted)]


def _claim(name: str) -> Body:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}
