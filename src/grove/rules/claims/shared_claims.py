"""Which cliques of a set get which shared claims, and how many pods use one claim together.

Used to detect claims for accelerators; creating the claims is up to `grove.plan.desired.shared_claims`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from grove.api.types.common import AutoScalingConfig, ResourceSharing, SharingScope
from grove.api.types.podcliqueset import CliqueTemplate, ScalingGroupTemplate
from grove.rules.decode import Workload

_TEMPLATE = "spec.template"


class CliqueClaim(Struct, frozen=True):
    """The claims of one entry of `resourceSharing` for one clique."""

    clique: str
    entry: ResourceSharing
    path: str
    pods: int
    """How many pods may use one such claim together, at the highest counts that the set allows."""


def shared_claims(workload: Workload) -> Iterator[CliqueClaim]:
    """The shared claims of all cliques: those of the set first, then of groups, then of cliques."""
    template = workload.template
    groups = {name: group for group in template.pod_clique_scaling_groups for name in group.clique_names}
    yield from _of_set(workload, groups)
    for index, group in enumerate(template.pod_clique_scaling_groups):
        members = [clique for clique in template.cliques if clique.name in group.clique_names]
        yield from _of_group(f"{_TEMPLATE}.podCliqueScalingGroups[{index}]", group, members)
    for index, clique in enumerate(template.cliques):
        for at, each in enumerate(clique.resource_sharing):
            pods = _pods(clique) if _for_all(each) else 1
            yield CliqueClaim(clique.name, each, f"{_TEMPLATE}.cliques[{index}].resourceSharing[{at}]", pods)


def _of_set(workload: Workload, groups: dict[str, ScalingGroupTemplate]) -> Iterator[CliqueClaim]:
    for at, each in enumerate(workload.template.resource_sharing):
        reached = [
            clique
            for clique in workload.template.cliques
            if each.reaches(clique.name, groups[clique.name].name if clique.name in groups else None)
        ]
        pods = sum(_pods(clique) * _replicas(groups.get(clique.name)) for clique in reached)
        pods *= _most(workload.spec.replicas) if _for_all(each) else 1
        for clique in reached:
            yield CliqueClaim(clique.name, each, f"{_TEMPLATE}.resourceSharing[{at}]", pods)


def _of_group(path: str, group: ScalingGroupTemplate, members: list[CliqueTemplate]) -> Iterator[CliqueClaim]:
    for at, each in enumerate(group.resource_sharing):
        reached = [clique for clique in members if each.reaches(clique.name)]
        pods = sum(map(_pods, reached)) * (_replicas(group) if _for_all(each) else 1)
        for clique in reached:
            yield CliqueClaim(clique.name, each, f"{path}.resourceSharing[{at}]", pods)


def _pods(clique: CliqueTemplate) -> int:
    return _most(clique.spec.replicas, clique.spec.auto_scaling_config)


def _replicas(group: ScalingGroupTemplate | None) -> int:
    return _most(group.replicas, group.scale_config) if group is not None else 1


def _most(replicas: int, config: AutoScalingConfig | None = None) -> int:
    return max(replicas, config.max_replicas if config else 0, 1)


def _for_all(entry: ResourceSharing) -> bool:
    return entry.scope is SharingScope.ALL_REPLICAS
