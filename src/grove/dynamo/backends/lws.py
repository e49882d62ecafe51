"""The backend without Grove: a LeaderWorkerSet for each multi-node component, else a Deployment."""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.intents import Intent, Patch, PatchType
from grove.api.meta import Condition
from grove.dynamo import keys, naming
from grove.dynamo.admission import topology_rules
from grove.dynamo.api.status import AppliedTopology, ComponentStatus, RestartStatus
from grove.dynamo.backends import kueue
from grove.dynamo.backends.object_writes import digest, target, with_owner
from grove.dynamo.graph import Body, Graph, GraphComponent, mapping
from grove.dynamo.render import image_pull_secrets, pod_template, topology_affinity
from grove.dynamo.render.addressing import LeaderWorkerAddresses, Role
from grove.dynamo.render.engines import ComponentRole
from grove.dynamo.snapshot import ChildObject, ComponentState, GraphReason, GraphSnapshot, WorkloadPlan
from grove.dynamo.worker_generation import generation, runtime_namespace
from grove.plan.writes.builders import create

_STRATEGY = "nvidia.com/deployment-strategy"
_SURGE = "nvidia.com/deployment-rolling-update-max-surge"
_UNAVAILABLE = "nvidia.com/deployment-rolling-update-max-unavailable"
_DEFAULT_LIMIT = "25%"


class LwsBackend:
    """Writes one workload per component, and reads its state."""

    name = keys.COMPONENTS

    def plan_workloads(self, graph: Graph, snapshot: GraphSnapshot) -> WorkloadPlan:
        """Topology constraints are validated only as long as no workload exists."""
        if not any(_existing(graph, each, snapshot) for each in graph.components) and (
            errors := topology_rules.on_create(graph, snapshot.context)
        ):
            return WorkloadPlan(errors=tuple(errors))
        writes = []
        for component in graph.components:
            existing = _existing(graph, component, snapshot)
            wanted = _desired_workload(graph, component, snapshot, existing)
            writes += [] if (write := _write_for(graph, wanted, existing)) is None else [write]
        return WorkloadPlan(writes=tuple(writes), applied=_applied_constraints(graph, snapshot))

    def component_state(
        self, graph: Graph, component: GraphComponent, snapshot: GraphSnapshot
    ) -> ComponentState:
        kind, name = workload_ref(graph, component)
        existing = _existing(graph, component, snapshot)
        if existing is None:
            return ComponentState(None, "some_resources_are_not_ready", f"{kind} {name} does not exist yet")
        state = _component_state(graph, component, kind, existing)
        if state.reason and kueue.is_refused(component, snapshot):
            return replace(state, reason="insufficient_capacity")
        return state

    def reasons(self, graph: Graph, snapshot: GraphSnapshot) -> list[GraphReason]:
        return kueue.reasons(graph, snapshot)

    def restart(self, graph: Graph, snapshot: GraphSnapshot) -> RestartStatus | None:  # noqa: ARG002 - the protocol's
        return None

    def conditions(self, graph: Graph, snapshot: GraphSnapshot) -> list[Condition]:
        found = kueue.conditions(graph, snapshot)
        if graph.constrained:
            found.append(topology_affinity.levels_condition(graph, snapshot.context))
        return found


def _applied_constraints(graph: Graph, snapshot: GraphSnapshot) -> tuple[AppliedTopology, ...]:
    labels = snapshot.context.topology.domain_to_label_mapping
    found = []
    for component in graph.components:
        kind, name = workload_ref(graph, component)
        for domain in dict.fromkeys(filter(None, (graph.topology.domain, component.domain))):
            whole = domain == graph.topology.domain and domain != component.domain
            constrained = "" if whole else component.name
            found.append(AppliedTopology(constrained, domain, labels.get(domain, ""), f"{kind}/{name}"))
    return tuple(found)


def workload(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> Body:
    """The workload of a component, without an owner and without discovered image pull Secrets."""
    spec = (
        _lws_spec(graph, component, snapshot)
        if component.multinode
        else _deployment_spec(graph, component, snapshot)
    )
    kind, name = workload_ref(graph, component)
    labels = {**graph.labels, keys.GRAPH: graph.name, keys.COMPONENT: component.name}
    where = snapshot.context.topology
    if topology_affinity.is_queued(graph, component, where):
        labels[topology_affinity.QUEUE] = topology_affinity.queue(graph, where)
    metadata = {"name": name, "namespace": graph.namespace, "labels": labels}
    metadata["annotations"] = dict(graph.annotations)
    version = "leaderworkerset.x-k8s.io/v1" if component.multinode else "apps/v1"
    body = {"apiVersion": version, "kind": kind, "metadata": metadata}
    return {**body, "spec": {"replicas": component.replicas, **spec}}


def _deployment_spec(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> Body:
    own = (
        component.pod_annotations.get if _STRATEGY in component.pod_annotations else graph.own_annotations.get
    )
    strategy: Body = {"type": "Recreate"}
    if own(_STRATEGY, "RollingUpdate") != "Recreate":
        pace = {"maxSurge": own(_SURGE, _DEFAULT_LIMIT), "maxUnavailable": own(_UNAVAILABLE, _DEFAULT_LIMIT)}
        strategy = {"type": "RollingUpdate", "rollingUpdate": pace}
    return {
        "selector": {"matchLabels": {keys.SELECTOR: naming.child_object(graph, component)}},
        "strategy": strategy,
        "template": _template(graph, component, Role.SINGLE, snapshot),
    }


def _lws_spec(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> Body:
    return {
        "startupPolicy": "LeaderCreated",
        "leaderWorkerTemplate": {
            "size": component.nodes,
            "leaderTemplate": _template(graph, component, Role.LEADER, snapshot),
            "workerTemplate": _template(graph, component, Role.WORKER, snapshot),
        },
    }


def _template(graph: Graph, component: GraphComponent, role: Role, snapshot: GraphSnapshot) -> Body:
    where = snapshot.context.topology
    labels = pod_template.labels(graph, component)
    annotations = pod_template.pod_annotations(graph, component)
    if component.multinode:
        del labels[keys.SELECTOR]
        labels["role"] = "leader" if role is Role.LEADER else "worker"
        annotations |= topology_affinity.kueue_annotations(graph, component, where)
    spec = pod_template.pod_spec(ComponentRole(graph, component, role, LeaderWorkerAddresses()))
    spec = topology_affinity.with_affinity(graph, component, where, spec)
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def workload_ref(graph: Graph, component: GraphComponent) -> tuple[str, str]:
    """Kind and name of the workload of a component."""
    if component.multinode:
        return "LeaderWorkerSet", naming.leader_worker_set(graph, component)
    return "Deployment", naming.child_object(graph, component)


def _desired_workload(
    graph: Graph, component: GraphComponent, snapshot: GraphSnapshot, existing: ChildObject | None
) -> Body:
    """The workload with image pull Secrets, and with the hash of its spec as an annotation. This backend does
    not observe pods: a component counts as started when a replica is ready and all replicas are updated."""
    wanted = workload(graph, component, snapshot)
    known: image_pull_secrets.Names = ()
    if existing is not None:
        (*_, stored) = _pod_specs(component, mapping(existing.spec))  # both roles have the same Secrets
        known = image_pull_secrets.current_secrets(component, stored)
    fit = image_pull_secrets.matching_secrets(graph, component, snapshot.pull_secrets, known)
    if existing is None or fit == known:
        return _with_pull_secrets(wanted, component, fit)
    spec_hash = _with_pull_secrets(wanted, component, known)["metadata"]["annotations"][keys.APPLIED]
    changes = spec_hash != existing.metadata.annotations.get(keys.APPLIED)
    status = mapping(existing.status)
    started = bool(status.get("readyReplicas")) and status.get("updatedReplicas") == status.get("replicas")
    selected = image_pull_secrets.select_secrets(fit, known, changes=changes, started=started)
    return _with_pull_secrets(wanted, component, selected)


def _with_pull_secrets(wanted: Body, component: GraphComponent, discovered: image_pull_secrets.Names) -> Body:
    """The rendered workload with these Secrets, which are set in place, and the hash of its spec."""
    for pod_spec in _pod_specs(component, wanted["spec"]):
        image_pull_secrets.set_pull_secrets(pod_spec, component, discovered)
    spec = {key: value for key, value in wanted["spec"].items() if key != "replicas"}
    wanted["metadata"]["annotations"][keys.APPLIED] = digest(spec)
    return wanted


def _pod_specs(component: GraphComponent, spec: Body) -> list[Body]:
    """The pod specs in the spec of a workload: one for each role."""
    templates = [spec.get("template")]
    if component.multinode:
        both = mapping(spec.get("leaderWorkerTemplate"))
        templates = [both.get("leaderTemplate"), both.get("workerTemplate")]
    return [mapping(mapping(template).get("spec")) for template in templates]


def _existing(graph: Graph, component: GraphComponent, snapshot: GraphSnapshot) -> ChildObject | None:
    return snapshot.children.get(workload_ref(graph, component))


def _write_for(graph: Graph, wanted: Body, existing: ChildObject | None) -> Intent | None:
    """The write that creates or updates a workload, if any. Compares digests of the applied spec: the API
    server normalises quantities, so that specs would differ."""
    if existing is None:
        return create(with_owner(graph, wanted))
    if existing.metadata.deletion_timestamp is not None:
        return None
    edition = wanted["metadata"]["annotations"][keys.APPLIED]
    same = existing.metadata.annotations.get(keys.APPLIED) == edition
    if same and mapping(existing.spec).get("replicas") == wanted["spec"]["replicas"]:
        return None
    pointer = "/metadata/annotations/" + keys.APPLIED.replace("/", "~1")
    body = [
        {"op": "replace", "path": "/spec", "value": wanted["spec"]},
        {"op": "add", "path": pointer, "value": edition},
    ]
    return Patch(target(wanted), body, type=PatchType.JSON)


def _component_state(
    graph: Graph, component: GraphComponent, kind: str, existing: ChildObject
) -> ComponentState:
    observed, desired = mapping(existing.status), component.replicas
    count = {key: int(observed.get(key) or 0) for key in ("replicas", "updatedReplicas", "readyReplicas")}
    good = count["readyReplicas"] if component.multinode else int(observed.get("availableReplicas") or 0)
    status = ComponentStatus(
        component_kind=kind,
        component_names=(existing.metadata.name,),
        runtime_namespace=runtime_namespace(graph, component, generation(graph)),
        replicas=count["replicas"],
        updated_replicas=count["updatedReplicas"],
        ready_replicas=count["readyReplicas"],
        available_replicas=None if component.multinode else good,
    )
    conditions = observed.get("conditions") or []
    available = any(each.get("type") == "Available" and each.get("status") == "True" for each in conditions)
    if (
        int(observed.get("observedGeneration") or 0) < existing.metadata.generation
        and not component.multinode
    ):
        return ComponentState(
            status, "some_resources_are_not_ready", "the latest generation is not reconciled yet"
        )
    if desired == 0:
        return ComponentState(status)
    if count["updatedReplicas"] != desired or count["replicas"] != desired:
        return ComponentState(
            status, "updating", f"{good} of {desired} ready, {count['updatedReplicas']} updated"
        )
    if good >= desired and available:
        return ComponentState(status)
    return ComponentState(status, "pods_not_ready", f"{good} of {desired} ready")
