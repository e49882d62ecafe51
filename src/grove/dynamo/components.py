"""The backend without Grove: a LeaderWorkerSet for each component that spans nodes, else a Deployment."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from grove.api.config import TopologyMode
from grove.api.intents import Create, Intent, Patch, PatchType
from grove.api.meta import Condition
from grove.dynamo import closeness, keys, naming, pods, pulling, topology
from grove.dynamo.engines import Part
from grove.dynamo.generations import generation, runtime_namespace
from grove.dynamo.graph import Body, Component, Graph
from grove.dynamo.objects import digest, owned, target
from grove.dynamo.places import LeaderWorkerAddresses, Role
from grove.dynamo.seen import Companion, Seen, Standing
from grove.dynamo.told import AppliedTopology, ComponentStatus, RestartStatus
from grove.rules.model import FieldError

_STRATEGY = "nvidia.com/deployment-strategy"
_SURGE = "nvidia.com/deployment-rolling-update-max-surge"
_UNAVAILABLE = "nvidia.com/deployment-rolling-update-max-unavailable"
_USUAL = "25%"


class Components:
    """Makes one workload for each component."""

    name = keys.COMPONENTS

    def problems(self, graph: Graph, seen: Seen) -> list[FieldError]:
        made = any(_present(graph, each, seen) is not None for each in graph.components)
        return [] if made else topology.on_create(graph, seen.surroundings)

    def writes(self, graph: Graph, seen: Seen) -> list[Intent]:
        found = [
            _brought(graph, workload(graph, _pulled(graph, each, seen), seen), _present(graph, each, seen))
            for each in graph.components
        ]
        return [each for each in found if each is not None]

    def standing(self, graph: Graph, component: Component, seen: Seen) -> Standing:
        kind, name = carrier(graph, component)
        present = _present(graph, component, seen)
        if present is None:
            return Standing(None, "some_resources_are_not_ready", f"{kind} {name} is not there yet")
        return _judged(graph, component, kind, present)

    def applied(self, graph: Graph, seen: Seen) -> tuple[AppliedTopology, ...]:
        labels = seen.surroundings.topology.domain_to_label_mapping
        found = []
        for component in graph.components:
            kind, name = carrier(graph, component)
            for domain in dict.fromkeys(filter(None, (graph.topology.domain, component.domain))):
                whole = domain == graph.topology.domain and domain != component.domain
                said = "" if whole else component.name
                found.append(AppliedTopology(said, domain, labels.get(domain, ""), f"{kind}/{name}"))
        return tuple(found)

    def restart(self, graph: Graph, seen: Seen) -> RestartStatus | None:  # noqa: ARG002 - the protocol's
        return None

    def conditions(self, graph: Graph, seen: Seen) -> list[Condition]:
        if not graph.constrained:
            return []
        return [closeness.levels(graph, seen.surroundings)]


def workload(graph: Graph, component: Component, seen: Seen) -> Body:
    """The object of a component, without an owner."""
    spec = _spanning(graph, component, seen) if component.multinode else _single(graph, component, seen)
    kind, name = carrier(graph, component)
    labels = {**graph.labels, keys.GRAPH: graph.name, keys.COMPONENT: component.name}
    where = seen.surroundings.topology
    if where.mode is TopologyMode.KUEUE and graph.constrained:
        labels[closeness.QUEUE] = closeness.queue(graph, where)
    metadata = {"name": name, "namespace": graph.namespace, "labels": labels}
    metadata["annotations"] = {**graph.annotations, keys.APPLIED: digest(spec)}
    version = "leaderworkerset.x-k8s.io/v1" if component.multinode else "apps/v1"
    body = {"apiVersion": version, "kind": kind, "metadata": metadata}
    return {**body, "spec": {"replicas": component.replicas, **spec}}


def _single(graph: Graph, component: Component, seen: Seen) -> Body:
    own = (
        component.pod_annotations.get if _STRATEGY in component.pod_annotations else graph.own_annotations.get
    )
    strategy: Body = {"type": "Recreate"}
    if own(_STRATEGY, "RollingUpdate") != "Recreate":
        pace = {"maxSurge": own(_SURGE, _USUAL), "maxUnavailable": own(_UNAVAILABLE, _USUAL)}
        strategy = {"type": "RollingUpdate", "rollingUpdate": pace}
    return {
        "selector": {"matchLabels": {keys.SELECTOR: naming.child(graph, component)}},
        "strategy": strategy,
        "template": _template(graph, component, Role.WHOLE, seen),
    }


def _spanning(graph: Graph, component: Component, seen: Seen) -> Body:
    return {
        "startupPolicy": "LeaderCreated",
        "leaderWorkerTemplate": {
            "size": component.nodes,
            "leaderTemplate": _template(graph, component, Role.LEADER, seen),
            "workerTemplate": _template(graph, component, Role.WORKER, seen),
        },
    }


def _template(graph: Graph, component: Component, role: Role, seen: Seen) -> Body:
    where = seen.surroundings.topology
    labels = pods.labels(graph, component)
    annotations = pods.carried(graph, component)
    if component.multinode:
        del labels[keys.SELECTOR]
        labels["role"] = "leader" if role is Role.LEADER else "worker"
        annotations |= closeness.told_kueue(graph, component, where)
    spec = pods.pod_spec(Part(graph, component, role, LeaderWorkerAddresses()))
    spec = closeness.packed(graph, component, where, spec)
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def carrier(graph: Graph, component: Component) -> tuple[str, str]:
    """Kind and name of what runs a component."""
    if component.multinode:
        return "LeaderWorkerSet", naming.leader_worker_set(graph, component)
    return "Deployment", naming.child(graph, component)


def _pulled(graph: Graph, component: Component, seen: Seen) -> Component:
    """With Secrets to pull its images with. Pods are not looked at here: it counts as started when a replica
    is ready and none are left to be updated."""
    present = _present(graph, component, seen)
    known = pulling.given(component, _pods_of(component, present)) if present is not None else ()
    fit = pulling.found(graph, component, seen.pull_secrets, known)
    as_made = replace(component, pulls=known)
    if fit == known or present is None:
        return replace(component, pulls=fit)
    wanted = workload(graph, as_made, seen)["metadata"]["annotations"][keys.APPLIED]
    changes = wanted != present.metadata.annotations.get(keys.APPLIED)
    said = _mapping(present.status)
    started = bool(said.get("readyReplicas")) and said.get("updatedReplicas") == said.get("replicas")
    return replace(component, pulls=pulling.chosen(fit, known, changes=changes, started=started))


def _pods_of(component: Component, present: Companion) -> Body:
    """The spec of its pods; both roles of one that spans nodes are given the same Secrets."""
    spec = _mapping(present.spec)
    if not component.multinode:
        return _mapping(_mapping(spec.get("template")).get("spec"))
    return _mapping(_mapping(_mapping(spec.get("leaderWorkerTemplate")).get("workerTemplate")).get("spec"))


def _present(graph: Graph, component: Component, seen: Seen) -> Companion | None:
    return seen.children.get(carrier(graph, component))


def _brought(graph: Graph, wanted: Body, present: Companion | None) -> Intent | None:
    """Compared by what it was made from: the server writes quantities its own way."""
    if present is None:
        return Create(target(wanted), owned(graph, wanted))
    if present.metadata.deletion_timestamp is not None:
        return None
    edition = wanted["metadata"]["annotations"][keys.APPLIED]
    same = present.metadata.annotations.get(keys.APPLIED) == edition
    if same and _mapping(present.spec).get("replicas") == wanted["spec"]["replicas"]:
        return None
    pointer = "/metadata/annotations/" + keys.APPLIED.replace("/", "~1")
    body = [
        {"op": "replace", "path": "/spec", "value": wanted["spec"]},
        {"op": "add", "path": pointer, "value": edition},
    ]
    return Patch(target(wanted), body, type=PatchType.JSON)


def _judged(graph: Graph, component: Component, kind: str, present: Companion) -> Standing:
    said, desired = _mapping(present.status), component.replicas
    count = {key: int(said.get(key) or 0) for key in ("replicas", "updatedReplicas", "readyReplicas")}
    good = count["readyReplicas"] if component.multinode else int(said.get("availableReplicas") or 0)
    status = ComponentStatus(
        component_kind=kind,
        component_names=(present.metadata.name,),
        runtime_namespace=runtime_namespace(graph, component, generation(graph)),
        replicas=count["replicas"],
        updated_replicas=count["updatedReplicas"],
        ready_replicas=count["readyReplicas"],
        available_replicas=None if component.multinode else good,
    )
    conditions = said.get("conditions") or []
    available = any(each.get("type") == "Available" and each.get("status") == "True" for each in conditions)
    if int(said.get("observedGeneration") or 0) < present.metadata.generation and not component.multinode:
        return Standing(status, "some_resources_are_not_ready", "the latest change is not acted on yet")
    if desired == 0:
        return Standing(status)
    if count["updatedReplicas"] != desired or count["replicas"] != desired:
        return Standing(status, "updating", f"{good} of {desired} ready, {count['updatedReplicas']} updated")
    if good >= desired and available:
        return Standing(status)
    return Standing(status, "pods_not_ready", f"{good} of {desired} ready")


def _mapping(value: Any) -> Body:
    return value if isinstance(value, dict) else {}
