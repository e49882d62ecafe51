"""The names of the objects that are rendered from a graph."""

from __future__ import annotations

import hashlib

from grove.dynamo.graph import Graph, GraphComponent

MAX_NAME = 45
"""Characters for the names of a set, group and clique together, of the 63 of a host name."""
_MIN_NAME = 8
_HASH_LENGTH = 5  # a hyphen and four hex digits
LEADER, WORKER = "ldr", "wkr"


def clique(component: GraphComponent, role: str = "") -> str:
    """The clique of a component, or of one role of it."""
    return f"{component.lower}-{role}" if role else component.lower


def added_length(component: GraphComponent) -> int:
    """How many characters the group and clique names of a component add to the set's name."""
    longest = len(clique(component, LEADER)) if component.multinode else 0
    return len(component.lower) + longest


def workload(graph: Graph) -> str:
    """The PodCliqueSet: the graph's name, cut and hashed if it leaves too few characters for its cliques."""
    budget = max(_MIN_NAME, MAX_NAME - max(map(added_length, graph.components), default=0))
    if len(graph.name) <= budget:
        return graph.name
    return f"{graph.name[: budget - _HASH_LENGTH]}-{_fnv1a(graph.name) & 0xFFFF:04x}"


def component_object(graph: Graph, component: GraphComponent) -> str:
    """The PodClique or PodCliqueScalingGroup of a component."""
    return f"{workload(graph)}-0-{component.lower}"


def child_object(graph: Graph, component: GraphComponent) -> str:
    """Auxiliary objects of a component, and the value of the label that selects its pods."""
    return f"{graph.name}-{component.lower}"


def leader_worker_set(graph: Graph, component: GraphComponent) -> str:
    """The LeaderWorkerSet of a component, without Grove."""
    return f"{child_object(graph, component)}-0"


def service(graph: Graph, component: GraphComponent) -> str:
    """The Service of a component."""
    return child_object(graph, component).replace(".", "-")


def account(graph: Graph) -> str:
    """The ServiceAccount with which components discover each other."""
    return f"{graph.name}-k8s-service-discovery"


def role(graph: Graph) -> str:
    """The Role of that ServiceAccount."""
    return f"{account(graph)}-role"


def binding(graph: Graph) -> str:
    """The RoleBinding of that Role."""
    return f"{account(graph)}-binding"


def wait_script(graph: Graph) -> str:
    """The ConfigMap with the script by which workers wait for their leader."""
    return f"{graph.name}-wait-leader-script"


def picker_config(graph: Graph) -> str:
    """The ConfigMap with the configuration of the endpoint picker."""
    return f"{graph.name}-epp-config"


def inference_pool(graph: Graph) -> str:
    """The InferencePool of the workers."""
    return f"{graph.name}-pool"


def model_hash(model: str) -> str:
    """A hash of a model's name, for label values."""
    return hashlib.sha256(model.encode()).hexdigest()[:8]


def model_service(model: str) -> str:
    """The headless Service of all pods that serve a model."""
    return f"dynamo-model-{model_hash(model)}"


PLANNER_ACCOUNT = "planner-serviceaccount"
PLANNER_ROLE = "planner-role"
PICKER_ACCOUNT = "epp-serviceaccount"
PICKER_ROLE = "epp-role"
SSH_SECRET = "mpi-run-ssh-secret"  # noqa: S105 - a Secret's name


def _fnv1a(text: str) -> int:
    found = 0x811C9DC5
    for byte in text.encode():
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return found
