"""Validation of the scaling groups of a set: names, members, counts and autoscaling bounds."""

from __future__ import annotations

from collections.abc import Iterator, KeysView

from grove.api.field_errors import FieldError, duplicate, invalid, required
from grove.api.naming import names
from grove.api.types.podcliqueset import ScalingGroupTemplate
from grove.rules import syntax
from grove.rules.decode import Workload
from grove.rules.podcliqueset import autoscaling_bounds, update_strategy
from grove.rules.podcliqueset.cliques import too_long
from grove.rules.syntax import duplicates

_GROUPS = "spec.template.podCliqueScalingGroups"


def errors(workload: Workload) -> Iterator[FieldError]:
    """Errors of the groups."""
    groups = workload.template.pod_clique_scaling_groups
    cliques = {clique.name: clique for clique in workload.template.cliques}
    for index, group in enumerate(groups):
        path = f"{_GROUPS}[{index}]"
        yield from _name(path, group)
        yield from _members(path, group, workload.metadata.effective_name, cliques.keys())
        yield from _counts(path, group)
        yield from update_strategy.errors(f"{path}.rollingUpdate", group.rolling_update)
    yield from (duplicate(f"{_GROUPS}.name", name) for name in duplicates(group.name for group in groups))
    members = [name for group in groups for name in group.clique_names]
    yield from (duplicate(f"{_GROUPS}.cliqueNames", name) for name in duplicates(members))
    scaled = [name for name in cliques if cliques[name].spec.auto_scaling_config is not None]
    if scaled and (scaled_members := sorted(set(members).intersection(scaled))):
        yield invalid(
            _GROUPS,
            scaled_members,
            "autoScalingConfig is not allowed on a PodClique of a scaling group: use the group's scaleConfig",
        )


def warnings(workload: Workload) -> Iterator[str]:
    """Warnings about settings that are valid and probably not intended."""
    for index, group in enumerate(workload.template.pod_clique_scaling_groups):
        if (config := group.scale_config) is not None:
            path = f"{_GROUPS}[{index}].scaleConfig"
            if config.max_replicas < group.replicas:
                yield (
                    f"{path}.maxReplicas is below replicas: the autoscaler scales in the group from "
                    f"{group.replicas} to {config.max_replicas}; raise maxReplicas or lower replicas"
                )
            yield from autoscaling_bounds.warnings(path, config, group.min_available)
        yield from update_strategy.warnings(
            f"{_GROUPS}[{index}].rollingUpdate", group.rolling_update, workload.spec
        )


def _name(path: str, group: ScalingGroupTemplate) -> Iterator[FieldError]:
    if not group.name:
        yield required(f"{path}.name")
        return
    yield from (invalid(f"{path}.name", group.name, wrong) for wrong in syntax.host_name_part(group.name))


def _members(
    path: str, group: ScalingGroupTemplate, set_name: str, cliques: KeysView[str]
) -> Iterator[FieldError]:
    if not group.clique_names:
        yield required(f"{path}.cliqueNames", "at least one PodClique must be named")
    if unknown := sorted({name for name in group.clique_names if name not in cliques}):
        why = "unidentified PodClique names found: use names of spec.template.cliques"
        yield invalid(f"{path}.cliqueNames", unknown, why)
    for index, name in enumerate(group.clique_names):
        length = names.user_names_length((set_name, group.name, name))
        if length > names.MAX_USER_NAMES_LENGTH:
            places = {f"{path}.cliqueNames[{index}].name": name, f"{path}.name": group.name}
            yield from too_long(length, {**places, "metadata.name": set_name})


def _counts(path: str, group: ScalingGroupTemplate) -> Iterator[FieldError]:
    replicas, least = group.replicas, group.min_available
    if replicas <= 0:
        yield invalid(f"{path}.replicas", replicas, "must be greater than 0")
    if least <= 0:
        yield invalid(f"{path}.minAvailable", least, "must be greater than 0")
    elif least > replicas:
        yield invalid(f"{path}.minAvailable", least, "minAvailable must not be greater than replicas")
    if (config := group.scale_config) is not None:
        fewest = replicas if config.min_replicas is None else config.min_replicas
        yield from autoscaling_bounds.errors(f"{path}.scaleConfig", config, fewest, least)
