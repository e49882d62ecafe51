"""The reasons for which an object waits: from the statuses of what belongs to it, from its pods, from
placement, and from the Lease of the operator. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.meta import Condition
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.explanation.model import ObjectRef, ReasonView
from grove.explanation.subtree import POD, Subtree, is_whole_set
from grove.plan.members import pod_state
from grove.plan.timestamps import rfc3339, timestamp
from grove.reasons.codes import ReasonCode
from grove.reasons.errors import error_reasons
from grove.reasons.graph_remedies import adapted_to, remedy_in
from grove.reasons.model import ObjectName, WaitReason, ranked
from grove.reasons.pods import pod_reason, pods_reasons, unready

if TYPE_CHECKING:
    from grove.kube.cache.cache import HasMetadata

_OF_UPDATES = frozenset({ReasonCode.UPDATE_PAUSED, ReasonCode.PROGRESS_DEADLINE_EXCEEDED})
_RUNNING = "Running"
_CODES = {code.value: code for code in ReasonCode}


def waits(tree: Subtree) -> bool:
    """Whether something that belongs to the object is not as it should be."""
    if tree.about.kind == POD:
        return any(not pod_state.ready(pod) for pod in tree.pods)
    workload = tree.workload
    if workload is None:
        return True
    if is_whole_set(tree):
        missing = workload.status.available_replicas < workload.spec.replicas
        if missing or any(_errors(tree)) or not tree.gangs:
            return workload.spec.replicas > 0
    return any(_short_cliques(tree)) or any(gang.status.phase != _RUNNING for gang in tree.gangs)


def find_reasons(
    tree: Subtree,
    placement: Mapping[str, WaitReason],
    planned: Iterable[WaitReason],
    operator: WaitReason | None,
) -> list[WaitReason]:
    """All reasons, what keeps everything else from happening first. `placement`: by gang, why the solver has
    no place for it. `planned`: what an operator with the default configuration would write into conditions
    now. `operator`: why nothing is reconciled; then what is written in conditions is outdated."""
    written = list(written_conditions(tree)) if operator is None else []
    found = [*([operator] if operator is not None else []), *_errors(tree), *pods_reasons(unready(tree.pods))]
    explained = {each.about.name for each in written if each.about is not None} | _explained_gangs(tree)
    found += (
        replace(reason, about=ObjectName(PodGang.KIND.name, name), since=_since(tree, name))
        for name, reason in placement.items()
        if name not in explained
    )
    found += _missing_levels(tree)
    known = {each.code for each in found}
    conditions = written or [*planned, *_of_update(tree)]
    found += _one_of_each(each for each in conditions if each.code not in known)
    return ranked(map(adapted_to(tree.workload.metadata), found) if tree.workload is not None else found)


def written_reasons(tree: Subtree) -> list[WaitReason] | None:
    """The reasons of an object whose operator leads, if its statuses and pods suffice: then `find_reasons`
    finds the same with what the solver knows. None: a gang that waits has no reason yet."""
    written = {each.about.name for each in written_conditions(tree) if each.about is not None}
    waiting = {gang.metadata.name for gang in tree.gangs if not _runs(gang)}
    missing = is_whole_set(tree) and len(_indices(tree.gangs)) < _replicas(tree)
    if not written or missing or not waiting <= written | _explained_gangs(tree):
        return None
    return find_reasons(tree, {}, (), None)


def reason_view(reason: WaitReason, namespace: str) -> ReasonView:
    """A reason as it is shown."""
    about = ObjectRef(reason.about.kind, reason.about.name, namespace) if reason.about is not None else None
    since = rfc3339(reason.since) if reason.since else ""
    return ReasonView(reason.code, reason.message or reason.summary, reason.advice, about, since)


def _explained_gangs(tree: Subtree) -> set[str]:
    """The gangs with a pod that has a reason of its own: its scheduler has considered it."""
    return {
        pod.metadata.labels.get(labels.GANG, "") for pod in unready(tree.pods) if pod_reason(pod) is not None
    }


def _errors(tree: Subtree) -> Iterator[WaitReason]:
    """What could not be written, as far as pods wait for it."""
    pods_ready = bool(tree.gangs) and not any(_short_cliques(tree))
    for found in (tree.workload, *tree.groups, *tree.cliques):
        if found is not None:
            about = ObjectName(found.KIND.name, found.metadata.name)
            yield from error_reasons(found.status.last_errors, about, pods_ready=pods_ready)


def written_conditions(tree: Subtree) -> Iterator[WaitReason]:
    """What the conditions of gangs, cliques, groups and the set say, narrow objects first."""
    for found in (*tree.gangs, *tree.cliques, *tree.groups, tree.workload):
        if found is not None:
            about = ObjectName(found.KIND.name, found.metadata.name)
            yield from waiting_reasons(found.status.conditions, about)


def _of_update(tree: Subtree) -> Iterator[WaitReason]:
    """What the condition of the set says about its update, which no replica knows."""
    if tree.workload is not None:
        about = ObjectName(PodCliqueSet.KIND.name, tree.workload.metadata.name)
        found = waiting_reasons(tree.workload.status.conditions, about)
        yield from (each for each in found if each.code in _OF_UPDATES)


def _missing_levels(tree: Subtree) -> Iterator[WaitReason]:
    """That pods are placed without levels which the topology of the set does not have."""
    if tree.workload is not None:
        about = ObjectName(PodCliqueSet.KIND.name, tree.workload.metadata.name)
        for each in tree.workload.status.conditions:
            if each.type == ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE and each.status == "True":
                since = timestamp(each.last_transition_time)
                yield WaitReason(ReasonCode.TOPOLOGY_LEVELS_UNAVAILABLE, each.message, about, since=since)


def waiting_reasons(conditions: Iterable[Condition], about: ObjectName) -> Iterator[WaitReason]:
    """The reason in the condition `Waiting`. Its message has the remedy already."""
    for each in conditions:
        code = _CODES.get(each.reason)
        if each.type == ConditionType.WAITING and each.status == "True" and code is not None:
            remedy, since = remedy_in(each.message, code), timestamp(each.last_transition_time)
            yield WaitReason(code, each.message.removesuffix(f"; {remedy}"), about, since=since)


def _one_of_each(reasons: Iterable[WaitReason]) -> list[WaitReason]:
    """One reason for each code: a condition is repeated by wider objects."""
    found: dict[ReasonCode, WaitReason] = {}
    for each in reasons:
        found.setdefault(each.code, each)
    return list(found.values())


def waiting_replicas(tree: Subtree) -> list[int]:
    """The replicas of a set with pods that are not ready, as far as the object is part of them."""
    missing = {index for index in range(_replicas(tree)) if index not in _indices(tree.gangs)}
    return sorted((missing if is_whole_set(tree) else set()) | _indices(_short_cliques(tree)))


def _replicas(tree: Subtree) -> int:
    return tree.workload.spec.replicas if tree.workload is not None else 0


def _indices(found: Iterable[HasMetadata]) -> set[int]:
    written = (each.metadata.labels.get(labels.SET_REPLICA, "") for each in found)
    return {int(index) for index in written if index.isdecimal()}


def _since(tree: Subtree, gang: str) -> float:
    created = (each.metadata.creation_timestamp for each in tree.gangs if each.metadata.name == gang)
    return timestamp(next(created, None))


def _short_cliques(tree: Subtree) -> Iterator[PodClique]:
    """The cliques with fewer ready pods than they should have."""
    staying = (pod for pod in tree.pods if not pod_state.terminating(pod))
    ready = Counter(pod.metadata.labels.get(labels.CLIQUE) for pod in staying if pod_state.ready(pod))
    return (each for each in tree.cliques if each.spec.replicas > ready[each.metadata.name])


def state_text(tree: Subtree) -> str:
    """How many replicas, gangs and pods are there, in a few words."""
    ready = sum(pod_state.ready(pod) for pod in tree.pods)
    facts = []
    if is_whole_set(tree) and tree.workload is not None:
        status = tree.workload.status
        facts.append(f"{status.available_replicas}/{tree.workload.spec.replicas} replicas available")
    if tree.gangs and tree.about.kind not in (POD, "PodGang"):
        facts.append(f"{sum(map(_runs, tree.gangs))}/{len(tree.gangs)} gangs running")
    if tree.about.kind == POD:
        return pod_phase(tree.pods[0]) if tree.pods else "gone"
    wanted = max(sum(clique.spec.replicas for clique in tree.cliques), len(tree.pods))
    facts.append(f"{ready}/{wanted} pods ready" if wanted else "no pods yet")
    return ", ".join(facts)


def pod_phase(pod: Pod) -> str:
    """The state of a pod in a word or two."""
    if pod_state.terminating(pod):
        return "terminating"
    if pod_state.ready(pod):
        return "ready"
    if not pod.spec.node_name:
        return "gated" if pod.spec.scheduling_gates else "not scheduled"
    return f"not ready, on {pod.spec.node_name}"


def _runs(gang: PodGang) -> bool:
    return gang.status.phase == _RUNNING
