"""What the parts of a deployment are called."""

from __future__ import annotations

import hashlib

from grove.dynamo.graph import Graph, GraphComponent

MAX_NAME = 45
"""What Grove leaves for the name of a set and of its parts, of the 63 characters of a host name."""
_MIN_NAME = 8
_HASH_LENGTH = 5  # a hyphen and four hex digits
LEADER, WORKER = "ldr", "wkr"


def clique(component: GraphComponent, role: str = "") -> str:
    """The clique of a component, or of one role of it."""
    return f"{component.lower}-{role}" if role else component.lower


def added_length(component: GraphComponent) -> int:
    """How many characters a component's parts add to the set's name."""
    longest = len(clique(component, LEADER)) if component.multinode else 0
    return len(component.lower) + longest


def workload(graph: Graph) -> str:
    """The PodCliqueSet: the deployment's own name, cut if it leaves too little for its parts."""
    budget = max(_MIN_NAME, MAX_NAME - max(map(added_length, graph.components), default=0))
    if len(graph.name) <= budget:
        return graph.name
    return f"{graph.name[: budget - _HASH_LENGTH]}-{_fnv1a(graph.name) & 0xFFFF:04x}"


def component_object(graph: Graph, component: GraphComponent) -> str:
    """The PodClique or PodCliqueScalingGroup of a component."""
    return f"{workload(graph)}-0-{component.lower}"


def child_object(graph: Graph, component: GraphComponent) -> str:
    """What is made for a component beside its pods, and the value by which its pods are selected."""
    return f"{graph.name}-{component.lower}"


def leader_worker_set(graph: Graph, component: GraphComponent) -> str:
    """Its LeaderWorkerSet, where Grove does not run it."""
    return f"{child_object(graph, component)}-0"


def service(graph: Graph, component: GraphComponent) -> str:
    """Its Service."""
    return child_object(graph, component).replace(".", "-")


def account(graph: Graph) -> str:
    """The ServiceAccount by which components find each other."""
    return f"{graph.name}-k8s-service-discovery"


def role(graph: Graph) -> str:
    """Its Role."""
    return f"{account(graph)}-role"


def binding(graph: Graph) -> str:
    """Its RoleBinding."""
    return f"{account(graph)}-binding"


def wait_script(graph: Graph) -> str:
    """The ConfigMap with the script that waits for leaders."""
    return f"{graph.name}-wait-leader-script"


def model_hash(model: str) -> str:
    """A model's name as a label."""
    return hashlib.sha256(model.encode()).hexdigest()[:8]


def model_service(model: str) -> str:
    """The Service of all that serve a model."""
    return f"dynamo-model-{model_hash(model)}"


PLANNER_ACCOUNT = "planner-serviceaccount"
PLANNER_ROLE = "planner-role"
SSH_SECRET = "mpi-run-ssh-secret"  # noqa: S105 - a Secret's name


def _fnv1a(text: str) -> int:
    found = 0x811C9DC5
    for byte in text.encode():
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return found
