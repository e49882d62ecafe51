"""The state of a namespace without what differs from run to run (names of pods, times, nodes, and reasons for
which pods wait, which name pods and are written after a while): two runs with the same result give equal
snapshots."""

from __future__ import annotations

import re
from typing import Any, Protocol

import msgspec

from grove.api.naming import annotations as keys
from grove.api.naming import labels
from grove.kube.client.resource import PODS, RESOURCE_CLAIMS, Resource
from tests.cluster.operator.support.objects import GANGS, PARTS, SETS, AnyObject

StateSnapshot = dict[str, Any]

_AT = re.compile(r'"at":"[^"]*",?')
_TIME_FIELDS = re.compile(r"(Time|At)$")
_TOKEN_VOLUME = re.compile(r"kube-api-access-\w{5}")
_SERVER_FIELDS = ("clusterIP", "clusterIPs", "nodeName")


class SnapshotSource(Protocol):
    """What a snapshot is taken of: the objects of a namespace."""

    namespace: str

    def all(self, resource: Resource) -> list[AnyObject]: ...


def take_snapshot(world: SnapshotSource) -> StateSnapshot:
    """All objects of the namespace: pods by clique and index, pod references likewise, without times."""
    pods = {pod.name: _clique_and_index(pod) for pod in world.all(PODS)}
    found: StateSnapshot = {}
    for resource in (SETS, *PARTS):
        for one in world.all(resource):
            key = f"{resource.kind} {pods[one.name] if resource is PODS else one.name}"
            while key in found:  # two pods of one clique and index count as two
                key += " again"
            found[key] = _normalized(one, is_pod=resource is PODS)
            if resource is RESOURCE_CLAIMS:  # the scheduler chooses the device
                found[key]["status"] = {}
            if resource is GANGS:
                found[key]["members"] = _members(one, pods)
    text = msgspec.json.encode(found).decode().replace(world.namespace, "NAMESPACE")
    normal: StateSnapshot = msgspec.json.decode(_TOKEN_VOLUME.sub("TOKEN", text))
    return normal


def differences(expected: StateSnapshot, seen: StateSnapshot) -> str:
    """Where two snapshots differ, as text for a failed assertion."""
    lines = []
    for name in sorted({*expected, *seen}):
        one, other = expected.get(name), seen.get(name)
        if one is None or other is None:
            lines.append(f"{name}: {'not expected' if one is None else 'missing'}")
        elif one != other:
            lines += [f"{name}: {path}" for path in _paths(one, other, "")]
    return "\n".join(lines)


def _clique_and_index(pod: AnyObject) -> str:
    return f"{pod.labels.get(labels.CLIQUE, pod.name)}[{pod.labels.get(labels.POD_INDEX)}]"


def _normalized(one: AnyObject, *, is_pod: bool) -> StateSnapshot:
    meta = one.metadata
    status = dict(one.status)
    if is_pod:
        status = {"phase": one.status.get("phase"), "ready": one.condition("Ready")}
    if "conditions" in status:
        status["conditions"] = [each for each in status["conditions"] if each["type"] != "Waiting"]
    if "observedGeneration" in status:  # how often a spec was repaired may differ
        status["observedGeneration"] = "current" if one.settled else "old"
    spec = {key: value for key, value in one.spec.items() if key not in (*_SERVER_FIELDS, "podgroups")}
    return {
        "labels": meta.labels,
        "annotations": {key: _without_dates(key, note) for key, note in meta.annotations.items()},
        "finalizers": meta.finalizers,
        "owners": [f"{owner.kind} {owner.name}" for owner in meta.owner_references],
        "terminating": one.terminating,
        "spec": spec,
        "status": _without_times(status),
    }


def _without_dates(key: str, note: str) -> str:
    """The annotation with a gang's termination history, without the times in it."""
    return _AT.sub("", note) if key == keys.TERMINATIONS else note


def _members(gang: AnyObject, pods: dict[str, str]) -> StateSnapshot:
    return {
        group["name"]: {
            "minReplicas": group["minReplicas"],
            "pods": [pods.get(reference["name"], "no such pod") for reference in group["podReferences"]],
        }
        for group in gang.spec["podgroups"]
    }


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_times(inner)
            for key, inner in value.items()
            if not (_TIME_FIELDS.search(key) and isinstance(inner, str))
        }
    if isinstance(value, list):
        parts = [_without_times(inner) for inner in value]
        # Conditions are a map by type: their order depends on which was set first and is not compared.
        by_type = all(isinstance(part, dict) and "type" in part for part in parts)
        return sorted(parts, key=lambda part: part["type"]) if by_type else parts
    return value


def _paths(one: Any, other: Any, path: str) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other})
        return [line for key in keys for line in _paths(one.get(key), other.get(key), f"{path}.{key}")]
    return [] if one == other else [f"{path}: expected {one}, is {other}"]
