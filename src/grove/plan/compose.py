"""The objects of a replica as they should be: names, labels, owners, specs. Bodies are JSON to be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from grove.api import labels, names
from grove.api.cliques import PodClique
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.pods import read_template
from grove.api.sets import PodCliqueSet
from grove.plan.expand import Clique, Gang, Group, Shape
from grove.plan.hashes import template_hash
from grove.plan.order import starts_after
from grove.plan.podspec import clique_annotations, clique_pod_spec

Body = dict[str, Any]

DEFAULT_SCHEDULER = "default-scheduler"


def plain(value: object) -> Any:
    """A wire type as JSON to be, raw parts included."""
    return msgspec.json.decode(msgspec.json.encode(value))


def scheduler_of(workload: PodCliqueSet) -> str:
    """The scheduler that the pods of a set ask for; they all ask for the same one."""
    for clique in workload.spec.template.cliques:
        if chosen := _scheduler_named_in(bytes(clique.spec.pod_spec)):
            return chosen
    return DEFAULT_SCHEDULER


@lru_cache(maxsize=1024)
def _scheduler_named_in(pod_spec: bytes) -> str:
    return read_template(msgspec.Raw(pod_spec)).scheduler_name


def owner(api_version: str, kind: str, name: str, uid: str) -> list[Body]:
    """A controller reference, the only owner of what we make."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]


def owned_by_set(workload: PodCliqueSet) -> list[Body]:
    kind = PodCliqueSet.KIND
    return owner(kind.api_version, kind.name, workload.metadata.name, workload.metadata.uid)


def service(workload: PodCliqueSet, index: int) -> Body:
    """The headless Service by which the pods of a replica find each other."""
    meta = workload.metadata
    name = names.service(meta.name, index)
    config = workload.spec.template.headless_service_config
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": labels.for_replica(meta.name, index, name, labels.Component.HEADLESS_SERVICE),
            "ownerReferences": owned_by_set(workload),
        },
        "spec": {
            "clusterIP": "None",
            "selector": labels.pods_of_replica(meta.name, index),
            "publishNotReadyAddresses": config is None or config.publish_not_ready_addresses,
        },
    }


def group(workload: PodCliqueSet, index: int, wanted: Group) -> Body:
    """A scaling group; its replicas are written here once and never again."""
    meta = workload.metadata
    body: Body = {
        "apiVersion": PodCliqueScalingGroup.KIND.api_version,
        "kind": PodCliqueScalingGroup.KIND.name,
        "metadata": {
            "name": wanted.name,
            "namespace": meta.namespace,
            "labels": labels.for_replica(meta.name, index, wanted.name, labels.Component.GROUP),
            "ownerReferences": owned_by_set(workload),
        },
        "spec": {
            "replicas": wanted.replicas,
            "minAvailable": wanted.min_available,
            "cliqueNames": list(wanted.template.clique_names),
        },
    }
    if wanted.template.annotations:
        body["metadata"]["annotations"] = wanted.template.annotations
    return body


def clique_labels(workload: PodCliqueSet, index: int, wanted: Clique) -> labels.Labels:
    """What a PodClique carries, and its pods with it: the template's labels, with ours above them."""
    set_name = workload.metadata.name
    hash_ = template_hash(wanted.template, workload.spec.template.priority_class_name)
    ours = labels.for_clique(set_name, index, wanted.name, wanted.template.name, wanted.gang, hash_)
    if wanted.group is not None:
        ours = labels.for_member(ours, wanted.group.name, wanted.group_replica, wanted.base_gang)
    return {**wanted.template.labels, **ours}


def clique(workload: PodCliqueSet, index: int, shape: Shape, wanted: Clique, owners: list[Body]) -> Body:
    """A clique; its replicas are written here once and never again."""
    spec = wanted.template.spec
    body: Body = {
        "apiVersion": PodClique.KIND.api_version,
        "kind": PodClique.KIND.name,
        "metadata": {
            "name": wanted.name,
            "namespace": workload.metadata.namespace,
            "labels": clique_labels(workload, index, wanted),
            "ownerReferences": owners,
        },
        "spec": {
            "roleName": spec.role_name or wanted.template.name,
            "podSpec": clique_pod_spec(workload, wanted),
            "replicas": wanted.replicas,
            "minAvailable": wanted.min_available,
        },
    }
    if notes := clique_annotations(wanted):
        body["metadata"]["annotations"] = notes
    if after := starts_after(workload, index, shape, wanted):
        body["spec"]["startsAfter"] = list(after)
    if spec.auto_scaling_config is not None:
        body["spec"]["autoScalingConfig"] = plain(spec.auto_scaling_config)
    return body


def gang_labels(
    workload: PodCliqueSet, index: int, scheduler: str, existing: Mapping[str, str]
) -> dict[str, str]:
    """What somebody of ours put there, below what the set says, below what we say."""
    return _inherited(existing, workload.metadata.labels) | labels.for_gang(
        workload.metadata.name, index, scheduler
    )


def gang_annotations(workload: PodCliqueSet, existing: Mapping[str, str]) -> dict[str, str]:
    return _inherited(existing, workload.metadata.annotations)


def _inherited(existing: Mapping[str, str], of_set: Mapping[str, str]) -> dict[str, str]:
    ours = {key: value for key, value in existing.items() if key.startswith(labels.OURS)}
    return ours | {
        key: value
        for key, value in of_set.items()
        if not key.startswith(labels.OURS) and not key.startswith("kubectl.kubernetes.io/")
    }


def gang_spec(workload: PodCliqueSet, wanted: Gang, references: Mapping[str, tuple[str, ...]]) -> Body:
    """The pods of a gang, clique by clique."""
    namespace = workload.metadata.namespace
    spec: Body = {
        "podgroups": [
            {
                "name": clique.name,
                "podReferences": [{"namespace": namespace, "name": name} for name in references[clique.name]],
                "minReplicas": clique.min_available,
            }
            for clique in wanted.cliques
        ]
    }
    if priority := workload.spec.template.priority_class_name:
        spec["priorityClassName"] = priority
    return spec


def gang(workload: PodCliqueSet, index: int, wanted: Gang, scheduler: str, spec: Body) -> Body:
    """A gang, with every pod that it is to have named in it."""
    metadata: Body = {
        "name": wanted.name,
        "namespace": workload.metadata.namespace,
        "labels": gang_labels(workload, index, scheduler, {}),
        "ownerReferences": owned_by_set(workload),
    }
    if notes := gang_annotations(workload, {}):
        metadata["annotations"] = notes
    kind = PodGang.KIND
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}
