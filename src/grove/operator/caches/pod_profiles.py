"""What pods have in common: pods of one template in the same state share one profile, so that each pod of the
cluster costs little memory."""

from __future__ import annotations

from weakref import WeakValueDictionary

from msgspec import Raw, Struct, to_builtins
from msgspec.json import Decoder, encode

from grove.api.types.cluster.scheduling_pod import Affinity, NodeRequirement, SchedulingPod, SchedulingSpec
from grove.api.types.pod import Toleration
from grove.logger import get_logger
from grove.topology.placement import model
from grove.topology.placement.model import Amounts, PodShape
from grove.topology.placement.needs.requests import pod_requests

log = get_logger("grove.operator")

_GATED = "SchedulingGated"
_RESIZE = "PodResizePending"
_selectors: Decoder[dict[str, str]] = Decoder(dict[str, str])
_affinities = Decoder(Affinity)
_tolerations: Decoder[tuple[Toleration, ...]] = Decoder(tuple[Toleration, ...])


class PodProfile(Struct, frozen=True, weakref=True):
    """What the scheduler does with a pod, but for its name and node."""

    scheduler: str
    priority: int
    requests: Amounts
    """As the scheduler counts them, with the place in the pod count."""
    gated: bool = False
    unschedulable: bool = False
    """The scheduler has tried, and found no node."""
    terminating: bool = False
    shape: PodShape | None = None
    """Which nodes an unbound, ungated pod fits on; None for all other pods."""


class PodProfiles:
    """The profiles of all pods. A profile is forgotten with its last pod."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[bytes, PodProfile] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, pod: SchedulingPod) -> PodProfile:
        """The profile of a pod."""
        key = encode(_distinguishing(pod))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _profile(pod)
        return known


def _profile(pod: SchedulingPod) -> PodProfile:
    requests = _requests(pod)
    return PodProfile(
        pod.spec.scheduler_name,
        pod.spec.priority,
        requests,
        bool(pod.spec.scheduling_gates),
        _unschedulable(pod),
        pod.metadata.deletion_timestamp is not None,
        _shape(pod, requests) if _is_pending(pod) else None,
    )


def _is_pending(pod: SchedulingPod) -> bool:
    return not pod.spec.node_name and not pod.spec.scheduling_gates


def _distinguishing(pod: SchedulingPod) -> tuple[object, ...]:
    """Everything that a profile depends on."""
    spec = pod.spec
    placed_by = (spec.node_selector, spec.affinity, spec.tolerations) if _is_pending(pod) else ()
    return (
        spec.scheduler_name,
        spec.priority,
        bool(spec.scheduling_gates),
        _unschedulable(pod),
        pod.metadata.deletion_timestamp is not None,
        _requesting(pod),
        [bytes(raw).decode() for raw in placed_by],
    )


def _unschedulable(pod: SchedulingPod) -> bool:
    """Whether the scheduler reports that it found no node. The condition of a gated pod is no such report,
    and stays for a moment after the last gate is removed."""
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.reason != _GATED
        for each in pod.status.conditions
    )


def _requesting(pod: SchedulingPod) -> tuple[object, object]:
    """The parts of spec and status that requests depend on."""
    spec, status = pod.spec, pod.status
    requested = {
        "containers": spec.containers,
        "initContainers": spec.init_containers,
        "overhead": spec.overhead,
        "resources": spec.resources,
    }
    allocated = {
        "conditions": tuple(each for each in status.conditions if each.type == _RESIZE),
        "containerStatuses": status.container_statuses,
        "initContainerStatuses": status.init_container_statuses,
        "allocatedResources": status.allocated_resources,
        "resources": status.resources,
    }
    return requested, allocated


def _requests(pod: SchedulingPod) -> Amounts:
    """The requests of a pod. If they cannot be computed, only its place in the pod count."""
    spec, status = to_builtins(_requesting(pod))
    try:
        return pod_requests({"spec": spec, "status": status})
    except Exception as problem:  # whatever a tenant wrote does not end the watch
        _log_unreadable("requests", pod, problem)
        return {model.PODS: 1}


def _shape(pod: SchedulingPod, requests: Amounts) -> PodShape:
    """Which nodes a pod fits on. If that cannot be read, it may go to any."""
    try:
        return _decode_shape(pod.spec, requests)
    except Exception as problem:
        _log_unreadable("selectors", pod, problem)
        return PodShape(requests, tolerations=(model.Toleration(operator="Exists"),))


def _log_unreadable(part: str, pod: SchedulingPod, problem: Exception) -> None:
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    log.warning(f"{part} of pod not read", key=key, action="ignore", reason=str(problem))


def _decode_shape(spec: SchedulingSpec, requests: Amounts) -> PodShape:
    return PodShape(
        requests,
        _selectors.decode(spec.node_selector) if spec.node_selector else {},
        _terms(spec.affinity),
        tuple(
            model.Toleration(each.key, each.operator, each.value, each.effect)
            for each in (_tolerations.decode(spec.tolerations) if spec.tolerations else ())
        ),
    )


def _terms(written: Raw) -> tuple[model.Term, ...] | None:
    """The required node affinity of a pod; None if it has none."""
    affinity = _affinities.decode(written).node_affinity if written else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return None
    return tuple(
        model.Term(_requirements(term.match_expressions), _requirements(term.match_fields))
        for term in required.node_selector_terms
    )


def _requirements(written: tuple[NodeRequirement, ...]) -> tuple[model.Requirement, ...]:
    return tuple(model.Requirement(each.key, each.operator, each.values) for each in written)
