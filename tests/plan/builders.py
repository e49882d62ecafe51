"""Builds sets and pods from short notations, so that a row of a table fits on a line.

a_set("a:2/1 b:1 c:3/1", "x:2/1=b,c")    cliques `name:replicas/minAvailable`, then groups with members
"""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSet

Body = dict[str, Any]

NAMESPACE = "ns"
NAME = "wl"


def a_set(cliques: str, groups: str = "", *, replicas: int = 1, name: str = NAME, **template: Any) -> Body:
    """A PodCliqueSet as a user would write it, after the defaults of admission."""
    spec: Body = {"cliques": [a_clique(word) for word in cliques.split()], **template}
    if groups:
        spec["podCliqueScalingGroups"] = [_group(word) for word in groups.split()]
    return {
        "apiVersion": PodCliqueSet.KIND.api_version,
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": replicas, "template": spec},
    }


def a_clique(word: str, **pod_spec: Any) -> Body:
    """A clique of a set; further fields go into its pod spec."""
    name, _, counts = word.partition(":")
    replicas, least = _counts(counts or "1")
    containers = [{"name": "main", "image": "example.com/serve:1"}]
    spec = {"containers": containers, "restartPolicy": "Always", **pod_spec}
    return {
        "name": name,
        "spec": {"roleName": name, "replicas": replicas, "minAvailable": least, "podSpec": spec},
    }


def _group(word: str) -> Body:
    head, _, members = word.partition("=")
    name, _, counts = head.partition(":")
    replicas, least = _counts(counts)
    return {"name": name, "replicas": replicas, "minAvailable": least, "cliqueNames": members.split(",")}


def _counts(text: str) -> tuple[int, int]:
    replicas, _, least = text.partition("/")
    return int(replicas), int(least or replicas)


def read_set(body: Body) -> PodCliqueSet:
    """The set as the operator reads it."""
    return msgspec.json.decode(msgspec.json.encode(body), type=PodCliqueSet)


def a_pod(
    name: str,
    index: int | None = 0,
    *,
    phase: str = "Pending",
    node: str = "",
    ready: bool = False,
    hash_: str = "new",
    created: str = "2026-01-01T00:00:00Z",
    terminating: bool = False,
) -> Pod:
    """A pod of some clique, as the operator reads it."""
    object_labels = {labels.TEMPLATE_HASH: hash_}
    if index is not None:
        object_labels[labels.POD_INDEX] = str(index)
    metadata: Body = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": created,
        "labels": object_labels,
    }
    if terminating:
        metadata["deletionTimestamp"] = created
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    status = {"phase": phase, "conditions": conditions}
    body = {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status}
    return msgspec.json.decode(msgspec.json.encode(body), type=Pod)
