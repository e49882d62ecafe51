"""Validation of the cliques of a set: names, labels, counts, autoscaling bounds and pod specs."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, duplicate, invalid, required
from grove.api.naming import names
from grove.api.types.common import AutoScalingConfig
from grove.api.types.podcliqueset import CliqueTemplate
from grove.rules import syntax
from grove.rules.decode import CliquePodSpec, PodContainer, Workload
from grove.rules.podcliqueset import autoscaling_bounds, resource_amounts, update_strategy
from grove.rules.syntax import duplicates

_CLIQUES = "spec.template.cliques"


def errors(workload: Workload, creating: bool) -> Iterator[FieldError]:
    """Errors of the cliques; some fields of pod specs are checked only when the set is created."""
    cliques = workload.template.cliques
    if not cliques:
        yield required(_CLIQUES, "at least one PodClique must be defined")
    members = workload.template.grouped_cliques
    for index, (clique, pod) in enumerate(zip(cliques, workload.pods, strict=True)):
        path = f"{_CLIQUES}[{index}]"
        yield from _name(path, clique.name, workload, clique.name not in members)
        yield from syntax.label_errors(f"{path}.labels", clique.labels)
        yield from syntax.annotation_errors(f"{path}.annotations", clique.annotations)
        yield from _counts(f"{path}.spec", clique)
        yield from update_strategy.errors(f"{path}.rollingUpdate", clique.rolling_update)
        yield from _pod(f"{path}.spec.podSpec.spec", pod, creating)
    yield from (duplicate(f"{_CLIQUES}.name", name) for name in duplicates(clique.name for clique in cliques))
    roles = (clique.spec.role_name or clique.name for clique in cliques)
    yield from (duplicate(f"{_CLIQUES}.roleName", role) for role in duplicates(roles))


def warnings(workload: Workload) -> Iterator[str]:
    """Warnings about settings that are valid and probably not intended."""
    members = workload.template.grouped_cliques
    for index, (clique, pod) in enumerate(zip(workload.template.cliques, workload.pods, strict=True)):
        path = f"{_CLIQUES}[{index}]"
        if pod.restart_policy not in ("", "Always"):
            yield (
                f"{path}.spec.podSpec.restartPolicy is {pod.restart_policy}: a pod that terminates is "
                "replaced; use Always to restart its containers"
            )
        if clique.spec.auto_scaling_config is not None:
            yield from autoscaling_bounds.warnings(
                f"{path}.spec.autoScalingConfig", clique.spec.auto_scaling_config, clique.spec.min_available
            )
        if clique.rolling_update is not None and clique.name in members:
            yield f"{path}.rollingUpdate is ignored: set it on the scaling group, which updates the clique"
        else:
            yield from update_strategy.warnings(f"{path}.rollingUpdate", clique.rolling_update, workload.spec)


def _name(path: str, name: str, workload: Workload, standalone: bool) -> Iterator[FieldError]:
    if not name:
        yield required(f"{path}.name")
        return
    yield from (invalid(f"{path}.name", name, wrong) for wrong in syntax.host_name_part(name))
    combined = (workload.metadata.effective_name, name)
    if standalone and (length := names.user_names_length(combined)) > names.MAX_USER_NAMES_LENGTH:
        yield from too_long(length, {f"{path}.name": name, "metadata.name": workload.metadata.effective_name})


def too_long(length: int, places: dict[str, str]) -> Iterator[FieldError]:
    """Errors for names whose combined length is too long, one at the path of each name."""
    for path, name in places.items():
        yield invalid(
            path,
            name,
            f"the names of set, scaling group and clique have {length} characters together, at most "
            f"{names.MAX_USER_NAMES_LENGTH} are allowed: shorten one of them",
        )


def _counts(path: str, clique: CliqueTemplate) -> Iterator[FieldError]:
    replicas, least = clique.spec.replicas, clique.spec.min_available
    if replicas <= 0:
        yield invalid(f"{path}.replicas", replicas, "must be greater than 0")
    if least is None:
        yield required(f"{path}.minAvailable")
    elif least <= 0:
        yield invalid(f"{path}.minAvailable", least, "must be greater than 0")
    elif least > replicas:
        yield invalid(f"{path}.minAvailable", least, "minAvailable must not be greater than replicas")
    if clique.spec.auto_scaling_config is not None:
        yield from _bounds(f"{path}.autoScalingConfig", clique.spec.auto_scaling_config, least, replicas)


def _bounds(path: str, config: AutoScalingConfig, least: int | None, replicas: int) -> Iterator[FieldError]:
    if config.min_replicas is None:
        yield required(f"{path}.minReplicas")
    else:
        yield from autoscaling_bounds.errors(path, config, config.min_replicas, least)
    if config.max_replicas < replicas:
        why = "must be greater than or equal to replicas"
        yield invalid(f"{path}.maxReplicas", config.max_replicas, why)


def _pod(path: str, pod: CliquePodSpec, creating: bool) -> Iterator[FieldError]:
    if creating and pod.topology_spread_constraints:
        count = len(pod.topology_spread_constraints)
        why = "must not be set: use a topologyConstraint of the clique"
        yield invalid(f"{path}.topologySpreadConstraints", f"({count})", why)
    if creating and pod.node_name:
        yield invalid(f"{path}.nodeName", pod.node_name, "must not be set: use nodeSelector or node affinity")
    yield from resource_amounts.errors(path, pod)
    for index, container in enumerate(pod.containers):
        yield from _container(f"{path}.containers[{index}]", container)
    for index, container in enumerate(pod.init_containers):
        yield from _container(f"{path}.initContainers[{index}]", container)


def _container(path: str, container: PodContainer) -> Iterator[FieldError]:
    if not container.image.strip():
        yield required(f"{path}.image", "pods cannot be created without it")
    yield from _variables(f"{path}.env", container)


def _variables(path: str, container: PodContainer) -> Iterator[FieldError]:
    for index, variable in enumerate(container.env):
        if not variable.name:
            yield required(f"{path}[{index}].name")
        yield from (
            invalid(f"{path}[{index}].name", variable.name, wrong)
            for wrong in (syntax.variable(variable.name) if variable.name else ())
        )
    named = duplicates(variable.name for variable in container.env if variable.name)
    yield from (duplicate(path, name) for name in named)
