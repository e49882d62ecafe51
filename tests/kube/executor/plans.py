"""Builders for intents, and a store that records what it is given: for tests of the executor."""

from __future__ import annotations

from typing import Any

from grove.api.intents import Create, Intent, Target
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, PODS, SERVICES, Resource
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import Outcome
from grove.kube.executor.write_limiter import LimitBounds, WriteLimiter
from tests.kube.executor.stub_transport import StubTransport

RESOURCES = (CONFIG_MAPS, PODS, SERVICES)


class RecordingStore:
    """A store that records its calls; `holds` is what `put` returns."""

    def __init__(self, *, holds: bool = True) -> None:
        self.holds = holds
        self.known: dict[str, Object] = {}
        self.lost: list[tuple[str, str]] = []

    def type_of(self, resource: Resource) -> type[Any]:
        return Object

    def put(self, resource: Resource, obj: Any) -> bool:
        self.known[obj.metadata.name] = obj
        return self.holds

    def mark_deleted(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        self.lost.append((name, uid))


def pod(name: str) -> Target:
    return Target("v1", "Pod", name, "n")


def create(name: str, *after: Intent, owner: str = "") -> Create:
    metadata: dict[str, Any] = {"name": name}
    if owner:
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner,
            "controller": True,
        }
        metadata["ownerReferences"] = [reference]
    return Create(pod(name), {"metadata": metadata}, tuple(intent.id for intent in after))


def executor(transport: StubTransport, store: RecordingStore | None = None, slots: float = 32.0) -> Executor:
    return Executor(transport, RESOURCES, store=store, limiter=WriteLimiter(LimitBounds(slots, slots, slots)))


def states(outcome: Outcome) -> list[str]:
    return [str(result.state) for result in outcome.results]
