"""Which containers of which pods have logs that a user has asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.api.wire import Wire
from grove.dynamo import keys
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.model import ObjectRef
from grove.explanation.subtree import POD
from grove.kube.errors import ConfigError

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_ENDED = ("Succeeded", "Failed")


class _Container(Wire, frozen=True):
    name: str = ""


class _Spec(Wire, frozen=True):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()


class _Started(Wire, frozen=True):
    """A container that runs, or has ended."""


class _Waiting(Wire, frozen=True):
    reason: str = ""


class _State(Wire, frozen=True):
    running: _Started | None = None
    terminated: _Started | None = None
    waiting: _Waiting | None = None


class _ContainerStatus(Wire, frozen=True):
    name: str = ""
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()


class _Status(Wire, frozen=True):
    phase: str = ""
    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


class LogPod(Wire, frozen=True):
    """A pod with its containers."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def ended(self) -> bool:
        """Whether none of its containers runs again."""
        return self.status.phase in _ENDED

    @property
    def containers(self) -> tuple[str, ...]:
        """The names of all containers, in the order in which they start."""
        return tuple(each.name for each in (*self.spec.init_containers, *self.spec.containers))

    @property
    def default_container(self) -> str:
        """The container that kubectl chooses."""
        named = self.metadata.annotations.get(DEFAULT_CONTAINER, "")
        if named in self.containers:
            return named
        return self.spec.containers[0].name if self.spec.containers else ""


class LogSource(Struct, frozen=True):
    """One run of a container."""

    pod: str
    container: str
    uid: str
    restart: int = 0

    def __str__(self) -> str:
        return f"{self.pod}/{self.container}"


class ContainerChoice(Struct, frozen=True):
    """The containers that a user has asked for: one by its name, all, or the default one of each pod."""

    name: str = ""
    all: bool = False
    previous: bool = False
    """The run before the last restart."""

    def sources(self, pod: LogPod) -> Iterator[LogSource]:
        """The logs that there are in a pod."""
        statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
        known = {each.name: each for each in statuses}
        for name in self._names(pod):
            status = known.get(name)
            if status is not None and _has_log(status, previous=self.previous):
                yield LogSource(pod.metadata.name, name, pod.metadata.uid, status.restart_count)

    def missing(self, pod: LogPod) -> str:
        """Why a pod has no log; empty if it has one, or none of the containers."""
        if not self._names(pod) or any(self.sources(pod)):
            return ""
        if self.previous:
            return "no container has restarted"
        waiting = (each.state.waiting for each in pod.status.container_statuses)
        reasons = (each.reason for each in waiting if each is not None and each.reason)
        return next(reasons, "has not started")

    def check(self, pods: Iterable[LogPod]) -> None:
        """Raises ConfigError if no pod has the container."""
        found = list(pods)
        if self.name and found and not any(map(self._names, found)):
            known = dict.fromkeys(name for pod in found for name in pod.containers)
            raise ConfigError(f"--container {self.name}: no pod has it: choose one of {', '.join(known)}")

    def _names(self, pod: LogPod) -> Sequence[str]:
        if self.name:
            return [self.name] if self.name in pod.containers else []
        return pod.containers if self.all else [pod.default_container]


def check_streams(count: int, limit: int) -> None:
    """Raises ConfigError if more logs would be read at once than the user permits."""
    if count > limit:
        raise ConfigError(
            f"{count} logs would be read at once, more than {limit}: choose a part of the workload or one "
            f"container, or use --max-log-requests {count}"
        )


def running_sources(pod: LogPod) -> set[LogSource]:
    """The containers of a pod that run."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return {
        LogSource(pod.metadata.name, each.name, pod.metadata.uid, each.restart_count)
        for each in statuses
        if each.state.running is not None
    }


def _has_log(status: _ContainerStatus, *, previous: bool) -> bool:
    if previous:
        return status.last_state.terminated is not None
    return status.state.running is not None or status.state.terminated is not None


def pod_selector(about: ObjectRef, set_name: str | None) -> tuple[labels.Labels, str]:
    """The labels and the fields that select the pods of an object. `set_name`: the set that it belongs to."""
    if about.kind == POD:
        return {}, f"metadata.name={about.name}"
    if about.kind == DynamoGraphDeployment.KIND.name:
        return {keys.GRAPH: about.name}, ""
    own = {
        PodCliqueScalingGroup.KIND.name: labels.GROUP,
        PodClique.KIND.name: labels.CLIQUE,
        PodGang.KIND.name: labels.GANG,
    }
    part = {own[about.kind]: about.name} if about.kind in own else {}
    return labels.managed(set_name or about.name) | part, ""
