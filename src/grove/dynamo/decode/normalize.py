"""Parses a DynamoGraphDeployment, and converts both versions of it to a `Graph`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from grove.api.naming.external_keys import NVIDIA_GPU
from grove.dynamo.api.common import EppConfig
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment, GraphSpec
from grove.dynamo.api.v1alpha1 import AlphaResources, AlphaService, Amounts, FrontendSidecar, Mount
from grove.dynamo.api.v1beta1 import BetaComponent
from grove.dynamo.conversion.container_merge import merged
from grove.dynamo.decode import decoder
from grove.dynamo.graph import (
    MAIN,
    Body,
    CompilationCacheMount,
    Graph,
    GraphComponent,
    GraphTopology,
    PickerConfig,
    VolumeClaim,
    mapping,
)

_NODES = 2
SIDECAR = "sidecar-frontend"
"""Name of the sidecar for `frontendSidecar` of v1alpha1."""


class ParsedGraph(Struct, frozen=True):
    """A decoded DynamoGraphDeployment and its version-independent form."""

    deployment: DynamoGraphDeployment
    graph: Graph


def parse(body: Any) -> ParsedGraph:
    """Parse a graph. Raises ObjectFormatError with all format errors."""
    deployment = decoder.read(body)
    return ParsedGraph(deployment, graph(deployment))


def graph(found: DynamoGraphDeployment) -> Graph:
    """The graph. With both `components` and `services`, which admission rejects, uses `components`."""
    meta, spec = found.metadata, found.spec
    topology = spec.topology_constraint
    return Graph(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        generation=meta.generation,
        components=tuple(_components(spec)),
        own_labels=meta.labels,
        own_annotations=meta.annotations,
        labels=spec.labels,
        annotations=spec.annotations,
        env=merged_env(_bodies(spec.envs), _bodies(spec.env)),
        framework=spec.backend_framework,
        priority_class=spec.priority_class_name,
        topology=GraphTopology(
            topology.cluster_topology_name or topology.topology_profile or topology.topology_name,
            topology.pack_domain,
        )
        if topology
        else GraphTopology(),
        claims=tuple(_claim(each) for each in spec.pvcs),
        restart=spec.restart,
    )


def merged_env(weak: Iterable[Body], strong: Iterable[Body]) -> tuple[Body, ...]:
    """Environment variables merged by name: of several the last one, and `strong` takes precedence."""
    last = {each.get("name"): each for each in strong}
    others = {each.get("name"): each for each in weak if each.get("name") not in last}
    return (*others.values(), *last.values())


def _components(spec: GraphSpec) -> Iterable[GraphComponent]:
    if spec.components:
        return (_component(each, f"spec.components[{i}]") for i, each in enumerate(spec.components))
    return (_service(name, spec.services[name]) for name in sorted(spec.services))


def _component(written: BetaComponent, path: str) -> GraphComponent:
    template = written.pod_template
    spec = mapping(template.spec if template else None)
    metadata = mapping(template.metadata if template else None)
    containers = [each for each in spec.get("containers", ()) if isinstance(each, dict)]
    main = next((each for each in containers if each.get("name") == MAIN), {})
    cache = written.compilation_cache
    size = written.shared_memory_size
    return GraphComponent(
        path=path,
        name=written.name,
        type=written.type,
        replicas=_or(written.replicas, 1),
        min_available=_or(written.min_available, 1),
        nodes=_or(written.multinode.node_count, _NODES) if written.multinode else 1,
        main=main,
        sidecars=tuple(each for each in containers if each is not main),
        has_scaling_adapter=written.scaling_adapter is not None,
        frontend=written.frontend_sidecar,
        version=written.runtime_version_override,
        pod={key: value for key, value in spec.items() if key != "containers"},
        pod_labels=mapping(metadata.get("labels")),
        pod_annotations=mapping(metadata.get("annotations")),
        shared_memory="" if size is None else str(size),
        cache=CompilationCacheMount(cache.pvc_name, cache.mount_path) if cache else None,
        picker=_picker(written.epp_config),
        model=written.model_ref.name if written.model_ref else "",
        everywhere=written.global_dynamo_namespace,
        domain=written.topology_constraint.pack_domain if written.topology_constraint else "",
    )


def _service(name: str, written: AlphaService) -> GraphComponent:
    spec = mapping(written.extra_pod_spec)
    containers = [each for each in spec.get("containers", ()) if isinstance(each, dict)]
    cached = next((each for each in written.volume_mounts if each.use_as_compilation_cache), None)
    extra, beside = written.extra_pod_metadata, written.frontend_sidecar
    containers += [_sidecar(beside)] if beside else []
    sub = written.sub_component_type
    is_sub = written.component_type == "worker" and sub in ("prefill", "decode")
    return GraphComponent(
        path=f"spec.services[{name}]",
        name=name,
        type=sub if is_sub else written.component_type,
        replicas=_or(written.replicas, 1),
        min_available=_or(written.min_available, 1),
        nodes=_or(written.multinode.node_count, _NODES) if written.multinode else 1,
        main=_main(written, mapping(spec.get("mainContainer")), cached),
        sidecars=tuple(containers),
        has_scaling_adapter=written.scaling_adapter is not None and written.scaling_adapter.enabled,
        frontend=SIDECAR if beside else None,
        version=written.runtime_version_override,
        pod={key: value for key, value in spec.items() if key not in ("containers", "mainContainer")},
        pod_labels=extra.labels if extra else {},
        pod_annotations=extra.annotations if extra else {},
        labels=written.labels,
        annotations=written.annotations,
        shared_memory=_shared_memory(written),
        cache=CompilationCacheMount(cached.name, cached.mount_point) if cached else None,
        picker=_picker(written.epp_config),
        model=written.model_ref.name if written.model_ref else "",
        everywhere=written.global_dynamo_namespace,
        domain=written.topology_constraint.pack_domain if written.topology_constraint else "",
    )


def _main(written: AlphaService, given: Body, cache: Mount | None) -> Body:
    """The main container: fields of the service, with `mainContainer` merged over them; the mounts of both,
    except that of the compilation cache."""
    main: Body = {}
    if resources := _resources(written.resources):
        main["resources"] = resources
    if written.env_from_secret:
        main["envFrom"] = _from_secret(written.env_from_secret)
    if written.liveness_probe is not None:
        main["livenessProbe"] = written.liveness_probe
    if written.readiness_probe is not None:
        main["readinessProbe"] = written.readiness_probe
    main = merged(main, given)
    if env := merged_env(_bodies(written.envs), given.get("env", ())):
        main["env"] = list(env)
    mounts = [
        {"name": each.name, "mountPath": each.mount_point}
        for each in written.volume_mounts
        if each is not cache
    ]
    if mounts := [*given.get("volumeMounts", ()), *mounts]:
        main["volumeMounts"] = mounts
    return main


def _sidecar(written: FrontendSidecar) -> Body:
    found: Body = {"name": SIDECAR, "image": written.image, "args": list(written.args)}
    if written.env_from_secret:
        found["envFrom"] = _from_secret(written.env_from_secret)
    return {**found, "env": list(_bodies(written.envs))}


def _from_secret(name: str) -> list[Body]:
    return [{"secretRef": {"name": name}}]


def _resources(written: AlphaResources | None) -> Body:
    if written is None:
        return {}
    found: Body = {"requests": _amounts(written.requests), "limits": _amounts(written.limits)}
    found["claims"] = list(_bodies(written.claims))
    return {key: value for key, value in found.items() if value}


def _amounts(written: Amounts | None) -> Body:
    if written is None:
        return {}
    gpu = written.gpu_type or NVIDIA_GPU
    named = {"cpu": written.cpu, "memory": written.memory, gpu: written.gpu, **written.custom}
    return {name: amount for name, amount in named.items() if amount is not None}


def _shared_memory(written: AlphaService) -> str:
    memory = written.shared_memory
    if memory is None:
        return ""
    return "0" if memory.disabled else "" if memory.size is None else str(memory.size)


def _picker(written: EppConfig | None) -> PickerConfig | None:
    if written is None:
        return None
    config = written.config if isinstance(written.config, dict) else None
    found = written.config_map_ref
    return PickerConfig(config, found.name if found else None, found.key if found else "")


def _claim(written: Any) -> VolumeClaim:
    spec: Body = {
        "accessModes": [written.volume_access_mode],
        "resources": {"requests": {"storage": written.size}},
        "storageClassName": written.storage_class,
    }
    return VolumeClaim(written.name, written.create, spec)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _bodies(values: Iterable[object]) -> tuple[Body, ...]:
    return tuple(mapping(value) for value in values)
