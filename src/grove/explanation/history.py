"""What has happened to an object: states of containers, and events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grove.api.meta import ObjectMeta
from grove.api.wire import Wire
from grove.explanation.events import Event
from grove.explanation.model import ContainerView, EventView, ObjectRef
from grove.explanation.subtree import POD, Subtree
from grove.plan.timestamps import timestamp

_STARTING = {"", "ContainerCreating", "PodInitializing"}


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
    if waiting is not None and waiting.reason not in _STARTING:
        message = waiting.message or (ended.message if ended is not None else "")
        yield ContainerView(pod, found.name, waiting.reason, _line(message), found.restart_count)
    elif failed and ended is not None and not found.ready:
        state = f"exit code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else "")
        yield ContainerView(pod, found.name, state, _line(ended.message), found.restart_count)


def event_views(tree: Subtree, events: Iterable[Event], now: float) -> list[EventView]:
    """The events about an object and what belongs to it, the oldest first."""
    objects = (tree.workload, tree.graph, *tree.groups, *tree.cliques, *tree.gangs)
    about = {(each.KIND.name, each.metadata.name) for each in objects if each is not None}
    about |= {(POD, pod.metadata.name) for pod in tree.pods}
    found = [
        _event(each, now)
        for each in events
        if each.metadata.namespace == tree.about.namespace
        and (each.regarding.kind, each.regarding.name) in about
    ]
    return sorted(found, key=lambda each: each.time)


def _event(event: Event, now: float) -> EventView:
    series = event.series
    last = (series.last_observed_time if series is not None else None) or event.last or event.event_time
    time = last or event.metadata.creation_timestamp or ""
    return EventView(
        time,
        max(0, int(now - timestamp(time))) if time else None,
        event.type,
        event.reason,
        ObjectRef(event.regarding.kind, event.regarding.name, event.regarding.namespace),
        _line(event.note),
        max(event.count, series.count if series is not None else 1, 1),
    )


def _line(text: str) -> str:
    return " ".join(text.split())
