"""Builds the pod of a member: the spec of its clique, with the name, index and host name of the member."""

from __future__ import annotations

from typing import Any

from grove.api.naming import annotations as keys
from grove.api.naming import labels, names
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.expand import Clique
from grove.plan.desired.podspec import clique_annotations
from grove.plan.desired.restarts import to_annotation
from grove.plan.members.membership import Member

Body = dict[str, Any]


def pod(
    workload: PodCliqueSet,
    wanted: Clique,
    member: Member,
    spec: Body,
    object_labels: labels.Labels,
    owners: list[Body],
) -> Body:
    """One pod of a clique. `object_labels` are those of its PodClique."""
    annotations = clique_annotations(wanted) | to_annotation(wanted.restarts)
    if member.failures:
        annotations[keys.PRIOR_FAILURES] = str(member.failures)
    metadata: Body = {
        "name": member.name,
        "namespace": workload.metadata.namespace,
        "labels": labels.for_pod(object_labels, wanted.name, member.index),
        "ownerReferences": owners,
    }
    if annotations:
        metadata["annotations"] = annotations
    hostname = names.pod_host(wanted.name, member.index)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "hostname": hostname}}
