"""PodCliqueSets for the tests: upstream's test workloads, and builders for small ones."""

from __future__ import annotations

from typing import Any

import yaml

from grove.api.types.podcliqueset import PodCliqueSet
from tests.shared import shared_data

AGENT = {"node_role.e2e.grove.nvidia.com": "agent"}
"""The node label that upstream's workloads select."""
GONE_LATER = "pod-gone.grove.local/delay"
"""Annotation of a pod: how long its (simulated) node takes to stop it."""

Body = dict[str, Any]


def upstream(name: str) -> Body:
    """One of upstream's test workloads, for Kubernetes' default scheduler."""
    text = shared_data(f"workloads/{name}.yaml").read_text()
    (body,) = (part for part in yaml.load_all(text, Loader=yaml.CSafeLoader) if part)
    for clique in body["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["schedulerName"] = "default-scheduler"
    return body


def clique(name: str, replicas: int = 1, minimum: int | None = None, **template: Any) -> Body:
    """A clique of pods with one container."""
    pod = template.pop("pod", {})
    spec = {"replicas": replicas, "podSpec": {"containers": [{"name": "main", "image": "model:1"}], **pod}}
    if minimum is not None:
        spec["minAvailable"] = minimum
    return {"name": name, **template, "spec": spec}


def group(name: str, replicas: int, minimum: int, *cliques: str) -> Body:
    return {"name": name, "replicas": replicas, "minAvailable": minimum, "cliqueNames": list(cliques)}


def workload(name: str, *cliques: Body, groups: tuple[Body, ...] = (), replicas: int = 1) -> Body:
    template: Body = {"cliques": list(cliques)}
    if groups:
        template["podCliqueScalingGroups"] = list(groups)
    kind = PodCliqueSet.KIND
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": template},
    }


def small(name: str = "small", **options: Any) -> Body:
    """A set of five pods: a clique outside of groups, and a group with a base gang and a scaled gang."""
    return workload(
        name,
        clique("router"),
        clique("leader"),
        clique("worker"),
        groups=(group("model", 2, 1, "leader", "worker"),),
        **options,
    )
