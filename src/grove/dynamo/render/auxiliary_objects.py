"""Renders the auxiliary objects of a graph: Services, RBAC for discovery, scripts, PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from grove.dynamo import keys, naming
from grove.dynamo.api.common import NVIDIA
from grove.dynamo.context import runs_on_grove
from grove.dynamo.graph import EPP, FRONTEND, PLANNER, Body, Graph, GraphComponent
from grove.dynamo.render import endpoint_picker, pod_template
from grove.dynamo.render.engines import framework
from grove.dynamo.render.leader_wait_script import SCRIPT

_RBAC = "rbac.authorization.k8s.io"
_READ_VERBS = ["get", "list", "watch"]
DISCOVERY_RULES: list[Body] = [
    {"apiGroups": [""], "resources": ["endpoints", "pods"], "verbs": _READ_VERBS},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ_VERBS},
    {
        "apiGroups": [NVIDIA],
        "resources": ["dynamoworkermetadatas"],
        "verbs": [*_READ_VERBS, "create", "update", "patch", "delete"],
    },
]
PLANNER_RULES: list[Body] = [
    {"apiGroups": [NVIDIA], "resources": ["dynamographdeployments"], "verbs": [*_READ_VERBS, "patch"]},
    {"apiGroups": [NVIDIA], "resources": ["dynamographdeploymentscalingadapters"], "verbs": _READ_VERBS},
    {
        "apiGroups": [NVIDIA],
        "resources": ["dynamographdeploymentscalingadapters/scale"],
        "verbs": ["get", "update", "patch"],
    },
    *DISCOVERY_RULES,
]


class AuxiliaryObjects(Struct, frozen=True):
    """The auxiliary objects of a graph."""

    owned: tuple[Body, ...] = ()
    """Owned by the graph, each after those that it refers to."""
    shared: tuple[Body, ...] = ()
    """Shared by the graphs of a namespace; they stay when a graph is deleted."""


def render(graph: Graph) -> AuxiliaryObjects:
    """The auxiliary objects of a graph, except for the Secret with its SSH key pair."""
    return AuxiliaryObjects(tuple(_owned_objects(graph)), tuple(_shared_objects(graph)))


def _owned_objects(graph: Graph) -> Iterator[Body]:
    if graph.discovered_by_kubernetes:
        yield from _rbac_objects(graph, naming.account(graph), naming.role(graph), naming.binding(graph))
    for component in graph.components:
        if graph.discovered_by_kubernetes or component.type in (FRONTEND, EPP):
            yield _service(graph, component)
        if component.type == EPP:
            if config := endpoint_picker.config_map(graph, component):
                yield config
            yield endpoint_picker.inference_pool(graph, component)
    if any(component.multinode for component in graph.components):
        body = {"data": {"wait-for-leader.py": SCRIPT}}
        yield _object("v1", "ConfigMap", naming.wait_script(graph), graph, body)
    for claim in graph.claims:
        if claim.create:
            yield _object("v1", "PersistentVolumeClaim", claim.name, graph, {"spec": claim.body})


def _shared_objects(graph: Graph) -> Iterator[Body]:
    if any(component.type == PLANNER for component in graph.components):
        account, role = naming.PLANNER_ACCOUNT, naming.PLANNER_ROLE
        yield from _rbac_objects(graph, account, role, f"{role}-binding", PLANNER_RULES)
    if graph.has_picker:
        account, role = naming.PICKER_ACCOUNT, naming.PICKER_ROLE
        yield from _rbac_objects(graph, account, role, f"{role}-binding", endpoint_picker.RULES)
    for model in sorted({component.model for component in graph.components if component.model}):
        yield _model_service(graph, model)


def needs_ssh(graph: Graph) -> bool:
    """Whether pods log in to each other by SSH."""
    return any(each.multinode and framework(graph, each) == "trtllm" for each in graph.components)


def ssh_secret(graph: Graph, private: str, public: str) -> Body:
    """The Secret with the SSH key pair of a namespace."""
    body = {"type": "Opaque", "stringData": {"private.key": private, "private.key.pub": public}}
    found = _object("v1", "Secret", naming.SSH_SECRET, graph, body)
    del found["metadata"]["labels"]
    return found


def _rbac_objects(
    graph: Graph, account: str, role: str, binding: str, rules: list[Body] | None = None
) -> Iterator[Body]:
    version = f"{_RBAC}/v1"
    yield _object("v1", "ServiceAccount", account, graph, {})
    yield _object(version, "Role", role, graph, {"rules": rules or DISCOVERY_RULES})
    subject = {"kind": "ServiceAccount", "name": account, "namespace": graph.namespace}
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": role}
    yield _object(version, "RoleBinding", binding, graph, {"subjects": [subject], "roleRef": reference})


def _service(graph: Graph, component: GraphComponent) -> Body:
    """The Service of a component. It selects by the component's name in its original case, and by type only
    if the component has one: otherwise its pods lack the label."""
    selector = {keys.NAMESPACE: graph.dynamo_namespace(component), keys.COMPONENT: component.name}
    if component.type:
        selector[keys.COMPONENT_TYPE] = component.type
    if component.multinode and not runs_on_grove(graph):
        selector["role"] = "leader"
    name, number = ("http", 8000) if component.type == FRONTEND else ("system", 9090)
    port = {"name": name, "port": number, "targetPort": name, "protocol": "TCP"}
    if component.type == EPP:
        port = endpoint_picker.service_port()
    spec = {"type": "ClusterIP", "selector": selector, "ports": [port]}
    found = _object("v1", "Service", naming.service(graph, component), graph, {"spec": spec})
    labels = {
        **graph.labels,
        **component.labels,
        **component.pod_labels,
        **pod_template.discovery_labels(graph),
    }
    found["metadata"]["labels"] = {**labels, **found["metadata"]["labels"], keys.COMPONENT: component.name}
    if annotations := {**graph.annotations, **component.annotations, **component.pod_annotations}:
        found["metadata"]["annotations"] = annotations
    return found


def _model_service(graph: Graph, model: str) -> Body:
    spec = {
        "clusterIP": "None",
        "selector": {keys.BASE_MODEL_HASH: naming.model_hash(model)},
        "ports": [{"name": "system", "port": 9090, "targetPort": "system", "protocol": "TCP"}],
    }
    found = _object("v1", "Service", naming.model_service(model), graph, {"spec": spec})
    found["metadata"]["annotations"] = {keys.BASE_MODEL: model}
    return found


def _object(api_version: str, kind: str, name: str, graph: Graph, body: Body) -> Body:
    metadata = {"name": name, "namespace": graph.namespace, "labels": {keys.GRAPH: graph.name}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
