"""Validation of the components of a graph: on creation, on update, and per backend."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grove.api.field_errors import FieldError, duplicate, forbidden, invalid, required
from grove.api.field_errors import unsupported as not_among
from grove.api.formats import quantities
from grove.api.wire import MOST
from grove.dynamo import keys, naming
from grove.dynamo.admission import endpoint_picker_rules, engine_rules
from grove.dynamo.admission.field_paths import is_alpha, main_container, pod_spec
from grove.dynamo.api.common import MOST_NODES
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.context import GraphContext, runs_on_grove
from grove.dynamo.graph import EPP, FRONTEND, PLANNER, WORKERS, Graph, GraphComponent, mapping
from grove.dynamo.render import command_line, engines

_TYPES = (FRONTEND, *sorted(WORKERS), PLANNER, EPP)
_IS_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?").fullmatch
_VERSION = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?").fullmatch
_CANONICAL = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}").fullmatch
_MAX_NAME = 63
NO_MULTINODE_BACKEND = (
    "needs Grove, which this graph opts out of, or LeaderWorkerSet, which the cluster does not serve"
)


def is_version(text: str) -> bool:
    """Whether the text is a semantic version."""
    return bool(_VERSION(text))


def errors(found: DynamoGraphDeployment, graph: Graph) -> Iterator[FieldError]:
    """Errors of components, on creation and on update."""
    framework = found.spec.backend_framework
    if framework and framework not in command_line.FRAMEWORKS:
        yield not_among("spec.backendFramework", framework, command_line.FRAMEWORKS)
    yield from _names(graph)
    for component in graph.components:
        yield from _counts(component)
        yield from _containers(component)
        yield from _storage(graph, component)
        yield from engine_rules.errors(graph, component)
        yield from _type(component)
    yield from _alpha(found)
    yield from endpoint_picker_rules.errors(graph)


def _type(component: GraphComponent) -> Iterator[FieldError]:
    """Checks the type; in v1alpha1 any word is accepted."""
    if component.type and not is_alpha(component) and component.type not in _TYPES:
        yield not_among(f"{component.path}.type", component.type, _TYPES)


def on_create(graph: Graph) -> Iterator[FieldError]:
    """Errors of a new graph only: a component needs an image."""
    for component in graph.components:
        if not component.main.get("image"):
            yield required(f"{main_container(component)}.image", "the container main needs an image")


def on_update(old: Graph, new: Graph) -> Iterator[FieldError]:
    """Errors of an update: immutable fields, components added or removed."""
    before = {each.name: each for each in old.components}
    after = {each.name for each in new.components}
    for removed in sorted(before.keys() - after):
        yield forbidden(before[removed].path, f"component {removed} cannot be removed: set its replicas to 0")
    for component in new.components:
        known = before.get(component.name)
        if known is None:
            yield forbidden(
                component.path, "a component cannot be added: create another DynamoGraphDeployment"
            )
            continue
        if known.nodes != component.nodes:
            why = f"cannot be changed from {known.nodes}: delete and recreate the DynamoGraphDeployment"
            yield forbidden(f"{component.path}.multinode.nodeCount", why)
        if known.min_available != component.min_available:
            yield forbidden(f"{component.path}.minAvailable", f"cannot be changed from {known.min_available}")


def backend_errors(graph: Graph, known: GraphContext) -> Iterator[FieldError]:
    """Fields that the backend of the graph does not support."""
    for component in graph.components:
        for name in (naming.child_object(graph, component), graph.dynamo_namespace(component)):
            if len(name) > _MAX_NAME:
                why = f"{name} is the value of a pod label and may have at most {_MAX_NAME} characters"
                yield invalid(component.path, component.name, why)
    yield from endpoint_picker_rules.cluster_errors(graph, known)
    if runs_on_grove(graph):
        yield from _too_long(graph)
        return
    if not known.without_grove:
        path = f"metadata.annotations[{keys.ENABLE_GROVE}]"
        yield forbidden(
            path, "opting out of Grove is disabled in this cluster: set config.dynamo.withoutGrove"
        )
    if graph.restart is not None:
        yield forbidden("spec.restart", "only supported with Grove: use kubectl rollout restart")
    if graph.priority_class:
        yield forbidden("spec.priorityClassName", "only supported with Grove: set it in the pod templates")
    for component in graph.components:
        if component.min_available != 1:
            yield forbidden(f"{component.path}.minAvailable", "only supported with Grove")
        if component.multinode and not known.leader_worker_sets:
            yield forbidden(f"{component.path}.multinode", NO_MULTINODE_BACKEND)


def warnings(graph: Graph) -> Iterator[str]:
    """Warnings about settings that are accepted and probably unintended."""
    for component in graph.components:
        image = str(component.main.get("image", ""))
        tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        if image and not is_version(tag) and not component.version:
            path = f"{main_container(component)}.image"
            yield f"{path}: {tag or 'no tag'} does not contain the version of Dynamo"
        yield from engine_rules.warnings(graph, component)


def _names(graph: Graph) -> Iterator[FieldError]:
    seen: set[str] = set()
    for component in graph.components:
        alpha = is_alpha(component)
        path = component.path if alpha else f"{component.path}.name"
        if not component.name:
            yield required(path)
        elif not _IS_NAME(component.name) or len(component.name) > _MAX_NAME:
            why = f"must be letters, digits and inner hyphens, at most {_MAX_NAME}"
            yield invalid(path, component.name, why)
        if component.lower in seen:
            yield duplicate(path, component.lower)
        seen.add(component.lower)


def _too_long(graph: Graph) -> Iterator[FieldError]:
    name = naming.workload(graph)
    for component in graph.components:
        if (length := len(name) + naming.added_length(component)) > naming.MAX_NAME:
            why = f"with the name of the graph it has {length} characters, the limit is {naming.MAX_NAME}"
            yield invalid(component.path, component.name, f"{why}: shorten either")


def _counts(component: GraphComponent) -> Iterator[FieldError]:
    path = component.path
    if component.replicas < 0:
        yield invalid(f"{path}.replicas", component.replicas, "must not be negative")
    elif component.replicas > MOST:
        yield invalid(f"{path}.replicas", component.replicas, f"must not be more than {MOST}")
    if component.min_available < 1:
        yield invalid(f"{path}.minAvailable", component.min_available, "must be at least 1")
    elif 0 < component.replicas < component.min_available:
        why = f"must not be more than replicas, which is {component.replicas}"
        yield invalid(f"{path}.minAvailable", component.min_available, why)
    if component.nodes < 1:
        yield invalid(f"{path}.multinode.nodeCount", component.nodes, "must be at least 2")
    elif component.nodes > MOST_NODES:
        why = f"must not be more than {MOST_NODES}"
        yield invalid(f"{path}.multinode.nodeCount", component.nodes, why)


def _containers(component: GraphComponent) -> Iterator[FieldError]:
    beside = [("containers", each) for each in component.sidecars]
    beside += [("initContainers", each) for each in component.pod.get("initContainers", ())]
    for field, container in beside:
        if not container.get("image"):
            name = container.get("name", "")
            yield required(f"{pod_spec(component)}.{field}[{name}].image", "every container needs an image")
    names = [str(each.get("name", "")) for each in component.sidecars]
    if component.frontend is not None and component.frontend not in names:
        path = f"{component.path}.frontendSidecar"
        yield invalid(path, component.frontend, "must name a container beside main in the pod template")
    if component.version and not _CANONICAL(component.version):
        path = f"{component.path}.runtimeVersionOverride"
        yield invalid(path, component.version, "must be a version such as 1.4.0")
    for mount in component.main.get("volumeMounts", ()):
        if not mount.get("name") or not mount.get("mountPath"):
            yield required(f"{main_container(component)}.volumeMounts", "every mount needs a name and a path")


def _storage(graph: Graph, component: GraphComponent) -> Iterator[FieldError]:
    if component.shared_memory and quantities.parse(component.shared_memory) < 0:
        path = f"{component.path}.sharedMemorySize"
        yield invalid(path, component.shared_memory, "must not be negative; 0 means none")
    if component.cache is not None:
        yield from _cache(graph, component, component.cache.claim)


def _cache(graph: Graph, component: GraphComponent, claim: str) -> Iterator[FieldError]:
    """Errors of the compilation cache: what the container mounts at its path must be the same claim."""
    path = engines.cache_path(graph, component)
    field = f"{component.path}.{'volumeMounts' if is_alpha(component) else 'compilationCache'}"
    if not claim:
        yield required(f"{field}.{'name' if is_alpha(component) else 'pvcName'}")
    elif not path:
        name = "mountPoint" if is_alpha(component) else "mountPath"
        yield required(f"{field}.{name}", "only vLLM has a default path for its compilation cache")
    claims = {
        each.get("name"): mapping(each.get("persistentVolumeClaim")).get("claimName")
        for each in component.pod.get("volumes", ())
    }
    for mount in component.main.get("volumeMounts", ()):
        if not path or mount.get("mountPath") != path:
            continue
        name = mount.get("name")
        if claims.get(name, name) != claim:
            why = f"main mounts volume {name} there: mount PersistentVolumeClaim {claim}, or remove the mount"
            yield invalid(field, path, why)
        elif mount.get("readOnly"):
            yield invalid(f"{main_container(component)}.volumeMounts", path, "the cache must be writable")


def _alpha(found: DynamoGraphDeployment) -> Iterator[FieldError]:
    """Errors that only v1alpha1 allows."""
    for index, claim in enumerate(found.spec.pvcs):
        path = f"spec.pvcs[{index}]"
        if not claim.name:
            yield required(f"{path}.name")
        if claim.create:
            needs = {"size": claim.size, "storageClass": claim.storage_class}
            needs["volumeAccessMode"] = claim.volume_access_mode
            yield from (
                required(f"{path}.{key}", "to create the claim") for key, value in needs.items() if not value
            )
    for name, service in found.spec.services.items():
        path = f"spec.services[{name}]"
        for index, mount in enumerate(service.volume_mounts):
            if not mount.mount_point and not mount.use_as_compilation_cache:
                yield required(f"{path}.volumeMounts[{index}].mountPoint")
        memory = service.shared_memory
        if memory is not None and not memory.disabled and memory.size is None:
            yield required(f"{path}.sharedMemory.size", "unless it is disabled")
