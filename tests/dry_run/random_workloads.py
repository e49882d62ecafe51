"""Random sets, and random use of a cluster by other pods."""

from __future__ import annotations

from random import Random
from typing import Any

from grove.api.types.podcliqueset import PodCliqueSet

Body = dict[str, Any]
LEVELS = ("zone", "block", "rack", "host")
_NAMES = ("a", "b", "c")


def random_set(random: Random, name: str, namespace: str = "ns") -> Body:
    """A set of up to three cliques, the last of them possibly in a group, with constraints that nest."""
    names = _NAMES[: random.randint(1, 3)]
    outer = _level(random, 0)
    groups, grouped = [], ()
    if len(names) > 1 and random.random() < 0.5:
        grouped = names[1:]
        replicas = random.randint(1, 3)
        group: Body = {"name": "x", "replicas": replicas, "minAvailable": random.randint(1, replicas)}
        groups.append({**group, "cliqueNames": list(grouped)} | _constraint(_level(random, outer)))
    template: Body = {"cliques": [_clique(random, each, outer) for each in names]}
    if groups:
        template["podCliqueScalingGroups"] = groups
        inner = LEVELS.index(_required(groups[0])) if _required(groups[0]) else outer
        for each in template["cliques"]:
            if each["name"] in grouped:
                each.pop("topologyConstraint", None)
                each |= _constraint(_level(random, inner))
    template |= _constraint(outer)
    _name_topology(template)
    kind = PodCliqueSet.KIND
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": random.randint(1, 2), "template": template},
    }


def _name_topology(template: Body) -> None:
    """Each constraint names the topology; so does the set, as groups and cliques must use the same one."""
    for each in (template, *template.get("podCliqueScalingGroups", ()), *template["cliques"]):
        if "topologyConstraint" in each:
            each["topologyConstraint"]["topologyName"] = "local"


def _clique(random: Random, name: str, outer: int) -> Body:
    replicas = random.randint(1, 5)
    container: Body = {"name": "main", "image": "model:1"}
    if gpus := random.choice((0, 1, 2, 4, 8, 8)):
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec = {
        "roleName": name,
        "replicas": replicas,
        "minAvailable": random.choice((replicas, replicas, random.randint(1, replicas))),
        "podSpec": {"containers": [container], "restartPolicy": "Always"},
    }
    return {"name": name, "spec": spec} | _constraint(_level(random, outer))


def _level(random: Random, outer: int) -> int:
    """A level that is not wider than the one around it; the number of levels stands for none."""
    return random.choice((*range(outer, len(LEVELS)), len(LEVELS), len(LEVELS)))


def _constraint(level: int) -> Body:
    return {"topologyConstraint": {"pack": {"required": LEVELS[level]}}} if level < len(LEVELS) else {}


def _required(found: Body) -> str:
    required: str = found.get("topologyConstraint", {}).get("pack", {}).get("required", "")
    return required


def foreign_pod(name: str, node: str, gpus: int, namespace: str = "others") -> Body:
    """A pod of others that uses GPUs of a node."""
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "other:1", "resources": resources}],
        },
    }


def random_use(random: Random, nodes: list[str]) -> list[tuple[str, int]]:
    """Nodes that others use, with the number of GPUs."""
    share = random.random()
    return [(node, random.randint(1, 8)) for node in nodes if random.random() < share]
