"""Pods with init containers, as the stand-in decodes them, and the statuses that it reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from grove.api.formats.timestamps import render
from grove.api.meta import ObjectMeta
from grove.api.naming import well_known

Report = dict[str, Any]


class _SecretVolume(Struct, frozen=True, rename="camel"):
    secret_name: str = ""


class _Volume(Struct, frozen=True):
    name: str
    secret: _SecretVolume | None = None


class _Container(Struct, frozen=True):
    name: str
    image: str = ""
    args: tuple[str, ...] = ()


class _InitPodSpec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    init_containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class _ContainerState(Struct, frozen=True):
    terminated: dict[str, Any] | None = None


class _ContainerStatus(Struct, frozen=True, rename="camel"):
    name: str
    state: _ContainerState = _ContainerState()
    last_state: _ContainerState = _ContainerState()


class _InitPodStatus(Struct, frozen=True, rename="camel"):
    phase: str = ""
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


class InitContainerPod(Struct, frozen=True):
    """A pod that may have Grove's init container."""

    metadata: ObjectMeta
    spec: _InitPodSpec = _InitPodSpec()
    status: _InitPodStatus = field(default_factory=_InitPodStatus)

    @property
    def needs_init_container(self) -> bool:
        """Whether it is scheduled and has an init container of Grove that has not exited."""
        if not self.spec.node_name or self.status.phase != "Pending" or self._init_container is None:
            return False
        reported = [
            one for one in self.status.init_container_statuses if one.name == well_known.INIT_CONTAINER
        ]
        return not any(one.state.terminated or one.last_state.terminated for one in reported)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of Grove's init container."""
        return self._init_container.args if self._init_container else ()

    @property
    def token_secret(self) -> str:
        """The Secret that is mounted into the init container."""
        volumes = {volume.name: volume.secret for volume in self.spec.volumes}
        secret = volumes.get(well_known.TOKEN_VOLUME)
        return secret.secret_name if secret else ""

    @property
    def _init_container(self) -> _Container | None:
        return next((one for one in self.spec.init_containers if one.name == well_known.INIT_CONTAINER), None)


def running(pod: InitContainerPod) -> Report:
    """The status while the init container runs."""
    now = _now()
    waiting = {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized"}
    return {
        "conditions": [{**waiting, "lastTransitionTime": now}],
        "initContainerStatuses": _statuses(pod, {"running": {"startedAt": now}}),
    }


def ended(pod: InitContainerPod, code: int, message: str = "") -> Report:
    """The status after the init container has exited. A failure is final: its arguments do not change."""
    now = _now()
    end = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "finishedAt": now,
        "message": message,
    }
    if not code:
        return {"initContainerStatuses": _statuses(pod, {"terminated": end})}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    return {"initContainerStatuses": _statuses(pod, waiting, {"terminated": end})}


def _statuses(pod: InitContainerPod, state: Report, last: Report | None = None) -> list[Report]:
    """The statuses of all init containers: those of the user are not run and count as completed."""
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": _now()}}
    statuses = []
    for container in pod.spec.init_containers:
        ours = container.name == well_known.INIT_CONTAINER
        status = {"name": container.name, "image": container.image, "imageID": "", "restartCount": 0}
        status |= {"ready": not ours or "terminated" in state, "state": state if ours else done}
        statuses.append(status | ({"lastState": last} if ours and last else {}))
    return statuses


def _now() -> str:
    return render(datetime.now(UTC))
