"""What a restart replaces: the cliques of a unit, and their pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grove.api.naming import annotations as keys
from grove.api.naming import labels, names
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.restarts import restart_tokens
from grove.rules.restart_units import RestartUnit
from grove.views.claim_view import View


class RestartView(View, frozen=True):
    """A restart that was requested."""

    namespace: str
    kind: str
    name: str
    """The object that carries the request: a PodCliqueSet, or a DynamoGraphDeployment."""
    unit: str
    """The part that is restarted, for people."""
    cliques: tuple[str, ...]
    """The names of the PodCliques whose pods are replaced."""
    pods: int
    request: str
    """The value that requests the restart."""
    dry_run: bool = False


def unit_text(unit: RestartUnit, template_groups: Iterable[str]) -> str:
    """A unit in words."""
    where = "all replicas" if unit.replica is None else f"replica {unit.replica}"
    if not unit.part:
        return where
    kind = "group" if unit.part in template_groups else "clique"
    if unit.group_replica is not None:
        return f"replica {unit.group_replica} of group {unit.part} in {where}"
    return f"{kind} {unit.part} in {where}"


def affected(workload: PodCliqueSet, unit: RestartUnit, cliques: Iterable[PodClique]) -> list[PodClique]:
    """The cliques whose pods are replaced. A replica of a group is replaced as a whole."""
    found = list(cliques)
    concerned = [clique for clique in found if _is_concerned(workload, unit, clique)]
    whole = {_group_replica(clique) for clique in concerned} - {None}
    chosen = {clique.metadata.name for clique in concerned}
    return [each for each in found if each.metadata.name in chosen or _group_replica(each) in whole]


def _is_concerned(workload: PodCliqueSet, unit: RestartUnit, clique: PodClique) -> bool:
    object_labels, set_name = clique.metadata.labels, workload.metadata.name
    replica = int(object_labels.get(labels.SET_REPLICA, "-1"))
    groups = {
        names.group(set_name, replica, each.name): each.name
        for each in workload.spec.template.pod_clique_scaling_groups
    }
    tokens = restart_tokens(
        {unit.annotation.removeprefix(keys.RESTART_PREFIX): ""},
        replica,
        object_labels.get(labels.CLIQUE_TEMPLATE, ""),
        groups.get(object_labels.get(labels.GROUP, ""), ""),
        int(object_labels.get(labels.GROUP_REPLICA, "0")),
    )
    return bool(tokens)


def _group_replica(clique: PodClique) -> tuple[str, str] | None:
    object_labels = clique.metadata.labels
    group = object_labels.get(labels.GROUP)
    return (group, object_labels.get(labels.GROUP_REPLICA, "")) if group else None


def restart_lines(view: RestartView) -> Sequence[str]:
    """What is restarted, and how to follow it."""
    pods = "1 pod" if view.pods == 1 else f"{view.pods} pods"
    cliques = "1 clique" if len(view.cliques) == 1 else f"{len(view.cliques)} cliques"
    what = f"{view.kind} {view.name}: {view.unit}, {pods} of {cliques}"
    if view.dry_run:
        return (f"{what}: would be restarted (dry run)",)
    follow = f"grove rollout status {view.name} -n {view.namespace}"
    return f"{what}: will be restarted, as by an update", f"follow it with: {follow}"
