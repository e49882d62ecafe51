"""Decides whether a replica is held at its current size: because its set asks for more pods than allowed, or
because a PodGang could not name all of its pods.

A held replica keeps its pods: they are replaced and updated, it is scaled in and deleted, and nothing is
added. Its layout is built from existing objects, so a plan costs what the replica has and not what it asks
for, however large the counts are.

Counts are computed by arithmetic (`grove.api.types.pod_counts`): nothing is expanded to find out that it is
too much.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from grove import timing
from grove.api.error_codes import ErrorCode
from grove.api.intents import Create, Intent
from grove.api.naming import labels, names
from grove.api.types import pod_counts
from grove.api.types.pod import Pod
from grove.api.types.pod_counts import GangSize
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetTemplate, ScalingGroupTemplate
from grove.api.types.podgang import PodGang
from grove.plan.model import UserError
from grove.plan.snapshot import Snapshot

Cliques = Mapping[str, PodClique]
Groups = Mapping[str, PodCliqueScalingGroup]


class Present(Struct, frozen=True, gc=False):
    """The existing parts of a held replica, by name."""

    groups: Mapping[str, tuple[int, ...]]
    """Of each group, the replicas with an existing clique."""
    cliques: Mapping[str, int]
    """Of each clique, how many pods it keeps."""


def pods_asked(workload: PodCliqueSet, index: int, groups: Groups, cliques: Cliques) -> int:
    """How many pods one replica asks for; a clique without pods counts as one."""
    set_name, template = workload.metadata.name, workload.spec.template
    sizes = _template_counts(template)
    grouped, asked = template.grouped_cliques, 0
    for group in template.pod_clique_scaling_groups:
        asked += _replicas(groups.get(names.group(set_name, index, group.name)), group) * sum(
            sizes.get(name, 0) for name in group.clique_names
        )
    asked += sum(size for name, size in sizes.items() if name not in grouped)
    for found in cliques.values():
        template_name = found.metadata.labels.get(labels.CLIQUE_TEMPLATE, "")
        asked += pod_counts.of_clique(found.spec.replicas) - sizes.get(template_name, 0)
    return asked


def largest_gang(workload: PodCliqueSet, index: int, groups: Groups, cliques: Cliques) -> GangSize:
    """The largest PodGang that a replica would have, with the counts of its cliques and groups."""
    meta, template = workload.metadata, workload.spec.template
    by_name = {clique.name: clique.spec.replicas for clique in template.cliques}
    base, scaled = GangSize(0, 0), [GangSize(0, 0)]
    for name in by_name.keys() - template.grouped_cliques:
        full = names.clique(meta.name, index, name)
        found = cliques.get(full)
        pods = by_name[name] if found is None else found.spec.replicas
        base += pod_counts.of_references(meta.namespace, full, pods)
    for group in template.pod_clique_scaling_groups:
        full = names.group(meta.name, index, group.name)
        one = GangSize(0, 0)
        for name in group.clique_names:
            member = names.member_clique(full, group.min_available, name)
            one += pod_counts.of_references(meta.namespace, member, by_name.get(name, 0))
        inside = min(_replicas(groups.get(full), group), group.min_available)
        base += one.times(inside)
        more = _added_by_scaling(meta.namespace, group, full, by_name, cliques)
        base += sum_of(extra for replica, extra in more.items() if replica < group.min_available)
        scaled += [one + extra for replica, extra in more.items() if replica >= group.min_available]
        scaled.append(one)
    return max(base, *scaled, key=lambda gang: gang.size)


def sum_of(sizes: Iterable[GangSize]) -> GangSize:
    total = GangSize(0, 0)
    for size in sizes:
        total += size
    return total


def _added_by_scaling(
    namespace: str, group: ScalingGroupTemplate, full: str, by_name: Mapping[str, int], cliques: Cliques
) -> dict[int, GangSize]:
    """By group replica, what its cliques add whose counts differ from the template's."""
    more: dict[int, GangSize] = {}
    for found in cliques.values():
        object_labels = found.metadata.labels
        name, pods = object_labels.get(labels.CLIQUE_TEMPLATE, ""), found.spec.replicas
        if (
            name in group.clique_names
            and object_labels.get(labels.GROUP) == full
            and pods != by_name.get(name)
        ):
            replica = _index(object_labels)
            if replica is not None:
                each = pod_counts.of_references(namespace, found.metadata.name, 1).size
                added = pods - by_name.get(name, 0)
                more[replica] = more.get(replica, GangSize(0, 0)) + GangSize(added, added * each)
    return more


def is_held(
    workload: PodCliqueSet, index: int, groups: Groups, cliques: Cliques, asked: int, limit: int
) -> bool:
    """Whether a replica is held. `asked` is what its whole set asks for."""
    if asked > limit or asked <= timing.PODS_IN_ANY_GANG:
        return asked > limit
    asked = pods_asked(workload, index, groups, cliques)
    return asked > limit or (
        asked > timing.PODS_IN_ANY_GANG and not largest_gang(workload, index, groups, cliques).fits
    )


def errors(snapshot: Snapshot) -> tuple[UserError, ...]:
    """The errors of a held replica. An error about the pods of the whole set is reported by the set."""
    gang = largest_gang(snapshot.workload, snapshot.index, snapshot.groups, snapshot.cliques)
    if gang.fits:
        return ()
    message = (
        f"a PodGang would name {gang.pods} pods in about {gang.size} bytes, and the API server stores at "
        f"most {pod_counts.LARGEST_GANG}: scale cliques in, or lower minAvailable of groups. Until then "
        "nothing is added to the replica"
    )
    return (UserError(ErrorCode.GANG_SIZE, message),)


def too_many_pods(asked: int, limit: int) -> UserError:
    """The error of a set above the pod limit."""
    message = (
        f"the set asks for {asked} pods (spec.replicas times the replicas of cliques and groups, as they are "
        f"scaled), and at most {limit} are allowed: lower them, or raise limits.podsPerSet of the operator's "
        "configuration. Until then its pods are kept and nothing is added"
    )
    return UserError(ErrorCode.POD_LIMIT, message)


def present(snapshot: Snapshot) -> Present:
    """Returns what a held replica has and keeps."""
    named = _named(snapshot.gangs.values())
    running = _counted(snapshot.pods)
    set_name, template = snapshot.workload.metadata.name, snapshot.workload.spec.template
    sizes = {clique.name: clique.spec.replicas for clique in template.cliques}
    kept: dict[str, int] = {}

    def keep(full: str, name: str) -> None:
        found = snapshot.cliques.get(full)
        if found is not None or full in named:
            asked = found.spec.replicas if found is not None else sizes.get(name, 0)
            kept[full] = min(asked, max(named.get(full, 0), running.get(full, 0)))

    for clique in template.cliques:
        keep(names.clique(set_name, snapshot.index, clique.name), clique.name)
    groups: dict[str, tuple[int, ...]] = {}
    for group in template.pod_clique_scaling_groups:
        full = names.group(set_name, snapshot.index, group.name)
        found = snapshot.groups.get(full)
        count = found.spec.replicas if found is not None else group.replicas
        inside = members(full, group.clique_names, snapshot.cliques)
        groups[full] = tuple(index for index in inside if index < count)
        for index in groups[full]:
            for name in group.clique_names:
                keep(names.member_clique(full, index, name), name)
    return Present(groups, kept)


def members(group: str, inside: Collection[str], cliques: Collection[str]) -> list[int]:
    """The replicas of a group with an existing clique. `group` is the full name, `inside` are the names of
    its cliques in the template. Names decide, not labels, which others can change."""
    found: set[int] = set()
    for name in cliques:
        if name.startswith(f"{group}-"):
            index, _, template = name[len(group) + 1 :].partition("-")
            if template in inside and index.isdecimal():
                number = int(index)
                if names.member_clique(group, number, template) == name:
                    found.add(number)
    return sorted(found)


def is_complete(snapshot: Snapshot, held: Present) -> bool:
    """Whether a held replica has pods of every part that should have some, so that it can be available."""
    set_name, template = snapshot.workload.metadata.name, snapshot.workload.spec.template
    grouped = template.grouped_cliques
    for clique in template.cliques:
        if clique.name in grouped:
            continue
        full = names.clique(set_name, snapshot.index, clique.name)
        found = snapshot.cliques.get(full)
        if (clique.spec if found is None else found.spec).replicas > 0 and not held.cliques.get(full):
            return False
    for group in template.pod_clique_scaling_groups:
        full = names.group(set_name, snapshot.index, group.name)
        known = snapshot.groups.get(full)
        replicas = group.replicas if known is None else known.spec.replicas
        if replicas > 0 and len(held.groups.get(full, ())) < group.min_available:
            return False
    return True


def without_additions(intents: Collection[Intent]) -> tuple[Intent, ...]:
    """Drops the intents that would add parts, and those that depend on them: the rest is equal to a plan that
    was executed in part, from which any later plan continues."""
    dropped: set[str] = set()
    kept: list[Intent] = []
    for intent in intents:
        if _adds(intent) or not dropped.isdisjoint(intent.after):
            dropped.add(intent.id)
        else:
            kept.append(intent)
    return tuple(kept)


def _adds(intent: Intent) -> bool:
    if not isinstance(intent, Create):
        return False
    kind = intent.target.kind
    if kind == PodGang.KIND.name:
        pod_groups = intent.body["spec"]["podgroups"]
        return not any(group["podReferences"] for group in pod_groups)
    return kind in (PodClique.KIND.name, PodCliqueScalingGroup.KIND.name)


def _named(gangs: Iterable[PodGang]) -> dict[str, int]:
    """How many pods gangs name, by clique."""
    named: dict[str, int] = {}
    for gang in gangs:
        for group in gang.spec.pod_groups:
            named[group.name] = max(named.get(group.name, 0), len(group.pod_references))
    return named


def _counted(pods: Iterable[Pod]) -> dict[str, int]:
    """How many pods are not terminating, by clique."""
    counted: dict[str, int] = {}
    for pod in pods:
        if pod.metadata.deletion_timestamp is None:
            name = pod.metadata.labels.get(labels.CLIQUE, "")
            counted[name] = counted.get(name, 0) + 1
    return counted


def _template_counts(template: PodCliqueSetTemplate) -> dict[str, int]:
    return {clique.name: pod_counts.of_clique(clique.spec.replicas) for clique in template.cliques}


def _replicas(found: PodCliqueScalingGroup | None, template: ScalingGroupTemplate) -> int:
    replicas = template.replicas if found is None else found.spec.replicas
    return pod_counts.of_group(replicas, template.min_available)


def _index(object_labels: Mapping[str, str]) -> int | None:
    index = object_labels.get(labels.GROUP_REPLICA, "")
    return int(index) if index.isdecimal() else None
