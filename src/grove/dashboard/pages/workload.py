"""The page of a workload: its tree, its status, what has happened to it, and containers that fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from grove import timing
from grove.api.types.kubernetes_objects import ResourceClaim
from grove.api.types.pod import ContainerStatus, Pod
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dashboard.board import Board
from grove.dashboard.cut_texts import cut, cut_event
from grove.dashboard.pages.model import WorkloadPage
from grove.dashboard.pages.names import check_names, exists, known_objects, missing
from grove.dashboard.pages.timeline import timeline
from grove.dashboard.problems import Problem, problem_line
from grove.dashboard.rights import Rights
from grove.explanation.events import Event
from grove.explanation.history import STARTING, ContainerPod, container_views, event_views
from grove.explanation.model import ContainerView, ObjectRef
from grove.explanation.subtree import Subtree, subtree
from grove.kube.client.resource import EVENTS, PODS, RESOURCE_CLAIMS
from grove.kube.errors import KubeError, NotFound
from grove.logger import get_logger
from grove.plan.members import pod_state
from grove.plan.timestamps import timestamp
from grove.views.set_view import SetObjects, SetView, set_views
from grove.views.status.status_view import status_view

log = get_logger("grove.dashboard")


async def workload_page(
    board: Board, rights: Rights, namespace: str, name: str, *, graphs: bool = False
) -> WorkloadPage:
    """A set as it is now. `graphs`: whether the viewer may list DynamoGraphDeployments in the namespace.
    Raises PageError."""
    check_names(namespace=namespace, name=name)
    about = ObjectRef(PodCliqueSet.KIND.name, name, namespace)
    if not rights.sees(namespace):
        raise missing(about)
    objects = known_objects(board.objects(namespace), graphs=graphs)
    if not exists(objects, about):
        raise missing(about)
    tree, now = subtree(objects, about), _now(board)
    unread: list[str] = []
    events, containers, claims = await asyncio.gather(
        _events(board, namespace, unread),
        _containers(board, tree, unread),
        _claims(board, rights, tree, unread),
    )
    # In a thread: a busy namespace has tens of thousands of events, which take a few hundred milliseconds.
    found = await asyncio.to_thread(lambda: timeline(tree, map(cut_event, event_views(tree, events, now))))
    return WorkloadPage(
        set=_set_view(tree, claims, now),
        status=status_view(tree, board.leases(), now),
        timeline=found.entries,
        containers=containers,
        unread=tuple(unread),
        left_out=found.left_out,
    )


def _now(board: Board) -> float:
    """The clock of a snapshot stands still, so that ages are right."""
    source = board.source
    return time.time() if source.live or not source.taken_at else timestamp(source.taken_at)


def _set_view(tree: Subtree, claims: tuple[ResourceClaim, ...], now: float) -> SetView:
    assert tree.workload is not None
    objects = SetObjects((tree.workload,), tree.groups, tree.cliques, tree.gangs, tree.pods, claims)
    (found,) = set_views(objects, now)
    return found


async def _events(board: Board, namespace: str, unread: list[str]) -> Sequence[Event]:
    try:
        return await board.events(namespace)
    except KubeError as problem:
        unread.append(f"{EVENTS.label}: {problem}")
        return ()


async def _containers(board: Board, tree: Subtree, unread: list[str]) -> tuple[ContainerView, ...]:
    """The containers that fail, with their messages, which only whole pods have."""
    failing = [pod for pod in tree.pods if _is_failing(pod)]
    chosen = failing[: timing.CONTAINER_PODS]
    if len(failing) > len(chosen):
        unread.append(f"containers of {len(failing) - len(chosen)} more pods, of {len(failing)} that fail")
    pods = await asyncio.gather(*(_container_pod(board, pod, unread) for pod in chosen))
    found = container_views(tree, filter(None, pods))
    return tuple(replace(each, message=cut(each.message)) for each in found)


def _is_failing(pod: Pod) -> bool:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return not pod_state.ready(pod) and any(map(_has_failed, statuses))


def _has_failed(found: ContainerStatus) -> bool:
    """Whether a container waits for something, or has failed, now or before."""
    waiting = found.state.waiting
    ended = found.state.terminated or found.last_state.terminated
    return (waiting is not None and waiting.reason not in STARTING) or (
        ended is not None and ended.exit_code != 0
    )


async def _container_pod(board: Board, pod: Pod, unread: list[str]) -> ContainerPod | None:
    meta = pod.metadata
    try:
        body = await board.read(PODS, meta.namespace, meta.name)
        return msgspec.convert(body, ContainerPod)
    except NotFound:  # deleted since
        return None
    except (KubeError, msgspec.ValidationError) as problem:
        unread.append(f"containers of pod {meta.name}: {problem}")
        return None


async def _claims(
    board: Board, rights: Rights, tree: Subtree, unread: list[str]
) -> tuple[ResourceClaim, ...]:
    """The shared claims. Most sets have none, and then the whole cluster need not be read for them."""
    if not any(_names_claims(tree.pods)):
        return ()
    try:
        state = await board.state()
    except KubeError as problem:
        log.warning("claims not read", key="dashboard", action="leave out", reason=str(problem))
        unread.append(problem_line(Problem(RESOURCE_CLAIMS.label, str(problem)), rights))
        return ()
    found = state.objects(RESOURCE_CLAIMS, ResourceClaim)
    return tuple(each for each in found if each.metadata.namespace == tree.about.namespace)


def _names_claims(pods: Iterable[Pod]) -> Iterable[bool]:
    """Whether a pod uses a claim that others may use as well: one of its own is made from a template."""
    return (bool(claim.resource_claim_name) for pod in pods for claim in pod.spec.resource_claims)
