"""The reviews that are sent to both servers: create and update of a disaggregated workload."""

from __future__ import annotations

from typing import Any

import msgspec

from bench.kube.sample import pod
from grove.rules.podcliqueset.defaults import default_set


def workload(name: str = "llama") -> dict[str, Any]:
    """A set of a router and a group of prefill and decode with leaders and workers."""
    spec = pod(name, "default")["spec"]
    cliques = [
        {"name": role, "spec": {"roleName": role, "replicas": replicas, "podSpec": spec}}
        for role, replicas in (("router", 2), ("pleader", 1), ("pworker", 3), ("dleader", 1), ("dworker", 7))
    ]
    groups = [
        {"name": "prefill", "cliqueNames": ["pleader", "pworker"], "replicas": 2, "minAvailable": 1},
        {"name": "decode", "cliqueNames": ["dleader", "dworker"], "replicas": 4, "minAvailable": 2},
    ]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 2, "template": {"cliques": cliques, "podCliqueScalingGroups": groups}},
    }


def review(operation: str, new: dict[str, Any], old: dict[str, Any] | None = None) -> bytes:
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"},
        "resource": {"group": "grove.io", "version": "v1alpha1", "resource": "podcliquesets"},
        "name": new["metadata"]["name"],
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return msgspec.json.encode(body)


def asked() -> dict[str, bytes]:
    """The AdmissionReviews of an API server, by their label in the tables."""
    written = workload()
    stored = default_set(written)
    changed = {**stored, "spec": {**stored["spec"], "replicas": 3}}
    return {
        "default, create": review("CREATE", written),
        "validate, create": review("CREATE", stored),
        "validate, update": review("UPDATE", changed, stored),
    }
