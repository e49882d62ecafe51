"""Kubernetes' own gang scheduling in tests: how each version of Kubernetes is started with it."""

from __future__ import annotations

import asyncio
from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.crds import crd
from grove.kube.client.client import Client
from grove.local.build.versions import default_minor
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.registry import backends
from tests.cluster.conftest import PATIENCE, apply, established

IN_TREE = backends(
    Scheduler((SchedulerProfile("default-scheduler", {"gangScheduling": True, "placement": "Off"}),))
)
"""The backends of an operator with `gangScheduling: true`."""
_SWITCHES = {
    "1.36": ("v1alpha2", ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")),
    "1.37": ("v1beta1", ("GenericWorkload", "TopologyAwareWorkloadScheduling")),
}
"""By minor version of Kubernetes, the version of PodGroups and the feature gates."""


def gang_scheduling(minor: str = default_minor()) -> dict[str, Any]:
    """The settings of a cluster with gang scheduling, by default of the version under test."""
    version, gates = _SWITCHES[minor]
    return {
        "kubernetes": minor,
        "feature_gates": dict.fromkeys(gates, True),
        "runtime_config": (f"scheduling.k8s.io/{version}=true",),
    }


def served_backend(minor: str = default_minor()) -> SchedulerBackend:
    """The backend for the version of PodGroups that such a cluster serves."""
    latest = IN_TREE.by_name["default-scheduler"]
    version, _ = _SWITCHES[minor]
    (found,) = (
        each
        for each in (latest, *latest.older_versions)
        if each.gang_object_kind is not None and each.gang_object_kind.version == version
    )
    return found


async def install_crds(client: Client) -> None:
    """Create our CRDs, and wait until they are served."""
    async with asyncio.timeout(PATIENCE):
        for definition in crd.all_definitions():
            await apply(client, definition)
            await established(client, definition["metadata"]["name"])
