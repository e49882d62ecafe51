"""What has happened to an object: states of containers, and events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grove.api.meta import ObjectMeta
from grove.api.wire import Wire
from grove.explanation.events import Event
from grove.explanation.model import ContainerView, EventView, ObjectRef
from grove.explanation.subtree import POD, Subtree, is_whole_set
from grove.fabrics.nvidia import COMPUTE_DOMAIN
from grove.plan.timestamps import timestamp

_DOMAIN = COMPUTE_DOMAIN.name
STARTING = {"", "ContainerCreating", "PodInitializing"}
"""Why a container waits that starts: no failure."""


class _Waiting(Wire, frozen=True):
    reason: str = ""
    message: str = ""


class _Ended(Wire, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class _State(Wire, frozen=True):
    waiting: _Waiting | None = None
    terminated: _Ended | None = None


class _Container(Wire, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()


class _Status(Wire, frozen=True):
    container_statuses: tuple[_Container, ...] = ()
    init_container_statuses: tuple[_Container, ...] = ()


class ContainerPod(Wire, frozen=True):
    """A pod with the messages of its containers, which the operator does not read."""

    metadata: ObjectMeta
    status: _Status = _Status()


def container_views(tree: Subtree, pods: Iterable[ContainerPod]) -> Iterator[ContainerView]:
    """The containers that wait for something, or have failed, of the pods that belong to an object."""
    names = {pod.metadata.name for pod in tree.pods}
    for pod in pods:
        if pod.metadata.namespace == tree.about.namespace and pod.metadata.name in names:
            for each in (*pod.status.init_container_statuses, *pod.status.container_statuses):
                yield from _container(pod.metadata.name, each)


def _container(pod: str, found: _Container) -> Iterator[ContainerView]:
    waiting, before = found.state.waiting, found.last_state.terminated
    ended = found.state.terminated or before
    failed = ended is not None and ended.exit_code != 0
    if waiting is not None and waiting.reason not in STARTING:
        message = waiting.message or (ended.message if ended is not None else "")
        yield ContainerView(pod, found.name, waiting.reason, _line(message), found.restart_count)
    elif failed and ended is not None and not found.ready:
        state = f"exit code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else "")
        yield ContainerView(pod, found.name, state, _line(ended.message), found.restart_count)


def event_views(tree: Subtree, events: Iterable[Event], now: float) -> list[EventView]:
    """The events about an object and what belongs to it, the oldest first."""
    about = _subjects(tree)
    cliques = {clique.metadata.name for clique in tree.cliques} if tree.about.kind != POD else set()
    found = [
        event_view(each, now)
        for each in events
        if each.metadata.namespace == tree.about.namespace
        and ((each.regarding.kind, each.regarding.name) in about or _is_of_pod(each, cliques))
    ]
    return sorted(found, key=lambda each: (timestamp(each.time), each.name))


def _subjects(tree: Subtree) -> set[tuple[str, str]]:
    """Kind and name of all objects that events may be about."""
    found = {(kind, meta.name) for kind, meta in tree.named()}
    if tree.workload is not None and is_whole_set(tree):
        found |= {(_DOMAIN, each.name) for each in tree.workload.status.compute_domains}
    return found


def _is_of_pod(event: Event, cliques: set[str]) -> bool:
    """Whether an event is about a pod of one of the cliques, which may be deleted by now: the name of a pod
    is that of its clique and a suffix."""
    clique, _, suffix = event.regarding.name.rpartition("-")
    return event.regarding.kind == POD and bool(suffix) and clique in cliques


def event_view(event: Event, now: float) -> EventView:
    """An event as it is shown."""
    series = event.series
    last = series.last_observed_time if series is not None else None
    written = (last, event.last, event.event_time, event.metadata.creation_timestamp)
    time = next((each for each in written if each and _is_time(each)), "")
    return EventView(
        time,
        max(0, int(now - timestamp(time))) if time else None,
        event.type,
        event.reason,
        ObjectRef(event.regarding.kind, event.regarding.name, event.regarding.namespace),
        _line(event.note),
        max(event.count, series.count if series is not None else 1, 1),
        event.metadata.name,
    )


def _is_time(text: str) -> bool:
    """Users can write events, also with times that the API server accepts and that do not exist here, such as
    one of year 0."""
    try:
        timestamp(text)
    except (ValueError, OverflowError):
        return False
    return True


def _line(text: str) -> str:
    return " ".join(text.split())
