"""Builds the desired objects of a replica: names, labels, owners, specs. Bodies are dicts for JSON.

Replica counts are not included: they are written when an object is created, and belong to autoscalers and
users from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from grove.api.intents import ObjectRef
from grove.api.meta import ObjectMeta
from grove.api.naming import annotations as keys
from grove.api.naming import labels, names
from grove.api.types.kind import Kind
from grove.api.types.pod import read_template
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.expand import Clique, Gang, Group, ReplicaLayout
from grove.plan.desired.packing import Packing
from grove.plan.desired.startup_order import starts_after

Body = dict[str, Any]


def to_builtins(value: object) -> Any:
    """Converts a wire type to dicts and lists, including raw parts."""
    return msgspec.json.decode(msgspec.json.encode(value))


def named_scheduler(workload: PodCliqueSet) -> str:
    """The scheduler that a set names, the same for all of its pods; empty if it names none."""
    named = (_scheduler_named_in(bytes(clique.spec.pod_spec)) for clique in workload.spec.template.cliques)
    return next(filter(None, named), "")


@lru_cache(maxsize=1024)
def _scheduler_named_in(pod_spec: bytes) -> str:
    return read_template(msgspec.Raw(pod_spec)).scheduler_name


def controller_reference(owner: ObjectRef) -> list[Body]:
    """A controller reference, the only owner of objects that the operator creates."""
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]


def set_owner_reference(workload: PodCliqueSet) -> list[Body]:
    kind, meta = PodCliqueSet.KIND, workload.metadata
    return controller_reference(ObjectRef(kind.api_version, kind.name, meta.name, meta.namespace, meta.uid))


def metadata(
    workload: PodCliqueSet,
    name: str,
    object_labels: labels.Labels,
    annotations: Mapping[str, str],
    owners: list[Body],
) -> Body:
    """The metadata of an object of a replica."""
    body: Body = {
        "name": name,
        "namespace": workload.metadata.namespace,
        "labels": object_labels,
        "ownerReferences": owners,
    }
    return body | {"annotations": annotations} if annotations else body


def grove_object(kind: Kind, metadata: Body, spec: Body) -> Body:
    """An object of a Grove kind."""
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def service_metadata(workload: PodCliqueSet, index: int) -> Body:
    set_name = workload.metadata.name
    name = names.service(set_name, index)
    object_labels = labels.for_replica(set_name, index, name, labels.ComponentLabel.HEADLESS_SERVICE)
    return metadata(workload, name, object_labels, {}, set_owner_reference(workload))


def service_managed_spec(workload: PodCliqueSet, index: int) -> Body:
    """The managed spec of the headless Service of a replica, by which its pods find each other."""
    config = workload.spec.template.headless_service_config
    return {
        "selector": labels.pods_of_replica(workload.metadata.name, index),
        "publishNotReadyAddresses": config is None or config.publish_not_ready_addresses,
    }


def group_metadata(workload: PodCliqueSet, index: int, wanted: Group) -> Body:
    object_labels = labels.for_replica(
        workload.metadata.name, index, wanted.name, labels.ComponentLabel.GROUP
    )
    annotations = wanted.template.annotations
    if workload.metadata.annotations.get(keys.AUTO_MNNVL) == keys.AUTO_MNNVL_ENABLED:
        annotations = {**annotations, keys.AUTO_MNNVL: keys.AUTO_MNNVL_ENABLED}
    if (of_set := workload.metadata.annotations.get(keys.MNNVL_GROUP)) is not None:
        annotations = {keys.MNNVL_GROUP: of_set, **annotations}
    return metadata(workload, wanted.name, object_labels, annotations, set_owner_reference(workload))


def group_managed_spec(wanted: Group) -> Body:
    """The spec of a scaling group without replicas."""
    return {"minAvailable": wanted.min_available, "cliqueNames": list(wanted.template.clique_names)}


def clique_labels(workload: PodCliqueSet, index: int, wanted: Clique) -> labels.Labels:
    """The labels of a PodClique and its pods: the template's, overridden by ours."""
    set_name, template = workload.metadata.name, wanted.template
    grove_labels = labels.for_clique(
        set_name, index, wanted.name, template.name, wanted.gang, wanted.template_hash
    )
    if wanted.group is not None:
        grove_labels = labels.for_member_clique(
            grove_labels, wanted.group.name, wanted.group_replica, wanted.base_gang
        )
    if wanted.fabric_domains:
        grove_labels[labels.COMPUTE_DOMAIN] = wanted.fabric_domains[0].name
    return {**template.labels, **grove_labels}


def clique_managed_spec(workload: PodCliqueSet, index: int, layout: ReplicaLayout, wanted: Clique) -> Body:
    """The spec of a clique without pod spec and replicas."""
    spec = wanted.template.spec
    managed_spec: Body = {
        "roleName": spec.role_name or wanted.template.name,
        "minAvailable": wanted.min_available,
    }
    if after := starts_after(workload, index, layout, wanted):
        managed_spec["startsAfter"] = list(after)
    if spec.auto_scaling_config is not None:
        managed_spec["autoScalingConfig"] = to_builtins(spec.auto_scaling_config)
    return managed_spec


def gang_metadata(
    workload: PodCliqueSet, index: int, wanted: Gang, scheduler: str, known: ObjectMeta, topology: str = ""
) -> Body:
    """The metadata of a gang: existing Grove keys, overridden by those of the set, overridden by ours."""
    of_set = workload.metadata
    grove_labels = labels.for_gang(of_set.name, index, scheduler)
    object_labels = _inherited(known.labels, of_set.labels) | grove_labels
    annotations = _inherited(known.annotations, of_set.annotations)
    annotations.pop(keys.TOPOLOGY_NAME, None)
    if topology:
        annotations[keys.TOPOLOGY_NAME] = topology
    return metadata(workload, wanted.name, object_labels, annotations, set_owner_reference(workload))


def _inherited(existing: Mapping[str, str], of_set: Mapping[str, str]) -> dict[str, str]:
    grove_labels = {key: value for key, value in existing.items() if key.startswith(labels.GROVE_PREFIX)}
    return grove_labels | {
        key: value
        for key, value in of_set.items()
        if not key.startswith(labels.GROVE_PREFIX) and not key.startswith("kubectl.kubernetes.io/")
    }


def gang_spec(
    workload: PodCliqueSet,
    wanted: Gang,
    references: Mapping[str, tuple[str, ...]],
    packing: Packing,
    priority_class: str,
) -> Body:
    """The spec of a gang: pod references by clique, minimums, topology constraints and PriorityClass."""
    namespace = workload.metadata.namespace
    spec: Body = {
        "podgroups": tuple(
            {
                "name": clique.name,
                "podReferences": tuple(
                    {"namespace": namespace, "name": name} for name in references[clique.name]
                ),
                "minReplicas": clique.min_available,
                **packing.of_clique(clique.name),
            }
            for clique in wanted.cliques
        ),
        **packing.of_gang(),
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    return spec
