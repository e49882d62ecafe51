"""Pods as whoever runs their init containers sees them, and what is reported about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from grove.api import marks
from grove.api.meta import ObjectMeta
from grove.api.times import render

Report = dict[str, Any]


class _Secret(Struct, frozen=True, rename="camel"):
    secret_name: str = ""


class _Volume(Struct, frozen=True):
    name: str
    secret: _Secret | None = None


class _Container(Struct, frozen=True):
    name: str
    image: str = ""
    args: tuple[str, ...] = ()


class _Spec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    init_containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class _State(Struct, frozen=True):
    terminated: dict[str, Any] | None = None


class _ContainerStatus(Struct, frozen=True, rename="camel"):
    name: str
    state: _State = _State()
    last_state: _State = _State()


class _Status(Struct, frozen=True, rename="camel"):
    phase: str = ""
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


class HeldPod(Struct, frozen=True):
    """A pod that may have an init container of ours."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = field(default_factory=_Status)

    @property
    def waits(self) -> bool:
        """It has a node and an init container of ours which has not ended."""
        if not self.spec.node_name or self.status.phase != "Pending" or self._ours is None:
            return False
        reported = [one for one in self.status.init_container_statuses if one.name == marks.INIT_CONTAINER]
        return not any(one.state.terminated or one.last_state.terminated for one in reported)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What our init container is told."""
        return self._ours.args if self._ours else ()

    @property
    def token_secret(self) -> str:
        """The Secret that is mounted into it."""
        volumes = {volume.name: volume.secret for volume in self.spec.volumes}
        secret = volumes.get(marks.TOKEN_VOLUME)
        return secret.secret_name if secret else ""

    @property
    def _ours(self) -> _Container | None:
        return next((one for one in self.spec.init_containers if one.name == marks.INIT_CONTAINER), None)


def running(pod: HeldPod) -> Report:
    """It has begun."""
    now = _now()
    waiting = {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized"}
    return {
        "conditions": [{**waiting, "lastTransitionTime": now}],
        "initContainerStatuses": _statuses(pod, {"running": {"startedAt": now}}),
    }


def ended(pod: HeldPod, code: int, words: str = "") -> Report:
    """It has ended: well, or for good, since what it is told does not change."""
    now = _now()
    end = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now, "message": words}
    if not code:
        return {"initContainerStatuses": _statuses(pod, {"terminated": end})}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": words}}
    return {"initContainerStatuses": _statuses(pod, waiting, {"terminated": end})}


def _statuses(pod: HeldPod, state: Report, last: Report | None = None) -> list[Report]:
    """Of all init containers: those before ours are the user's, and nobody runs them."""
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": _now()}}
    statuses = []
    for container in pod.spec.init_containers:
        ours = container.name == marks.INIT_CONTAINER
        status = {"name": container.name, "image": container.image, "imageID": "", "restartCount": 0}
        status |= {"ready": not ours or "terminated" in state, "state": state if ours else done}
        statuses.append(status | ({"lastState": last} if ours and last else {}))
    return statuses


def _now() -> str:
    return render(datetime.now(UTC))
