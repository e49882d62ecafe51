"""What of an explanation a viewer may see. Pure.

An explanation reads the whole cluster. Names of objects in namespaces that the viewer does not see become
counts. Without the right to list nodes, nothing is said about single nodes and domains, and nothing about
what others use. Texts that name such objects are written again from the data, never searched and replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from grove.api.formats.name_list import name_list
from grove.cluster_state.model import ClusterState, KindState, UnreadKind, unread_lines
from grove.dashboard.problems import Problem, problem_text
from grove.dashboard.rights import Rights
from grove.explanation.model import Explanation, GangExplanation, Holder, ObjectRef, ReasonView, Remedy
from grove.explanation.remedies.what_if import end_pods
from grove.explanation.subtree import POD
from grove.reasons.graph_remedies import GRAPH_REMEDIES
from grove.reasons.texts import REMEDIES, SUMMARIES

NO_NODES = "nodes: you may not list them, so domains, and the pods that use them, are not shown"
SOME_NAMESPACES = "only those of some namespaces are known"
COUNTED = "pods of other namespaces are only counted: you may not list them"


def visible_explanation(found: Explanation, rights: Rights, own: Collection[ReasonView]) -> Explanation:
    """The explanation of an object that the viewer may see. `own`: the reasons that the statuses of their own
    objects have, which they can read anyway."""
    return replace(
        found,
        reasons=tuple(_reason(each, rights, own) for each in found.reasons),
        gangs=tuple(_gang(each, rights) for each in found.gangs),
    )


def _reason(reason: ReasonView, rights: Rights, own: Collection[ReasonView]) -> ReasonView:
    """Without the right to nodes, a reason that the search for nodes has found says only its code."""
    if rights.nodes or any((each.code, each.message) == (reason.code, reason.message) for each in own):
        return reason
    general = REMEDIES[reason.code]
    known = reason.remedy in (general, GRAPH_REMEDIES.get(reason.code))
    return replace(reason, message=SUMMARIES[reason.code], remedy=reason.remedy if known else general)


def _gang(gang: GangExplanation, rights: Rights) -> GangExplanation:
    remedies = tuple(each for remedy in gang.remedies if (each := _remedy(remedy, rights)) is not None)
    if not rights.nodes:
        return GangExplanation(gang.gang, gang.pods, gang.level, remedies=remedies)
    return replace(
        gang,
        domains=tuple(replace(row, reserved=_reserved(row.reserved, rights)) for row in gang.domains),
        holders=tuple(_holders(gang.holders, rights)),
        remedies=remedies,
    )


def _reserved(reserved: Mapping[str, int], rights: Rights) -> dict[str, int]:
    """The gangs of visible namespaces, and all others together."""
    found: Counter[str] = Counter()
    for gang, count in reserved.items():
        seen = rights.sees(gang.partition("/")[0])
        found[gang if seen else "gangs of other namespaces"] += count
    return dict(found)


def _holders(holders: Iterable[Holder], rights: Rights) -> Iterator[Holder]:
    """The pods of visible namespaces, and one row for all others of each resource."""
    hidden: dict[str, list[Holder]] = {}
    for each in holders:
        if rights.sees(each.pod.namespace):
            yield each
        else:
            hidden.setdefault(each.resource, []).append(each)
    for resource, found in hidden.items():
        pod = ObjectRef(POD, _of_others(len(found)))
        yield Holder(pod, "", resource, sum(each.amount for each in found))


def _of_others(count: int) -> str:
    return f"{count} pod{'s' * (count != 1)} of other namespaces"


def _remedy(remedy: Remedy, rights: Rights) -> Remedy | None:
    """The remedy in words that the viewer may read; None for one that they may not know."""
    if not rights.nodes:
        return _remedy_without_nodes(remedy)
    match remedy.action:
        case "endPods":
            return _end_pods(remedy, rights)
        case "uncordon" | "repair" | "removeTaint" | "addNodes" | "widenLevel":
            return remedy
        case _:
            return None


def _remedy_without_nodes(remedy: Remedy) -> Remedy | None:
    """Only what says nothing about the nodes that are there, and nothing about what others use."""
    match remedy.action:
        case "addNodes":
            text = f"add {remedy.count} more node{'s' * (remedy.count != 1)}"
            return Remedy(remedy.action, text, count=remedy.count)
        case "widenLevel":
            return Remedy(remedy.action, remedy.text)
        case _:
            return None


def _end_pods(remedy: Remedy, rights: Rights) -> Remedy:
    seen = tuple(each for each in remedy.pods if rights.sees(each.namespace))
    total, hidden = len(remedy.pods), len(remedy.pods) - len(seen)
    if not hidden:
        return remedy
    named = [name_list([f"{each.namespace}/{each.name}" for each in seen])] if seen else []
    parts = ", ".join([*named, _of_others(hidden)])
    text = f"{end_pods(total, lower_priority=remedy.lower_priority)}: {parts}"
    return replace(remedy, text=text, pods=seen)


def visible_unread(
    found: Explanation, state: ClusterState, unplanned: Collection[UnreadKind], rights: Rights
) -> tuple[str, ...]:
    """What an explanation did not see, a line each. `unplanned`: sets that cannot be planned."""
    lines = [NO_NODES] if found.waits and not rights.nodes else []
    if rights.nodes and any(_has_hidden(each, rights) for each in found.gangs):
        lines.append(COUNTED)
    kinds = {each.resource: _visible_kind(each, rights) for each in state.kinds.values()}
    planned = [each for each in unplanned if rights.sees(_namespace_of(each.resource))]
    lines += unread_lines((*replace(state, kinds=kinds).unread, *planned))
    hidden = sum(len(each.undecodable) for each in state.kinds.values())
    hidden -= sum(len(each.undecodable) for each in kinds.values())
    if hidden and rights.namespaces is None:
        lines.append(f"objects that you may not see and that cannot be decoded: {hidden}")
    return tuple(dict.fromkeys(lines))


def _has_hidden(gang: GangExplanation, rights: Rights) -> bool:
    pods = (*(each.pod for each in gang.holders), *(pod for each in gang.remedies for pod in each.pods))
    return any(not rights.sees(pod.namespace) for pod in pods)


def _visible_kind(kind: KindState, rights: Rights) -> KindState:
    """Objects of a namespace that is seen may be named; others only to a viewer who sees everything. Problems
    and namespaces are named to those who see the namespaces."""
    everything = rights.namespaces is None and rights.nodes
    places = kind.namespace.split(", ")
    problem, namespace = kind.problem, kind.namespace
    if problem:
        problem = problem_text(Problem(kind.resource.label, problem, namespace), rights)
    elif namespace and not all(map(rights.reads_problems_of, places)):
        problem, namespace = SOME_NAMESPACES, ""
    names = tuple(
        name for name in kind.undecodable if everything or ("/" in name and rights.sees(name.split("/")[0]))
    )
    return replace(kind, undecodable=names, problem=problem, namespace=namespace)


def _namespace_of(resource: str) -> str:
    """Of `PodCliqueSet namespace/name`."""
    return resource.partition(" ")[2].partition("/")[0]
