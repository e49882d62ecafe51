"""The page of a node: the pods that use it."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus

from grove import timing
from grove.cluster_state.operator_setup import operator_setup
from grove.dashboard.board import Board
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.model import NodePage, NodePod, OtherPods
from grove.dashboard.pages.names import check_names
from grove.dashboard.rights import Rights
from grove.operator.caches.cluster_pods import ClusterPod
from grove.operator.observers.cluster.free_slots import AcceleratorNames, accelerator_names


def node_page(board: Board, rights: Rights, name: str) -> NodePage:
    """The pods on a node, those of gangs and with many GPUs first. Raises PageError."""
    check_names(name=name)
    check_may_list(rights)
    nodes = board.nodes()
    if nodes is None:
        raise PageError(HTTPStatus.FORBIDDEN, "the dashboard may not list nodes: grant it that right")
    if name not in nodes:
        raise PageError(HTTPStatus.NOT_FOUND, f"no node {name}: it may be removed")
    found = list(board.node_pods(name))
    seen = sorted((_pod(each) for each in found if rights.sees(each.namespace)), key=_order)
    hidden = [each for each in found if not rights.sees(each.namespace)]
    return NodePage(
        tuple(seen[: timing.NODE_PODS]),
        OtherPods(len(hidden), sum(map(_gpus, hidden))),
        max(0, len(seen) - timing.NODE_PODS),
    )


def check_may_list(rights: Rights) -> None:
    """Raises PageError (403) without the right to nodes."""
    if not rights.nodes:
        raise PageError(HTTPStatus.FORBIDDEN, "you may not list nodes: ask for the right to list nodes")


def _order(pod: NodePod) -> tuple[object, ...]:
    return not pod.gang, pod.gang, -pod.gpus, pod.namespace, pod.name


def _pod(pod: ClusterPod) -> NodePod:
    gang = f"{pod.namespace}/{pod.gang}" if pod.gang else ""
    return NodePod(pod.namespace, pod.name, gang, _gpus(pod), reserved=not pod.node)


def _gpus(pod: ClusterPod) -> int:
    requests = pod.profile.requests
    return sum(requests[resource] for resource in _accelerators()(requests))


@cache
def _accelerators() -> AcceleratorNames:
    return accelerator_names(operator_setup().fabrics)
