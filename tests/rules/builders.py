"""Builders of valid sets, and `changed` to turn them into invalid ones."""

from __future__ import annotations

import copy
import re
from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.fabrics.registry import providers
from grove.rules.model import Facts
from grove.rules.podcliqueset.defaults import default_set
from grove.schedulers.registry import SchedulerBackends, backends

GONE = object()
"""As a value of `changed`: remove the field."""


DEFAULT = "default-scheduler"


def in_use(*names: str, **profile: Any) -> SchedulerBackends:
    """The scheduler backends of these profiles, and that of the default scheduler, without placement unless
    the profile has a `config`."""
    alone = {"config": {"placement": "Off"}}
    named = (SchedulerProfile(name, **(alone | profile if name == DEFAULT else profile)) for name in names)
    appended = () if DEFAULT in names else (SchedulerProfile(DEFAULT, **alone),)
    return backends(Scheduler((*named, *appended)))


FACTS = Facts(
    backends=in_use("default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler"),
    topology_aware=True,
    topologies={"h100": ("zone", "block", "rack", "host"), "gb200": ("block", "nvlink")},
    operator_user="system:serviceaccount:grove-system:grove-operator",
    fabrics=providers(("nvidia",)),
    exempt_users=("system:serviceaccount:kube-system:generic-garbage-collector",),
)


def clique(name: str, replicas: int = 2, **spec: Any) -> dict[str, Any]:
    """A clique with one container."""
    pod_spec = {"containers": [{"name": name, "image": "app:1"}]}
    return {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": pod_spec, **spec}}


def group(name: str, *members: str, replicas: int = 2, **more: Any) -> dict[str, Any]:
    """A scaling group."""
    return {"name": name, "cliqueNames": list(members), "replicas": replicas, "minAvailable": 1, **more}


def bare(*cliques: dict[str, Any], **template: Any) -> dict[str, Any]:
    """A set as a user writes it, without defaults."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "app", "namespace": "ns"},
        "spec": {"replicas": 1, "template": {"cliques": list(cliques), **template}},
    }


def workload(**template: Any) -> dict[str, Any]:
    """A set with one standalone clique and a group of two cliques, with defaults, as it is stored."""
    cliques = (clique("router"), clique("prefill"), clique("decode", 3))
    return default_set(
        bare(*cliques, podCliqueScalingGroups=[group("engine", "prefill", "decode")], **template)
    )


def changed(body: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with these fields set, by paths such as `spec.template.cliques[0].name`; keys with dots come in
    brackets and quotes, as in `metadata.labels["a.b/c"]`."""
    body = copy.deepcopy(body)
    for path, value in changes.items():
        value = value if value is GONE else copy.deepcopy(value)
        *way, last = _steps(path)
        here: Any = body
        for step in way:
            here = here[step] if isinstance(step, int) else here.setdefault(step, {})
        if value is GONE:
            del here[last]
        elif isinstance(last, int) and last == len(here):
            here.append(value)
        else:
            here[last] = value
    return body


def _steps(path: str) -> list[str | int]:
    found = re.findall(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]]+)', path)
    return [quoted or word or int(index) for quoted, index, word in found]
